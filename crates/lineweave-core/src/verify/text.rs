//! Steps, spaces and regions as text, for violations.

use super::violation::{Site, Step};
use crate::plan::{Plan, Region, Space};
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

pub(super) fn site(plan: &Plan, rank: usize, run: usize, step: Step) -> Site {
    let text = match step {
        Step::Enter => "enter".to_owned(),
        Step::Op(i) => plan.op_text(&plan.programs[rank][i]),
        Step::Leave => "return to the caller".to_owned(),
    };
    Site { rank: Rank::from(rank), run, step, text }
}
