//! Checks of each op alone, and of the writers of each flag.

use super::text::{region_text, site, space_text};
use super::violation::{Step, Violation};
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
                            let before = last.value;
                            return Err(fail(format!(
                                "the flag is set to {value} after {before}: values must grow"
                            )));
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
                let fault =
                    format!("a counter is waited for until all adds of a run are there: {adds}, not {value}");
                return Err(Violation::Shape { site, fault });
            }
        }
    }
    Ok(writers)
}

fn check_op(plan: &Plan, rank: usize, op: &Op) -> Result<(), String> {
    match op {
        Op::Move { src, dst } => {
            reads(plan, rank, src)?;
            writes(plan, rank, dst)?;
            lengths(&[src, dst])?;
            match place(rank, src).overlaps(&place(rank, dst)) {
                true => Err(overlap(src, dst)),
                false => Ok(()),
            }
        }
        Op::Fold { a, b, dst } => {
            reads(plan, rank, a)?;
            reads(plan, rank, b)?;
            writes(plan, rank, dst)?;
            lengths(&[a, b, dst])?;
            for region in [a, b, dst] {
                if region.offset % place_grain(plan, region) != 0 || region.len % plan.grain != 0 {
                    return Err(format!(
                        "{} does not begin and end at multiples of the element size {}",
                        region_text(region),
                        plan.grain
                    ));
                }
            }
            for src in [a, b] {
                let (s, d) = (place(rank, src), place(rank, dst));
                if s != d && s.overlaps(&d) {
                    return Err(overlap(src, dst));
                }
            }
            Ok(())
        }
        Op::Set { flag, value, carry } => {
            declared(plan, *flag)?;
            kind(plan, *flag, FlagKind::Signal)?;
            if *value < 1 {
                return Err(format!("a flag is set to {value}: values of a run start at 1"));
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
                            return Err(bad_address(*space, "a rank publishes its own in or out"))
                        }
                    }
                    payload(plan, *flag, 8)
                }
            }
        }
        Op::Wait { flag, value, take } => {
            declared(plan, *flag)?;
            if plan.reuse == Reuse::Ring && *value < 1 {
                return Err(format!(
                    "a ring plan cannot wait for an earlier run (value {value}): every run has a bank of its own"
                ));
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
                            return Err(bad_address(*space, "a rank takes the address of a peer's in or out"))
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

fn overlap(src: &Region, dst: &Region) -> String {
    let both = format!("{} and {}", region_text(src), region_text(dst));
    format!("source and destination share bytes ({both}): only a fold may write exactly an operand")
}

fn bad_address(space: Space, expected: &str) -> String {
    format!("{} cannot be addressed here: {expected}", space_text(space))
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

fn exists(plan: &Plan, named: Rank) -> Result<(), String> {
    if named.index() < plan.ranks {
        Ok(())
    } else {
        Err(format!("rank {named} does not exist: there are {} ranks", plan.ranks))
    }
}

fn direct(plan: &Plan) -> Result<(), String> {
    if plan.direct {
        Ok(())
    } else {
        Err("peers' private buffers are named, but the plan is not marked `direct`".to_owned())
    }
}

/// A broadcast's root and a reduction's other ranks, for example, pass no output buffer.
fn has_output(plan: &Plan, owner: Rank) -> Result<(), String> {
    match plan.collective.output(owner.index(), plan.root.index()) {
        Extent::Message | Extent::Blocks => Ok(()),
        Extent::Nothing => Err(format!("rank {owner} has no output buffer in this {}", plan.collective)),
    }
}

fn reads(plan: &Plan, rank: usize, region: &Region) -> Result<(), String> {
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
                None => {
                    let slots = plan.slots.len();
                    return Err(format!("slot {slot} was not declared: every box has {slots}"));
                }
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
        _ => Err(format!("{} ends beyond the {limit} bytes there are", region_text(region))),
    }
}

fn writes(plan: &Plan, rank: usize, region: &Region) -> Result<(), String> {
    match region.space {
        Space::In | Space::PeerIn(_) => {
            Err("input buffers are never written: they belong to the caller".to_owned())
        }
        Space::Out | Space::Acc | Space::Slot { .. } | Space::PeerOut(_) => reads(plan, rank, region),
    }
}

fn lengths(regions: &[&Region]) -> Result<(), String> {
    let first = regions[0].len;
    if regions.iter().any(|r| r.len != first) {
        let lengths: Vec<usize> = regions.iter().map(|r| r.len).collect();
        return Err(format!("regions of one op must be equally long, found {lengths:?} bytes"));
    }
    if first == 0 {
        return Err("the transfer has no bytes: leave it out".to_owned());
    }
    Ok(())
}

fn declared(plan: &Plan, flag: FlagRef) -> Result<(), String> {
    exists(plan, flag.home)?;
    match plan.flags.get(flag.array as usize) {
        Some(array) if (flag.index as usize) < array.count => Ok(()),
        _ => Err(format!("flag array {} index {} was not declared", flag.array, flag.index)),
    }
}

fn kind(plan: &Plan, flag: FlagRef, wanted: FlagKind) -> Result<(), String> {
    let array = &plan.flags[flag.array as usize];
    if array.kind == wanted {
        return Ok(());
    }
    let (kind, expected) = match array.kind {
        FlagKind::Signal => ("signal", "it is set, not added to"),
        FlagKind::Counter => ("counter", "it is added to, not set, and carries no payload"),
    };
    Err(format!("array `{}` is a {kind}: {expected}", array.name))
}

fn payload(plan: &Plan, flag: FlagRef, bytes: usize) -> Result<(), String> {
    let layout = plan.flags[flag.array as usize].layout;
    if bytes <= layout.payload() {
        Ok(())
    } else {
        Err(format!(
            "{bytes} bytes do not fit the line of a flag that is laid out {layout}: it takes {}",
            layout.payload()
        ))
    }
}
