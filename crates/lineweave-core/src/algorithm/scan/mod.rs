//! Algorithms for scan (inclusive) and exscan (exclusive): the same plans but for who contributes to what. All of them
//! combine contributions in rank order.

mod all_read_lower;
mod chain;
mod recursive_doubling;
mod slices;

use super::{Algorithm, Participants};
use crate::plan::Builder;

/// Every algorithm for scan, in the order of the listing.
pub const TABLE: &[&Algorithm] =
    &[&recursive_doubling::ALGORITHM, &all_read_lower::ALGORITHM, &chain::ALGORITHM, &slices::ALGORITHM];

/// Every algorithm for exscan, in the order of the listing.
pub const EXCLUSIVE: &[&Algorithm] =
    &[&recursive_doubling::EXCLUSIVE, &all_read_lower::EXCLUSIVE, &chain::EXCLUSIVE, &slices::EXCLUSIVE];

/// The kind of a scan: with or without a rank's own contribution in its result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Scan.
    Inclusive,
    /// Exscan.
    Exclusive,
}

impl Kind {
    /// Returns the number of members, from the first, that contribute to the result of member `i`.
    fn upto(self, i: usize) -> usize {
        match self {
            Kind::Inclusive => i + 1,
            Kind::Exclusive => i,
        }
    }
}

/// Emits the whole of it, and says so, where there is nothing to combine: one member or no bytes.
fn trivial(b: &mut Builder, s: &Participants, kind: Kind) -> bool {
    if s.len() == 1 && kind == Kind::Inclusive {
        b.mov(s.members[0], s.from[0].at(0..s.bytes), s.to.at(0..s.bytes));
    }
    s.len() == 1 || s.bytes == 0
}
