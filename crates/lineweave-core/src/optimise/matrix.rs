//! Trees over ranks any two of which have a latency of their own, as measured.
//!
//! The model is the postal one made uneven: what rank `i` sends to `j` arrives `latency(i, j)` later, and `i` can send
//! again after `gap(i, j)`. Finding the best tree is NP-hard (Bhat, Raghavendra & Prasanna 2003). Up to [`EXACT`] ranks
//! it is found by dynamic programming over subsets; beyond, several greedy trees are made (earliest arrival
//! first, the same with a look ahead, and cluster by cluster), their children put in the best order, and the best of
//! them improved by moving what arrives last.

mod bound;
mod exact;
mod greedy;
mod schedule;

pub use bound::bound;
pub use schedule::Schedule;

use super::costs::Steps;
use super::{less, Optimum};
use crate::model::Model;
use crate::topology::{Level, Shape};

/// The most ranks for which every tree is considered.
pub const EXACT: usize = 9;

/// Latencies between ranks and gaps of senders, in ns.
#[derive(Clone, PartialEq, Debug)]
pub struct Latencies {
    ranks: usize,
    latency: Vec<f64>,
    /// By sender and receiver, as latencies are.
    gap: Vec<f64>,
}

/// Why numbers are no matrix of latencies.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LatencyError {
    /// Not one latency for each pair, and one gap for each rank.
    #[error("expected {ranks} x {ranks} latencies and {ranks} gaps, found {latencies} and {gaps}")]
    Size {
        /// Number of gaps given, or of ranks.
        ranks: usize,
        /// Latencies given.
        latencies: usize,
        /// Gaps given.
        gaps: usize,
    },
    /// No time.
    #[error("{what}: expected a time above 0 ns, found {found}")]
    NoTime {
        /// Which number.
        what: String,
        /// What it is.
        found: f64,
    },
}

impl Latencies {
    /// From numbers, `latency[i * ranks + j]` for what `i` sends to `j`; what a rank would send to itself is not
    /// looked at.
    ///
    /// # Errors
    /// [`LatencyError`] when there are too few or too many, or one is not a positive finite time.
    pub fn new(ranks: usize, latency: Vec<f64>, gap: Vec<f64>) -> Result<Latencies, LatencyError> {
        if latency.len() != ranks * ranks || gap.len() != ranks {
            return Err(LatencyError::Size { ranks, latencies: latency.len(), gaps: gap.len() });
        }
        let time = |x: f64| x.is_finite() && x > 0.0;
        for (at, &found) in latency.iter().enumerate() {
            let (i, j) = (at / ranks, at % ranks);
            if i != j && !time(found) {
                return Err(LatencyError::NoTime { what: format!("latency from {i} to {j}"), found });
            }
        }
        if let Some(i) = gap.iter().position(|&g| !time(g)) {
            return Err(LatencyError::NoTime { what: format!("gap of {i}"), found: gap[i] });
        }
        let gap = (0..ranks * ranks).map(|at| gap[at / ranks]).collect();
        Ok(Latencies { ranks, latency, gap })
    }

    /// Of ranks that sit like this: a signal at their distance, and the model's gap between sets.
    pub fn of(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal, s.gap))
    }

    /// The same for partial results on their way up: a receiver fetches and folds one after the other. A reduction is a
    /// broadcast backwards in time: see [`reduce`].
    pub fn folding(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal + s.fold, s.read + s.fold))
    }

    /// The least that folding takes: lines of children that have come meanwhile are fetched in a row.
    pub fn folding_in_a_row(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal + s.fold, s.row + s.fold))
    }

    /// The same where a receiver only looks at what others have set.
    pub fn hearing(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal, s.row))
    }

    fn by_level(model: &Model, shape: &Shape, times: impl Fn(&Steps) -> (f64, f64)) -> Latencies {
        let ranks = shape.ranks();
        let all = Level::ALL.map(|l| times(&Steps::of(model, l)));
        let floor = 1e-3;
        let between = |at: usize| all[shape.distance((at / ranks).into(), (at % ranks).into()) as usize];
        let both: Vec<(f64, f64)> = (0..ranks * ranks).map(between).collect();
        Latencies {
            ranks,
            latency: both.iter().map(|b| b.0.max(floor)).collect(),
            gap: both.iter().map(|b| b.1.max(floor)).collect(),
        }
    }

    /// The same with gaps of at most this.
    #[must_use]
    pub fn with_gap_at_most(mut self, gap: f64) -> Latencies {
        self.gap.iter_mut().for_each(|g| *g = g.min(gap.max(1e-3)));
        self
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// What `from` sends to `to` arrives so much later.
    pub fn latency(&self, from: usize, to: usize) -> f64 {
        self.latency[from * self.ranks + to]
    }

    /// From a message of `from` to `to` to its next.
    pub fn gap(&self, from: usize, to: usize) -> f64 {
        self.gap[from * self.ranks + to]
    }

    /// Latencies the other way.
    #[must_use]
    fn transposed(&self) -> Latencies {
        let n = self.ranks;
        let turned = |of: &[f64]| (0..n * n).map(|at| of[at % n * n + at / n]).collect();
        Latencies { ranks: n, latency: turned(&self.latency), gap: turned(&self.gap) }
    }
}

/// A tree of least time from `root` to everybody: who tells whom, in which order. Its edges are the parameter of
/// `bcast/edges`.
pub fn broadcast(latencies: &Latencies, root: usize) -> Optimum<Schedule> {
    let lower = bound(latencies, root);
    if latencies.ranks() <= EXACT {
        let schedule = exact::tree(latencies, root);
        let cost_ns = schedule.time(latencies);
        return Optimum { choice: schedule, cost_ns, bound_ns: cost_ns, exact: true };
    }
    let mut best: Option<(Schedule, f64)> = None;
    for mut schedule in greedy::trees(latencies, root) {
        schedule.sort(latencies);
        let cost = schedule.time(latencies);
        if best.as_ref().is_none_or(|b| less(cost, b.1)) {
            best = Some((schedule, cost));
        }
    }
    let (mut choice, _) = best.unwrap_or((Schedule::alone(latencies.ranks(), root), 0.0));
    choice.improve(latencies, lower);
    let cost_ns = choice.time(latencies);
    Optimum { choice, cost_ns, bound_ns: lower, exact: false }
}

/// A tree of least time from everybody to `root`, whose ranks fold partial results one after the other. It is the broadcast
/// over the reverse latencies, backwards in time: a parent takes its children in the reverse order.
pub fn reduce(latencies: &Latencies, root: usize) -> Optimum<Schedule> {
    broadcast(&latencies.transposed(), root).map(Schedule::backwards)
}

#[cfg(test)]
mod tests;
