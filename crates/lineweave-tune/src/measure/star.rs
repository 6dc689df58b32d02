//! Probes `star` and `partners`: what flags cost where more than two ranks touch lines.
//!
//! - `star`: rank 0 calls so many others and hears of all of them. `call=one`, `answers=apart`: one flag that all poll; `call=one`,
//!   `answers=line`: a line that all of them write; `call=each`, `answers=apart`: flags that are set in a row while others poll them.
//! - `partners`: rounds of an exchange, each with another partner, a round. With one round it is the steady exchange of two; with more
//!   nobody finds a line as it left it.

use super::cell::{scaled, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;
use lineweave_core::plan::Layout;
use lineweave_core::probe::{partners, star};

/// One, few, and as many as 2, 4, 8 ... ranks have beside the first.
pub fn numbers(most: usize) -> impl Iterator<Item = usize> {
    [1, 2, 3, 4, 7, 15, 31, 63].into_iter().filter(move |&n| n <= most)
}

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    // A pair's cells are those of the first number; a crowd has all.
    if !matches!(crew.role, Role::Pair | Role::Crowd) {
        return;
    }
    let ranks = crew.cpus.len();
    let new = |n: &usize| crew.role == Role::Pair || *n > 1;
    for others in numbers(ranks - 1).filter(new) {
        for (call, answers, layout) in [
            ("one", "apart", Layout::Alone),
            ("one", "line", Layout::Packed),
            ("each", "apart", Layout::Alone),
        ] {
            let key =
                SampleKey::new("star").with("call", call).with("answers", answers).with("others", others);
            offer.tasks.push(Task::new(key.with("level", crew.level), 2.0, move |hand, rules| {
                plans::time(hand, rules, &star(ranks, others, call == "one", layout))
            }));
        }
    }
    let rounds = numbers(ranks - 1).filter(new).filter(|&n| (n + 1).is_power_of_two());
    for rounds in rounds {
        for layout in [Layout::Paired, Layout::Alone] {
            let key = SampleKey::new("partners").with("rounds", rounds).with("layout", layout);
            offer.tasks.push(Task::new(key.with("level", crew.level), 2.0, move |hand, rules| {
                Ok(scaled(plans::time(hand, rules, &partners(ranks, rounds, layout))?, 1.0 / rounds as f64))
            }));
        }
    }
}

/// Lists what machines of fewer CPUs cannot tell.
pub fn beyond(cpus: usize, offer: &mut ProbeTasks) {
    if cpus < 3 {
        let because = format!("a line that several ranks poll or write needs 3 CPUs, and {cpus} can be used");
        offer.missing("star[others > 1]", &because);
        offer.missing("partners[rounds > 1]", because);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::settings::Settings;
    use lineweave::team::{Team, TeamConfig};
    use lineweave_core::topology::{Cpu, Level};

    #[test]
    fn a_crowd_is_offered_what_its_ranks_can_do() {
        let cpu = |os| Cpu { os, core: os, l3: 0, numa: 0, package: 0, kind: 0 };
        let offered = |role, cpus: usize| {
            let mut all = ProbeTasks::default();
            offer(&ProbeTeam { role, cpus: (0..cpus).map(cpu).collect(), level: Level::L3 }, &mut all);
            all.tasks.iter().map(|t| t.keys[0].to_string()).collect::<Vec<_>>()
        };
        assert_eq!(offered(Role::Pair, 2).len(), 5);
        let crowd = offered(Role::Crowd, 5);
        assert!(crowd.contains(&"star answers=line call=one level=l3 others=4".to_owned()), "{crowd:?}");
        assert!(crowd.contains(&"partners layout=paired level=l3 rounds=3".to_owned()), "{crowd:?}");
        assert_eq!(crowd.len(), 3 * 3 + 2);
        assert!(offered(Role::Solo, 1).is_empty() && offered(Role::SameCpu, 2).is_empty());
    }

    #[test]
    fn ranks_that_look_on_do_not_disturb_a_plan() {
        let settings = Settings { check: false, ..Settings::default() };
        let config = TeamConfig::new(4, &settings).expect("a configuration");
        let runs = Team::with(config).expect("a team").threads(|mut comm| {
            let all = [
                star(4, 2, true, Layout::Packed),
                star(4, 3, false, Layout::Alone),
                partners(4, 1, Layout::Paired),
                partners(4, 3, Layout::Alone),
            ];
            for plan in &all {
                let id = comm.prepare(plan)?;
                for _ in 0..200 {
                    // SAFETY: no op of these plans touches a buffer.
                    unsafe { comm.run(id, lineweave::communicator::Buffers::NONE) }?;
                }
                comm.barrier()?;
            }
            Ok(all.len())
        });
        assert_eq!(runs.expect("every rank came through"), [4; 4]);
    }
}
