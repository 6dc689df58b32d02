//! Ramos & Hoefler's own optimisers: the min models of chapter 4 minimised (their Appendix B), exactly.
//!
//! The parameters are those of plans: `bcast/degrees`, `barrier/dissemination`, `reduce/tree`, and for long messages
//! `bcast/direct-cyclic` or `bcast/direct-flat`.

use super::levels;
use super::radix::{mixed, uniform, Growth, Radix};
use super::Optimum;
use crate::models::bounds::{doubling, postal};
use crate::models::cache_line::{
    barrier as barrier_model, flat_broadcast, pipelined_broadcast, reduction_level, small_broadcast_level,
    Folding, MinMax, Reads, SameLine,
};
use lineweave_core::model::MultiLine;

/// Degrees of the small broadcast (Eq. 4.7).
///
/// Bound: a copy of a line takes R_R + R_L and c more for each reader at the same time, so the message cannot spread
/// faster than in the postal model with these; and whoever is last must still say so on a line in memory, or
/// else the acknowledgements of all, one line transfer each where they meet, come after the first copy.
pub fn small_broadcast(r: &Reads, t_c: &SameLine, ranks: usize) -> Optimum<Vec<usize>> {
    let (choice, cost) = levels::degrees(ranks, |k| small_broadcast_level(r, t_c, k).min);
    let cost_ns = if ranks > 1 { r.invalid + cost } else { 0.0 };
    Optimum { choice, cost_ns, bound_ns: broadcast_bound(r, t_c, ranks), exact: true }
}

fn broadcast_bound(r: &Reads, t_c: &SameLine, ranks: usize) -> f64 {
    if ranks < 2 {
        return 0.0;
    }
    let copy = t_c.from_reads(r, 1.0);
    let spread = postal(ranks, copy, t_c.linear.c.value.min(copy));
    let said = r.invalid + r.remote;
    (spread + said).max(copy + r.invalid + doubling(ranks, r.remote))
}

/// Peers and rounds of the barrier (Eq. 4.11); with [`Growth::Published`] as the paper's Table B.2 has them.
///
/// Bound: a line from another core brings what one rank knows, so what is known at most doubles each R_R.
pub fn barrier(r: &Reads, ranks: usize, growth: Growth) -> Optimum<Radix> {
    let (choice, cost_ns) = uniform(ranks, growth, |m| barrier_model(r, m, 1).min);
    Optimum { choice, cost_ns, bound_ns: barrier_bound(r, ranks), exact: true }
}

/// Peers of the barrier (Eq. 4.11), a number for each round; bound as of [`barrier`].
pub fn mixed_barrier(r: &Reads, ranks: usize) -> Optimum<Vec<usize>> {
    let (choice, cost_ns) = mixed(ranks, |m| barrier_model(r, m, 1).min);
    Optimum { choice, cost_ns, bound_ns: barrier_bound(r, ranks), exact: true }
}

fn barrier_bound(r: &Reads, ranks: usize) -> f64 {
    doubling(ranks, r.remote) + if ranks > 1 { r.local } else { 0.0 }
}

/// Degrees of the small reduction (Eq. 4.13); [`Folding::Slope`] as in the paper's Table B.3.
///
/// Bound: a parent reads and folds one child after the other, so what a rank has combined at most doubles each
/// R_R + o.
pub fn reduction(
    r: &Reads,
    t_c: &SameLine,
    t_n: &MultiLine,
    folding: Folding,
    ranks: usize,
) -> Optimum<Vec<usize>> {
    let (choice, cost) = levels::degrees(ranks, |k| reduction_level(r, t_c, t_n, folding, k).min);
    let cost_ns = if ranks > 1 { r.remote + cost } else { 0.0 };
    Optimum { choice, cost_ns, bound_ns: doubling(ranks, r.remote + t_n.o.value), exact: true }
}

/// The two ways of the large broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Large {
    /// Slices passed around in a cycle (Eq. 4.8).
    Pipelined,
    /// Everybody copies from the root (Eq. 4.10).
    Flat,
}

impl Large {
    /// The plan that does it, in private buffers.
    pub fn algorithm(self) -> &'static str {
        match self {
            Large::Pipelined => "direct-cyclic",
            Large::Flat => "direct-flat",
        }
    }

    /// Returns the best and the worst case of the broadcast's closed form.
    pub fn model(self, r: &Reads, t_c: &SameLine, t_n: &MultiLine, ranks: usize, lines: usize) -> MinMax {
        match self {
            Large::Pipelined => pipelined_broadcast(r, t_c, t_n, ranks, lines),
            Large::Flat => flat_broadcast(r, t_c, t_n, ranks, lines),
        }
    }
}

/// The cheaper of the two large broadcasts, for a message of `lines` lines. The paper sets the size of a slice by the
/// number of ranks and leaves nothing else to choose.
///
/// Bound: every reader fetches every line, o each, the first at R_R + R_L.
pub fn large_broadcast(
    r: &Reads,
    t_c: &SameLine,
    t_n: &MultiLine,
    ranks: usize,
    lines: usize,
) -> Optimum<Large> {
    let cost = |way: Large| way.model(r, t_c, t_n, ranks, lines).min;
    let choice = match cost(Large::Flat) <= cost(Large::Pipelined) {
        true => Large::Flat,
        false => Large::Pipelined,
    };
    let bound_ns = r.remote + r.local + t_n.o.value * (lines.max(1) - 1) as f64;
    Optimum { choice, cost_ns: cost(choice), bound_ns, exact: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::cache_line::multi_line;
    use lineweave_core::machine::{shipped, State};
    use lineweave_core::topology::Level;

    #[test]
    fn nothing_is_below_its_bound() {
        let phi = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
        let r = Reads::of(phi, Level::Numa).unwrap();
        let t_c = SameLine::of(phi, State::E, State::E).unwrap();
        let t_n = multi_line(phi, State::E, State::E).unwrap();
        for ranks in (2..=64).chain([100, 240, 512, 1024]) {
            let ratios = [
                small_broadcast(&r, &t_c, ranks).ratio(),
                barrier(&r, ranks, Growth::Full).ratio(),
                mixed_barrier(&r, ranks).ratio(),
                reduction(&r, &t_c, &t_n, Folding::Slope, ranks).ratio(),
                large_broadcast(&r, &t_c, &t_n, ranks, 128).ratio(),
            ];
            assert!(ratios.iter().all(|&x| x >= 1.0), "{ranks}: {ratios:?}");
        }
    }
}
