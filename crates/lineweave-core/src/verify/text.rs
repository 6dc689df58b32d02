//! Steps, spaces and regions as text, for violations.

use super::violation::{Site, Step};
pub(super) use crate::plan::space_text;
use crate::plan::{Plan, Region};
use crate::units::Rank;

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
