//! Algorithms for alltoall, with blocks of one length or (alltoallv) of different lengths.

pub mod bruck;
pub mod direct;
pub mod flat;
pub mod grid;
pub mod noc_msg;
pub mod pairwise;
pub mod rckmpi;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &pairwise::ALGORITHM,
    &bruck::ALGORITHM,
    &direct::ALGORITHM,
    &grid::ALGORITHM,
    &noc_msg::ALGORITHM,
    &rckmpi::ALGORITHM,
];
