//! The tasks that `channel.c` is asked for in a launch.

use super::{Algorithm, Flavour};
use crate::script::Variables;
use lineweave_core::collective::Collective;

/// Returns the settings that force all algorithms of a pack.
pub(super) fn forced(flavour: Flavour, algorithms: &[Algorithm], pack: &[usize]) -> Variables {
    let mut variables: Variables = Vec::new();
    for (name, value) in pack.iter().flat_map(|&i| flavour.force(&algorithms[i])) {
        if !variables.iter().any(|(n, _)| *n == name) {
            variables.push((name, value));
        }
    }
    variables
}

/// Packs these algorithms into launches: one of each collective, and none beside an algorithm that calls its collective.
pub(super) fn packs(algorithms: &[Algorithm], numbers: &[usize]) -> Vec<Vec<usize>> {
    let mut packs: Vec<Vec<usize>> = Vec::new();
    let apart = |a: &Algorithm, b: &Algorithm| {
        a.collective == b.collective || a.calls.contains(&b.collective) || b.calls.contains(&a.collective)
    };
    for &i in numbers {
        match packs.iter_mut().find(|pack| !pack.iter().any(|&j| apart(&algorithms[i], &algorithms[j]))) {
            Some(pack) => pack.push(i),
            None => packs.push(vec![i]),
        }
    }
    packs
}

/// Returns the lengths of a collective: a barrier has only 0.
pub fn lengths(collective: Collective, bytes: &[u64]) -> Vec<u64> {
    match collective {
        Collective::Barrier => vec![0],
        _ => bytes.to_vec(),
    }
}

/// Returns the task of each length.
fn each(task: &str, lengths: &[u64]) -> Vec<String> {
    lengths.iter().map(|bytes| format!("{task}:{bytes}")).collect()
}

/// Returns the channel's tasks: single messages, rings by their number of ranks, sends, folds.
pub(super) fn channel_tasks(ranks: usize) -> Vec<String> {
    let lengths: Vec<u64> = std::iter::once(0).chain((3..=22).map(|i| 1 << i)).collect();
    let folded: Vec<u64> = (3..=22).step_by(2).map(|i| 1 << i).collect();
    let mut taus: Vec<usize> = (1..).map(|i| 1usize << i).take_while(|t| *t < ranks).chain([ranks]).collect();
    taus.sort_unstable();
    let rings =
        taus.iter().flat_map(|tau| ["ring", "turn"].map(|task| each(&format!("{task}{tau}"), &lengths)));
    let own = ["fold", "copy"].into_iter().flat_map(|task| [1, ranks].map(|tau| format!("{task}{tau}")));
    let alone =
        [each("pingpong", &lengths), each("passing", &lengths), each("send", &[8]), each("stream", &[0])];
    alone.into_iter().chain(rings).chain(own.map(|task| each(&task, &folded))).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn algorithm(collective: Collective, value: &str, calls: &'static [Collective]) -> Algorithm {
        Algorithm {
            collective,
            name: value.into(),
            value: value.into(),
            form: None,
            calls,
            copies: None,
            least: 0,
        }
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
        assert_eq!(packs(&all, &[0, 1, 2, 3, 4]), vec![vec![0, 2, 4], vec![1], vec![3]]);
    }

    #[test]
    fn the_channel_is_timed_by_concurrency() {
        let tasks = channel_tasks(3);
        let mut names: Vec<&str> = tasks.iter().filter_map(|t| t.split(':').next()).collect();
        names.dedup();
        let all = ["pingpong", "passing", "send", "stream", "ring2", "turn2", "ring3", "turn3"];
        assert_eq!(names, [&all[..], &["fold1", "fold3", "copy1", "copy3"]].concat());
        assert!(tasks.contains(&"ring3:16".to_owned()) && !channel_tasks(2).contains(&"ring3:16".to_owned()));
    }
}
