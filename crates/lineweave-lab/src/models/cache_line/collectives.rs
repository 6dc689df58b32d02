//! Collectives as sums of line reads, from best to worst case (Ramos & Hoefler 2013, chapter 4 and Table 4.1).
//!
//! Minimum: nobody looks at a line before it is ready. Maximum: pollers take lines away from writers as often as
//! the paper thinks likely; it is no bound, as worse interleavings exist (section 4.2). Buffers begin exclusive in
//! their owner's cache and notification lines in memory. Symbols: R_L, R_R, R_I of [`Reads`]; c of [`SameLine`];
//! o, p, q of [`MultiLine`]; all in ns. T_C is the form R_R + R_L + c (k - 1) of Eq. 4.5, with which the paper's
//! tables of parameters come out; with the fitted c k + b, 132 ns dearer a level, they do not.

use super::{Reads, SameLine};
use lineweave_core::model::MultiLine;
use std::ops::{Add, Mul};

/// Best and worst case, in ns.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MinMax {
    /// Time when nobody is in the way.
    pub min: f64,
    /// Time when pollers are in the way.
    pub max: f64,
}

impl Add for MinMax {
    type Output = MinMax;
    fn add(self, other: MinMax) -> MinMax {
        MinMax { min: self.min + other.min, max: self.max + other.max }
    }
}

impl Mul<f64> for MinMax {
    type Output = MinMax;
    fn mul(self, factor: f64) -> MinMax {
        MinMax { min: self.min * factor, max: self.max * factor }
    }
}

/// A cost that is the same at best and at worst.
fn both(ns: f64) -> MinMax {
    MinMax { min: ns, max: ns }
}

/// T_nb(n): `n - 1` threads tell one that they are done, on one line that each writes in turn (Eq. 4.1, 4.2).
/// `n >= 2`.
pub fn notify_back(r: &Reads, n: usize) -> MinMax {
    let others = n.saturating_sub(1) as f64;
    MinMax { min: r.invalid + others * r.remote, max: r.invalid + 2.0 * others * r.remote }
}

/// One level of T_fw, with `k` children.
pub fn notify_level(r: &Reads, t_c: &SameLine, k: usize) -> MinMax {
    MinMax { min: r.invalid + 2.0 * r.local, max: 2.0 * (r.remote + t_c.from_reads(r, k as f64)) }
}

/// T_fw: the parents of each level tell their children that the message is there (Eq. 4.6). The paper prints the
/// sum over levels twice, one in the other, in the worst case; it is taken once here, as its text describes it:
/// each parent's children read too early, and again.
pub fn notify_forward(r: &Reads, t_c: &SameLine, degrees: &[usize]) -> MinMax {
    degrees.iter().fold(both(r.invalid), |sum, &k| sum + notify_level(r, t_c, k))
}

/// One level of the small broadcast, of `k` children: forward notification, copy and acknowledgement. The broadcast
/// is R_I and the sum of its levels (Eq. 4.7).
pub fn small_broadcast_level(r: &Reads, t_c: &SameLine, k: usize) -> MinMax {
    notify_level(r, t_c, k) + both(t_c.from_reads(r, k as f64)) + notify_back(r, k + 1)
}

/// T_sbcast: a message of at most a line down a tree with a degree per level (Eq. 4.7). Holds as long as
/// acknowledgements of a level follow those of the one below, and for degrees up to the readers that c was
/// fitted to.
pub fn small_broadcast(r: &Reads, t_c: &SameLine, degrees: &[usize]) -> MinMax {
    degrees.iter().fold(both(r.invalid), |sum, &k| sum + small_broadcast_level(r, t_c, k))
}

/// T_pipedbcast: `threads - 1` slices, each fetched once from the root and then from each other, one reader at a
/// time (Eq. 4.8, 4.9). `lines` is the message; a slice is the next whole number of lines. At least 2 threads and
/// 1 line; T_N was fitted to 128 lines of a slice at most.
pub fn pipelined_broadcast(
    r: &Reads,
    t_c: &SameLine,
    t_n: &MultiLine,
    threads: usize,
    lines: usize,
) -> MinMax {
    let readers = threads.saturating_sub(1).max(1);
    let slice = t_n.at(lines.div_ceil(readers).max(1) as f64);
    let all = t_c.from_reads(r, readers as f64);
    let rest = readers as f64 - 1.0;
    MinMax {
        min: (r.invalid + 2.0 * r.local)
            + (2.0 * r.local + all + slice)
            + rest * (r.remote + r.local + slice)
            + (2.0 * r.remote + r.local),
        max: (r.invalid + 2.0 * (r.remote + all) + r.remote)
            + (2.0 * r.remote + all + slice)
            + rest * (2.0 * r.remote + slice)
            + (2.0 * r.remote + r.local),
    }
}

/// T_ftbcast: everybody copies the whole message from the root at once (Eq. 4.10). `lines` as for
/// [`pipelined_broadcast`]. The constant of the copy is the fitted b, which the paper calls an arbitrary choice.
pub fn flat_broadcast(r: &Reads, t_c: &SameLine, t_n: &MultiLine, threads: usize, lines: usize) -> MinMax {
    let readers = threads.saturating_sub(1).max(1) as f64;
    let all = t_c.from_reads(r, readers);
    let copy = t_c.linear.b.value + t_c.linear.c.value * (readers - 1.0) + t_n.o.value * lines as f64;
    let notify = MinMax {
        min: r.invalid + 3.0 * r.local + r.remote + all + readers * r.remote,
        max: r.invalid + r.local + 3.0 * r.remote + 2.0 * all + 2.0 * readers * r.remote,
    };
    notify + both(copy)
}

/// T_barr: `rounds` rounds in which everybody hears from `m` others (Eq. 4.11, 4.12). How many rounds `m` needs
/// is the caller's affair: the paper takes the least r with m^r >= n, where (m+1)^r >= n suffices.
pub fn barrier(r: &Reads, m: usize, rounds: usize) -> MinMax {
    let m = m as f64;
    let round = MinMax {
        min: r.local + r.remote * m + r.remote,
        max: r.remote + 4.0 * m * r.remote + (2.0 * m + 1.0) * r.remote,
    };
    round * rounds as f64
}

/// Cost to a parent of combining `k` contributions, T_k of Eq. 4.13.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folding {
    /// T_N(k) = o k + q - p / k, as Eq. 4.13 is written.
    Full,
    /// o k: with this the paper's Table B.3 comes out.
    Slope,
}

impl Folding {
    fn of(self, t_n: &MultiLine, k: usize) -> f64 {
        match self {
            Folding::Full => t_n.at(k as f64),
            Folding::Slope => t_n.o.value * k as f64,
        }
    }
}

/// One level of the small reduction, of `k` children. The reduction is the sum of its levels and R_R (Eq. 4.13,
/// 4.14).
pub fn reduction_level(r: &Reads, t_c: &SameLine, t_n: &MultiLine, folding: Folding, k: usize) -> MinMax {
    let all = t_c.from_reads(r, k as f64);
    let lines = (1.0 + k as f64) * r.remote;
    let once = r.invalid + r.local + folding.of(t_n, k);
    MinMax { min: once + all + lines, max: once + 2.0 * all + 2.0 * lines }
}

/// T_red: contributions of at most a line up a tree with a degree per level and a buffer a child (Eq. 4.13, 4.14).
/// Holds for operators that cost less than fetching their operand.
pub fn reduction(r: &Reads, t_c: &SameLine, t_n: &MultiLine, folding: Folding, degrees: &[usize]) -> MinMax {
    let levels = degrees.iter().map(|&k| reduction_level(r, t_c, t_n, folding, k));
    levels.fold(both(r.remote), Add::add)
}
