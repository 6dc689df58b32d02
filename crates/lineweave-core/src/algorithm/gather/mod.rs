//! Algorithms for gather, with blocks of one length or (gatherv) of different lengths.

mod binomial;
pub(super) mod direct;
mod flat;
pub(super) mod hierarchical;
mod up;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] =
    &[&flat::ALGORITHM, &binomial::ALGORITHM, &direct::ALGORITHM, &hierarchical::ALGORITHM];
