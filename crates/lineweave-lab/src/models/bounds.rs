//! What no algorithm can be faster than, in a model where information moves by reading lines.

use crate::ordered::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// ns until `ranks` ranks know what one knew, if what a rank passes on arrives `latency` later and it passes on
/// something every `gap` (the postal model; Karp et al. 1993, whose greedy schedule is optimal). Both above zero.
pub fn postal(ranks: usize, latency: f64, gap: f64) -> f64 {
    spread(&[0.0], latency, Sends::one_by_one(gap), ranks, 1).last().copied().unwrap_or(0.0)
}

/// How fast a rank passes on what it knows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sends {
    /// From one to the next, at least.
    pub issue: f64,
    /// How long one is under way before another may take its place.
    pub gap: f64,
    /// So many are under way at once.
    pub at_once: usize,
}

impl Sends {
    /// One every `gap`.
    pub fn one_by_one(gap: f64) -> Sends {
        Sends { issue: 0.0, gap: gap.max(f64::MIN_POSITIVE), at_once: 1 }
    }

    /// When the n-th leaves, from 0.
    pub(crate) fn leaves(self, n: usize) -> f64 {
        ((n / self.at_once.max(1)) as f64 * self.gap).max(n as f64 * self.issue)
    }
}

/// When something happens: a rank is told, or the n-th message of one that was told at some time arrives.
type Happens = (Time, Option<(Time, usize)>);

/// When the first, second and so on of `ranks` ranks can know at the earliest, where ranks sit in clusters.
///
/// A cluster that hears of something at 0 has its j-th rank told at `cluster[j]` at the earliest, by itself. Every rank
/// passes on something to other clusters as `sends` says, which arrives `latency` later, beside what it does within
/// its own. The last of `ranks` is told when `places` clusters have heard at the earliest.
///
/// This is never later than any schedule: who is told from another cluster starts a chain of those told from there
/// within the cluster, of which there are no more than `cluster` allows.
pub fn spread(cluster: &[f64], latency: f64, sends: Sends, ranks: usize, places: usize) -> Vec<f64> {
    let mut agenda: BinaryHeap<Reverse<Happens>> = BinaryHeap::new();
    let mut told: Vec<f64> = Vec::with_capacity(ranks);
    let (mut heard, mut last) = (1, 0.0);
    agenda.extend(cluster.iter().map(|&d| Reverse((Time(d), None))));
    while told.len() < ranks || heard < places {
        let Some(Reverse((Time(at), arrives))) = agenda.pop() else { break };
        let (since, n) = match arrives {
            None => {
                if told.len() < ranks {
                    told.push(at);
                }
                (at, 0)
            }
            Some((Time(since), n)) => {
                heard += 1;
                agenda.extend(cluster.iter().map(|&d| Reverse((Time(at + d), None))));
                (since, n + 1)
            }
        };
        agenda.push(Reverse((Time(since + sends.leaves(n) + latency), Some((Time(since), n)))));
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
        let every = Sends::one_by_one;
        assert_eq!(spread(&[0.0; 4], 7.0, every(1.0), 8, 2), [[0.0; 4], [7.0; 4]].concat());
        // A pair whose second hears at 2: it passes on as well, at 2 + 7.
        assert_eq!(spread(&[0.0, 2.0], 7.0, every(5.0), 6, 3), vec![0.0, 2.0, 7.0, 9.0, 9.0, 11.0]);
        // Enough ranks, not enough clusters: the last waits for the third to hear, at 9.
        assert_eq!(spread(&[0.0, 2.0], 7.0, every(5.0), 3, 3), vec![0.0, 2.0, 9.0]);
    }

    #[test]
    fn several_are_under_way_at_once() {
        let sends = Sends { issue: 1.0, gap: 10.0, at_once: 2 };
        // The first tells at 0 and 1, and two at 10; who hears of it at 20 could tell at 40 at the earliest.
        assert_eq!(spread(&[0.0], 20.0, sends, 6, 1), vec![0.0, 20.0, 21.0, 30.0, 30.0, 40.0]);
    }
}
