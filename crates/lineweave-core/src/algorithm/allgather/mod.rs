//! Algorithms for allgather, with blocks of one length or (allgatherv) of different lengths.

pub mod all_read_all;
pub mod bruck;
pub mod direct;
pub mod hierarchical;
pub mod rckmpi;
pub mod ring;

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
