//! Algorithms for reduce-scatter: with blocks of one length (`reduce_scatter_block`) or of different lengths.

pub mod direct;
pub mod recursive_halving;
pub mod ring;
pub mod slices;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] =
    &[&slices::ALGORITHM, &recursive_halving::ALGORITHM, &ring::ALGORITHM, &direct::ALGORITHM];
