//! Algorithms for scatter, with blocks of one length or (scatterv) of different lengths.

mod binomial;
mod direct;
mod down;
mod flat;
mod hierarchical;
mod rckmpi;

use super::{Algorithm, ParamSpec};

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &binomial::ALGORITHM,
    &direct::ALGORITHM,
    &hierarchical::ALGORITHM,
    &rckmpi::ALGORITHM,
];

/// The parameter `source` of scatters down a tree.
const SOURCE: ParamSpec = ParamSpec {
    name: "source",
    default: "parent",
    about: "box to copy from: the parent's, or always the root's",
};
