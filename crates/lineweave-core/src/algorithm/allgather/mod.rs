//! Algorithms for allgather, with blocks of one length or (allgatherv) of different lengths.

mod all_read_all;
mod bruck;
pub(super) mod direct;
mod hierarchical;
mod rckmpi;
mod ring;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &all_read_all::ALGORITHM,
    &bruck::ALGORITHM,
    &ring::ALGORITHM,
    &direct::ALGORITHM,
    &hierarchical::ALGORITHM,
    &rckmpi::ALGORITHM,
];
