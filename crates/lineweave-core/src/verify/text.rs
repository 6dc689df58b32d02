//! Ops and regions as text, for violations.

use super::violation::{Site, Step};
use crate::plan::{Carry, FlagRef, Op, Plan, Region, Space, Take};
use crate::units::Rank;

pub(super) fn space_text(space: Space) -> String {
    match space {
        Space::In => "in".to_owned(),
        Space::Out => "out".to_owned(),
        Space::Acc => "acc".to_owned(),
        Space::Slot { rank, slot } => format!("box@{rank}[{slot}]"),
        Space::PeerIn(rank) => format!("in@{rank}"),
        Space::PeerOut(rank) => format!("out@{rank}"),
    }
}

pub(super) fn region_text(region: &Region) -> String {
    format!("{}[{}..{}]", space_text(region.space), region.offset, region.offset.saturating_add(region.len))
}

pub(super) fn flag_text(plan: &Plan, flag: FlagRef) -> String {
    match plan.flags.get(flag.array as usize) {
        Some(array) => format!("{}@{}[{}]", array.name, flag.home, flag.index),
        None => format!("flag{}@{}[{}]", flag.array, flag.home, flag.index),
    }
}

pub(super) fn op_text(plan: &Plan, op: &Op) -> String {
    match op {
        Op::Move { src, dst } => format!("move {} -> {}", region_text(src), region_text(dst)),
        Op::Fold { a, b, dst } => {
            format!("fold {} + {} -> {}", region_text(a), region_text(b), region_text(dst))
        }
        Op::Set { flag, value, carry } => {
            let set = format!("set {}={value}", flag_text(plan, *flag));
            match carry {
                None => set,
                Some(Carry::Bytes(region)) => format!("{set} carrying {}", region_text(region)),
                Some(Carry::Address(space)) => format!("{set} carrying address of {}", space_text(*space)),
            }
        }
        Op::Wait { flag, value, take } => {
            let wait = format!("wait {}>={value}", flag_text(plan, *flag));
            match take {
                None => wait,
                Some(Take::Bytes(region)) => format!("{wait} taking {}", region_text(region)),
                Some(Take::Address(space)) => format!("{wait} taking address of {}", space_text(*space)),
            }
        }
        Op::Add { flag } => format!("add {}", flag_text(plan, *flag)),
    }
}

pub(super) fn site(plan: &Plan, rank: usize, run: usize, step: Step) -> Site {
    let text = match step {
        Step::Enter => "enter".to_owned(),
        Step::Op(i) => op_text(plan, &plan.programs[rank][i]),
        Step::Leave => "return to the caller".to_owned(),
    };
    Site { rank: Rank::from(rank), run, step, text }
}
