//! Plans with one thing wrong: how the checker itself is checked.
//!
//! A mutant is *caught* when [`super::verify`] refuses it, or proves it with another
//! [`Proof::result_hash`](super::Proof::result_hash) than the plan it was made from: then the contributions are
//! combined in another order, which only a comparison with the original can tell in a reduce.
//!
//! Not every change breaks a plan. A wait may repeat what others imply, or order more than the collective
//! needs; a slot may hold the same bytes as another. A mutant that is not caught counts as *harmless* only by
//! a proof of its own: a naive second judge, which shares no code with the checker, spells out three
//! runs step by step, closes the order of the steps under reachability, and finds that every two
//! conflicting accesses to every cell are ordered, that every rank completes (and a barrier synchronises),
//! and that every result cell holds the same tree of contributions as without the change. Anything else that
//! is not caught is *missed*, and a bug of the checker.

use super::reference;
use super::{verify, Proof};
use crate::plan::{FlagKind, Op, Plan, Space};
use crate::units::Rank;

/// Kind of change to a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Change {
    /// A wait is left out, with what it takes.
    DropWait,
    /// A wait is satisfied by a value one lower.
    LowerThreshold,
    /// A set or an add is left out, with what it carries.
    DropSet,
    /// A set comes before the last data that its rank wrote ahead of it.
    SetEarly,
    /// Another rank sets (or adds to) the same flag as well.
    SecondWriter,
    /// A transfer uses the next slot.
    SwapSlots,
    /// A transfer uses the same slot of the next rank.
    SwapOwners,
    /// The operands of a fold are exchanged.
    SwapOperands,
    /// A fold and the next fold of its rank exchange their right operands.
    Reassociate,
    /// A transfer, fold or payload is one element shorter.
    Shorten,
}

impl Change {
    /// Every change.
    pub const ALL: [Change; 10] = [
        Change::DropWait,
        Change::LowerThreshold,
        Change::DropSet,
        Change::SetEarly,
        Change::SecondWriter,
        Change::SwapSlots,
        Change::SwapOwners,
        Change::SwapOperands,
        Change::Reassociate,
        Change::Shorten,
    ];
}

/// A plan with one thing changed.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Kind of the change.
    pub change: Change,
    /// At which rank.
    pub rank: Rank,
    /// At which op of the original.
    pub op: usize,
    /// That op as text.
    pub text: String,
    /// The changed plan.
    pub plan: Plan,
}

/// Verdict on a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is refused, or its association differs; in words.
    Caught(String),
    /// It is proved to deliver the same as the original.
    Harmless,
    /// Neither: the checker has a hole.
    Missed,
}

/// Judges a mutant of a plan that was proved.
pub fn judge(original: &Plan, proof: &Proof, mutant: &Mutant) -> Verdict {
    match verify(&mutant.plan) {
        Err(violation) => Verdict::Caught(violation.to_string()),
        Ok(changed) if changed.result_hash != proof.result_hash => {
            Verdict::Caught("the contributions are combined in another order".to_owned())
        }
        Ok(_) if reference::equivalent(original, &mutant.plan) => Verdict::Harmless,
        Ok(_) => Verdict::Missed,
    }
}

/// Every mutant of a plan, op by op.
pub fn mutants(plan: &Plan) -> impl Iterator<Item = Mutant> + '_ {
    plan.programs.iter().enumerate().flat_map(move |(rank, program)| {
        (0..program.len()).flat_map(move |i| {
            Change::ALL.into_iter().filter_map(move |change| mutant(plan, change, rank, i))
        })
    })
}

/// At most `most` mutants by one change, spread evenly over the plan and the same at every call.
///
/// Only these are made: trying every op of a large plan would copy the plan once an op.
pub fn sample(plan: &Plan, change: Change, most: usize) -> impl Iterator<Item = Mutant> + '_ {
    let sites: Vec<(usize, usize)> = plan
        .programs
        .iter()
        .enumerate()
        .flat_map(|(rank, program)| (0..program.len()).map(move |i| (rank, i)))
        .filter(|&(rank, i)| suits(change, &plan.programs[rank][i]))
        .collect();
    let step = stride(sites.len());
    (0..sites.len())
        .filter_map(move |n| {
            let (rank, i) = sites[n * step % sites.len()];
            mutant(plan, change, rank, i)
        })
        .take(most)
}

/// A step that visits all of `n` places, each far from those before it: near the golden section, and prime to `n`.
fn stride(n: usize) -> usize {
    let prime = |step: &usize| (2..=*step).all(|d| n % d != 0 || step % d != 0);
    (n * 5 / 8..n).find(prime).unwrap_or(1).max(1)
}

/// Returns whether a change is about ops of this kind.
fn suits(change: Change, op: &Op) -> bool {
    match change {
        Change::DropWait | Change::LowerThreshold => matches!(op, Op::Wait { .. }),
        Change::DropSet | Change::SetEarly | Change::SecondWriter => {
            matches!(op, Op::Set { .. } | Op::Add { .. })
        }
        Change::SwapSlots | Change::SwapOwners => matches!(op, Op::Move { .. } | Op::Fold { .. }),
        Change::SwapOperands | Change::Reassociate => matches!(op, Op::Fold { .. }),
        Change::Shorten => !matches!(op, Op::Add { .. }),
    }
}

/// The mutant by this change at this op, where it applies and changes anything.
fn mutant(plan: &Plan, change: Change, rank: usize, i: usize) -> Option<Mutant> {
    let changed = apply(plan, change, rank, i)?;
    let text = plan.op_text(&plan.programs[rank][i]);
    (changed != *plan).then(|| Mutant { change, rank: Rank::from(rank), op: i, text, plan: changed })
}

/// The plan with this change at this op, where it applies.
fn apply(plan: &Plan, change: Change, rank: usize, i: usize) -> Option<Plan> {
    let op = plan.programs[rank][i];
    let without = || {
        edit(plan, rank, |ops| {
            ops.remove(i);
        })
    };
    let with = |new: Op| Some(edit(plan, rank, |ops| ops[i] = new));
    match (change, op) {
        (Change::DropWait, Op::Wait { .. }) | (Change::DropSet, Op::Set { .. } | Op::Add { .. }) => {
            Some(without())
        }
        (Change::LowerThreshold, Op::Wait { flag, value, take }) => {
            with(Op::Wait { flag, value: value - 1, take })
        }
        (Change::SetEarly, Op::Set { .. } | Op::Add { .. }) => {
            let write = plan.programs[rank][..i].iter().rposition(writes_data)?;
            Some(edit(plan, rank, |ops| {
                let op = ops.remove(i);
                ops.insert(write, op);
            }))
        }
        (Change::SecondWriter, Op::Set { flag, value, .. }) if plan.ranks > 1 => {
            let other = (rank + 1) % plan.ranks;
            Some(edit(plan, other, |ops| ops.push(Op::Set { flag, value, carry: None })))
        }
        (Change::SecondWriter, Op::Add { flag }) if plan.ranks > 1 => {
            debug_assert_eq!(plan.flags[flag.array as usize].kind, FlagKind::Counter);
            Some(edit(plan, (rank + 1) % plan.ranks, |ops| ops.push(op)))
        }
        (Change::SwapSlots, Op::Move { .. } | Op::Fold { .. }) => {
            let slots = u16::try_from(plan.slots.len()).ok()?;
            with(redirect(op, |owner, slot| (owner, (slot + 1) % slots))?)
        }
        (Change::SwapOwners, Op::Move { .. } | Op::Fold { .. }) => {
            let next = |owner: Rank| Rank::from((owner.index() + 1) % plan.ranks);
            with(redirect(op, |owner, slot| (next(owner), slot))?)
        }
        (Change::SwapOperands, Op::Fold { a, b, dst }) => with(Op::Fold { a: b, b: a, dst }),
        (Change::Reassociate, Op::Fold { a, b, dst }) => {
            let later =
                plan.programs[rank][i + 1..].iter().position(|o| matches!(o, Op::Fold { .. }))? + i + 1;
            let Op::Fold { a: a2, b: b2, dst: dst2 } = plan.programs[rank][later] else { return None };
            if b.len != b2.len {
                return None;
            }
            Some(edit(plan, rank, |ops| {
                ops[i] = Op::Fold { a, b: b2, dst };
                ops[later] = Op::Fold { a: a2, b, dst: dst2 };
            }))
        }
        (Change::Shorten, mut op) => {
            op.regions().next()?;
            op.regions_mut().for_each(|r| r.len = r.len.saturating_sub(plan.grain));
            if op.regions().all(|r| r.len == 0) {
                match &mut op {
                    Op::Move { .. } | Op::Fold { .. } => return Some(without()),
                    Op::Set { carry, .. } => *carry = None,
                    Op::Wait { take, .. } => *take = None,
                    Op::Add { .. } => {}
                }
            }
            with(op)
        }
        _ => None,
    }
}

fn edit(plan: &Plan, rank: usize, change: impl FnOnce(&mut Vec<Op>)) -> Plan {
    let mut plan = plan.clone();
    change(&mut plan.programs[rank]);
    plan
}

fn writes_data(op: &Op) -> bool {
    match op {
        Op::Move { .. } | Op::Fold { .. } | Op::Wait { take: Some(_), .. } => true,
        Op::Wait { take: None, .. } | Op::Set { .. } | Op::Add { .. } => false,
    }
}

/// The op with its first slot (the destination's, else a source's) replaced.
fn redirect(mut op: Op, to: impl Fn(Rank, u16) -> (Rank, u16)) -> Option<Op> {
    op.regions_mut().rev().find_map(|region| match &mut region.space {
        Space::Slot { rank, slot } => {
            (*rank, *slot) = to(*rank, *slot);
            Some(())
        }
        Space::In | Space::Out | Space::Acc | Space::PeerIn(_) | Space::PeerOut(_) => None,
    })?;
    Some(op)
}
