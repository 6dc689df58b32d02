//! What no algorithm can be faster than, in a model where information moves by reading lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// ns until `ranks` ranks know what one knew, if what a rank passes on arrives `latency` later and it passes on
/// something every `gap` (the postal model; Karp et al. 1993, whose greedy schedule is optimal). Both above zero.
pub fn postal(ranks: usize, latency: f64, gap: f64) -> f64 {
    spread(&[0.0], latency, gap, ranks, 1).last().copied().unwrap_or(0.0)
}

/// When the first, second and so on of `ranks` ranks can know at the earliest, where ranks sit in clusters.
///
/// A cluster that hears of something at 0 has its j-th rank told at `cluster[j]` at the earliest, by itself. Every rank
/// passes on something to another cluster every `gap`, which arrives `latency` later, beside what it does within
/// its own. The last of `ranks` is told when `places` clusters have heard at the earliest.
///
/// This is never later than any schedule: who is told from another cluster starts a chain of those told from there
/// within the cluster, of which there are no more than `cluster` allows.
pub fn spread(cluster: &[f64], latency: f64, gap: f64, ranks: usize, places: usize) -> Vec<f64> {
    let gap = gap.max(f64::MIN_POSITIVE);
    // What happens next: a rank is told, or something that was passed on arrives.
    let mut agenda: BinaryHeap<Reverse<(Time, bool)>> = BinaryHeap::new();
    let mut told: Vec<f64> = Vec::with_capacity(ranks);
    let (mut heard, mut last) = (1, 0.0);
    agenda.extend(cluster.iter().map(|&d| Reverse((Time(d), true))));
    while told.len() < ranks || heard < places {
        let Some(Reverse((Time(at), is_told))) = agenda.pop() else { break };
        if is_told {
            if told.len() < ranks {
                told.push(at);
            }
            agenda.push(Reverse((Time(at + latency), false)));
        } else {
            heard += 1;
            agenda.extend(cluster.iter().map(|&d| Reverse((Time(at + d), true))));
            agenda.push(Reverse((Time(at + gap), false)));
        }
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
    crate::algorithm::ranks::ceil_log(ranks, 2) as f64 * step
}

/// A time that orders.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Time(pub f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Time) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Time) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
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
        assert_eq!(spread(&[0.0; 4], 7.0, 1.0, 8, 2), [[0.0; 4], [7.0; 4]].concat());
        // A pair whose second hears at 2: it passes on as well, at 2 + 7.
        assert_eq!(spread(&[0.0, 2.0], 7.0, 5.0, 6, 3), vec![0.0, 2.0, 7.0, 9.0, 9.0, 11.0]);
        // Enough ranks, not enough clusters: the last waits for the third to hear, at 9.
        assert_eq!(spread(&[0.0, 2.0], 7.0, 5.0, 3, 3), vec![0.0, 2.0, 9.0]);
    }
}
