//! Measurements in rounds: of the default and each forced algorithm, and of the channel.
//!
//! Libraries read their settings when they start. So a job forces an algorithm of every collective, except of those that a forced algorithm calls itself, and
//! the jobs and one of the default measure in turns ([`Host::launch_in_turns`]). Only times of the same round are compared: those of others may be
//! longer by more than algorithms differ by. Messages of the channel are timed by the job of the default, before all collectives.

use super::curves::CODE;
use super::tasks::{channel_tasks, forced, lengths, packs};
use super::turns::{Case, FailedJob, MOST_JOBS};
use super::{Algorithm, Curves, Failed, Flavour, Host, HostError, Journal, Line};
use crate::bench::mpi::median;
use crate::script::Variables;
use lineweave_core::collective::Collective;

/// The most processes that are there at once, unless even one algorithm beside the default takes more. Those of Open MPI and MPICH took 12
/// and 16 MB each among 2 ranks, shared pages included.
const PROCESSES: usize = 256;

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
    /// Settings of a rules file, for a further job beside those of the default and the algorithms.
    pub ruled_by: Option<Variables>,
}

impl Effort {
    /// Returns the number of jobs that force no algorithm.
    fn unforced_jobs(&self) -> usize {
        1 + usize::from(self.ruled_by.is_some())
    }
}

/// A forced algorithm: its times, or the reason why it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    pub algorithm: Algorithm,
    pub times: Result<Curves, String>,
}

/// All measurements of an MPI.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Times of the channel's tasks.
    pub channel: Curves,
    /// Times with no algorithm forced.
    pub default: Curves,
    /// Times with the settings of [`Effort::ruled_by`].
    pub ruled: Curves,
    /// Times of each forced algorithm.
    pub settings: Vec<Setting>,
    pub rounds: usize,
}

/// A round of the defaults, and of jobs that each force algorithms of several collectives.
struct Round {
    packs: Vec<Vec<usize>>,
    lines: Vec<Line>,
}

impl Runs {
    /// Measures the default and these algorithms, and the channel if it is wanted. `step` is called before each round.
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
            why: vec![None; algorithms.len()],
            algorithms,
            most: (PROCESSES / host.facts.ranks).clamp(effort.unforced_jobs() + 1, MOST_JOBS)
                - effort.unforced_jobs(),
            done: Vec::new(),
        };
        for round in 0..effort.rounds {
            step(&format!("round {}", round + 1));
            measuring.in_turns(round, journal)?;
        }
        let Measuring { done, algorithms, why, .. } = measuring;
        Ok(Runs::of(&done, effort, algorithms, why))
    }

    /// Returns these runs with the times of each round scaled so that the default took the same in all rounds.
    pub fn levelled(mut self) -> Runs {
        for times in self.settings.iter_mut().filter_map(|s| s.times.as_mut().ok()) {
            times.level(&self.default);
        }
        self.ruled.level(&self.default);
        self.default.level(&self.default.clone());
        self
    }

    fn of(done: &[Round], effort: &Effort, algorithms: Vec<Algorithm>, why: Vec<Option<String>>) -> Runs {
        let mut runs = Runs { rounds: done.len(), ..Runs::default() };
        done.iter().for_each(|round| runs.channel.add(&round.channel()));
        for (&collective, round) in effort.collectives.iter().flat_map(|c| done.iter().map(move |r| (c, r))) {
            runs.default.add(&round.said_of(collective, 0));
            if effort.ruled_by.is_some() {
                runs.ruled.add(&round.said_of(collective, 1));
            }
        }
        for (i, (algorithm, why)) in algorithms.into_iter().zip(why).enumerate() {
            let mut times = Curves::default();
            for round in done {
                let at = round
                    .packs
                    .iter()
                    .position(|pack| pack.contains(&i))
                    .map(|at| at + effort.unforced_jobs());
                times.add(&at.map_or_else(Vec::new, |at| round.said_of(algorithm.collective, at)));
            }
            runs.settings.push(Setting { times: why.map_or(Ok(times), Err), algorithm });
        }
        runs
    }
}

impl Round {
    /// Returns the lines of the channel.
    fn channel(&self) -> Vec<Line> {
        let is = |line: &&Line| {
            let task = line.task.split('~').next().unwrap_or_default();
            !task.starts_with(CODE) && Collective::ALL.iter().all(|collective| collective.name() != task)
        };
        self.lines.iter().filter(is).cloned().collect()
    }

    /// Returns the lines of a collective in one of the jobs, without the job's number; 0 is the default.
    fn said_of(&self, collective: Collective, job: usize) -> Vec<Line> {
        let of = |line: &Line| {
            let (task, number) = line.task.split_once('~').unwrap_or((&line.task, "0"));
            let is = task.trim_start_matches(CODE) == collective.name() && number == job.to_string();
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
    /// The reason why an algorithm has no times.
    why: Vec<Option<String>>,
    /// The most jobs beside the default's that are there at once.
    most: usize,
    done: Vec<Round>,
}

impl Measuring<'_> {
    /// Measures all algorithms and the defaults, by jobs that force an algorithm of each collective. Without an algorithm that failed, all is
    /// measured again. Where a job fails beside many others and not alone, half as many are there at once from then on.
    fn in_turns(&mut self, round: usize, journal: &mut Journal) -> Result<(), HostError> {
        loop {
            let numbers: Vec<usize> = (0..self.algorithms.len()).filter(|&i| self.why[i].is_none()).collect();
            let packs = packs(&self.algorithms, &numbers);
            let mut lines = Vec::new();
            let mut failure = None;
            let groups = if packs.is_empty() { vec![&packs[..]] } else { packs.chunks(self.most).collect() };
            let others = self.effort.unforced_jobs();
            for (i, group) in groups.into_iter().enumerate() {
                match self.group(group, round, self.effort.channel && i == 0, journal) {
                    Ok(said) => join(&mut lines, said, others, i * self.most),
                    Err(failed) => {
                        failure = Some((group.to_vec(), failed));
                        break;
                    }
                }
            }
            let Some((group, FailedJob { job, failed })) = failure else {
                self.done.push(Round { packs, lines });
                return Ok(());
            };
            let Some(pack) = job.checked_sub(others).map(|at| &group[at]) else {
                let settings = if job > 0 { ", with the file's settings" } else { "" };
                let command = format!("{}{settings}", self.host.command);
                return Err(HostError::Broken { command, how: failed.how });
            };
            if group.len() > 1 && self.group(std::slice::from_ref(pack), round, false, journal).is_ok() {
                self.most = group.len().div_ceil(2);
                continue;
            }
            // The first algorithm without a time made the job fail.
            let culprit = pack.iter().find(|&&i| !has_all(&failed, &self.algorithms[i], self.effort));
            self.why[*culprit.unwrap_or(&pack[0])] = Some(failed.how);
        }
    }

    /// Measures the defaults and these packs in turns, and the `channel` before them if it is wanted.
    fn group(
        &self,
        packs: &[Vec<usize>],
        round: usize,
        channel: bool,
        journal: &mut Journal,
    ) -> Result<Vec<Line>, FailedJob> {
        let Measuring { effort, algorithms, flavour, .. } = self;
        let others = std::iter::once(Variables::new()).chain(effort.ruled_by.clone());
        let jobs: Vec<Variables> =
            others.chain(packs.iter().map(|pack| forced(*flavour, algorithms, pack))).collect();
        let messages = if channel { channel_tasks(self.host.facts.ranks) } else { Vec::new() };
        let mut cases: Vec<Case> = messages.into_iter().map(|task| Case { task, jobs: vec![0] }).collect();
        for &collective in &effort.collectives {
            for bytes in lengths(collective, &effort.bytes) {
                let forces = |pack: &Vec<usize>| {
                    let is =
                        |&i: &usize| algorithms[i].collective == collective && algorithms[i].least <= bytes;
                    pack.iter().any(is)
                };
                let with =
                    (0..packs.len()).filter(|&at| forces(&packs[at])).map(|at| at + effort.unforced_jobs());
                let with: Vec<usize> = (0..effort.unforced_jobs()).chain(with).collect();
                let task = format!("{}:{bytes}", collective.name());
                // Once is enough for the code, which is no time.
                if round == 0 && effort.code {
                    cases.push(Case { task: format!("{CODE}{task}"), jobs: with.clone() });
                }
                cases.push(Case { task, jobs: with });
            }
        }
        journal.launch_in_turns(self.host, &jobs, &cases, effort.window_ms)
    }
}

/// Adds the lines of a group of jobs, of which the first `others` are the same in each group, with so many jobs `before` it. The times of a further group are scaled
/// so that its default took what the first group's did.
fn join(lines: &mut Vec<Line>, said: Vec<Line>, others: usize, before: usize) {
    if before == 0 {
        lines.extend(said);
        return;
    }
    let default = |lines: &[Line], task: &str, bytes: u64| {
        let line = lines.iter().find(|line| line.task == task && line.bytes == bytes)?;
        Some(median(&line.times))
    };
    let mut more = Vec::new();
    for line in &said {
        let Some((task, job)) = line.task.split_once('~') else { continue };
        let Some(job) = job.parse().ok().filter(|job: &usize| *job >= others) else { continue };
        let (ours, theirs) = (default(lines, task, line.bytes), default(&said, task, line.bytes));
        let scale = match (ours, theirs) {
            (Some(ours), Some(theirs)) if !task.starts_with(CODE) => ours / theirs,
            _ => 1.0,
        };
        let job = job + before;
        let times = line.times.iter().map(|time| time * scale).collect();
        more.push(Line { task: format!("{task}~{job}"), bytes: line.bytes, times });
    }
    lines.extend(more);
}

/// Returns whether the output of a job that failed has all cases of an algorithm.
fn has_all(failed: &Failed, algorithm: &Algorithm, effort: &Effort) -> bool {
    let has = |bytes: &u64| {
        failed.before.iter().any(|l| l.task == algorithm.collective.name() && l.bytes == *bytes)
    };
    lengths(algorithm.collective, &effort.bytes).iter().filter(|bytes| **bytes >= algorithm.least).all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks rounds that are not alike, but whose algorithm takes half of the default's time in all.
    #[test]
    fn an_algorithm_is_compared_with_the_default_of_its_own_round() {
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
            let lines = vec![
                line("ring2", 9.0),
                line("bcast", ns),
                line("bcast~1", ns / 2.0),
                line("code-bcast~1", 7.0),
            ];
            Round { packs: vec![vec![0]], lines }
        };
        let done = vec![launch(100.0), launch(300.0), launch(120.0)];
        let effort = Effort {
            bytes: vec![8],
            collectives: vec![Collective::Bcast],
            rounds: 3,
            window_ms: 1,
            channel: false,
            code: false,
            ruled_by: None,
        };
        let runs = Runs::of(&done, &effort, vec![algorithm], vec![None]);
        let times =
            |runs: &Runs| runs.settings[0].times.as_ref().unwrap().launches("bcast", 8).unwrap().to_vec();
        assert_eq!(times(&runs), [50.0, 150.0, 60.0]);
        let channel: Vec<&str> = runs.channel.cells().map(|(cell, _)| &*cell.task).collect();
        assert_eq!((channel, runs.rounds), (vec!["ring2"], 3));
        assert_eq!(runs.settings[0].times.as_ref().unwrap().launches("code-bcast", 8), Some(&[7.0][..]));
        let runs = runs.levelled();
        assert_eq!(times(&runs), [60.0; 3]);
        assert_eq!(runs.default.launches("bcast", 8), Some(&[120.0; 3][..]));
    }

    #[test]
    fn a_further_group_is_scaled_by_its_default() {
        let line = |task: &str, ns: f64| Line { task: task.into(), bytes: 8, times: vec![ns] };
        let mut lines = Vec::new();
        join(&mut lines, vec![line("bcast", 100.0), line("bcast~1", 50.0)], 1, 0);
        join(&mut lines, vec![line("bcast", 200.0), line("bcast~1", 300.0), line("code-bcast~1", 7.0)], 1, 1);
        let all =
            [line("bcast", 100.0), line("bcast~1", 50.0), line("bcast~2", 150.0), line("code-bcast~2", 7.0)];
        assert_eq!(lines, all);
    }
}
