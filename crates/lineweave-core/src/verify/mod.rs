//! Proves that a plan does what its collective promises, under every interleaving and run after run.
//!
//! # What is proved
//!
//! 1. *Result.* Bytes hold expressions: the contribution of a rank, or a fold of two expressions, hash-consed.
//!    As a rank returns, its `out` must hold the root's input (bcast), the blocks that are its due (gather,
//!    scatter, allgather, alltoall; and nothing between them), or a tree with every rank's contribution of this run
//!    exactly once at its own position (reduce at the root, allreduce everywhere with *the same tree*, so that
//!    every rank has the same bits, reduce-scatter for the rank's block), or with those of the ranks up to it in
//!    their order (scan, exscan). Reading what nobody wrote is a violation.
//! 2. *Order.* Vector clocks over sets, adds and waits: every two accesses to the same byte of a slot, a
//!    payload or a directly accessed buffer, one of which writes, are ordered, also between runs. As a rank
//!    enters and returns, its caller counts as writing the whole of `in` and `out`.
//! 3. *Progress.* Every rank comes to its end.
//! 4. *Shape.* Each op alone, and one writer a flag.
//!
//! # Why one schedule proves all
//!
//! Sets and adds are unconditional, flags only grow, and a wait names a threshold: once it is satisfied it
//! stays so. Any rank that can go on in one schedule can therefore go on in every schedule that has come as
//! far (Kahn's networks have the same property), so all schedules run the same ops, and either all complete or
//! none does. A wait is ordered after the first set that reaches its threshold, which no schedule changes; so
//! the partial order of the steps is the same in all. When all conflicting accesses are ordered by it, every
//! read returns the same write in every schedule, hence the same expression.
//!
//! A counter is two words, to which runs add by turns, and a wait is for exactly what all adds of its own run and of those
//! before it in the same word come to: each adds the mark of its call, so adds of other calls do not end the wait. It stays
//! satisfied until run `j + 2` adds. So each wait of run `j` has to be ordered before every add of run `j + 2`. By induction
//! this holds where every add of run `j + 1` is ordered after every add of run `j`, and each wait of run `j` before some add of run
//! `j + 1`; both are checked. Waits for fewer adds are refused, since which adds come first is not fixed.
//!
//! # Why a few runs prove all
//!
//! `Reuse::Same`: runs 0 and 1 are simulated (more when a wait looks back further than one run). Run 0 has the
//! least order of all runs, since its backward waits are satisfied at once: whatever is ordered among
//! runs 0 and 1 is ordered among runs `j` and `j + 1`. No step depends on a later run: a wait that does would
//! not be satisfied in the last run simulated. So if access `a` of run `j` conflicts with `b` of run `j + k`,
//! then `a` precedes `b` of run `j + 1`, which precedes `b` of run `j + k` in its rank's program. For the same
//! reason the runs come to their end one after the other, each as run 1 does once the run before it has.
//!
//! `Reuse::Ring`: a bank is entered only after every rank has left it, so runs in the same bank are ordered
//! as a whole, and other plans as well. Runs in different banks share only the callers' buffers: one run is
//! simulated, two when they are accessed directly or there are counters, which lie outside the banks.

mod access;
mod expr;
mod machine;
mod memory;
pub mod mutate;
mod progress;
mod reference;
mod result;
mod segments;
mod shape;
pub mod sweep;
mod text;
mod violation;

pub use violation::{Cause, Race, Site, Step, Violation};

use crate::collective::{Association, Collective};
use crate::plan::{FlagIndex, Op, Plan, Reuse};
use crate::units::Rank;
use machine::Machine;
use shape::Writers;

/// Properties of a plan that was proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proof {
    /// Ops of all ranks in one run.
    pub ops: usize,
    /// No rank returns before every rank has entered: the engine need not look whether a bank was left.
    pub synchronizing: bool,
    /// Also correct when each rank's `in` and `out` are the same buffer (where one of them holds blocks and the other
    /// one message: when that is the rank's own block): nobody reads an element of `in` after that element of `out`
    /// was written, but for folds and copies of exactly these elements.
    pub in_place: bool,
    /// Every result combines the contributions from rank 0 to rank P-1, left to right (operators that do not
    /// commute are then safe). True when nothing is folded.
    pub rank_order: bool,
    /// Every result has the brackets of reproducible results, see [`Association::Fixed`]. True when nothing is folded.
    pub fixed_order: bool,
    /// True if it may be [cut](Plan::cut) for shorter messages or blocks: an op touches one block of a caller's buffer at most, and bytes at an offset
    /// of one are of that byte of the message, or of that block.
    pub shortens: bool,
    /// Signals that follow one another on the longest chain of one run: its rounds.
    pub depth: u32,
    /// Fingerprint of the result's association trees and the bytes they cover, the same in every build.
    /// Two plans of one collective and size with the same fingerprint combine every element in the same
    /// order with the same brackets: this pins the association of a reduce, where no second rank
    /// holds the result.
    pub result_hash: u64,
}

impl Proof {
    /// Returns whether contributions are combined as asked.
    pub fn meets(&self, association: Association) -> bool {
        match association {
            Association::Free => true,
            Association::RankOrder => self.rank_order,
            Association::Fixed => self.fixed_order,
        }
    }

    /// Returns the properties of the plan after ranks [changed parts](Plan::renamed): nothing of their order.
    #[must_use]
    pub fn renamed(self) -> Proof {
        Proof { rank_order: false, fixed_order: false, ..self }
    }
}

/// Proves a plan.
///
/// # Errors
/// The first [`Violation`] found, races before wrong results.
pub fn verify(plan: &Plan) -> Result<Proof, Violation> {
    let (index, writers) = check_shape(plan)?;
    prove(plan, &index, &writers, runs_needed(plan, &writers))
}

/// Proves a plan over at least `runs` runs back to back. [`verify`] simulates as few as its argument
/// needs; this is for testing that argument.
///
/// # Errors
/// As [`verify`].
pub fn verify_runs(plan: &Plan, runs: usize) -> Result<Proof, Violation> {
    let (index, writers) = check_shape(plan)?;
    let runs = runs.max(runs_needed(plan, &writers));
    prove(plan, &index, &writers, runs)
}

fn check_shape(plan: &Plan) -> Result<(FlagIndex, Vec<Writers>), Violation> {
    let malformed = |what: String| Err(Violation::Malformed(what));
    if plan.ranks == 0 {
        return malformed("there are no ranks".to_owned());
    }
    if plan.programs.len() != plan.ranks {
        return malformed(format!("{} programs for {} ranks", plan.programs.len(), plan.ranks));
    }
    if plan.root.index() >= plan.ranks {
        return malformed(format!("root {} of {} ranks", plan.root, plan.ranks));
    }
    if plan.grain == 0 || plan.bytes % plan.grain != 0 {
        return malformed(format!(
            "{} bytes are no whole number of {}-byte elements",
            plan.bytes, plan.grain
        ));
    }
    if let Some(fault) = plan.grid().fault(plan.grain) {
        return malformed(fault);
    }
    let index = FlagIndex::new(plan);
    let writers = shape::check(plan, &index)?;
    Ok((index, writers))
}

/// The number of runs that prove all.
fn runs_needed(plan: &Plan, writers: &[Writers]) -> usize {
    match plan.reuse {
        Reuse::Ring => 1 + usize::from(plan.direct || writers.iter().any(|w| !w.adds.is_empty())),
        Reuse::Same => {
            let span = i64::from(plan.span());
            let back = |op: &Op| match op {
                Op::Wait { value, .. } if *value < 1 => (span - i64::from(*value)) / span,
                Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } | Op::Set { .. } | Op::Add { .. } => 1,
            };
            let back = plan.ops().map(|(_, op)| back(op)).max().unwrap_or(1);
            // A wait for a run long past says nothing about the next ones: no plan needs many.
            1 + usize::try_from(back.clamp(1, 7)).unwrap_or(1)
        }
    }
}

fn prove(plan: &Plan, index: &FlagIndex, writers: &[Writers], runs: usize) -> Result<Proof, Violation> {
    let mut machine = Machine::new(plan, index, writers, runs);
    let complete = machine.run()?;
    if let Some(violation) = machine.pending.take() {
        return Err(violation);
    }
    if !complete {
        return Err(progress::deadlock(&machine));
    }
    if let (Collective::Barrier, Err((early, late))) = (plan.collective, machine.synchronizing) {
        return Err(Violation::NotSynchronized { early: Rank::from(early), late: Rank::from(late) });
    }
    Ok(Proof {
        ops: plan.programs.iter().map(Vec::len).sum(),
        synchronizing: machine.synchronizing.is_ok(),
        in_place: machine.in_place,
        rank_order: machine.results.rank_order,
        fixed_order: machine.results.fixed_order,
        shortens: machine.shortens,
        depth: machine.depth,
        result_hash: machine.results.hash,
    })
}

#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod tests;
