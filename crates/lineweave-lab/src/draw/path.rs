//! Dependences between the ranks of a run: the waits of one rank for another, and the critical path.

use lineweave_core::plan::{FlagRef, Op, Plan};
use lineweave_core::trace::{Kind, Picos, Trace};
use std::collections::BTreeMap;

/// A stretch of the critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The event, by its place in the trace.
    pub event: usize,
    /// End of the event `cause`, or the start of `event` where there is no cause.
    pub from: Picos,
    /// That event, where it is another rank's.
    pub cause: Option<usize>,
}

/// Returns for each event of `trace`, a run of `plan`, the event of another rank that it waited for: the set or add that ended a wait
/// which began before it.
pub fn causes(plan: &Plan, trace: &Trace) -> Vec<Option<usize>> {
    let op = |event: usize| {
        let e = &trace.events[event];
        plan.programs.get(e.rank.index())?.get(e.op as usize)
    };
    let mut order: Vec<usize> = (0..trace.events.len()).collect();
    order.sort_by_key(|&i| (trace.events[i].end, trace.events[i].rank, trace.events[i].op));
    // In order of time: the value that a flag then has, and who raised it.
    let mut raised: BTreeMap<FlagRef, Vec<(i32, usize)>> = BTreeMap::new();
    let mut adds: BTreeMap<FlagRef, i32> = BTreeMap::new();
    for &event in &order {
        match op(event) {
            Some(Op::Set { flag, value, .. }) => raised.entry(*flag).or_default().push((*value, event)),
            Some(Op::Add { flag }) => {
                let sum = adds.entry(*flag).or_default();
                *sum += 1;
                raised.entry(*flag).or_default().push((*sum, event));
            }
            _ => {}
        }
    }
    let cause = |event: usize| {
        let Some(Op::Wait { flag, value, .. }) = op(event) else { return None };
        let by = raised.get(flag)?.iter().find(|(then, _)| then >= value).map(|(_, by)| *by)?;
        let (waits, sets) = (&trace.events[event], &trace.events[by]);
        (*value >= 1 && sets.rank != waits.rank && sets.end > waits.start).then_some(by)
    };
    (0..trace.events.len()).map(cause).collect()
}

/// Returns what the last op of a run waited for, back to its beginning, in order of time.
pub fn critical(trace: &Trace, causes: &[Option<usize>]) -> Vec<Hop> {
    let at: BTreeMap<(usize, u32), usize> =
        trace.events.iter().enumerate().map(|(i, e)| ((e.rank.index(), e.op), i)).collect();
    let mut hops = Vec::new();
    let mut next = (0..trace.events.len()).max_by_key(|&i| (trace.events[i].end, trace.events[i].op));
    while let Some(event) = next {
        let e = &trace.events[event];
        let cause = causes[event];
        let from = cause.map_or(e.start, |by| trace.events[by].end);
        hops.push(Hop { event, from, cause });
        let before = e.op.checked_sub(1).and_then(|op| at.get(&(e.rank.index(), op)).copied());
        // A trace that no plan could have ends here and not never.
        next = cause.or(before).filter(|_| hops.len() <= trace.events.len());
    }
    hops.reverse();
    hops
}

/// Returns the waits of a run, longest first: who, for whom, how long.
pub(super) fn waits(trace: &Trace, causes: &[Option<usize>]) -> Vec<(usize, usize, Picos)> {
    let mut all: Vec<(usize, usize, Picos)> = trace
        .events
        .iter()
        .zip(causes)
        .filter(|(e, _)| e.kind == Kind::Wait)
        .filter_map(|(e, by)| {
            Some((e.rank.index(), trace.events[(*by)?].rank.index(), Picos(e.end.0 - e.start.0)))
        })
        .collect();
    all.sort_by_key(|(rank, by, time)| (std::cmp::Reverse(*time), *rank, *by));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::trace::Clock;
    use lineweave_core::units::Rank;

    #[test]
    fn the_critical_path_goes_to_who_raised_the_flag_last() {
        let plan: Plan = "plan barrier/x p=3 root=0 bytes=0 grain=1 acc=0 reuse=ring direct=no slots=none\n\
                          flags f alone 1\ncounters c alone 1\n\
                          rank 0: wait c@0[0]>=2; set f@1[0]=1\nrank 1: add c@0[0]; wait f@1[0]>=1\nrank 2: add c@0[0]\nend"
            .parse()
            .unwrap();
        let mut trace = Trace::of(&plan, Clock::Measured);
        let times = [(0, 0, 0, 90), (0, 1, 90, 100), (1, 0, 0, 10), (1, 1, 10, 150), (2, 0, 0, 60)];
        for (rank, op, start, end) in times {
            trace.record(&plan, Rank(rank), op, Picos(start), Picos(end));
        }
        let causes = causes(&plan, &trace);
        assert_eq!(causes, [Some(4), None, None, Some(1), None], "the second add, and the set");
        let path: Vec<(usize, u64)> = critical(&trace, &causes).iter().map(|h| (h.event, h.from.0)).collect();
        assert_eq!(path, [(4, 0), (0, 60), (1, 90), (3, 100)]);
        assert_eq!(waits(&trace, &causes), [(1, 0, Picos(140)), (0, 2, Picos(90))]);
    }
}
