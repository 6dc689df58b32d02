//! Checks of each op alone, and of the writers of each flag.

use super::text::{region_text, site, space_text};
use super::violation::{Fault, Step, Violation};
use crate::collective::Extent;
use crate::plan::{Carry, FlagIndex, FlagKind, FlagRef, Op, Plan, Region, Reuse, Space, Take};
use crate::units::{Rank, LINE};

/// One set of a flag within a run: its value and the op.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetAt {
    pub(super) value: i32,
    pub(super) op: usize,
}

/// Everything that writes one flag in a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Writers {
    pub(super) rank: usize,
    /// Sets in program order, for a signal.
    pub(super) sets: Vec<SetAt>,
    /// Adds as (rank, op), for a counter.
    pub(super) adds: Vec<(usize, usize)>,
    /// Waits as (rank, op), for a counter.
    pub(super) waits: Vec<(usize, usize)>,
}

/// Checks every op on its own, and gathers who writes which flag.
pub(super) fn check(plan: &Plan, index: &FlagIndex) -> Result<Vec<Writers>, Violation> {
    let mut writers = vec![Writers::default(); index.total];
    for (rank, program) in plan.programs.iter().enumerate() {
        for (i, op) in program.iter().enumerate() {
            let fail = |fault| Violation::Shape { site: Box::new(site(plan, rank, 0, Step::Op(i))), fault };
            check_op(plan, rank, op).map_err(fail)?;
            match op {
                Op::Set { flag, value, .. } => {
                    let w = &mut writers[index.of(*flag)];
                    if let Some(last) = w.sets.last() {
                        if w.rank != rank {
                            return Err(Violation::SecondWriter {
                                first: Box::new(site(plan, w.rank, 0, Step::Op(last.op))),
                                second: Box::new(site(plan, rank, 0, Step::Op(i))),
                            });
                        }
                        if last.value >= *value {
                            return Err(fail(Fault::NotGrowing { before: last.value, value: *value }));
                        }
                    }
                    w.rank = rank;
                    w.sets.push(SetAt { value: *value, op: i });
                }
                Op::Add { flag } => writers[index.of(*flag)].adds.push((rank, i)),
                Op::Wait { flag, .. } if plan.is_counter(*flag) => {
                    writers[index.of(*flag)].waits.push((rank, i));
                }
                Op::Move { .. } | Op::Fold { .. } | Op::Wait { .. } => {}
            }
        }
    }
    for writers in &writers {
        for &(rank, i) in &writers.waits {
            let Op::Wait { value, .. } = plan.programs[rank][i] else { continue };
            let adds = writers.adds.len();
            if usize::try_from(value) != Ok(adds) || adds == 0 {
                let site = Box::new(site(plan, rank, 0, Step::Op(i)));
                return Err(Violation::Shape { site, fault: Fault::NotAllAdds { value, adds } });
            }
        }
    }
    Ok(writers)
}

fn check_op(plan: &Plan, rank: usize, op: &Op) -> Result<(), Fault> {
    match op {
        Op::Move { src, dst } => {
            reads(plan, rank, src)?;
            writes(plan, rank, dst)?;
            lengths(&[src, dst])?;
            if place(rank, src).overlaps(&place(rank, dst)) {
                return Err(Fault::Overlap { src: region_text(src), dst: region_text(dst) });
            }
            Ok(())
        }
        Op::Fold { a, b, dst } => {
            reads(plan, rank, a)?;
            reads(plan, rank, b)?;
            writes(plan, rank, dst)?;
            lengths(&[a, b, dst])?;
            for region in [a, b, dst] {
                if region.offset % place_grain(plan, region) != 0 || region.len % plan.grain != 0 {
                    return Err(Fault::Ragged { region: region_text(region), grain: plan.grain });
                }
            }
            for src in [a, b] {
                let (s, d) = (place(rank, src), place(rank, dst));
                if s != d && s.overlaps(&d) {
                    return Err(Fault::Overlap { src: region_text(src), dst: region_text(dst) });
                }
            }
            Ok(())
        }
        Op::Set { flag, value, carry } => {
            declared(plan, *flag)?;
            kind(plan, *flag, FlagKind::Signal)?;
            if *value < 1 {
                return Err(Fault::Value { value: *value });
            }
            match carry {
                None => Ok(()),
                Some(Carry::Bytes(region)) => {
                    reads(plan, rank, region)?;
                    lengths(&[region])?;
                    payload(plan, *flag, region.len)
                }
                Some(Carry::Address(space)) => {
                    direct(plan)?;
                    match space {
                        Space::In => {}
                        Space::Out => has_output(plan, Rank::from(rank))?,
                        Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => {
                            return Err(Fault::BadAddress {
                                space: space_text(*space),
                                expected: "a rank publishes its own in or out",
                            })
                        }
                    }
                    payload(plan, *flag, 8)
                }
            }
        }
        Op::Wait { flag, value, take } => {
            declared(plan, *flag)?;
            if plan.reuse == Reuse::Ring && *value < 1 {
                return Err(Fault::LooksBack { value: *value });
            }
            if take.is_some() {
                kind(plan, *flag, FlagKind::Signal)?;
            }
            match take {
                None => Ok(()),
                Some(Take::Bytes(region)) => {
                    writes(plan, rank, region)?;
                    lengths(&[region])?;
                    payload(plan, *flag, region.len)
                }
                Some(Take::Address(space)) => {
                    direct(plan)?;
                    match space {
                        Space::PeerIn(q) => exists(plan, *q)?,
                        Space::PeerOut(q) => {
                            exists(plan, *q)?;
                            has_output(plan, *q)?;
                        }
                        Space::In | Space::Out | Space::Acc | Space::Slot { .. } => {
                            return Err(Fault::BadAddress {
                                space: space_text(*space),
                                expected: "a rank takes the address of a peer's in or out",
                            })
                        }
                    }
                    payload(plan, *flag, 8)
                }
            }
        }
        Op::Add { flag } => {
            declared(plan, *flag)?;
            kind(plan, *flag, FlagKind::Counter)
        }
    }
}

/// Returns the size at multiples of which elements begin. Scratch is handed out in lines, which need not be whole elements: there it is
/// the alignment that an element of this size can need, and the machine sees whether folded bytes are whole elements.
fn place_grain(plan: &Plan, region: &Region) -> usize {
    match region.space {
        Space::Acc => 1 << plan.grain.trailing_zeros().min(LINE.trailing_zeros()),
        Space::In | Space::Out | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => plan.grain,
    }
}

/// The region with its own rank's buffers named as peers name them, so that aliases are equal.
fn place(rank: usize, region: &Region) -> Region {
    let space = match region.space {
        Space::In => Space::PeerIn(Rank::from(rank)),
        Space::Out => Space::PeerOut(Rank::from(rank)),
        Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => region.space,
    };
    Region { space, ..*region }
}

fn exists(plan: &Plan, named: Rank) -> Result<(), Fault> {
    if named.index() < plan.ranks {
        Ok(())
    } else {
        Err(Fault::NoSuchRank { named, ranks: plan.ranks })
    }
}

fn direct(plan: &Plan) -> Result<(), Fault> {
    if plan.direct {
        Ok(())
    } else {
        Err(Fault::NotDirect)
    }
}

/// A broadcast's root and a reduction's other ranks, for example, pass no output buffer.
fn has_output(plan: &Plan, owner: Rank) -> Result<(), Fault> {
    match plan.collective.output(owner.index(), plan.root.index()) {
        Extent::Message | Extent::Blocks => Ok(()),
        Extent::Nothing => Err(Fault::NoOutput { owner, collective: plan.collective }),
    }
}

fn reads(plan: &Plan, rank: usize, region: &Region) -> Result<(), Fault> {
    let limit = match region.space {
        Space::In => plan.grid().input_bytes(rank),
        Space::Out => {
            has_output(plan, Rank::from(rank))?;
            plan.grid().output_bytes(rank)
        }
        Space::Acc => plan.acc,
        Space::Slot { rank: owner, slot } => {
            exists(plan, owner)?;
            match plan.slots.get(slot as usize) {
                Some(&size) => size,
                None => return Err(Fault::NoSuchSlot { slot, slots: plan.slots.len() }),
            }
        }
        Space::PeerIn(q) => {
            direct(plan)?;
            exists(plan, q)?;
            plan.grid().input_bytes(q.index())
        }
        Space::PeerOut(q) => {
            direct(plan)?;
            exists(plan, q)?;
            has_output(plan, q)?;
            plan.grid().output_bytes(q.index())
        }
    };
    match region.offset.checked_add(region.len) {
        Some(end) if end <= limit => Ok(()),
        _ => Err(Fault::OutOfBounds { region: region_text(region), limit }),
    }
}

fn writes(plan: &Plan, rank: usize, region: &Region) -> Result<(), Fault> {
    match region.space {
        Space::In | Space::PeerIn(_) => Err(Fault::WritesInput),
        Space::Out | Space::Acc | Space::Slot { .. } | Space::PeerOut(_) => reads(plan, rank, region),
    }
}

fn lengths(regions: &[&Region]) -> Result<(), Fault> {
    let first = regions[0].len;
    if regions.iter().any(|r| r.len != first) {
        return Err(Fault::Lengths { lengths: regions.iter().map(|r| r.len).collect() });
    }
    if first == 0 {
        return Err(Fault::Empty);
    }
    Ok(())
}

fn declared(plan: &Plan, flag: FlagRef) -> Result<(), Fault> {
    exists(plan, flag.home)?;
    match plan.flags.get(flag.array as usize) {
        Some(array) if (flag.index as usize) < array.count => Ok(()),
        _ => Err(Fault::NoSuchFlag { array: flag.array, index: flag.index }),
    }
}

fn kind(plan: &Plan, flag: FlagRef, wanted: FlagKind) -> Result<(), Fault> {
    let array = &plan.flags[flag.array as usize];
    if array.kind == wanted {
        return Ok(());
    }
    let (kind, expected) = match array.kind {
        FlagKind::Signal => ("signal", "it is set, not added to"),
        FlagKind::Counter => ("counter", "it is added to, not set, and carries no payload"),
    };
    Err(Fault::WrongKind { array: array.name.clone(), kind, expected })
}

fn payload(plan: &Plan, flag: FlagRef, bytes: usize) -> Result<(), Fault> {
    let layout = plan.flags[flag.array as usize].layout;
    if bytes <= layout.payload() {
        Ok(())
    } else {
        Err(Fault::Payload { bytes, layout, most: layout.payload() })
    }
}
