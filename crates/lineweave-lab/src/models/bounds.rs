//! Lower bounds of the time of any algorithm, in a model where information moves by reading lines.

use crate::ordered::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// ns until `ranks` ranks know what one knew, if what a rank passes on arrives `latency` later and it passes on
/// something every `gap` (the postal model; Karp et al. 1993, whose greedy schedule is optimal). Both above zero.
pub fn postal(ranks: usize, latency: f64, gap: f64) -> f64 {
    let arrivals: Vec<f64> = (0..ranks).map(|n| n as f64 * gap + latency).collect();
    spread(&[0.0], [&arrivals, &arrivals], ranks, 1).last().copied().unwrap_or(0.0)
}

/// Event and its time: a rank is told, or the n-th message of one that was told at some time arrives.
type Happens = (Time, Option<Sent>);

/// The n-th message of one that knows since some time, the very first one or another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Sent {
    since: Time,
    n: usize,
    other: bool,
}

impl Sent {
    fn arrives(self, arrivals: [&[f64]; 2]) -> Option<Reverse<Happens>> {
        let after = arrivals[usize::from(self.other)].get(self.n)?;
        Some(Reverse((Time(self.since.0 + after), Some(self))))
    }
}

/// Returns the earliest times at which the first, second and so on of `ranks` ranks can know, where ranks sit in clusters.
///
/// A cluster that hears of something at 0 has its j-th rank told at `cluster[j]` at the earliest, by itself. The n-th message
/// that a rank passes on to other clusters, beside what it does within its own, arrives `arrivals[1][n]` after the rank knows,
/// and of the rank that knows first `arrivals[0][n]`; there are no more. The last of `ranks` is told when `places` clusters
/// have heard at the earliest.
///
/// This is never later than any schedule: who is told from another cluster starts a chain of those told from there
/// within the cluster, of which there are no more than `cluster` allows.
pub fn spread(cluster: &[f64], arrivals: [&[f64]; 2], ranks: usize, places: usize) -> Vec<f64> {
    let mut agenda: BinaryHeap<Reverse<Happens>> = BinaryHeap::new();
    let mut told: Vec<f64> = Vec::with_capacity(ranks);
    let (mut heard, mut last) = (1, 0.0);
    agenda.extend(cluster.iter().map(|&d| Reverse((Time(d), None))));
    let mut first = true;
    while told.len() < ranks || heard < places {
        let Some(Reverse((Time(at), sent))) = agenda.pop() else { break };
        let next = match sent {
            None => {
                if told.len() < ranks {
                    told.push(at);
                }
                Sent { since: Time(at), n: 0, other: !std::mem::take(&mut first) }
            }
            Some(sent) => {
                heard += 1;
                agenda.extend(cluster.iter().map(|&d| Reverse((Time(at + d), None))));
                Sent { n: sent.n + 1, ..sent }
            }
        };
        agenda.extend(next.arrives(arrivals));
        last = at;
    }
    // The loop ends with whichever came last: a rank told, or a cluster that heard.
    if let Some(end) = told.last_mut() {
        *end = end.max(last);
    }
    told
}

/// ns until a rank can know of `ranks` ranks, if to learn what another knows takes `step`: knowledge doubles at most.
/// Holds for barriers and, with the time to fold in `step`, for reductions.
pub fn doubling(ranks: usize, step: f64) -> f64 {
    lineweave_core::algorithm::ranks::ceil_log(ranks, 2) as f64 * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_postal_model_knows_its_special_cases() {
        // No gap to speak of: everybody at once. Gap as long as the latency: doubling.
        assert!((postal(100, 5.0, 1e-12) - 5.0).abs() < 1e-6);
        for (ranks, rounds) in [(2, 1.0), (3, 2.0), (4, 2.0), (5, 3.0), (1024, 10.0)] {
            assert_eq!(postal(ranks, 7.0, 7.0), 7.0 * rounds);
            assert_eq!(doubling(ranks, 7.0), 7.0 * rounds);
        }
        // Latency of two gaps: Fibonacci's numbers, 1 1 2 3 5 8 13.
        assert_eq!(postal(13, 2.0, 1.0), 6.0);
        assert_eq!(postal(14, 2.0, 1.0), 7.0);
        assert_eq!(postal(1, 7.0, 7.0), 0.0);
    }

    #[test]
    fn clusters_spread_from_each_of_their_ranks() {
        // Two clusters of four, told together: the second at 7, so everybody.
        let every = |gap: f64| [0.0, 1.0, 2.0].map(|n| 7.0 + n * gap);
        let spread = |cluster: &[f64], gap, ranks, places| {
            super::spread(cluster, [&every(gap), &every(gap)], ranks, places)
        };
        assert_eq!(spread(&[0.0; 4], 1.0, 8, 2), [[0.0; 4], [7.0; 4]].concat());
        // A pair whose second hears at 2: it passes on as well, at 2 + 7.
        assert_eq!(spread(&[0.0, 2.0], 5.0, 6, 3), vec![0.0, 2.0, 7.0, 9.0, 9.0, 11.0]);
        // Enough ranks, not enough clusters: the last waits for the third to hear, at 9.
        assert_eq!(spread(&[0.0, 2.0], 5.0, 3, 3), vec![0.0, 2.0, 9.0]);
    }

    #[test]
    fn the_first_may_be_slower_than_others() {
        // The first tells one at 30, who tells two at 10 and 11 after that, and nobody more.
        assert_eq!(spread(&[0.0], [&[30.0], &[10.0, 11.0]], 5, 1), vec![0.0, 30.0, 40.0, 41.0, 50.0]);
        assert_eq!(spread(&[0.0], [&[30.0], &[]], 5, 1), vec![0.0, 30.0]);
    }
}
