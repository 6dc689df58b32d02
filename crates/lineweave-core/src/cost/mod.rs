//! Cost of a plan on a model: the plan itself is played op by op, not a closed form of it.
//!
//! # What is counted
//!
//! 1. Every rank has a clock; ops are played in the order of time. What flags cost comes out of [`crate::lines`]: transfers of
//!    their lines, stores on their way, ranks that poll. Which flags share a line is read from the plan's
//!    [`Footprint`](crate::plan::Footprint). No measurement of a whole collective enters.
//! 2. A move or fold costs its bytes as in private memory, and what it adds to fetch those that other caches have (`get`), or to take
//!    back those that others have read (`put`), by size, distance and number of copies at once: L(m, tau). Who has which
//!    bytes is kept by stretches with one history, which do what lines do. Users' buffers are as far away as all that a rank
//!    touches before it comes back to them, and long messages go past the caches where that wins. Who writes into a ring that is
//!    walked through waits no longer than the whole flow through it took when it was measured. What others have is written after
//!    the flags before it have landed, as stores take effect in order.
//! 3. Loads of lines that were written before their reader came follow each other in a row and cost what T_N adds for one more line
//!    (Ramos & Hoefler 2013, Eq. 3.1). A wait that a core could not foresee ends a row.
//! 4. Ranks that share a CPU run in turn: a rank that must wait hands over, and each hand-over costs
//!    `wake[yield]`, also when the next rank must wait as well. Where they run ahead of each other, runs of whole laps round the banks are
//!    timed (`ring.rs`).
//! 5. Several runs follow each other, as in a measuring loop; the cost is the time from run to run. The first finds what runs before it leave. A bank is entered when all ranks
//!    have left what it held before. Users' buffers are the same in all runs, and nobody writes to them in between.
//!
//! Valid for plans that `verify` accepts. Memory bandwidth beyond L(m, tau), and interference of other
//! programs, are outside.

mod attachers;
mod before;
mod compile;
mod copies;
mod data;
mod events;
mod hand;
mod numbers;
mod pieces;
mod play;
mod rates;
mod ring;
mod schedule;
mod lower_bound;
mod term;
mod trace;
mod transfer;
mod wires;

pub use lower_bound::{sketch, LowerBound};
pub use term::{Part, Term};

use crate::model::Model;
use crate::plan::Plan;
use crate::topology::Shape;
use crate::trace::{Clock, Picos, Trace};
use crate::units::{Nanos, Rank};

/// Options for costing a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Options {
    /// Runs played back to back; at least 1. Twice as many are played where ranks share CPUs, and several laps of banks where they run ahead
    /// of each other there.
    pub runs: usize,
    /// True if concurrent copies slow each other by L(m, tau).
    pub concurrent: bool,
    /// Bytes that successive windows walk through; private memory is as near as that much memory is. 0 for
    /// the plan's own message.
    pub message: usize,
    /// Banks of a [`Reuse::Ring`](crate::plan::Reuse) plan.
    pub banks: usize,
    /// Bytes of slots that a rank writes before runs come back to the same ones; 0 for as many as the banks' runs write.
    pub walk: u64,
    /// Give up when `runs` runs take longer than this, in ns; as many times longer where more are played.
    pub limit: f64,
    /// True if to find the critical path.
    pub trace: bool,
    /// True if peers' buffers are reached by cross-memory attach.
    pub attach: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            runs: 4,
            concurrent: true,
            message: 0,
            banks: 2,
            walk: 0,
            limit: f64::INFINITY,
            trace: false,
            attach: false,
        }
    }
}

/// One step of the critical path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// The rank that was busy, or that something was on its way to.
    pub rank: Rank,
    /// The op in its program; `None` for what surrounds a run.
    pub op: Option<usize>,
    /// The parameter that this time is made of.
    pub why: Term,
    /// Duration of the step.
    pub nanos: Nanos,
}

/// Cost of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// From run to run, when runs follow each other. Infinite when the plan cannot finish (see `stuck`), or when
    /// the limit was passed.
    pub total: Nanos,
    /// A run alone, everybody starting at once with lines as runs before left them, until the last is done.
    pub first: Nanos,
    /// For each rank, from run to run.
    pub per_rank: Vec<Nanos>,
    /// Steps that the last runs waited for, in order of time; empty unless traced.
    pub critical: Vec<Step>,
    /// Number of runs that `critical` covers: one, or more where ranks that share a CPU end runs in bunches.
    pub critical_runs: usize,
    /// For each rank, when each op of the last run ended, from the beginning of the first on; empty unless traced.
    pub op_ends: Vec<Vec<Nanos>>,
    /// True if a size or concurrency beyond the measured range was needed.
    pub extrapolated: bool,
    /// The first rank, and its op, that waits for ever or names what the plan does not have.
    pub stuck: Option<(Rank, usize)>,
}

impl Cost {
    fn unplayable(ranks: usize, stuck: Option<(Rank, usize)>) -> Cost {
        Cost {
            total: Nanos(f64::INFINITY),
            first: Nanos(f64::INFINITY),
            per_rank: vec![Nanos(f64::INFINITY); ranks],
            critical: Vec::new(),
            critical_runs: 1,
            op_ends: Vec::new(),
            extrapolated: false,
            stuck,
        }
    }
}

/// The cost of a plan, with its critical path. `shape` has as many ranks as the plan.
pub fn cost(model: &Model, shape: &Shape, plan: &Plan) -> Cost {
    cost_with(model, shape, plan, &Options { trace: true, ..Options::default() })
}

/// The cost of a plan, computed as `options` say. A plan that names flags, slots or ranks it does not have, and
/// a shape of another number of ranks, give an infinite cost.
pub fn cost_with(model: &Model, shape: &Shape, plan: &Plan, options: &Options) -> Cost {
    // Where ranks take turns on a CPU, runs end in bunches of a turn each: more of them average that out.
    let more = if options.runs > 1 && shape.oversubscription() > 1 { 2 } else { 1 };
    let (runs, limit) = (options.runs.max(1) * more, options.limit * more as f64);
    let options = Options { runs, limit, banks: options.banks.max(1), ..*options };
    if shape.ranks() != plan.ranks || plan.programs.len() != plan.ranks {
        return Cost::unplayable(plan.ranks, None);
    }
    let costed = match ring::is_long(shape, plan, &options) {
        true => ring::cost(model, shape, plan, &options),
        false => compile::compile(plan, model.line_bytes, &options)
            .map(|program| play::play(model, shape, plan, &program, &options, None)),
    };
    match costed {
        Ok(cost) => cost,
        Err(at) => Cost::unplayable(plan.ranks, Some(at)),
    }
}

/// Returns when each op of a run alone begins and ends, everybody starting at once; nothing for a plan that cannot finish.
pub fn timeline(model: &Model, shape: &Shape, plan: &Plan, options: &Options) -> Option<Trace> {
    let cost = cost_with(model, shape, plan, &Options { runs: 1, trace: true, ..*options });
    let picos = |at: Nanos| Picos((at.0 * 1e3).round() as u64);
    if cost.stuck.is_some() || !cost.total.0.is_finite() {
        return None;
    }
    let mut trace = Trace::of(plan, Clock::Predicted);
    for (rank, ends) in cost.op_ends.iter().enumerate() {
        let mut before = Picos(0);
        for (op, end) in ends.iter().enumerate() {
            trace.record(plan, Rank::from(rank), op as u32, before, picos(*end));
            before = picos(*end);
        }
    }
    Some(trace)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod transfer_tests;
