//! Launches in rounds: of each forced algorithm, of the default, and of the channel.
//!
//! A library reads its settings when it starts, so each setting needs a launch. One launch forces an algorithm of every collective,
//! except of those that a forced algorithm calls itself. Rounds go forwards and backwards, with the default at both ends, and each
//! launch times the same ping-pongs first and last. If these were slow, other work disturbed the launch, and it does not count where
//! other launches are left.

use super::curves::CODE;
use super::{Algorithm, Curves, Failed, Flavour, Host, HostError, Journal, Line};
use crate::bench::mpi::median;
use crate::script::Variables;
use lineweave_core::collective::Collective;

/// The ping-pongs of every launch.
const REFERENCE: &str = "pingpong";
const REFERENCE_BYTES: [u64; 2] = [64, 64 << 10];
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
}

/// A forced algorithm: its times, or the reason why it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    pub algorithm: Algorithm,
    pub times: Result<Curves, String>,
}

/// All measurements of an MPI.
#[derive(Debug)]
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

/// A launch that ended well: of the channel, of the default, or of these forced algorithms.
struct Launch {
    what: What,
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Eq)]
enum What {
    Channel,
    Default,
    Forced(Vec<usize>),
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
        let mut why: Vec<Option<String>> = vec![None; algorithms.len()];
        let mut packs = packs(&algorithms);
        let mut done: Vec<Launch> = Vec::new();
        for round in 0..effort.rounds {
            if round % 2 == 1 {
                packs.reverse();
            }
            let forced = packs.iter().cloned().map(What::Forced);
            let channel = effort.channel.then_some(What::Channel);
            let order = channel.into_iter().chain([What::Default]).chain(forced).chain([What::Default]);
            for mut what in order {
                step(&title(&what, &algorithms, round));
                loop {
                    if let What::Forced(pack) = &mut what {
                        pack.retain(|&i| why[i].is_none());
                        if pack.is_empty() {
                            break;
                        }
                    }
                    let (tasks, variables) = asked(&what, &algorithms, host, flavour, effort, round);
                    match (journal.launch(host, &tasks, effort.window_ms, &variables), &what) {
                        (Ok(lines), _) => {
                            done.push(Launch { what, lines });
                            break;
                        }
                        // The first algorithm without a time made the launch fail.
                        (Err(failed), What::Forced(pack)) => {
                            let culprit = pack.iter().find(|&&i| !has_all(&failed, &algorithms[i], effort));
                            why[*culprit.unwrap_or(&pack[0])] = Some(failed.how);
                        }
                        (Err(failed), What::Channel | What::Default) => {
                            return Err(HostError::Broken { command: host.command.clone(), how: failed.how });
                        }
                    }
                }
            }
        }
        Ok(Runs::of(done, algorithms, why))
    }

    /// Returns the number of launches for which [`Runs::measure`] calls `step`.
    pub fn steps(algorithms: &[Algorithm], effort: &Effort) -> usize {
        effort.rounds * (packs(algorithms).len() + 2 + usize::from(effort.channel))
    }

    fn of(done: Vec<Launch>, algorithms: Vec<Algorithm>, why: Vec<Option<String>>) -> Runs {
        let disturbed = disturbed(&done.iter().map(|l| l.lines.as_slice()).collect::<Vec<_>>());
        let collect = |of: &dyn Fn(&What) -> bool, keep: &dyn Fn(&Line) -> bool| {
            let all: Vec<usize> = (0..done.len()).filter(|&i| of(&done[i].what)).collect();
            let quiet: Vec<usize> = all.iter().copied().filter(|&i| !disturbed[i]).collect();
            let mut curves = Curves::default();
            for &i in if quiet.is_empty() { &all } else { &quiet } {
                let lines: Vec<Line> = done[i].lines.iter().filter(|l| keep(l)).cloned().collect();
                curves.add(&lines);
            }
            // Other work does not change the code.
            for line in
                all.iter().flat_map(|&i| &done[i].lines).filter(|l| l.task.starts_with(CODE) && keep(l))
            {
                curves.add(std::slice::from_ref(line));
            }
            curves
        };
        let setting = |(i, (algorithm, why)): (usize, (Algorithm, Option<String>))| {
            let of = |what: &What| matches!(what, What::Forced(pack) if pack.contains(&i));
            let times = match why {
                Some(why) => Err(why),
                None => Ok(collect(&of, &|l| l.task.trim_start_matches(CODE) == algorithm.collective.name())),
            };
            Setting { algorithm, times }
        };
        let default = collect(&|what| *what == What::Default, &|l| l.task != REFERENCE);
        let channel = collect(&|what| *what == What::Channel, &|_| true);
        let settings = algorithms.into_iter().zip(why).enumerate().map(setting).collect();
        let (launches, disturbed) = (done.len(), disturbed.iter().filter(|d| **d).count());
        Runs { channel, default, settings, launches, disturbed }
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
        What::Default => "default".to_owned(),
        What::Forced(pack) => pack.first().map_or_else(String::new, |&i| {
            let others = if pack.len() > 1 { format!(" and {} more", pack.len() - 1) } else { String::new() };
            format!("{} {}{others}", algorithms[i].collective, algorithms[i].name)
        }),
    };
    format!("round {}: {of}", round + 1)
}

/// Packs algorithms into launches: one of each collective, and none beside an algorithm that calls its collective.
fn packs(algorithms: &[Algorithm]) -> Vec<Vec<usize>> {
    let mut packs: Vec<Vec<usize>> = Vec::new();
    let apart = |a: &Algorithm, b: &Algorithm| {
        a.collective == b.collective || a.calls.contains(&b.collective) || b.calls.contains(&a.collective)
    };
    for (i, algorithm) in algorithms.iter().enumerate() {
        match packs.iter_mut().find(|pack| !pack.iter().any(|&j| apart(algorithm, &algorithms[j]))) {
            Some(pack) => pack.push(i),
            None => packs.push(vec![i]),
        }
    }
    packs
}

fn asked(
    what: &What,
    algorithms: &[Algorithm],
    host: &Host,
    flavour: Flavour,
    effort: &Effort,
    round: usize,
) -> (Vec<String>, Variables) {
    let (mut tasks, variables) = match what {
        What::Channel => (channel_tasks(host.facts.ranks), Vec::new()),
        What::Default => (effort.collectives.iter().map(|c| task(*c, &effort.bytes)).collect(), Vec::new()),
        What::Forced(pack) => {
            let mut variables: Variables = Vec::new();
            for (name, value) in pack.iter().flat_map(|&i| flavour.force(&algorithms[i])) {
                if !variables.iter().any(|(n, _)| *n == name) {
                    variables.push((name, value));
                }
            }
            (
                pack.iter()
                    .map(|&i| task(algorithms[i].collective, &lengths_of(&algorithms[i], effort)))
                    .collect(),
                variables,
            )
        }
    };
    // Once is enough for the code, which is no time.
    if round == 0 && effort.code && *what != What::Channel {
        tasks.extend(tasks.clone().iter().map(|task| format!("{CODE}{task}")));
    }
    (with_reference(tasks), variables)
}

/// Returns the tasks with the same ping-pongs before and after them.
pub fn with_reference(tasks: Vec<String>) -> Vec<String> {
    let reference = written(REFERENCE, &REFERENCE_BYTES);
    let mut all = vec![reference.clone()];
    all.extend(tasks);
    all.push(reference);
    all
}

/// Returns the task of a collective at its lengths.
pub fn task(collective: Collective, bytes: &[u64]) -> String {
    written(collective.name(), &lengths(collective, bytes))
}

/// Returns the lengths at which an algorithm can be forced.
fn lengths_of(algorithm: &Algorithm, effort: &Effort) -> Vec<u64> {
    effort.bytes.iter().copied().filter(|bytes| *bytes >= algorithm.least).collect()
}

/// Returns the lengths of a collective: a barrier has only 0.
pub fn lengths(collective: Collective, bytes: &[u64]) -> Vec<u64> {
    match collective {
        Collective::Barrier => vec![0],
        _ => bytes.to_vec(),
    }
}

fn written(task: &str, bytes: &[u64]) -> String {
    let bytes: Vec<String> = bytes.iter().map(u64::to_string).collect();
    format!("{task}:{}", bytes.join(","))
}

/// Returns the channel's tasks: single messages, rings by their number of ranks, sends, folds.
fn channel_tasks(ranks: usize) -> Vec<String> {
    let lengths: Vec<u64> = std::iter::once(0).chain((3..=22).map(|i| 1 << i)).collect();
    let folded: Vec<u64> = (3..=22).step_by(2).map(|i| 1 << i).collect();
    let mut taus: Vec<usize> = (1..).map(|i| 1usize << i).take_while(|t| *t < ranks).chain([ranks]).collect();
    taus.sort_unstable();
    let rings = taus.iter().flat_map(|tau| ["ring", "turn"].map(|task| format!("{task}{tau}")));
    let rings = rings.map(|task| written(&task, &lengths));
    let own = ["fold", "copy"].into_iter().flat_map(|task| [1, ranks].map(|tau| format!("{task}{tau}")));
    let alone = [
        written("pingpong", &lengths),
        written("passing", &lengths),
        written("send", &[8]),
        written("stream", &[0]),
    ];
    alone.into_iter().chain(rings).chain(own.map(|task| written(&task, &folded))).collect()
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

    fn algorithm(collective: Collective, value: &str, calls: &'static [Collective]) -> Algorithm {
        Algorithm { collective, name: value.into(), value: value.into(), form: None, calls, least: 0 }
    }

    #[test]
    fn a_launch_forces_one_algorithm_of_each_collective_and_none_that_another_calls() {
        let all = [
            algorithm(Collective::Bcast, "1", &[]),
            algorithm(Collective::Bcast, "2", &[]),
            algorithm(Collective::Reduce, "1", &[]),
            algorithm(Collective::Allreduce, "2", &[Collective::Reduce, Collective::Bcast]),
            algorithm(Collective::Barrier, "1", &[]),
        ];
        assert_eq!(packs(&all), vec![vec![0, 2, 4], vec![1], vec![3]]);
    }

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

    #[test]
    fn the_channel_is_timed_by_concurrency() {
        let tasks = channel_tasks(3);
        let names: Vec<&str> = tasks.iter().filter_map(|t| t.split(':').next()).collect();
        let all = ["pingpong", "passing", "send", "stream", "ring2", "turn2", "ring3", "turn3"];
        assert_eq!(names, [&all[..], &["fold1", "fold3", "copy1", "copy3"]].concat());
        assert!(channel_tasks(2)[4].starts_with("ring2:0,8,16,") && channel_tasks(2).len() == 10);
    }
}
