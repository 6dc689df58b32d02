//! Algorithms for reduce.

pub mod binomial;
pub mod box_slices;
pub mod by_number;
pub mod direct;
pub mod edges;
pub mod flat;
pub mod generated;
pub mod hierarchical;
pub mod noc_msg;
pub mod pipelined;
pub mod rcce;
pub mod rckmpi;
pub mod slices;
pub mod tree;
pub(crate) mod up;

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
fn layouts(problem: &Problem, base: &Params) -> Vec<Params> {
    let all = [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)];
    let fits = |l: &Layout| problem.bytes <= l.payload() || problem.bytes > Layout::Alone.payload();
    all.into_iter().filter(fits).map(|layout| base.clone().with("layout", layout)).collect()
}
