//! Algorithms for allreduce. In each of them every rank computes, or is given, the same association for
//! each element, so results are the same bits everywhere.

pub mod all_read_all;
pub(super) mod core_ranks;
pub mod direct;
pub mod fold_back;
pub mod hierarchical;
pub mod noc_msg;
pub mod pipelined_ring;
pub mod rabenseifner;
pub mod rcce;
pub mod rckmpi;
pub mod recursive_doubling;
pub mod reduce_bcast;
pub mod ring;
pub mod slices;

use super::ranks::block;
use super::{Algorithm, ParamSpec, Participants, Problem};
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
        match params.get("home").unwrap_or("root") {
            "root" => Ok(Home::Root),
            "own" => Ok(Home::Own),
            other => Err(PlanError::BadParameter {
                name: "home".to_owned(),
                value: other.to_owned(),
                expected: "root or own".to_owned(),
            }),
        }
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

/// Parameter sets that vary the layout: those whose payload the message fits, or all where it fits none.
fn layouts(problem: &Problem) -> Vec<Params> {
    let all = [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)];
    let fits = |l: &Layout| problem.bytes <= l.payload() || problem.bytes > Layout::Alone.payload();
    all.into_iter().filter(fits).map(|layout| Params::new().with("layout", layout)).collect()
}
