//! Overrides of a choice: another algorithm for one call than the tuning would take, to compare them.

use super::request::PlanRequest;
use super::resolved::PlanSequence;

/// An override of the choice for one call, proven and compiled on one rank.
#[derive(Clone, Debug)]
pub struct ChoiceOverride {
    pub(crate) request: PlanRequest,
    pub(crate) sequence: PlanSequence,
}
