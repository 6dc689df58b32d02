//! Pieces of buffers: what the algorithms that exchange blocks share.

use super::{Algorithm, ParamSpec, Problem};
use crate::plan::{Builder, FlagRef, Grid, Layout, Params, PlanError, Region, Space};
use crate::units::Rank;
use std::ops::Range;

/// The parameter `layout` of algorithms whose flags may carry a block.
pub(super) const LAYOUT: ParamSpec = ParamSpec {
    name: "layout",
    default: "alone",
    about: "lines of the flags: packed, paired, alone, spreadN",
};

/// The layouts worth costing where `bytes` may travel with a flag.
pub(super) fn layouts(bytes: usize) -> Vec<Params> {
    let mut out = vec![Params::new()];
    if bytes <= Layout::Paired.payload() {
        out.push(Params::new().with("layout", Layout::Paired));
    }
    out
}

/// The bytes `range` of this rank's `in`.
pub(super) fn input(range: Range<usize>) -> Region {
    Region::new(Space::In, range)
}

/// The bytes `range` of this rank's `out`.
pub(super) fn output(range: Range<usize>) -> Region {
    Region::new(Space::Out, range)
}

/// The bytes `range` of the `in` of `rank`, read directly.
pub(super) fn peer_input(rank: usize, range: Range<usize>) -> Region {
    Region::new(Space::PeerIn(Rank::from(rank)), range)
}

/// The bytes `range` of the `out` of `rank`, written directly.
pub(super) fn peer_output(rank: usize, range: Range<usize>) -> Region {
    Region::new(Space::PeerOut(Rank::from(rank)), range)
}

/// Blocks one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Packed {
    /// Start of each block, followed by the end of the last one.
    starts: Vec<usize>,
}

impl Packed {
    /// Of these lengths.
    pub fn new(lens: impl IntoIterator<Item = usize>) -> Packed {
        let mut starts = vec![0];
        let mut at = 0;
        for len in lens {
            at += len;
            starts.push(at);
        }
        Packed { starts }
    }

    /// Those of all members but `own`, whose place takes no room.
    pub fn of_others(members: usize, own: usize, len: impl Fn(usize) -> usize) -> Packed {
        Packed::new((0..members).map(|j| if j == own { 0 } else { len(j) }))
    }

    /// All of them together.
    pub fn total(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Block `i`.
    pub fn at(&self, i: usize) -> Range<usize> {
        self.starts[i]..self.starts[i + 1]
    }

    /// Blocks `range`, from the start of block `from`.
    pub fn span(&self, range: Range<usize>, from: usize) -> Range<usize> {
        self.starts[range.start] - self.starts[from]..self.starts[range.end] - self.starts[from]
    }

    /// The bytes of blocks `range` together.
    pub fn bytes(&self, range: Range<usize>) -> usize {
        self.span(range.clone(), range.start).len()
    }
}

/// Part `range` of a region.
pub(super) fn part(region: Region, range: Range<usize>) -> Region {
    Region { offset: region.offset + range.start, len: range.len(), ..region }
}

/// Returns whether `b` follows `a` in the same place.
fn follows(a: &Region, b: &Region) -> bool {
    a.space == b.space && a.end() == b.offset
}

/// Pieces joined where they follow each other in every place; empty ones left out.
pub(super) fn joined<const N: usize>(pieces: impl IntoIterator<Item = [Region; N]>) -> Vec<[Region; N]> {
    let mut out: Vec<[Region; N]> = Vec::new();
    for piece in pieces.into_iter().filter(|piece| piece[0].len > 0) {
        match out.last_mut() {
            Some(last) if last.iter().zip(&piece).all(|(a, b)| follows(a, b)) => {
                last.iter_mut().zip(&piece).for_each(|(a, b)| a.len += b.len);
            }
            _ => out.push(piece),
        }
    }
    out
}

/// Rank `rank` copies pieces, source and destination, one after the other.
pub(super) fn copy(b: &mut Builder, rank: usize, pieces: impl IntoIterator<Item = [Region; 2]>) {
    for [src, dst] in joined(pieces) {
        b.mov(rank, src, dst);
    }
}

/// Rank `rank` folds pieces: left operand, right operand, result.
pub(super) fn fold(b: &mut Builder, rank: usize, pieces: impl IntoIterator<Item = [Region; 3]>) {
    for [left, right, dst] in joined(pieces) {
        b.fold(rank, left, right, dst);
    }
}

/// The one region that pieces make, if they follow each other.
pub(super) fn whole(pieces: impl IntoIterator<Item = Region>) -> Option<Region> {
    match joined(pieces.into_iter().map(|piece| [piece]))[..] {
        [[one]] => Some(one),
        _ => None,
    }
}

/// The value of a flag that counts chunks once chunk `i` is through.
pub(super) fn value(i: usize) -> i32 {
    i32::try_from(i + 1).unwrap_or(i32::MAX)
}

/// Rank `rank` waits until what was in a place that comes up again every `period` of `chunks` chunks has been read,
/// before chunk `i` takes it: in this run, or in the previous one. `flag` says whose flag tells of which chunk.
pub(super) fn wait_free(
    b: &mut Builder,
    rank: usize,
    i: usize,
    (period, chunks): (usize, usize),
    flag: impl Fn(usize) -> FlagRef,
) {
    match i.checked_sub(period) {
        Some(before) => b.wait(rank, flag(before), value(before)),
        None => {
            let before = i + (chunks - 1 - i) / period * period;
            b.wait_previous(rank, flag(before), value(before));
        }
    }
}

/// Every rank's own block, from `in` to `out`.
pub(super) fn keep_own(b: &mut Builder, grid: &Grid<'_>, rank: usize) {
    b.mov(rank, input(grid.given(rank, rank)), output(grid.taken(rank, rank)));
}

/// Returns whether nobody has anything for another rank; the own blocks, which there are then at most, are moved.
pub(super) fn trivial(b: &mut Builder, grid: &Grid<'_>) -> bool {
    let trivial = grid.ranks < 2 || grid.bytes == 0;
    if trivial {
        (0..grid.ranks).for_each(|rank| keep_own(b, grid, rank));
    }
    trivial
}

/// Direct plans need to reach peers' buffers, and room for an address in a flag's line.
pub(super) fn check_direct(
    algorithm: &Algorithm,
    problem: &Problem,
    layout: Layout,
) -> Result<(), PlanError> {
    if !problem.direct {
        return Err(algorithm.not_applicable("ranks cannot reach each other's buffers here"));
    }
    super::bcast::direct::check_room(layout)
}

/// Every rank publishes where its `in` is, runs `body` with the addresses of all others taken as they come, and
/// returns only when everybody is done with its buffer. `body` is called for each rank and each of its peers, the
/// next one first.
pub(super) fn from_peers_inputs(
    b: &mut Builder,
    layout: Layout,
    mut first: impl FnMut(&mut Builder, usize),
    mut body: impl FnMut(&mut Builder, usize, usize),
    mut last: impl FnMut(&mut Builder, usize),
) {
    b.ring();
    b.direct();
    let p = b.ranks();
    let address = b.flags("address", layout, 1);
    let done = b.flags("done", layout, 1);
    for rank in 0..p {
        let others = (1..p).map(|d| (rank + d) % p);
        // 1. Addresses.
        b.set_address(rank, address.at(rank, 0), 1, Space::In);
        first(b, rank);
        // 2. What peers have for this rank.
        for q in others.clone() {
            b.wait_address(rank, address.at(q, 0), 1, Space::PeerIn(Rank::from(q)));
            body(b, rank, q);
        }
        last(b, rank);
        // 3. Everybody is done.
        b.set(rank, done.at(rank, 0), 1);
        for q in others {
            b.wait(rank, done.at(q, 0), 1);
        }
    }
}
