//! Places and lengths of the blocks of a collective in buffers that hold one block for each rank.
//!
//! A plan covers one window of a message: the same stretch of every block. The blocks themselves lie as far apart
//! as the whole message says, so a window of a gather writes P pieces of the root's `out`, a pitch apart, and the next
//! window the pieces behind them. That is why a plan knows more of its buffers than its own `bytes`.

use super::Space;
use crate::collective::{Collective, Extent};
use std::ops::Range;
use std::sync::Arc;

/// Lengths and starts of the blocks.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Blocks {
    /// All as long as the plan's message, one after the other.
    #[default]
    Dense,
    /// All as long as the plan's message, each so many bytes after the one before: a window of longer blocks.
    Apart(usize),
    /// Of different lengths.
    Uneven(Arc<Uneven>),
}

/// Blocks of different lengths, one after the other without gaps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Uneven {
    /// Whole blocks, in bytes: one for each rank, or one for each pair of ranks, giver by giver.
    counts: Vec<usize>,
    /// Bytes of each block that a window covers.
    lens: Vec<usize>,
    /// Start of each block in the buffer of the rank that has blocks for all (of the giver, where there are pairs).
    starts: Vec<usize>,
    /// For pairs: where each starts in the buffer of its taker, taker by taker.
    taken: Vec<usize>,
}

impl Uneven {
    /// One block for each rank: what a rank gives to a gather or allgather, or takes from a scatter or reduce-scatter.
    pub fn by_rank(counts: Vec<usize>) -> Uneven {
        let starts = sums(counts.iter().copied());
        Uneven { lens: counts.clone(), counts, starts, taken: Vec::new() }
    }

    /// One block for each pair of `ranks` ranks: `counts[i * ranks + j]` is what rank `i` gives to rank `j`.
    pub fn by_pair(ranks: usize, counts: Vec<usize>) -> Uneven {
        let starts = counts.chunks(ranks.max(1)).flat_map(|row| sums(row.iter().copied())).collect();
        let column = |j: usize| sums((0..ranks).map(|i| counts.get(i * ranks + j).copied().unwrap_or(0)));
        let taken = (0..ranks).flat_map(column).collect();
        Uneven { lens: counts.clone(), counts, starts, taken }
    }

    /// Returns whether blocks of these lengths hold at least half of what they would if all were as long as the longest.
    pub fn fill_half(lengths: &[usize]) -> bool {
        let longest = lengths.iter().copied().max().unwrap_or(0);
        2 * lengths.iter().sum::<usize>() >= longest * lengths.len()
    }

    /// The bytes `window` of every block.
    #[must_use]
    pub fn window(&self, window: Range<usize>) -> Uneven {
        let clip = |&count: &usize| count.min(window.end).saturating_sub(window.start);
        Uneven { lens: self.counts.iter().map(clip).collect(), ..self.clone() }
    }

    /// These bytes of each block, for a plan that is read.
    #[must_use]
    pub(super) fn covering(self, lens: Vec<usize>) -> Uneven {
        Uneven { lens, ..self }
    }

    /// Whole blocks, in bytes.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// Returns the bytes of each block that the window covers.
    pub fn lens(&self) -> &[usize] {
        &self.lens
    }

    /// The longest stretch of a block within the window.
    pub fn longest(&self) -> usize {
        self.lens.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of lengths that there must be.
    fn expected(collective: Collective, ranks: usize) -> usize {
        match collective {
            Collective::Alltoall => ranks * ranks,
            _ => ranks,
        }
    }
}

/// For each number, the sum of those before it.
fn sums(numbers: impl Iterator<Item = usize>) -> Vec<usize> {
    numbers
        .scan(0, |at, n| {
            let start = *at;
            *at += n;
            Some(start)
        })
        .collect()
}

/// The buffers of a problem or plan: whose block lies where. Offsets are from the start of a buffer (of what the
/// window sees of it, which starts with the window's first byte of block 0).
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Collective of the problem or plan.
    pub collective: Collective,
    /// Number of ranks.
    pub ranks: usize,
    /// The root, where there is one.
    pub root: usize,
    /// Length of the message or of the longest block.
    pub bytes: usize,
    /// Layout of the blocks.
    pub blocks: &'a Blocks,
}

impl Grid<'_> {
    /// Why the blocks do not fit the collective, if they do not.
    pub fn fault(&self, grain: usize) -> Option<String> {
        match self.blocks {
            Blocks::Dense => None,
            Blocks::Apart(_) | Blocks::Uneven(_) if !self.collective.has_blocks() => {
                Some(format!("a {} has no blocks", self.collective))
            }
            Blocks::Apart(pitch) if *pitch < self.bytes || pitch % grain != 0 => Some(format!(
                "blocks of {} bytes that start {pitch} bytes apart: expected whole elements of {grain} bytes, and \
                 at least as many as a block has",
                self.bytes
            )),
            Blocks::Apart(_) => None,
            Blocks::Uneven(u) => {
                let expected = Uneven::expected(self.collective, self.ranks);
                if u.counts.len() != expected || u.lens.len() != expected {
                    return Some(format!("{} lengths of blocks: expected {expected}", u.counts.len()));
                }
                if u.longest() != self.bytes {
                    return Some(format!(
                        "the longest block has {} bytes: expected the message's {}",
                        u.longest(),
                        self.bytes
                    ));
                }
                let ragged = u.counts.iter().chain(&u.lens).find(|&&n| n % grain != 0);
                if let Some(n) = ragged {
                    return Some(format!("a block of {n} bytes: expected whole elements of {grain} bytes"));
                }
                let longer = u.lens.iter().zip(&u.counts).find(|(len, count)| len > count);
                longer.map(|(len, count)| format!("a window of {len} bytes of a block of {count}"))
            }
        }
    }

    /// Bytes that `giver` has for `taker`.
    pub fn len(&self, giver: usize, taker: usize) -> usize {
        match self.blocks {
            Blocks::Dense | Blocks::Apart(_) => self.bytes,
            Blocks::Uneven(u) => u.lens[self.index(giver, taker)],
        }
    }

    /// The index of the block that `giver` has for `taker` among uneven ones.
    fn index(&self, giver: usize, taker: usize) -> usize {
        match self.collective {
            Collective::Gather | Collective::Allgather => giver,
            Collective::Alltoall => giver * self.ranks + taker,
            Collective::Barrier
            | Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scatter
            | Collective::ReduceScatter
            | Collective::Scan
            | Collective::Exscan => taker,
        }
    }

    /// Returns the range of the `in` of `giver` that holds what it gives to `taker`.
    pub fn given(&self, giver: usize, taker: usize) -> Range<usize> {
        let start = match (self.collective.input(giver, self.root), self.blocks) {
            (Extent::Nothing | Extent::Message, _) => 0,
            (Extent::Blocks, Blocks::Dense) => taker * self.bytes,
            (Extent::Blocks, Blocks::Apart(pitch)) => taker * pitch,
            (Extent::Blocks, Blocks::Uneven(u)) => u.starts[self.index(giver, taker)],
        };
        start..start + self.len(giver, taker)
    }

    /// Returns the range of the `out` of `taker` that gets what comes from `giver`.
    pub fn taken(&self, taker: usize, giver: usize) -> Range<usize> {
        let start = match (self.collective.output(taker, self.root), self.blocks) {
            (Extent::Nothing | Extent::Message, _) => 0,
            (Extent::Blocks, Blocks::Dense) => giver * self.bytes,
            (Extent::Blocks, Blocks::Apart(pitch)) => giver * pitch,
            (Extent::Blocks, Blocks::Uneven(u)) if self.collective == Collective::Alltoall => {
                u.taken[taker * self.ranks + giver]
            }
            (Extent::Blocks, Blocks::Uneven(u)) => u.starts[giver],
        };
        start..start + self.len(giver, taker)
    }

    /// Returns the range of block `block` in a caller's buffer that `rank` names `space`; a buffer that holds a message holds block 0 alone.
    pub fn place(&self, rank: usize, space: Space, block: usize) -> Range<usize> {
        match space {
            Space::In => self.given(rank, block),
            Space::Out => self.taken(rank, block),
            Space::PeerIn(owner) => self.given(owner.index(), block),
            Space::PeerOut(owner) => self.taken(owner.index(), block),
            Space::Acc | Space::Slot { .. } => 0..0,
        }
    }

    /// Bytes of the `in` of `rank`, up to the end of its last block. A broadcast's other ranks have room for it.
    pub fn input_bytes(&self, rank: usize) -> usize {
        match self.collective.input(rank, self.root) {
            Extent::Nothing if self.collective == Collective::Bcast => self.bytes,
            Extent::Nothing => 0,
            Extent::Message => self.len(rank, self.root),
            Extent::Blocks => self.last(|q| self.given(rank, q)),
        }
    }

    /// Bytes of the `out` of `rank`, up to the end of its last block.
    pub fn output_bytes(&self, rank: usize) -> usize {
        match self.collective.output(rank, self.root) {
            Extent::Nothing => 0,
            Extent::Message => self.len(self.root, rank),
            Extent::Blocks => self.last(|q| self.taken(rank, q)),
        }
    }

    /// The longer buffer of `rank` when the whole message (or the longest block) has `message` bytes.
    pub fn reach(&self, rank: usize, message: usize) -> usize {
        match self.blocks {
            Blocks::Dense | Blocks::Apart(_) => {
                let extents =
                    [self.collective.input(rank, self.root), self.collective.output(rank, self.root)];
                extents.into_iter().fold(message, |most, e| most.max(e.bytes(self.ranks, message)))
            }
            Blocks::Uneven(_) => self.input_bytes(rank).max(self.output_bytes(rank)),
        }
    }

    fn last(&self, place: impl Fn(usize) -> Range<usize>) -> usize {
        match self.blocks {
            Blocks::Dense | Blocks::Apart(_) => place(self.ranks - 1).end,
            Blocks::Uneven(_) => {
                (0..self.ranks).map(place).filter(|r| !r.is_empty()).map(|r| r.end).max().unwrap_or(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(collective: Collective, ranks: usize, bytes: usize, blocks: &Blocks) -> Grid<'_> {
        Grid { collective, ranks, root: 1, bytes, blocks }
    }

    #[test]
    fn blocks_lie_where_both_sides_expect_them() {
        let blocks = Blocks::Apart(10);
        let g = grid(Collective::Alltoall, 3, 4, &blocks);
        assert_eq!((g.given(0, 2), g.taken(2, 0)), (20..24, 0..4));
        assert_eq!((g.input_bytes(0), g.output_bytes(2)), (24, 24));
        let g = grid(Collective::Gather, 3, 4, &blocks);
        assert_eq!((g.given(2, 1), g.taken(1, 2)), (0..4, 20..24));
        assert_eq!((g.input_bytes(2), g.output_bytes(1), g.output_bytes(0)), (4, 24, 0));
    }

    #[test]
    fn uneven_blocks_follow_each_other_on_both_sides() {
        let counts = vec![1, 2, 3, 4, 5, 6, 7, 8, 9];
        let whole = Uneven::by_pair(3, counts);
        let blocks = Blocks::Uneven(Arc::new(whole.window(0..6)));
        let g = grid(Collective::Alltoall, 3, 6, &blocks);
        assert_eq!(g.fault(1), None);
        assert_eq!((g.given(1, 2), g.taken(2, 1)), (9..15, 3..9));
        assert_eq!((g.given(2, 1), g.taken(1, 2)), (7..13, 7..13));
        assert_eq!((g.reach(0, 9), g.reach(2, 9)), (11, 21));
        let blocks = Blocks::Uneven(Arc::new(Uneven::by_rank(vec![4, 0, 2])));
        let g = grid(Collective::Scatter, 3, 4, &blocks);
        assert_eq!((g.given(1, 2), g.taken(2, 1), g.taken(1, 1)), (4..6, 0..2, 0..0));
        assert_eq!((g.input_bytes(1), g.input_bytes(0), g.output_bytes(0)), (6, 0, 4));
        assert!(g.fault(4).is_some());
    }
}
