//! Choices of one's own: another algorithm for one call than the tuning would take, to compare them.

use super::ready::Sequence;
use super::shelf::Key;

/// A choice of one's own for one call, proven and compiled on one rank.
#[derive(Clone, Copy, Debug)]
pub struct Adoptable {
    pub(crate) key: Key,
    pub(crate) sequence: Sequence,
}
