//! Algorithms for reduce.

mod binomial;
mod box_slices;
mod by_number;
mod direct;
mod edges;
mod flat;
mod generated;
mod hierarchical;
mod noc_msg;
mod pipelined;
pub(super) mod rcce;
mod rckmpi;
pub(super) mod slices;
mod tree;
pub(super) mod up;

use super::{Algorithm, Problem};
use crate::plan::{Layout, Params};

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &binomial::ALGORITHM,
    &tree::ALGORITHM,
    &pipelined::ALGORITHM,
    &direct::ALGORITHM,
    &slices::ALGORITHM,
    &by_number::ALGORITHM,
    &box_slices::ALGORITHM,
    &hierarchical::ALGORITHM,
    &edges::ALGORITHM,
    &generated::ALGORITHM,
    &rcce::ALGORITHM,
    &rckmpi::ALGORITHM,
    &noc_msg::ALGORITHM,
];

/// Parameter sets that vary the layout: those whose payload the message fits, or all where it fits none.
pub(super) fn layouts(problem: &Problem, base: &Params) -> Vec<Params> {
    let all = [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)];
    let fits = |l: &Layout| problem.bytes <= l.payload() || problem.bytes > Layout::Alone.payload();
    all.into_iter().filter(fits).map(|layout| base.clone().with("layout", layout)).collect()
}
