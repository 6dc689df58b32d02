//! The first half of both scatter + allgather broadcasts: blocks go down a binomial tree through boxes.
//!
//! Virtual ranks are numbered so that a subtree is a run of consecutive ranks; block `v` is that of virtual rank
//! `v`. Every box has room for the message, and a block lies at its place in it. The root fills its box; a
//! child copies the blocks of its subtree from its parent's box to its own, tells its parent so, and then its
//! children. A box is filled again only after its readers have acknowledged, as late as the next run.

use super::super::ranks::block;
use super::super::trees::{boxed, Tree};
use super::super::Participants;
use crate::plan::{Builder, FlagArrayId, FlagRef, Layout, Region};
use std::ops::Range;

/// The blocks, boxes and flags of a scatter.
pub(super) struct Scatter {
    tree: Tree,
    sizes: Vec<usize>,
    ranks: Vec<usize>,
    bytes: usize,
    grain: usize,
    slot: u16,
    /// Blocks are there (index 0) and have been fetched (index 1), at the child.
    link: FlagArrayId,
}

impl Scatter {
    /// A scatter over the virtual ranks `ranks`, the root first.
    pub fn new(b: &mut Builder, s: &Participants, ranks: Vec<usize>, layout: Layout) -> Scatter {
        let tree = Tree::halving(ranks.len());
        let sizes = tree.sizes();
        let slot = b.slot(s.bytes);
        let link = b.flags("scatter", layout, 2);
        Scatter { tree, sizes, ranks, bytes: s.bytes, grain: b.grain(), slot, link }
    }

    /// The bytes of blocks `blocks`.
    pub fn range(&self, blocks: Range<usize>) -> Range<usize> {
        let parts = self.ranks.len();
        if blocks.is_empty() {
            return 0..0;
        }
        block(self.bytes, self.grain, parts, blocks.start).start
            ..block(self.bytes, self.grain, parts, blocks.end - 1).end
    }

    /// Those bytes in the box of virtual rank `v`.
    pub fn boxed(&self, v: usize, blocks: Range<usize>) -> Region {
        boxed(self.ranks[v], self.slot, self.range(blocks))
    }

    /// The blocks that virtual rank `v` has after the scatter.
    pub fn held(&self, v: usize) -> Range<usize> {
        v..v + self.sizes[v]
    }

    /// Emits the part of virtual rank `v`. `readers` are flags by which others said in the previous run that
    /// they had left this rank's box.
    pub fn emit(&self, b: &mut Builder, s: &Participants, v: usize, readers: &[FlagRef]) {
        let rank = self.ranks[v];
        for &flag in readers {
            b.wait_previous(rank, flag, 1);
        }
        for &child in &self.tree.children[v] {
            b.wait_previous(rank, self.link.at(self.ranks[child], 1), 1);
        }
        match self.tree.parent[v] {
            None => {
                // The largest subtree first, so that it can start while the rest is being put.
                for &child in &self.tree.children[v] {
                    let blocks = self.held(child);
                    b.mov(rank, s.from[s.root].at(self.range(blocks.clone())), self.boxed(v, blocks));
                    b.set(rank, self.link.at(self.ranks[child], 0), 1);
                }
                b.mov(rank, s.from[s.root].at(self.range(v..v + 1)), self.boxed(v, v..v + 1));
            }
            Some(parent) => {
                b.wait(rank, self.link.at(rank, 0), 1);
                b.mov(rank, self.boxed(parent, self.held(v)), self.boxed(v, self.held(v)));
                b.set(rank, self.link.at(rank, 1), 1);
                for &child in &self.tree.children[v] {
                    b.set(rank, self.link.at(self.ranks[child], 0), 1);
                }
            }
        }
    }
}
