//! Algorithms for reduce-scatter: with blocks of one length (`reduce_scatter_block`) or of different lengths.

mod direct;
mod recursive_halving;
mod ring;
mod slices;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] =
    &[&slices::ALGORITHM, &recursive_halving::ALGORITHM, &ring::ALGORITHM, &direct::ALGORITHM];
