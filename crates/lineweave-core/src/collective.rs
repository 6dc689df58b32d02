//! The collectives a plan can implement, what each must deliver, and what its `bytes` are.
//!
//! Two kinds. Where the whole message is one thing that every rank has or gets a copy of (bcast, reduce, allreduce,
//! scan, exscan), `bytes` is its length, and so is that of every buffer. Where ranks exchange *blocks* (gather,
//! scatter, allgather, reduce-scatter, alltoall), `bytes` is the length of **one block**: what one rank has for, or
//! gets from, one other. A buffer then holds one block, or one for each rank in the order of ranks; [`Extent`] says
//! which. [`Blocks`](crate::plan::Blocks) says where the blocks lie, and how long each is where they differ:
//! `gatherv`, `scatterv`, `allgatherv`, `alltoallv` and the reduce-scatter with counts are no collectives of their
//! own, but the same with uneven blocks.

use crate::names::{did_you_mean, named, read_back};
use serde::{Deserialize, Serialize};

/// A collective operation over all ranks of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Collective {
    /// No rank leaves before every rank has entered.
    Barrier,
    /// The root's `in` arrives in every other rank's `out`.
    Bcast,
    /// The elementwise combination of every rank's `in` arrives in the root's `out`.
    Reduce,
    /// The elementwise combination of every rank's `in` arrives in every rank's `out`.
    Allreduce,
    /// Every rank's `in` arrives as a block of the root's `out`, the root's own among them.
    Gather,
    /// Block `r` of the root's `in` arrives in the `out` of rank `r`, the root's own included.
    Scatter,
    /// Every rank's `in` arrives as a block of every rank's `out`.
    Allgather,
    /// Block `r` of the elementwise combination of every rank's `in` arrives in the `out` of rank `r`.
    ReduceScatter,
    /// The elementwise combination of `in` of ranks 0 to `r`, in that order, arrives in the `out` of rank `r`.
    Scan,
    /// The elementwise combination of `in` of ranks 0 to `r - 1`, in that order, arrives in the `out` of rank `r`.
    /// The `out` of rank 0 is not touched.
    Exscan,
    /// Block `j` of the `in` of rank `i` arrives as block `i` of the `out` of rank `j`.
    Alltoall,
}

/// Content of one rank's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// There is no such buffer.
    Nothing,
    /// The message, or one block.
    Message,
    /// A block for every rank.
    Blocks,
}

impl Extent {
    /// Bytes of such a buffer among `ranks` ranks, where all blocks are `bytes` long and follow each other.
    pub fn bytes(self, ranks: usize, bytes: usize) -> usize {
        match self {
            Extent::Nothing => 0,
            Extent::Message => bytes,
            Extent::Blocks => ranks * bytes,
        }
    }
}

named!(
    Collective,
    Barrier = "barrier",
    Bcast = "bcast",
    Reduce = "reduce",
    Allreduce = "allreduce",
    Gather = "gather",
    Scatter = "scatter",
    Allgather = "allgather",
    ReduceScatter = "reduce-scatter",
    Scan = "scan",
    Exscan = "exscan",
    Alltoall = "alltoall",
);
read_back!(Collective, UnknownCollective, |name| UnknownCollective { name: name.to_owned() });

impl Collective {
    /// Those that `lineweave tune` measures unless told otherwise: what most programs
    /// spend their time in. The others are chosen by the model.
    pub const TUNED: [Collective; 6] = [
        Collective::Barrier,
        Collective::Bcast,
        Collective::Reduce,
        Collective::Allreduce,
        Collective::Allgather,
        Collective::Alltoall,
    ];

    /// Returns whether it means the same when ranks change parts, but for the root: no buffer has a block for each rank, and no rank but the root
    /// has a result of its own.
    pub fn can_be_renamed(self) -> bool {
        self.rooted() && !self.has_blocks()
    }

    /// Returns whether one rank plays a part of its own.
    pub fn rooted(self) -> bool {
        match self {
            Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter => true,
            Collective::Barrier
            | Collective::Allreduce
            | Collective::Allgather
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::Exscan
            | Collective::Alltoall => false,
        }
    }

    /// Returns whether data flows one way, so that some ranks need not wait for others and may run ahead of them.
    pub fn one_way(self) -> bool {
        self.rooted() || matches!(self, Collective::Scan | Collective::Exscan)
    }

    /// Returns whether elements are combined with a reduction operator.
    pub fn folds(self) -> bool {
        match self {
            Collective::Reduce
            | Collective::Allreduce
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::Exscan => true,
            Collective::Barrier
            | Collective::Bcast
            | Collective::Gather
            | Collective::Scatter
            | Collective::Allgather
            | Collective::Alltoall => false,
        }
    }

    /// Returns whether some rank's buffer holds a block for every rank.
    pub fn has_blocks(self) -> bool {
        [self.input(0, 0), self.output(0, 0)].contains(&Extent::Blocks)
    }

    /// Returns the content of the `in` of `rank`.
    pub fn input(self, rank: usize, root: usize) -> Extent {
        match self {
            Collective::Bcast | Collective::Scatter if rank != root => Extent::Nothing,
            Collective::Barrier => Extent::Nothing,
            Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Gather
            | Collective::Allgather
            | Collective::Scan
            | Collective::Exscan => Extent::Message,
            Collective::Scatter | Collective::ReduceScatter | Collective::Alltoall => Extent::Blocks,
        }
    }

    /// Returns the content of the `out` of `rank`.
    pub fn output(self, rank: usize, root: usize) -> Extent {
        match self {
            Collective::Barrier => Extent::Nothing,
            Collective::Bcast if rank == root => Extent::Nothing,
            Collective::Reduce | Collective::Gather if rank != root => Extent::Nothing,
            Collective::Exscan if rank == 0 => Extent::Nothing,
            Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scatter
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::Exscan => Extent::Message,
            Collective::Gather | Collective::Allgather | Collective::Alltoall => Extent::Blocks,
        }
    }

    /// Returns whether a message is moved at all.
    pub fn moves_data(self) -> bool {
        self != Collective::Barrier
    }

    /// Every name, for messages.
    pub fn names() -> String {
        Collective::ALL.map(Collective::name).join(", ")
    }
}

/// Requirement on the order and the brackets in which contributions are combined.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Association {
    /// Any, as long as every rank's result has the same.
    #[default]
    Free,
    /// In the order of ranks, with any brackets: for operators that do not commute.
    RankOrder,
    /// Reproducible: in the order of ranks, with the brackets of [`split`]. They depend on the number of ranks alone, and so
    /// do the bits of the result: not on the algorithm, its parameters, windows, or where ranks sit.
    Fixed,
}

impl Association {
    /// Returns the requirement of an operator and the caller together.
    pub fn wanted(commutes: bool, reproducible: bool) -> Association {
        match (commutes, reproducible) {
            (_, true) => Association::Fixed,
            (false, false) => Association::RankOrder,
            (true, false) => Association::Free,
        }
    }
}

/// Returns the position at which the outermost bracket of a reproducible sum of `n >= 2` contributions splits it: behind the
/// first `2^k` of them, the largest power of two below `n`. Both parts are split likewise. So seven contributions are
/// combined as `((0 + 1) + (2 + 3)) + ((4 + 5) + 6)`; a scan's rank `r` combines the first `r + 1` ranks' that way.
pub fn split(n: usize) -> usize {
    debug_assert!(n >= 2);
    n.next_power_of_two() / 2
}

/// A name that is not a collective's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown collective `{name}`{}: expected one of {}", did_you_mean(name, Collective::ALL.map(Collective::name)), Collective::names())]
pub struct UnknownCollective {
    /// Name that was found.
    pub name: String,
}
