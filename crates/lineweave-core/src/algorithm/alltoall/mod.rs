//! Algorithms for alltoall, with blocks of one length or (alltoallv) of different lengths.

mod bruck;
mod direct;
mod flat;
mod grid;
mod noc_msg;
mod pairwise;
mod rckmpi;

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
