//! Launches in rounds: of each forced algorithm, of the default, and of the channel.
//!
//! Where an MPI's control variables can be set while it runs ([`Ways`]), one launch times all algorithms of a collective and its default in turns. Launches
//! differ by more than algorithms do, so there only times of the same launch are compared.
//!
//! Other libraries read their settings when they start, so each setting needs a launch. One launch forces an algorithm of every collective,
//! except of those that a forced algorithm calls itself. Rounds go forwards and backwards, with the default at both ends. So it is also where
//! a launch with all algorithms failed, to find the one that did.
//!
//! Each launch times the same ping-pongs first and last. If these were slow, other work disturbed the launch, and one with settings of its own does not count
//! where others are left.

use super::curves::CODE;
use super::tasks::{
    channel_tasks, forced, lengths, lengths_of, packs, task, with_reference, REFERENCE, REFERENCE_BYTES,
};
use super::ways::Ways;
use super::{Algorithm, Curves, Failed, Flavour, Host, HostError, Journal, Line};
use crate::bench::mpi::median;
use crate::script::Variables;
use lineweave_core::collective::Collective;
use std::collections::BTreeSet;

/// Ratio of a launch's ping-pongs to the median from which the launch counts as disturbed.
const DISTURBED: f64 = 1.5;

/// The effort of measuring.
#[derive(Clone, PartialEq, Debug)]
pub struct Effort {
    /// Lengths of messages or blocks.
    pub bytes: Vec<u64>,
    pub collectives: Vec<Collective>,
    pub rounds: usize,
    /// The time that a case is timed for in a launch, in ms.
    pub window_ms: u32,
    pub channel: bool,
    /// True to look, once, for the code that each algorithm runs.
    pub code: bool,
    /// Variables of the environment of every launch.
    pub environment: Variables,
}

/// A forced algorithm: its times, or the reason why it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    pub algorithm: Algorithm,
    pub times: Result<Curves, String>,
}

/// All measurements of an MPI.
#[derive(Clone, Debug)]
pub struct Runs {
    /// Times of the channel's tasks.
    pub channel: Curves,
    /// Times with no algorithm forced.
    pub default: Curves,
    /// Times of each forced algorithm.
    pub settings: Vec<Setting>,
    pub launches: usize,
    /// Launches that were disturbed by other work.
    pub disturbed: usize,
}

/// A launch that ended well.
struct Launch {
    what: What,
    lines: Vec<Line>,
}

/// The subject of a launch.
#[derive(Clone, PartialEq, Eq)]
enum What {
    Channel,
    /// The defaults of these collectives.
    Default(Vec<Collective>),
    /// Algorithms of several collectives.
    Forced(Vec<usize>),
    /// The default of a collective and these of its algorithms, in turns.
    Together(Collective, Vec<usize>),
}

impl Runs {
    /// Measures the default and these algorithms, and the channel if it is wanted. `step` is called before each launch.
    pub fn measure(
        host: &Host,
        flavour: Flavour,
        effort: &Effort,
        algorithms: Vec<Algorithm>,
        journal: &mut Journal,
        mut step: impl FnMut(&str),
    ) -> Result<Runs, HostError> {
        let mut measuring = Measuring {
            host,
            flavour,
            effort,
            ways: Ways::of(host, flavour, &algorithms),
            why: vec![None; algorithms.len()],
            algorithms,
            done: Vec::new(),
        };
        // Collectives whose algorithms have launches of their own.
        let mut apart: BTreeSet<Collective> = match flavour.switches() {
            true => BTreeSet::new(),
            false => effort.collectives.iter().copied().collect(),
        };
        for round in 0..effort.rounds {
            if effort.channel {
                step(&format!("round {}: messages", round + 1));
                measuring.launch(journal, What::Channel, round).map_err(|failed| host.broken(failed))?;
            }
            let mut failed = BTreeSet::new();
            for &collective in effort.collectives.iter().filter(|c| !apart.contains(c)) {
                step(&format!("round {}: {collective}", round + 1));
                let all = measuring.left_of(collective);
                let together = What::Together(collective, all.clone());
                if !measuring.ways.have(&all) || measuring.launch(journal, together, round).is_err() {
                    failed.insert(collective);
                }
            }
            apart.extend(failed);
            if apart.is_empty() {
                continue;
            }
            let before = measuring.why.clone();
            measuring.one_by_one(&apart, round, journal, &mut step)?;
            // Without the algorithm that failed, the others go together again.
            let culprit = |i: usize| before[i].is_none() && measuring.why[i].is_some();
            let found = (0..before.len()).filter(|&i| culprit(i)).map(|i| measuring.algorithms[i].collective);
            for collective in found {
                apart.remove(&collective);
            }
        }
        let Measuring { done, algorithms, why, .. } = measuring;
        Ok(Runs::of(done, flavour, &effort.collectives, algorithms, why))
    }

    /// Returns the number of launches for which [`Runs::measure`] calls `step`, if none fails.
    pub fn steps(flavour: Flavour, algorithms: &[Algorithm], effort: &Effort) -> usize {
        let all: Vec<usize> = (0..algorithms.len()).collect();
        let each =
            if flavour.switches() { effort.collectives.len() } else { packs(algorithms, &all).len() + 2 };
        effort.rounds * (each + usize::from(effort.channel))
    }

    /// Returns these runs with each algorithm's times scaled so that the default took the same in all launches, where both were timed in the
    /// same launches.
    pub fn levelled(mut self) -> Runs {
        for times in self.settings.iter_mut().filter_map(|s| s.times.as_mut().ok()) {
            times.level(&self.default);
        }
        self.default.level(&self.default.clone());
        self
    }

    fn of(
        done: Vec<Launch>,
        flavour: Flavour,
        collectives: &[Collective],
        algorithms: Vec<Algorithm>,
        why: Vec<Option<String>>,
    ) -> Runs {
        let disturbed = disturbed(&done.iter().map(|l| l.lines.as_slice()).collect::<Vec<_>>());
        // Adds what each launch says of a subject.
        let collect = |curves: &mut Curves, said: &dyn Fn(&Launch) -> Vec<Line>| {
            let all: Vec<(Vec<Line>, bool)> = done.iter().map(said).zip(disturbed.iter().copied()).collect();
            let all: Vec<_> = all.into_iter().filter(|(lines, _)| !lines.is_empty()).collect();
            let quiet = all.iter().filter(|(_, disturbed)| !disturbed).count();
            // What is compared within a launch counts there, and the launches of a round stay together.
            for (lines, disturbed) in &all {
                // Other work does not change the code.
                let (code, times): (Vec<Line>, Vec<Line>) =
                    lines.iter().cloned().partition(|l| l.task.starts_with(CODE));
                curves.add(&code);
                if flavour.switches() || quiet == 0 || !disturbed {
                    curves.add(&times);
                }
            }
        };
        let mut default = Curves::default();
        for &collective in collectives {
            collect(&mut default, &|launch| match &launch.what {
                What::Default(_) | What::Together(..) => launch.said_of(collective, 0),
                _ => Vec::new(),
            });
        }
        let mut channel = Curves::default();
        collect(&mut channel, &|launch| match launch.what {
            What::Channel => launch.lines.clone(),
            _ => Vec::new(),
        });
        let setting = |(i, (algorithm, why)): (usize, (Algorithm, Option<String>))| {
            let said = |launch: &Launch| match &launch.what {
                What::Forced(pack) if pack.contains(&i) => launch.said_of(algorithm.collective, 0),
                What::Together(_, all) => {
                    let at = all.iter().position(|&j| j == i);
                    at.map_or_else(Vec::new, |at| launch.said_of(algorithm.collective, at + 1))
                }
                _ => Vec::new(),
            };
            let mut times = Curves::default();
            collect(&mut times, &said);
            Setting { times: why.map_or(Ok(times), Err), algorithm }
        };
        let settings = algorithms.into_iter().zip(why).enumerate().map(setting).collect();
        let (launches, disturbed) = (done.len(), disturbed.iter().filter(|d| **d).count());
        Runs { channel, default, settings, launches, disturbed }
    }
}

impl Launch {
    /// Returns the lines of a collective in one of its ways, without the way's number; 0 is the default, or what is forced by the launch.
    fn said_of(&self, collective: Collective, way: usize) -> Vec<Line> {
        let of = |line: &Line| {
            let (task, number) = line.task.split_once('~').unwrap_or((&line.task, "0"));
            let is = task.trim_start_matches(CODE) == collective.name() && number == way.to_string();
            is.then(|| Line { task: task.to_owned(), ..line.clone() })
        };
        self.lines.iter().filter_map(of).collect()
    }
}

/// An MPI that is being measured.
struct Measuring<'a> {
    host: &'a Host,
    flavour: Flavour,
    effort: &'a Effort,
    algorithms: Vec<Algorithm>,
    ways: Ways,
    /// The reason why an algorithm has no times.
    why: Vec<Option<String>>,
    done: Vec<Launch>,
}

impl Measuring<'_> {
    /// Returns the algorithms of a collective that did not fail.
    fn left_of(&self, collective: Collective) -> Vec<usize> {
        let is = |&i: &usize| self.algorithms[i].collective == collective && self.why[i].is_none();
        (0..self.algorithms.len()).filter(is).collect()
    }

    fn launch(&mut self, journal: &mut Journal, what: What, round: usize) -> Result<(), Failed> {
        let (tasks, variables) = self.asked(&what, round);
        let lines = journal.launch(self.host, &tasks, self.effort.window_ms, &variables)?;
        self.done.push(Launch { what, lines });
        Ok(())
    }

    /// Measures the algorithms of these collectives in launches that force one of each, and the defaults.
    fn one_by_one(
        &mut self,
        collectives: &BTreeSet<Collective>,
        round: usize,
        journal: &mut Journal,
        step: &mut impl FnMut(&str),
    ) -> Result<(), HostError> {
        let numbers: Vec<usize> = collectives.iter().flat_map(|&c| self.left_of(c)).collect();
        let mut packs = packs(&self.algorithms, &numbers);
        if round % 2 == 1 {
            packs.reverse();
        }
        let default = What::Default(collectives.iter().copied().collect());
        for what in
            [default.clone()].into_iter().chain(packs.into_iter().map(What::Forced)).chain([default.clone()])
        {
            step(&title(&what, &self.algorithms, round));
            let What::Forced(mut pack) = what else {
                self.launch(journal, what, round).map_err(|failed| self.host.broken(failed))?;
                continue;
            };
            while !pack.is_empty() {
                let Err(failed) = self.launch(journal, What::Forced(pack.clone()), round) else { break };
                // The first algorithm without a time made the launch fail.
                let culprit = pack.iter().find(|&&i| !has_all(&failed, &self.algorithms[i], self.effort));
                let culprit = *culprit.unwrap_or(&pack[0]);
                self.why[culprit] = Some(failed.how);
                pack.retain(|&i| i != culprit);
            }
        }
        Ok(())
    }

    /// Returns the tasks and the environment of a launch.
    fn asked(&self, what: &What, round: usize) -> (Vec<String>, Variables) {
        let Measuring { effort, algorithms, .. } = self;
        let (mut tasks, variables) = match what {
            What::Channel => (channel_tasks(self.host.facts.ranks), Vec::new()),
            What::Default(collectives) => {
                (collectives.iter().map(|c| task(*c, &effort.bytes)).collect(), Vec::new())
            }
            What::Together(collective, _) => (vec![task(*collective, &effort.bytes)], Vec::new()),
            What::Forced(pack) => {
                let of = |&i: &usize| task(algorithms[i].collective, &lengths_of(&algorithms[i], effort));
                (pack.iter().map(of).collect(), forced(self.flavour, algorithms, pack))
            }
        };
        // Once is enough for the code, which is no time.
        if round == 0 && effort.code && *what != What::Channel {
            tasks.extend(tasks.clone().iter().map(|task| format!("{CODE}{task}")));
        }
        let words = match what {
            What::Together(_, all) => self.ways.words(algorithms, all),
            _ => Vec::new(),
        };
        let environment = effort.environment.iter().cloned().chain(variables).collect();
        (words.into_iter().chain(with_reference(tasks)).collect(), environment)
    }
}

/// Returns, for each launch, whether it was disturbed, by its ping-pongs.
pub(super) fn disturbed(launches: &[&[Line]]) -> Vec<bool> {
    let worst = |lines: &[Line], bytes: u64| {
        let of = lines.iter().filter(|l| l.task == REFERENCE && l.bytes == bytes).map(|l| median(&l.times));
        of.fold(0.0, f64::max)
    };
    let usual = REFERENCE_BYTES.map(|bytes| {
        let all: Vec<f64> = launches.iter().map(|l| worst(l, bytes)).filter(|t| *t > 0.0).collect();
        if all.is_empty() {
            f64::INFINITY
        } else {
            median(&all)
        }
    });
    let is = |lines: &&[Line]| (0..2).any(|i| worst(lines, REFERENCE_BYTES[i]) > DISTURBED * usual[i]);
    launches.iter().map(is).collect()
}

fn title(what: &What, algorithms: &[Algorithm], round: usize) -> String {
    let of = match what {
        What::Channel => "messages".to_owned(),
        What::Together(collective, _) => collective.to_string(),
        What::Default(_) => "default".to_owned(),
        What::Forced(pack) => pack.first().map_or_else(String::new, |&i| {
            let others = if pack.len() > 1 { format!(" and {} more", pack.len() - 1) } else { String::new() };
            format!("{} {}{others}", algorithms[i].collective, algorithms[i].name)
        }),
    };
    format!("round {}: {of}", round + 1)
}

fn has_all(failed: &Failed, algorithm: &Algorithm, effort: &Effort) -> bool {
    let has = |bytes: &u64| {
        failed.before.iter().any(|l| l.task == algorithm.collective.name() && l.bytes == *bytes)
    };
    lengths(algorithm.collective, &lengths_of(algorithm, effort)).iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_with_slow_ping_pongs_were_disturbed() {
        let launch = |ns: f64| {
            let line = |bytes, ns| Line { task: REFERENCE.into(), bytes, times: vec![ns] };
            vec![line(64, ns), line(64 << 10, 9000.0)]
        };
        let all: Vec<Vec<Line>> = [500.0, 510.0, 2000.0, 490.0].map(launch).into();
        let found = disturbed(&all.iter().map(Vec::as_slice).collect::<Vec<_>>());
        assert_eq!(found, [false, false, true, false]);
    }

    /// Checks two launches that are not alike, but whose algorithm takes half of the default's time in both.
    #[test]
    fn an_algorithm_is_compared_with_the_default_of_its_own_launch() {
        let algorithm = Algorithm {
            collective: Collective::Bcast,
            name: "6".into(),
            value: "6".into(),
            form: None,
            calls: &[],
            copies: None,
            least: 0,
        };
        let launch = |ns: f64| {
            let line = |task: &str, ns| Line { task: task.into(), bytes: 8, times: vec![ns] };
            let lines = vec![line("bcast", ns), line("bcast~1", ns / 2.0), line("code-bcast~1", 7.0)];
            Launch { what: What::Together(Collective::Bcast, vec![0]), lines }
        };
        let done = vec![launch(100.0), launch(300.0), launch(120.0)];
        let runs = Runs::of(done, Flavour::Mpich, &[Collective::Bcast], vec![algorithm], vec![None]);
        let times =
            |runs: &Runs| runs.settings[0].times.as_ref().unwrap().launches("bcast", 8).unwrap().to_vec();
        assert_eq!(times(&runs), [50.0, 150.0, 60.0]);
        assert_eq!(runs.settings[0].times.as_ref().unwrap().launches("code-bcast", 8), Some(&[7.0][..]));
        let runs = runs.levelled();
        assert_eq!(times(&runs), [60.0; 3]);
        assert_eq!(runs.default.launches("bcast", 8), Some(&[120.0; 3][..]));
    }
}
