//! Logical time: in which step each op of a plan can run at the earliest.

use lineweave_core::plan::{FlagRef, Op, Plan};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Logical time of an op, and the op that ended its wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Steps before it: the longest path over program order and from sets to the waits they end.
    pub at: usize,
    /// Rank and op that ended the wait, where the op is a wait.
    pub cause: Option<(usize, usize)>,
}

/// The steps of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Steps {
    /// Steps of the ops that can run, for each rank: of all its ops, unless the plan gets stuck.
    pub ranks: Vec<Vec<Step>>,
    /// The number of steps of the longest path.
    pub count: usize,
}

/// Sets and adds done to a flag so far, in order of time, and the ranks that wait for more.
#[derive(Default)]
struct History {
    /// Value, step, and who did it. An add has the number of adds up to it.
    raised: Vec<(i32, usize, (usize, usize))>,
    /// Ranks that wait for more.
    waiting: Vec<usize>,
}

/// Runs `plan` once in logical time, every op one step, the first run of the plan on this memory.
///
/// Total: a plan that deadlocks yields the steps of the ops that can run.
pub fn steps(plan: &Plan) -> Steps {
    let mut ranks: Vec<Vec<Step>> = plan.programs.iter().map(|ops| Vec::with_capacity(ops.len())).collect();
    let mut flags: HashMap<FlagRef, History> = HashMap::new();
    let mut adds: HashMap<FlagRef, i32> = HashMap::new();
    // Ops in order of (step, rank), so that flags rise in order of time.
    let mut next: BinaryHeap<Reverse<(usize, usize)>> = (0..ranks.len()).map(|r| Reverse((0, r))).collect();
    let mut count = 0;
    while let Some(Reverse((at, rank))) = next.pop() {
        let index = ranks[rank].len();
        let Some(op) = plan.programs[rank].get(index) else { continue };
        let mut cause = None;
        match op {
            Op::Wait { flag, value, .. } if *value >= 1 => {
                let history = flags.entry(*flag).or_default();
                match history.raised.iter().find(|(raised, _, _)| raised >= value) {
                    None => {
                        history.waiting.push(rank);
                        continue;
                    }
                    Some(&(_, step, _)) if step >= at => {
                        next.push(Reverse((step + 1, rank)));
                        continue;
                    }
                    Some(&(_, _, who)) => cause = Some(who),
                }
            }
            Op::Set { flag, value, .. } => {
                raise(flags.entry(*flag).or_default(), *value, at, (rank, index), &mut next);
            }
            Op::Add { flag } => {
                let sum = adds.entry(*flag).or_default();
                *sum = sum.saturating_add(1);
                raise(flags.entry(*flag).or_default(), *sum, at, (rank, index), &mut next);
            }
            Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } => {}
        }
        ranks[rank].push(Step { at, cause });
        count = count.max(at + 1);
        next.push(Reverse((at + 1, rank)));
    }
    Steps { ranks, count }
}

/// Records a new value and lets those who wait for the flag look again.
fn raise(
    history: &mut History,
    value: i32,
    at: usize,
    who: (usize, usize),
    next: &mut BinaryHeap<Reverse<(usize, usize)>>,
) {
    history.raised.push((value, at, who));
    next.extend(history.waiting.drain(..).map(|rank| Reverse((at + 1, rank))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Plan {
        format!(
            "plan barrier/x p=3 root=0 bytes=0 grain=1 acc=0 reuse=ring direct=no slots=none\n\
             flags f alone 2\ncounters c alone 1\n{body}\nend"
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn waits_follow_the_op_that_ends_them() {
        let plan = parse(
            "rank 0: add c@0[0]; wait c@0[0]>=3; set f@1[0]=1; set f@2[0]=1\n\
             rank 1: wait f@1[0]>=0; add c@0[0]; wait f@1[0]>=1\n\
             rank 2: add c@0[0]; wait f@2[0]>=1",
        );
        let steps = steps(&plan);
        let at = |rank: usize| steps.ranks[rank].iter().map(|s| s.at).collect::<Vec<_>>();
        assert_eq!(at(0), [0, 2, 3, 4]);
        assert_eq!(at(1), [0, 1, 4]);
        assert_eq!(at(2), [0, 5]);
        assert_eq!(steps.ranks[0][1].cause, Some((1, 1)));
        assert_eq!(steps.ranks[2][1].cause, Some((0, 3)));
        assert_eq!(steps.count, 6);
    }

    #[test]
    fn a_deadlock_ends_where_nobody_can_go_on() {
        let plan = parse(
            "rank 0: wait f@0[0]>=1; set f@1[0]=1\nrank 1: wait f@1[0]>=1; set f@0[0]=1\nrank 2: set f@2[0]=1",
        );
        let lengths: Vec<usize> = steps(&plan).ranks.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 0, 1]);
    }
}
