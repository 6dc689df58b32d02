//! Algorithms for allreduce. In each of them every rank computes, or is given, the same association for
//! each element, so results are the same bits everywhere.

mod all_read_all;
pub(super) mod core_ranks;
mod direct;
mod fold_back;
mod hierarchical;
mod noc_msg;
mod pipelined_ring;
pub(super) mod rabenseifner;
mod rcce;
mod rckmpi;
mod recursive_doubling;
mod reduce_bcast;
pub(super) mod ring;
mod slices;

use super::ranks::block;
use super::{Algorithm, ParamSpec, Participants};
use crate::plan::{Builder, FlagArrayId, FlagRef, Layout, Params, PlanError};
use std::ops::Range;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &recursive_doubling::ALGORITHM,
    &all_read_all::ALGORITHM,
    &reduce_bcast::ALGORITHM,
    &ring::ALGORITHM,
    &pipelined_ring::ALGORITHM,
    &rabenseifner::ALGORITHM,
    &slices::ALGORITHM,
    &fold_back::ALGORITHM,
    &direct::ALGORITHM,
    &hierarchical::ALGORITHM,
    &rcce::ALGORITHM,
    &rckmpi::ALGORITHM,
    &noc_msg::ALGORITHM,
];

/// The parameter `home` of algorithms in which everybody reads everybody's flag.
const HOME: ParamSpec = ParamSpec {
    name: "home",
    default: "root",
    about: "flags that all read: root, side by side in one place; own, each at its rank",
};

/// Lines of the flags of algorithms that go chunk by chunk.
const CHUNKED_LAYOUT: ParamSpec =
    ParamSpec { name: "layout", default: "paired", about: "lines of the flags" };

/// The parameter sets of such an algorithm for chunks of this many bytes.
fn by_homes(chunk: usize) -> impl Iterator<Item = Params> {
    let both = [("root", Layout::Paired), ("own", Layout::Alone)];
    both.into_iter().map(move |(home, layout)| {
        Params::new().with("chunk", chunk).with("home", home).with("layout", layout)
    })
}

/// The slice of a chunk of the message that member `j` of `p` folds.
fn slice(chunk: &Range<usize>, grain: usize, p: usize, j: usize) -> Range<usize> {
    let within = block(chunk.len(), grain, p, j);
    chunk.start + within.start..chunk.start + within.end
}

/// Home of the flags that every rank reads: the root, or each writer itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    Root,
    Own,
}

impl Home {
    fn read(params: &Params) -> Result<Home, PlanError> {
        params.one_of("home", Home::Root, &[("root", Home::Root), ("own", Home::Own)])
    }

    /// Flags that an array needs for `p` members.
    fn count(self, p: usize) -> usize {
        match self {
            Home::Root => p,
            Home::Own => 1,
        }
    }

    /// The flag that member `i` sets.
    fn flag(self, array: FlagArrayId, s: &Participants, i: usize) -> FlagRef {
        match self {
            Home::Root => array.at(s.members[s.root], i),
            Home::Own => array.at(s.members[i], 0),
        }
    }
}

/// Emits the whole of it, and says so, where there is nothing to exchange: one member or no bytes.
fn trivial(b: &mut Builder, s: &Participants) -> bool {
    if s.len() == 1 {
        b.mov(s.members[0], s.from[0].at(0..s.bytes), s.to.at(0..s.bytes));
    }
    s.len() == 1 || s.bytes == 0
}

/// The parameter `layout`, or the one that carries `bytes` on the fewest lines.
fn layout_or_auto(params: &Params, bytes: usize) -> Result<Layout, PlanError> {
    match params.get("layout") {
        None | Some("auto") if bytes <= Layout::Paired.payload() => Ok(Layout::Paired),
        None | Some("auto") => Ok(Layout::Alone),
        Some(_) => params.read("layout", Layout::Alone),
    }
}
