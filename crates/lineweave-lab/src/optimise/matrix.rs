//! Trees over ranks any two of which have a latency of their own, as measured.
//!
//! The model is the postal one made uneven: what rank `i` sends to `j` arrives `latency(i, j)` later, and `i` can send
//! again after `gap(i, j)`. Where stores overlap, several are under way at once, a gap each, and land in order. Finding the best
//! tree is NP-hard (Bhat, Raghavendra & Prasanna 2003). Up to [`EXACT`] ranks it is found by dynamic programming over subsets;
//! beyond, several greedy trees are made (earliest arrival first, the same with a look ahead, the same with one message into each
//! cluster, and cluster by cluster), their children put in the best order, and the best of them improved by moving what arrives
//! last. Trees of those who fold what they hear ([`collecting`]) are [`Rows`].

mod bound;
mod exact;
mod greedy;
mod rows;
mod schedule;

pub use bound::bound;
pub use rows::Rows;
pub use schedule::Schedule;

use super::costs::Steps;
use super::Optimum;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::topology::{Cpu, Level, Shape};

/// The most ranks for which every tree is considered.
pub const EXACT: usize = 9;

/// Latencies between ranks and gaps of senders, in ns.
#[derive(Clone, PartialEq, Debug)]
pub struct Latencies {
    ranks: usize,
    latency: Vec<f64>,
    /// Gaps by sender and receiver, as latencies are.
    gap: Vec<f64>,
    /// Least time from one message of a sender to its next.
    issue: f64,
    /// Messages of a sender that can be under way at once, each for its gap.
    at_once: usize,
    /// A line that a core has.
    hit: f64,
    /// Time of one fold of several that are left to the end.
    fold: f64,
}

/// Work of ranks on the messages that they hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// They go on.
    Signal,
    /// They pass a few bytes on.
    Carry,
    /// They fold it.
    Fold,
}

impl Latencies {
    /// Returns the latencies of ranks that sit like this: a signal at their distance, and the model's gap between sets.
    pub fn of(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal, s.gap))
    }

    /// As [`Latencies::of`], for partial results on their way up: a receiver fetches and folds one after the other. A reduction is a
    /// broadcast backwards in time: see [`reduce`].
    pub fn folding(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal + s.fold, s.read + s.fold))
    }

    /// The least that folding takes: lines of children that have come meanwhile are fetched in a row.
    pub fn folding_in_a_row(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal + s.fold, s.row + s.fold))
    }

    /// As [`Latencies::of`], for a receiver that only looks at what others have set.
    pub fn hearing(model: &Model, shape: &Shape) -> Latencies {
        Latencies::by_level(model, shape, |s| (s.signal, s.row))
    }

    /// Returns the latencies of ranks on CPUs any two of which were timed, as caches that agree are simulated: telling takes
    /// the line from whoever polls it and hands it back, a transfer each. `None` where nothing was timed, or a value is unknown.
    ///
    /// A rank that tells others, or waits for others one after the other, has as many transfers under way as its core has misses in
    /// flight.
    pub fn of_pairs(machine: &Machine, shape: &Shape, work: Work) -> Option<Latencies> {
        Latencies::between_pairs(machine, shape, work, false)
    }

    /// The least that they are, whoever looks when: a rank that asks for a line while that is stored to has what came with it at once,
    /// and a thread that looks after the other one of its core has written finds it there.
    pub fn least_of_pairs(machine: &Machine, shape: &Shape, work: Work) -> Option<Latencies> {
        Latencies::between_pairs(machine, shape, work, true)
    }

    fn between_pairs(machine: &Machine, shape: &Shape, work: Work, least: bool) -> Option<Latencies> {
        machine.measured.as_ref()?;
        let hit = machine.access.local_ns.value?;
        let coherent = machine.coherent.as_ref()?;
        let at_once = coherent.accesses_in_flight.value? as usize;
        let ranks = shape.ranks();
        // Hits that a message takes, and from one message to the next.
        let (hits, between, fold) = match work {
            Work::Signal => (0.0, 1.0, 0.0),
            // What was taken is kept, and read for the next.
            Work::Carry => (2.0, 2.0, 0.0),
            // It is kept, both operands are read, and the sum is written and read.
            Work::Fold => (rows::MESSAGE, 2.0, rows::FOLD),
        };
        let kept = if least && work != Work::Signal { 1.0 } else { 0.0 };
        let work = (hits - kept) * hit;
        // Threads of a core have one cache: the first stands for all.
        let cpus: Vec<&Cpu> = (0..ranks).map(|r| shape.cpu(r.into())).collect();
        let first = |cpu: &Cpu| cpus.iter().position(|c| c.core == cpu.core).unwrap_or(0);
        let cpus: Vec<&Cpu> = cpus.iter().map(|cpu| cpus[first(cpu)]).collect();
        let (mut latency, mut gap) = (vec![hit; ranks * ranks], vec![hit; ranks * ranks]);
        for at in 0..ranks * ranks {
            let (a, b) = (cpus[at / ranks], cpus[at % ranks]);
            if a.core == b.core {
                // The line is in their cache, and whoever polls it sees that a little later.
                let later = machine.transfer.core_ns.value.unwrap_or(hit);
                latency[at] = hit + if least { later.min(hit) } else { later } + work;
            } else {
                // Lines of a tree lie with one of the two.
                let transfer = machine.transfer_at(a, b, a.package)?;
                (latency[at], gap[at]) = (2.0 * transfer + work, transfer);
            }
        }
        Some(Latencies {
            ranks,
            latency,
            gap,
            issue: between * hit,
            at_once: at_once.max(1),
            hit,
            fold: fold * hit,
        })
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
            issue: 0.0,
            at_once: 1,
            hit: 0.0,
            fold: 0.0,
        }
    }

    /// Returns these latencies with gaps of at most `gap`.
    #[must_use]
    pub fn with_gap_at_most(mut self, gap: f64) -> Latencies {
        self.gap.iter_mut().for_each(|g| *g = g.min(gap.max(1e-3)));
        self
    }

    /// Returns the least time from a rank's first message to its n-th, counted from 0, where one takes a gap.
    ///
    /// For partial results backwards in time: the last `n + 1` of a rank's children have come in one row, so that `n + 2` values are
    /// halved after them, or a transfer lies between two that are in different rows.
    fn leaves(&self, n: usize, gap: f64) -> f64 {
        let row = self.fold * (rows::halvings(n + 1) - 1.0);
        let apart = if n == 0 { 0.0 } else { (gap - self.issue).max(0.0) };
        ((n / self.at_once) as f64 * gap).max(n as f64 * self.issue + row.min(apart))
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the time from sending a message of `from` until it arrives at `to`, in ns.
    pub fn latency(&self, from: usize, to: usize) -> f64 {
        self.latency[from * self.ranks + to]
    }

    /// Returns the time from a message that `from` sends to `to` until the next one of `from`, in ns.
    pub fn gap(&self, from: usize, to: usize) -> f64 {
        self.gap[from * self.ranks + to]
    }

    /// Latencies the other way.
    #[must_use]
    fn transposed(&self) -> Latencies {
        let n = self.ranks;
        let turned = |of: &[f64]| (0..n * n).map(|at| of[at % n * n + at / n]).collect();
        Latencies { latency: turned(&self.latency), gap: turned(&self.gap), ..self.clone() }
    }
}

/// A tree of least time from `root` to everybody: who tells whom, in which order. Its edges are the parameter of
/// `bcast/edges`.
pub fn broadcast(latencies: &Latencies, root: usize) -> Optimum<Schedule> {
    let lower = bound(latencies, root);
    if latencies.ranks() <= EXACT && latencies.at_once == 1 {
        let schedule = exact::tree(latencies, root);
        let cost_ns = schedule.time(latencies);
        return Optimum { choice: schedule, cost_ns, bound_ns: cost_ns, exact: true };
    }
    let choice = some(latencies, root, 1, lower).swap_remove(0);
    let cost_ns = choice.time(latencies);
    Optimum { choice, cost_ns, bound_ns: lower, exact: false }
}

/// The best `most` (at least one) of the trees that are made, best first, each improved as long as it takes longer than `lower`.
pub fn some(latencies: &Latencies, root: usize, most: usize, lower: f64) -> Vec<Schedule> {
    let mut made: Vec<(f64, Schedule)> = greedy::trees(latencies, root)
        .into_iter()
        .map(|mut schedule| {
            schedule.sort(latencies);
            (schedule.time(latencies), schedule)
        })
        .collect();
    made.sort_by(|a, b| a.0.total_cmp(&b.0));
    made.dedup_by(|a, b| a.1 == b.1);
    made.truncate(most.max(1));
    for (cost, schedule) in &mut made {
        schedule.improve(latencies, lower);
        *cost = schedule.time(latencies);
    }
    made.sort_by(|a, b| a.0.total_cmp(&b.0));
    made.into_iter().map(|(_, schedule)| schedule).collect()
}

/// A tree of least time from everybody to `root`, whose ranks fold partial results one after the other. It is the broadcast
/// over the reverse latencies, backwards in time: a parent takes its children in the reverse order.
pub fn reduce(latencies: &Latencies, root: usize) -> Optimum<Schedule> {
    broadcast(&latencies.transposed(), root).map(Schedule::backwards)
}

/// Trees of folds ([`Work::Fold`]) to `root` with the best rows of children: at most `most`, at least one, the best first. `lower` is what
/// none is below.
pub fn collecting(latencies: &Latencies, root: usize, most: usize, lower: f64) -> Vec<Rows> {
    // The fewer messages are under way at once, the fewer children has a rank.
    const AT_ONCE: [usize; 3] = [usize::MAX, 5, 3];
    let down = latencies.transposed();
    let fewer = AT_ONCE.map(|n| Latencies { at_once: down.at_once.min(n), ..down.clone() });
    let seeds = fewer.iter().flat_map(|down| greedy::trees(down, root));
    let mut made: Vec<Rows> = seeds.map(|tree| Rows::of(latencies, &tree)).collect();
    made.sort_by(|a, b| a.time().total_cmp(&b.time()));
    made.dedup_by(|a, b| a == b);
    made.truncate(most.max(1));
    for tree in &mut made {
        tree.anneal(latencies, lower);
    }
    made.sort_by(|a, b| a.time().total_cmp(&b.time()));
    made
}

#[cfg(test)]
mod tests;
