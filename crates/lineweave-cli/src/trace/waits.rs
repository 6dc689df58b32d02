//! Waits of ranks for each other: the calls of all ranks that are one collective, and those that came too late for the others.
//!
//! A rank waits from its own beginning until the last of those came that its result needs: all ranks, the root, all but itself at the root, or those of
//! lower rank. What it takes after that is the collective itself.

use super::record::{Call, Part};
use std::collections::HashMap;

/// The ranks whose data a rank needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Needs {
    All,
    Root,
    /// At the root, all others.
    AtRoot,
    Lower,
}

fn needs(kind: &str) -> Option<Needs> {
    Some(match kind {
        "bcast" | "scatter" | "scatterv" => Needs::Root,
        "reduce" | "gather" | "gatherv" => Needs::AtRoot,
        "scan" | "exscan" => Needs::Lower,
        "neighborhood" | "nonblocking" | "persistent" => return None,
        _ => Needs::All,
    })
}

/// A wait within a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The part that it waited for.
    pub part: usize,
    pub ns: i64,
}

/// For each part and each of its calls, the wait in it.
pub type Waits = Vec<Vec<Option<Wait>>>;

/// Finds the waits in all calls that every rank of their communicator recorded.
pub fn find(parts: &[Part]) -> Waits {
    let mut waits: Waits = parts.iter().map(|part| vec![None; part.calls.len()]).collect();
    let mut same: HashMap<(u64, u64), Vec<(usize, usize)>> = HashMap::new();
    for (p, part) in parts.iter().enumerate() {
        for (c, call) in part.calls.iter().enumerate() {
            if call.comm != 0 && !call.started && call.place.is_some() {
                same.entry((call.comm, call.number)).or_default().push((p, c));
            }
        }
    }
    for ranks in same.values() {
        let calls: Vec<&Call> = ranks.iter().map(|&(p, c)| &parts[p].calls[c]).collect();
        let whole = calls[0].place.is_some_and(|(_, size)| size == calls.len());
        let alike = calls.iter().all(|call| call.kind == calls[0].kind);
        let Some(needs) = needs(&calls[0].kind).filter(|_| whole && alike) else { continue };
        for (i, &(p, c)) in ranks.iter().enumerate() {
            let late = latest(needs, &calls, i).filter(|&j| calls[j].from_ns > calls[i].from_ns);
            waits[p][c] = late.and_then(|j| {
                // Who had left before the other came did not need it.
                let ns = calls[j].from_ns - calls[i].from_ns;
                (ns <= calls[i].took_ns()).then_some(Wait { part: ranks[j].0, ns })
            });
        }
    }
    waits
}

/// Of the calls that number `i` needs, the one that began last.
fn latest(needs: Needs, calls: &[&Call], i: usize) -> Option<usize> {
    let rank = |j: usize| calls[j].place.map_or(0, |(rank, _)| rank);
    let root = calls[i].root.unwrap_or(0);
    let counts = |&j: &usize| match needs {
        Needs::All => true,
        Needs::Root => rank(j) == root,
        Needs::AtRoot => rank(i) == root,
        Needs::Lower => rank(j) <= rank(i),
    };
    (0..calls.len()).filter(counts).max_by_key(|&j| calls[j].from_ns)
}

/// Time that one rank spent, and time that others spent for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Time in collective calls.
    pub inside_ns: i64,
    /// Of that, waiting for others.
    pub waited_ns: i64,
    /// Others' time in which they waited for this rank.
    pub kept_ns: i64,
    /// Calls for which others waited.
    pub kept_calls: usize,
    /// The kind of call in which others waited for it the longest.
    pub kept_most: Option<String>,
}

/// Returns the totals of each part.
pub fn totals(parts: &[Part], waits: &Waits) -> Vec<Total> {
    let mut totals = vec![Total::default(); parts.len()];
    let mut by_kind: HashMap<(usize, &str), i64> = HashMap::new();
    let mut late: HashMap<(usize, u64, u64), ()> = HashMap::new();
    for (p, part) in parts.iter().enumerate() {
        for (call, wait) in part.calls.iter().zip(&waits[p]) {
            totals[p].inside_ns += if call.started { 0 } else { call.took_ns() };
            let Some(wait) = wait else { continue };
            totals[p].waited_ns += wait.ns;
            totals[wait.part].kept_ns += wait.ns;
            *by_kind.entry((wait.part, &call.kind)).or_default() += wait.ns;
            late.insert((wait.part, call.comm, call.number), ());
        }
    }
    for (part, _, _) in late.into_keys() {
        totals[part].kept_calls += 1;
    }
    for (p, total) in totals.iter_mut().enumerate() {
        let mine = by_kind.iter().filter(|((part, _), _)| *part == p);
        total.kept_most =
            mine.max_by_key(|((_, kind), ns)| (**ns, *kind)).map(|((_, kind), _)| (*kind).to_owned());
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part with one call that ranks of a communicator of `size` made from `from` to `to`.
    fn part(rank: usize, size: usize, kind: &str, root: Option<usize>, from: i64, to: i64) -> Part {
        let call = Call {
            from_ns: from,
            to_ns: to,
            comm: 9,
            number: 0,
            bytes: 8,
            root,
            place: Some((rank, size)),
            kind: kind.to_owned(),
            because: None,
            started: false,
        };
        Part {
            rank,
            pid: 1,
            node: "n".into(),
            mpi: "MPICH".into(),
            complete: true,
            since_1970: 0,
            dropped: 0,
            calls: vec![call],
        }
    }

    fn waits(kind: &str, root: Option<usize>, times: [(i64, i64); 3]) -> Vec<Option<(usize, i64)>> {
        let parts: Vec<Part> =
            times.iter().enumerate().map(|(r, &(from, to))| part(r, 3, kind, root, from, to)).collect();
        find(&parts).iter().map(|calls| calls[0].map(|wait| (wait.part, wait.ns))).collect()
    }

    #[test]
    fn all_ranks_of_an_allreduce_wait_for_the_last() {
        assert_eq!(
            waits("allreduce", None, [(0, 110), (40, 110), (100, 120)]),
            [Some((2, 100)), Some((2, 60)), None]
        );
    }

    #[test]
    fn a_broadcast_waits_for_its_root_alone() {
        assert_eq!(waits("bcast", Some(1), [(0, 60), (50, 55), (900, 910)]), [Some((1, 50)), None, None]);
    }

    #[test]
    fn a_reduce_waits_at_its_root_alone() {
        assert_eq!(waits("reduce", Some(0), [(0, 70), (10, 12), (65, 70)]), [Some((2, 65)), None, None]);
    }

    #[test]
    fn a_scan_waits_for_lower_ranks() {
        assert_eq!(waits("scan", None, [(50, 55), (0, 60), (100, 110)]), [None, Some((0, 50)), None]);
    }

    #[test]
    fn a_call_that_a_rank_did_not_record_says_nothing() {
        let parts = [part(0, 3, "barrier", None, 0, 90), part(1, 3, "barrier", None, 80, 90)];
        assert!(find(&parts).iter().all(|calls| calls[0].is_none()));
    }

    #[test]
    fn totals_name_the_rank_that_others_waited_for() {
        let parts = [part(0, 2, "barrier", None, 0, 90), part(1, 2, "barrier", None, 80, 90)];
        let totals = totals(&parts, &find(&parts));
        assert_eq!((totals[0].inside_ns, totals[0].waited_ns, totals[0].kept_ns), (90, 80, 0));
        let late = Total {
            inside_ns: 10,
            kept_ns: 80,
            kept_calls: 1,
            kept_most: Some("barrier".into()),
            ..Total::default()
        };
        assert_eq!(totals[1], late);
    }
}
