//! Crews that measure: for each distance that the machine has, two CPUs that are so far apart, and some others.

use super::cell::{ProbeTasks, ProbeTeam, Role};
use lineweave_core::topology::{Cpu, Level, Topology};

/// The most ranks of a crowd: what its buffers' memory and the time are enough for.
const MOST: usize = 64;

/// The crews of a machine; levels that no two CPUs are apart by go to what cannot be identified.
pub fn crews(topology: &Topology, offer: &mut ProbeTasks) -> Vec<ProbeTeam> {
    let cpus = &topology.cpus;
    let Some(first) = cpus.first() else { return Vec::new() };
    let crew = |role, cpus: Vec<Cpu>| {
        let level = if cpus.len() > 1 { cpus[0].common(&cpus[1]) } else { Level::Core };
        ProbeTeam { role, cpus, level }
    };
    let mut crews =
        vec![crew(Role::Solo, vec![first.clone()]), crew(Role::SameCpu, vec![first.clone(), first.clone()])];
    for level in Level::ALL {
        let pair =
            |a: &Cpu| Some([a.clone(), cpus.iter().find(|b| b.os != a.os && a.common(b) == level)?.clone()]);
        match cpus.iter().find_map(pair) {
            Some(pair) => crews.push(crew(Role::Pair, pair.to_vec())),
            None => offer.missing(
                format!("distance[{level}]"),
                format!("no two usable CPUs have {} as the nearest they share", described(level)),
            ),
        }
    }
    // Of those that are farthest in a package, and nearer: a line's home may count at some of these distances only.
    for level in [Level::L3, Level::Numa, Level::Package] {
        crews.extend(trio(cpus, level).map(|trio| crew(Role::Trio, trio.to_vec())));
    }
    if crews.iter().all(|c| c.role != Role::Trio) {
        offer.missing(
            "R_R away",
            "needs two usable CPUs of different cores in a package, and a third in another package whose memory their lines are in",
        );
    }
    if cpus.len() > 2 {
        crews.push(crew(Role::Crowd, cpus.iter().take(MOST).cloned().collect()));
    }
    crews
}

/// Two CPUs that are so far apart within a package, and one of another package.
fn trio(cpus: &[Cpu], level: Level) -> Option<[Cpu; 3]> {
    cpus.iter().find_map(|a| {
        let other = cpus.iter().find(|b| b.os != a.os && a.common(b) == level)?;
        let third = cpus.iter().find(|c| a.common(c) == Level::Machine)?;
        Some([a, other, third].map(Cpu::clone))
    })
}

fn described(level: Level) -> &'static str {
    match level {
        Level::Core => "a core",
        Level::L3 => "a last-level cache",
        Level::Numa => "a NUMA node",
        Level::Package => "a package",
        Level::Machine => "only the machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_pair_for_each_distance_and_a_word_for_each_that_is_not_there() {
        let cpu = |c: usize| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 4, package: c / 4, kind: 0 };
        let mut offer = ProbeTasks::default();
        let all = crews(&Topology { cpus: (0..8).map(cpu).collect() }, &mut offer);
        let pairs: Vec<Level> = all.iter().filter(|c| c.role == Role::Pair).map(|c| c.level).collect();
        assert_eq!(pairs, [Level::Core, Level::L3, Level::Machine]);
        assert!(all.iter().any(|c| c.role == Role::Crowd && c.cpus.len() == 8));
        let missing: Vec<&str> = offer.unidentified.iter().map(|u| u.what.as_str()).collect();
        assert_eq!(missing, ["distance[numa]", "distance[package]"]);
    }

    #[test]
    fn a_third_rank_is_in_another_package_than_the_two() {
        // Two packages of two nodes of two caches of two cores.
        let cpu = |c: usize| Cpu { os: c, core: c, l3: c / 2, numa: c / 4, package: c / 8, kind: 0 };
        let mut offer = ProbeTasks::default();
        let all = crews(&Topology { cpus: (0..16).map(cpu).collect() }, &mut offer);
        let trios: Vec<&ProbeTeam> = all.iter().filter(|c| c.role == Role::Trio).collect();
        assert_eq!(
            trios.iter().map(|c| c.level).collect::<Vec<_>>(),
            [Level::L3, Level::Numa, Level::Package]
        );
        for trio in trios {
            assert_eq!(trio.cpus[0].common(&trio.cpus[2]), Level::Machine);
            assert_eq!(trio.cpus[1].common(&trio.cpus[2]), Level::Machine);
        }
        assert!(offer.unidentified.iter().all(|u| u.what != "R_R away"));
        // One package is enough for no trio, and it is said why.
        let mut offer = ProbeTasks::default();
        let one = crews(&Topology { cpus: (0..8).map(cpu).collect() }, &mut offer);
        assert!(one.iter().all(|c| c.role != Role::Trio));
        let why = offer.unidentified.iter().find(|u| u.what == "R_R away").map(|u| u.because.as_str());
        assert!(why.is_some_and(|why| why.contains("a third in another package")), "{why:?}");
    }

    #[test]
    fn one_cpu_has_no_pair() {
        let cpu = Cpu { os: 3, core: 0, l3: 0, numa: 0, package: 0, kind: 0 };
        let mut offer = ProbeTasks::default();
        let all = crews(&Topology { cpus: vec![cpu] }, &mut offer);
        assert!(all.iter().all(|c| matches!(c.role, Role::Solo | Role::SameCpu)));
        assert_eq!(offer.unidentified.len(), Level::ALL.len() + 1);
    }
}
