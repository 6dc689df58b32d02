//! Common part of the scatters through boxes: blocks go down a tree.
//!
//! Virtual ranks are numbered so that a subtree is a run of consecutive ones. The root puts the blocks of each child's
//! subtree into its box and tells the child; a child copies what its own children need on into its own box (or, with
//! `source=root`, only tells them) and its own block out. A subtree whose blocks fit beside a flag travels with
//! it. Subtrees without bytes hear nothing.

use super::super::pieces::{copy, input, keep_own, output, part, whole, Packed};
use super::super::trees::{boxed, Tree};
use super::super::{Place, Problem};
use crate::plan::{Builder, FlagArrayId, FlagRef, Grid, Layout, Params, PlanError, Region};

/// Way in which blocks travel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Travel {
    /// Lines of the flags.
    pub layout: Layout,
    /// Everybody copies from the root's box.
    pub from_root: bool,
}

impl Travel {
    /// From the parameters `layout` and `source`.
    pub fn read(params: &Params) -> Result<Travel, PlanError> {
        let from_root = params.one_of("source", false, &[("parent", false), ("root", true)])?;
        Ok(Travel { layout: params.read("layout", Layout::Alone)?, from_root })
    }
}

struct Down<'a> {
    grid: Grid<'a>,
    tree: Tree,
    sizes: Vec<usize>,
    ranks: Vec<usize>,
    packed: Packed,
    travel: Travel,
    slot: u16,
    /// Offset in scratch of blocks that travel with flags, while they are on their way.
    acc: usize,
    /// At each rank: the blocks of its subtree are there.
    ready: FlagArrayId,
}

/// Emits a scatter down `tree`, whose subtrees are runs of virtual ranks; `ranks` names them, the root first.
pub(super) fn emit(b: &mut Builder, problem: &Problem, tree: Tree, ranks: Vec<usize>, travel: Travel) {
    let grid = problem.grid();
    b.ring();
    let packed = Packed::new(ranks.iter().map(|&r| grid.len(grid.root, r)));
    let sizes = tree.sizes();
    let mut down = Down {
        grid,
        tree,
        sizes,
        ranks,
        packed,
        travel,
        slot: 0,
        acc: 0,
        ready: b.flags("ready", travel.layout, 1),
    };
    let through_box =
        |v: &usize| down.children(*v).any(|c| !down.carried(c)) && (*v == 0 || !travel.from_root);
    let slot_bytes = (0..down.ranks.len()).filter(through_box).map(|v| down.bytes(v) - down.own(v)).max();
    let several = |v: &usize| down.carried(*v) && down.sizes[*v] > 1;
    let acc_bytes = (1..down.ranks.len()).filter(several).map(|v| down.bytes(v)).max();
    down.slot = b.slot(slot_bytes.unwrap_or(0));
    down.acc = b.acc(acc_bytes.unwrap_or(0));
    down.root(b);
    for v in 1..down.ranks.len() {
        down.other(b, v);
    }
}

impl Down<'_> {
    fn bytes(&self, v: usize) -> usize {
        self.packed.bytes(v..v + self.sizes[v])
    }

    fn own(&self, v: usize) -> usize {
        self.packed.bytes(v..v + 1)
    }

    fn carried(&self, v: usize) -> bool {
        self.bytes(v) <= self.travel.layout.payload()
    }

    /// The children of `v` that get anything, the one to tell first in front.
    fn children(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        self.tree.children[v].iter().copied().filter(|&c| self.bytes(c) > 0)
    }

    fn flag(&self, v: usize) -> FlagRef {
        self.ready.at(self.ranks[v], 0)
    }

    /// The blocks of virtual ranks `first .. first + n` in the box of `v`, which holds those below `v`.
    fn in_box(&self, v: usize, first: usize, n: usize) -> Region {
        boxed(self.ranks[v], self.slot, self.packed.span(first..first + n, v + 1))
    }

    fn root(&self, b: &mut Builder) {
        let rank = self.ranks[0];
        for c in self.children(0) {
            let n = self.sizes[c];
            let blocks = (c..c + n).map(|v| input(self.grid.given(rank, self.ranks[v])));
            if !self.carried(c) {
                let places = (c..c + n).map(|v| self.in_box(0, v, 1));
                copy(b, rank, blocks.zip(places).map(|(block, place)| [block, place]));
                b.set(rank, self.flag(c), 1);
                continue;
            }
            let region = whole(blocks.clone()).unwrap_or_else(|| {
                let store = Place::acc(self.acc).at(0..self.bytes(c));
                let places = (c..c + n).map(|v| part(store, self.packed.span(v..v + 1, c)));
                copy(b, rank, blocks.zip(places).map(|(block, place)| [block, place]));
                store
            });
            b.set_carrying(rank, self.flag(c), 1, region);
        }
        keep_own(b, &self.grid, rank);
    }

    fn other(&self, b: &mut Builder, v: usize) {
        if self.bytes(v) == 0 {
            return;
        }
        let (rank, n) = (self.ranks[v], self.sizes[v]);
        let out = output(self.grid.taken(rank, self.ranks[0]));
        // 1. Where the blocks of the subtree are.
        let store = match (self.carried(v), n) {
            (true, 1) => return b.wait_taking(rank, self.flag(v), 1, out),
            (true, _) => {
                let store = Place::acc(self.acc).at(0..self.bytes(v));
                b.wait_taking(rank, self.flag(v), 1, store);
                store
            }
            (false, _) => {
                b.wait(rank, self.flag(v), 1);
                let above = if self.travel.from_root { 0 } else { self.tree.parent[v].unwrap_or(0) };
                self.in_box(above, v, n)
            }
        };
        let of = |c: usize| part(store, self.packed.span(c..c + self.sizes[c], v));
        // 2. On to the children.
        for c in self.children(v) {
            if self.carried(c) {
                b.set_carrying(rank, self.flag(c), 1, of(c));
            } else {
                if !self.travel.from_root {
                    b.mov(rank, of(c), self.in_box(v, c, self.sizes[c]));
                }
                b.set(rank, self.flag(c), 1);
            }
        }
        // 3. The own block.
        b.mov(rank, part(store, self.packed.span(v..v + 1, v)), out);
    }
}
