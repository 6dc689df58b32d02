//! The brackets of a sum whose sources one rank reads all: rank after rank, or those of reproducible results.
//!
//! What is reproducible is a matter of [`split`]: `n` contributions are combined as the first so many of them (op) the
//! rest, and both parts likewise. Trees that double a distance arrive at these brackets by themselves; a rank that folds a
//! slice of everybody's contribution, from left to right as it comes cheapest, does so with `order=tree`, and needs room
//! for a sum on each level.

use super::reduce::slices::fold_all;
use super::{Algorithm, ParamSpec, Place};
use crate::collective::split;
use crate::plan::{Builder, Params, PlanError, Region};
use std::ops::Range;

/// The parameter of algorithms that have both.
pub(super) const ORDER: ParamSpec = ParamSpec {
    name: "order",
    default: "chain",
    about: "brackets of a fold of all ranks: chain, rank after rank; tree, those of reproducible results",
};

/// Brackets of a fold, and room for the inner sums that they need.
#[derive(Clone, Copy, Debug)]
pub(super) enum Brackets {
    /// `((0 + 1) + 2) + 3`.
    Chain,
    /// `(0 + 1) + (2 + 3)`: sums of inner brackets lie here, so far apart.
    Tree {
        /// The first.
        at: usize,
        /// Bytes from one to the next.
        pitch: usize,
    },
}

/// The algorithm's parameter sets whose results may be reproducible: as they are, or with the brackets for it.
pub(crate) fn reproducible(algorithm: &Algorithm, params: Params) -> Params {
    match algorithm.params.iter().any(|p| p.name == ORDER.name) {
        true => params.with(ORDER.name, "tree"),
        false => params,
    }
}

impl Brackets {
    /// The parameter, with room for folds of `n` sources of at most `longest` bytes.
    pub fn read(b: &mut Builder, params: &Params, n: usize, longest: usize) -> Result<Brackets, PlanError> {
        if !params.one_of(ORDER.name, false, &[("chain", false), ("tree", true)])? {
            return Ok(Brackets::Chain);
        }
        let pitch = longest.next_multiple_of(b.grain());
        Ok(Brackets::Tree { at: b.acc(rooms(n) * pitch), pitch })
    }

    fn room(at: usize, pitch: usize, level: usize, len: usize) -> Region {
        Place::acc(at + level * pitch).at(0..len)
    }

    /// Rank `rank` folds `sources` 0 .. n (n >= 2) into `dst`. Sums of the outermost bracket on the way lie at `via`:
    /// where that is not `dst`, nothing is written to `dst` before the last source is read.
    pub fn fold(
        self,
        b: &mut Builder,
        rank: usize,
        n: usize,
        sources: impl Fn(usize) -> Region,
        via: Region,
        dst: Region,
    ) {
        match self {
            Brackets::Chain => fold_all(b, rank, n, sources, via, dst),
            Brackets::Tree { at, pitch } => {
                let mid = split(n);
                let left = tree(b, rank, 0..mid, &sources, (at, pitch), 0, via);
                let room = Brackets::room(at, pitch, 0, dst.len);
                let right = tree(b, rank, mid..n, &sources, (at, pitch), 1, room);
                b.fold(rank, left, right, dst);
            }
        }
    }

    /// Rank `rank` folds the first 1, 2, .. n `sources` into `sums` 0 .. n, one after the other, each after `before` was
    /// called for its last source.
    pub fn prefixes(
        self,
        b: &mut Builder,
        rank: usize,
        n: usize,
        sources: impl Fn(usize) -> Region,
        sums: impl Fn(usize) -> Region,
        mut before: impl FnMut(&mut Builder, usize),
    ) {
        // Blocks of 2^k sources that are summed already, the largest first.
        let mut blocks: Vec<(usize, Region)> = Vec::new();
        for j in 0..n {
            before(b, j);
            match self {
                Brackets::Chain if j == 0 => b.mov(rank, sources(0), sums(0)),
                Brackets::Chain => b.fold(rank, sums(j - 1), sources(j), sums(j)),
                Brackets::Tree { at, pitch } => {
                    let (mut size, mut last) = (1, sources(j));
                    while blocks.last().is_some_and(|&(other, _)| other == size) {
                        let Some((_, first)) = blocks.pop() else { break };
                        size *= 2;
                        let all = size == j + 1;
                        // A block stays where it is until it is part of a larger one.
                        let free = !blocks.iter().any(|&(other, _)| other == size);
                        let level = if free { size.ilog2() as usize } else { 0 };
                        let to = if all { sums(j) } else { Brackets::room(at, pitch, level, last.len) };
                        b.fold(rank, first, last, to);
                        last = to;
                    }
                    blocks.push((size, last));
                    let mut inner = blocks.iter().rev();
                    let Some(&(_, mut sum)) = inner.next() else { continue };
                    for &(_, outer) in inner {
                        b.fold(rank, outer, sum, sums(j));
                        sum = sums(j);
                    }
                    b.mov(rank, sum, sums(j));
                }
            }
        }
    }
}

/// Sums that are kept while a fold of `n` sources goes on, also of all prefixes: one a level, and one that is on its way.
fn rooms(n: usize) -> usize {
    match n {
        0..=2 => 0,
        _ => super::ranks::ceil_log(n, 2),
    }
}

/// The sum of the sources `range`: the source itself where it is one, else in `to`.
fn tree(
    b: &mut Builder,
    rank: usize,
    range: Range<usize>,
    sources: &impl Fn(usize) -> Region,
    (at, pitch): (usize, usize),
    level: usize,
    to: Region,
) -> Region {
    if range.len() == 1 {
        return sources(range.start);
    }
    let mid = range.start + split(range.len());
    let left = tree(b, rank, range.start..mid, sources, (at, pitch), level, to);
    let room = Brackets::room(at, pitch, level, to.len);
    let right = tree(b, rank, mid..range.end, sources, (at, pitch), level + 1, room);
    b.fold(rank, left, right, to);
    to
}
