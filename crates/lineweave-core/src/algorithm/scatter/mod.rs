//! Algorithms for scatter, with blocks of one length or (scatterv) of different lengths.

mod binomial;
mod direct;
mod down;
mod flat;
mod hierarchical;
mod rckmpi;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &binomial::ALGORITHM,
    &direct::ALGORITHM,
    &hierarchical::ALGORITHM,
    &rckmpi::ALGORITHM,
];
