//! Slices: every rank folds one slice of the message straight from everybody's buffer into the root's.
//!
//! For long messages among threads: P ranks fold at once and nothing is copied. Addresses are published once, by each
//! rank at its own home; nobody returns before everybody is done. Rico-Gallego & Diaz-Martin 2015 model the concurrent
//! transfers; the slices are those of Ramos & Hoefler 2013, section 4.1.3. Any P and root.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::check_direct;
use super::super::ranks::{block, chunks};
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use super::up::seen_by_peers;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "slices",
    about: "every rank folds a slice straight from all buffers into the root's",
    source: "Ramos & Hoefler 2013, section 4.1.3, applied to a reduction",
    params: &[
        ParamSpec { name: "chunk", default: "8192", about: "bytes folded over all ranks before the next" },
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags; not packed" },
        ORDER,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !problem.direct || problem.bytes < 4096 {
        return Vec::new();
    }
    [2048, 8192, 32768].into_iter().map(|chunk| Params::new().with("chunk", chunk)).collect()
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let chunk = params.int("chunk", 8192, 1..usize::MAX)?;
    let layout = params.read("layout", Layout::Alone)?;
    check_direct(&ALGORITHM, problem, layout)?;
    let root = s.rank_of_virtual(0);
    if s.len() == 1 {
        b.mov(root, s.from[s.root].at(0..s.bytes), s.to.at(0..s.bytes));
        return Ok(());
    }
    if s.bytes == 0 {
        return Ok(());
    }
    let peers: Option<Vec<Place>> = (0..s.len()).map(|i| seen_by_peers(s.from[i], s.members[i])).collect();
    let (Some(peers), Some(result)) = (peers, seen_by_peers(s.to, root)) else {
        return Err(ALGORITHM.not_applicable("contributions and result have to be in the callers' buffers"));
    };
    b.ring();
    b.direct();
    // Sums on the way stay in this rank's cache, and the root's contribution is read before it is overwritten.
    let sum = Place::acc(b.acc(if s.len() > 2 { chunk.max(b.grain()).min(s.bytes) } else { 0 }));
    let brackets = Brackets::read(b, params, s.len(), chunk.max(b.grain()).min(s.bytes))?;
    let addresses = b.flags("address", layout, 2);
    let done = b.flags("done", layout, 1);
    for i in 0..s.len() {
        let rank = s.members[i];
        let others = (1..s.len()).map(|d| (i + d) % s.len());
        // 1. Publish where the contribution is, and the root where the result goes.
        b.set_address(rank, addresses.at(rank, 0), 1, s.from[i].space);
        if rank == root {
            b.set_address(rank, addresses.at(rank, 1), 1, s.to.space);
        }
        // 2. Learn everybody's.
        for j in others.clone() {
            b.wait_address(rank, addresses.at(s.members[j], 0), 1, peers[j].space);
        }
        if rank != root {
            b.wait_address(rank, addresses.at(root, 1), 1, result.space);
        }
        // 3. Fold the slice, in rank order, a cache's worth at a time.
        let to = if rank == root { s.to } else { result };
        let source =
            |j: usize, range: Range<usize>| if j == i { s.from[j].at(range) } else { peers[j].at(range) };
        for range in chunks(block(s.bytes, b.grain(), s.len(), i), chunk, b.grain()) {
            let (via, dst) = (sum.at(0..range.len()), to.at(range.clone()));
            brackets.fold(b, rank, s.len(), |j| source(j, range.clone()), via, dst);
        }
        // 4. Nobody returns before everybody is done.
        b.set(rank, done.at(rank, 0), 1);
        for j in others {
            b.wait(rank, done.at(s.members[j], 0), 1);
        }
    }
    Ok(())
}

/// Rank `rank` folds `sources` 0 .. n (n >= 2), left to right, into `dst`. Sums on the way lie at `via`: where
/// that is not `dst`, nothing is written to `dst` before the last source is read.
pub(crate) fn fold_all(
    b: &mut Builder,
    rank: usize,
    n: usize,
    sources: impl Fn(usize) -> Region,
    via: Region,
    dst: Region,
) {
    debug_assert!(n >= 2);
    let mut so_far = sources(0);
    for j in 1..n {
        let sum = if j + 1 < n { via } else { dst };
        b.fold(rank, so_far, sources(j), sum);
        so_far = sum;
    }
}
