//! Overrides of a choice: another algorithm for one call than the tuning would take, to compare them.

use super::proven::Key;
use super::resolved::PlanSequence;

/// An override of the choice for one call, proven and compiled on one rank.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceOverride {
    pub(crate) key: Key,
    pub(crate) sequence: PlanSequence,
}
