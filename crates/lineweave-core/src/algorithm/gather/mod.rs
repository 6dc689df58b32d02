//! Algorithms for gather, with blocks of one length or (gatherv) of different lengths.

pub mod binomial;
pub mod direct;
pub mod flat;
pub mod hierarchical;
mod up;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] =
    &[&flat::ALGORITHM, &binomial::ALGORITHM, &direct::ALGORITHM, &hierarchical::ALGORITHM];
