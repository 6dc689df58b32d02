//! Peers in each round of a dissemination.
//!
//! With `m` peers a round, what a rank knows of grows by the factor m + 1, as Ramos & Hoefler's pseudo-code (Fig. 4.3)
//! plays it; their tables count the factor m.

use super::less;
use super::levels::sequences;
use lineweave_core::algorithm::ranks::ceil_log;

/// Factor by which knowledge grows in a round of `m` peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// m + 1: oneself and the peers.
    Full,
    /// m, as Ramos & Hoefler's Table B.2 counts, with m >= 2 and m < n; one round of one peer for two ranks.
    Published,
}

/// Peers and rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Radix {
    /// Peers in a round.
    pub m: usize,
    /// Rounds.
    pub rounds: usize,
}

/// The least `rounds * round(m)`, and the fewest peers of those that cost as little. A single rank needs no round.
pub fn uniform(ranks: usize, growth: Growth, round: impl Fn(usize) -> f64) -> (Radix, f64) {
    let radix = |m: usize| match growth {
        Growth::Full => Radix { m, rounds: ceil_log(ranks, m + 1) },
        Growth::Published if ranks <= 2 => Radix { m: 1, rounds: ranks.saturating_sub(1) },
        Growth::Published => Radix { m, rounds: ceil_log(ranks, m) },
    };
    let first = match growth {
        Growth::Published if ranks > 2 => 2,
        Growth::Published | Growth::Full => 1,
    };
    let cost = |r: Radix| r.rounds as f64 * round(r.m);
    let mut best = radix(first);
    for m in first + 1..ranks {
        let next = radix(m);
        // More peers never pay without a round less.
        if next.rounds < best.rounds && less(cost(next), cost(best)) {
            best = next;
        }
    }
    (best, cost(best))
}

/// The least sum of `round(m)` over rounds of any numbers of peers, not increasing, whose product of m + 1 covers all
/// ranks; of equal sums the first in lexicographic order. `round` must not decrease with m.
pub fn mixed(ranks: usize, round: impl Fn(usize) -> f64) -> (Vec<usize>, f64) {
    let rest = |reach: usize| ranks.div_ceil(reach) - 1;
    sequences(ranks, round, 1, |reach, m| reach * (m + 1), rest).swap_remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_is_the_best_of_all_radices() {
        for ranks in 2..200 {
            for fixed in [0.1, 1.0, 7.0] {
                let round = |m: usize| fixed + m as f64;
                let (_, found) = uniform(ranks, Growth::Full, round);
                let all = (1..ranks).map(|m| ceil_log(ranks, m + 1) as f64 * round(m));
                assert!((found - all.fold(f64::INFINITY, f64::min)).abs() < 1e-9);
                let (radices, less) = mixed(ranks, round);
                assert!(less <= found + 1e-9, "{ranks} {radices:?}");
                assert!(radices.iter().map(|m| m + 1).product::<usize>() >= ranks);
                assert!(radices.windows(2).all(|w| w[0] >= w[1]));
            }
        }
    }

    #[test]
    fn rounds_of_different_peers_can_be_cheaper() {
        // Ten ranks: 4 x 3 >= 10 takes 3 + 2 peers where two rounds of 3 take 6.
        let round = |m: usize| 1.5 + m as f64;
        assert_eq!(uniform(10, Growth::Full, round), (Radix { m: 3, rounds: 2 }, 9.0));
        assert_eq!(mixed(10, round).1, 8.0);
    }
}
