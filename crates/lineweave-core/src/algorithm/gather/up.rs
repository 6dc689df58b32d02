//! Common part of the gathers through boxes: blocks go up a tree.
//!
//! Virtual ranks are numbered so that a subtree is a run of consecutive ones. A rank collects the blocks of its subtree
//! one after the other, its own first, tells its parent, and the parent copies them; at the root they go where
//! they belong. A subtree whose blocks fit beside a flag travels with it. Subtrees without bytes say nothing.

use super::super::pieces::{copy, input, keep_own, output, part, whole, Packed};
use super::super::trees::{boxed, Tree};
use super::super::{Place, Problem};
use crate::plan::{Builder, FlagArrayId, Grid, Layout, Region};

struct Up<'a> {
    grid: Grid<'a>,
    tree: Tree,
    sizes: Vec<usize>,
    ranks: Vec<usize>,
    packed: Packed,
    layout: Layout,
    slot: u16,
    /// Offset in scratch at which blocks that travel with flags are collected.
    acc: usize,
    /// At each rank: its subtree's blocks are there.
    ready: FlagArrayId,
}

/// Emits a gather up `tree`, whose subtrees are runs of virtual ranks; `ranks` names them, the root first.
pub(super) fn emit(b: &mut Builder, problem: &Problem, tree: Tree, ranks: Vec<usize>, layout: Layout) {
    let grid = problem.grid();
    b.ring();
    let packed = Packed::new(ranks.iter().map(|&r| grid.len(r, grid.root)));
    let sizes = tree.sizes();
    let bytes = |v: usize| packed.bytes(v..v + sizes[v]);
    let largest = |carried: bool| {
        (1..ranks.len()).map(bytes).filter(|&n| (n <= layout.payload()) == carried).max().unwrap_or(0)
    };
    let several = (1..ranks.len()).any(|v| sizes[v] > 1 && bytes(v) <= layout.payload());
    let (slot_bytes, acc_bytes) = (largest(false), if several { largest(true) } else { 0 });
    let slot = b.slot(slot_bytes);
    let acc = b.acc(acc_bytes);
    let ready = b.flags("ready", layout, 1);
    let up = Up { grid, tree, sizes, ranks, packed, layout, slot, acc, ready };
    up.root(b);
    for v in 1..up.ranks.len() {
        up.other(b, v);
    }
}

impl Up<'_> {
    fn bytes(&self, v: usize) -> usize {
        self.packed.bytes(v..v + self.sizes[v])
    }

    fn carried(&self, v: usize) -> bool {
        self.bytes(v) <= self.layout.payload()
    }

    /// Returns the region in which virtual rank `v` has the blocks of its subtree.
    fn store(&self, v: usize) -> Region {
        let all = 0..self.bytes(v);
        match (self.carried(v), self.sizes[v]) {
            (true, 1) => input(all),
            (true, _) => Place::acc(self.acc).at(all),
            (false, _) => boxed(self.ranks[v], self.slot, all),
        }
    }

    /// The children of `v` that have anything, those with the smallest subtrees first: they are the first to be there.
    fn children(&self, v: usize) -> Vec<usize> {
        let mut children = self.tree.children[v].clone();
        children.retain(|&c| self.bytes(c) > 0);
        children.sort_by_key(|&c| self.sizes[c]);
        children
    }

    fn other(&self, b: &mut Builder, v: usize) {
        if self.bytes(v) == 0 {
            return;
        }
        let (rank, store) = (self.ranks[v], self.store(v));
        let own = self.packed.span(v..v + 1, v);
        b.mov(rank, input(0..own.len()), part(store, own));
        for c in self.children(v) {
            let flag = self.ready.at(self.ranks[c], 0);
            let place = part(store, self.packed.span(c..c + self.sizes[c], v));
            b.wait_with(rank, flag, 1, self.carried(c).then_some(place));
            if !self.carried(c) {
                b.mov(rank, self.store(c), place);
            }
        }
        b.set_with(rank, self.ready.at(rank, 0), 1, self.carried(v).then_some(store));
    }

    fn root(&self, b: &mut Builder) {
        let rank = self.ranks[0];
        keep_own(b, &self.grid, rank);
        for c in self.children(0) {
            let flag = self.ready.at(self.ranks[c], 0);
            let places = (c..c + self.sizes[c]).map(|v| output(self.grid.taken(rank, self.ranks[v])));
            let store = match (self.carried(c), whole(places.clone())) {
                (true, Some(place)) => {
                    b.wait_taking(rank, flag, 1, place);
                    continue;
                }
                (true, None) => {
                    let store = Place::acc(self.acc).at(0..self.bytes(c));
                    b.wait_taking(rank, flag, 1, store);
                    store
                }
                (false, _) => {
                    b.wait(rank, flag, 1);
                    self.store(c)
                }
            };
            let blocks = (c..c + self.sizes[c]).map(|v| part(store, self.packed.span(v..v + 1, c)));
            copy(b, rank, blocks.zip(places).map(|(block, place)| [block, place]));
        }
    }
}
