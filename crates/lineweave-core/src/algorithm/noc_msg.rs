//! Rows and columns of tiles, and messages from tile to neighbouring tile: what NoC_Msg's collectives share.
//!
//! Patil 2014, sections 4.1, 4.2, 5.2 and 5.3. Participants lie on tiles of `cores` cores, tile by tile, row by row. In
//! each tile the core that has the root's place in its own tile leads. Down, the root's row learns first, then
//! each column from there, then the other cores of each tile; up, the same backwards. Messages go between
//! neighbouring tiles only, and each link in each direction carries those of one pair of cores.
//!
//! Any P: where the last row is shorter and the root is in it, columns that it lacks learn from the row above. Where the
//! last tile lacks the place of the root, its last core leads.
//!
//! 1. A rank puts a chunk into its own box, once those who read what was there before have said so.
//! 2. It raises a flag at each that reads it.
//! 3. Who waits for that gets the chunk into private memory, and raises a flag of the giver.

pub(super) use super::pieces::LAYOUT;
use super::pieces::{value, wait_free};
use super::ranks::chunks;
use super::trees::{boxed, Tree};
use super::{ParamSpec, Participants, Place};
use crate::plan::{Builder, FlagArrayId, FlagRef, Layout, Params, PlanError, Region};
use std::ops::Range;

/// Payload of RCCE's message buffer with flags of a byte: 251 lines of 32 bytes. (Patil 2014, chapter 5, has 8092
/// bytes, which are no whole lines.)
const PAYLOAD: usize = 251 * 32;

/// Tiles of a row.
pub(super) const COLUMNS: ParamSpec = ParamSpec {
    name: "columns",
    default: "0",
    about: "tiles of a row; 0: as near to the square root as it gets",
};
/// Cores of a tile.
pub(super) const CORES: ParamSpec = ParamSpec { name: "cores", default: "2", about: "cores of a tile" };
/// The core that all report to, where the collective has no root.
pub(super) const ROOT: ParamSpec =
    ParamSpec { name: "root", default: "0", about: "rank where the ways up meet and those down begin" };
/// Bytes of a chunk.
pub(super) const CHUNK: ParamSpec = ParamSpec {
    name: "chunk",
    default: "8032",
    about: "bytes of a pipelined chunk (flit); 0: the message is one",
};
/// Slots of a box.
pub(super) const SLOTS: ParamSpec =
    ParamSpec { name: "slots", default: "1", about: "chunks that a box holds at once" };

/// Participants on a mesh of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tiles {
    members: usize,
    columns: usize,
    cores: usize,
}

impl Tiles {
    /// As `params` says, for so many members.
    pub fn read(params: &Params, members: usize) -> Result<Tiles, PlanError> {
        let cores = params.int("cores", 2, 1..super::MAX_RANKS + 1)?;
        let tiles = members.div_ceil(cores);
        let columns = match params.int("columns", 0, 0..super::MAX_RANKS + 1)? {
            0 => (1..=tiles).find(|c| c * c >= tiles).unwrap_or(1),
            columns => columns,
        };
        Ok(Tiles { members, columns, cores })
    }

    /// The number of tiles with a member.
    fn tiles(self) -> usize {
        self.members.div_ceil(self.cores)
    }

    /// Column and row of the tile of a member.
    pub fn place(self, member: usize) -> (usize, usize) {
        let tile = member / self.cores;
        (tile % self.columns, tile / self.columns)
    }

    /// The place of a member within its tile.
    pub fn core(self, member: usize) -> usize {
        member % self.cores
    }

    /// The members of the tile in this column and row, none where there is no such tile.
    pub fn at(self, column: usize, row: usize) -> Range<usize> {
        let start = self.members.min((row * self.columns + column) * self.cores);
        start..if column < self.columns { self.members.min(start + self.cores) } else { start }
    }

    /// Columns, and rows with a member.
    pub fn size(self) -> (usize, usize) {
        (self.columns, self.tiles().div_ceil(self.columns))
    }

    /// The core of a tile that deals with other tiles.
    fn lead(self, tile: usize, root: usize) -> usize {
        (tile * self.cores + root % self.cores).min(self.members - 1)
    }

    /// From whom `member` learns, and in which order among its siblings: along the row first, then the column, then
    /// the tile.
    fn parent(self, member: usize, root: usize) -> Option<(usize, usize)> {
        let tile = member / self.cores;
        let lead = self.lead(tile, root);
        if member == root {
            return None;
        }
        if member != lead {
            return Some((lead, 4));
        }
        let ((x, y), (root_x, root_y)) = (self.place(member), self.place(root));
        let below = tile + self.columns;
        let (from, order) = if y > root_y {
            (tile - self.columns, 3)
        } else if y < root_y && below < self.tiles() {
            (below, 2)
        } else if x < root_x {
            (tile + 1, 0)
        } else {
            (tile - 1, 1)
        };
        Some((self.lead(from, root), order))
    }

    /// The tree from `root`, and the member that each of its virtual ranks is.
    pub fn tree(self, root: usize) -> (Tree, Vec<usize>) {
        let mut below: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.members];
        for member in 0..self.members {
            if let Some((parent, order)) = self.parent(member, root) {
                below[parent].push((order, member));
            }
        }
        let sorted = |mut children: Vec<(usize, usize)>| {
            children.sort_unstable();
            children.into_iter().map(|(_, child)| child).collect()
        };
        let below: Vec<Vec<usize>> = below.into_iter().map(sorted).collect();
        Tree::breadth_first(root, &below)
    }
}

/// A message's chunks on their way along the tree, through one box a rank.
pub(super) struct Stream {
    tree: Tree,
    /// Members in the tree's order.
    s: Participants,
    parts: Vec<Range<usize>>,
    slots: Vec<u16>,
    layout: Layout,
}

impl Stream {
    /// Slots for the chunks of a message of at least one byte.
    pub fn new(b: &mut Builder, s: &Participants, params: &Params) -> Result<Stream, PlanError> {
        let chunk = match params.int("chunk", PAYLOAD, 0..usize::MAX)? {
            0 => s.bytes,
            chunk => chunk,
        };
        let slots = params.int("slots", 1, 1..1025)?;
        let layout = params.read("layout", Layout::Alone)?;
        let (tree, order) = Tiles::read(params, s.len())?.tree(s.root);
        let parts = chunks(0..s.bytes, chunk, b.grain());
        let longest = parts.iter().map(Range::len).max().unwrap_or(0);
        let slots = (0..slots.min(parts.len())).map(|_| b.slot(longest)).collect();
        Ok(Stream { tree, s: s.in_order(&order), parts, slots, layout })
    }

    fn slot(&self, v: usize, i: usize) -> Region {
        boxed(self.s.members[v], self.slots[i % self.slots.len()], 0..self.parts[i].len())
    }

    /// 1. Waits until what slot `i` held before has been read: in this run, or, if `previous`, in the one before.
    fn wait_free(&self, b: &mut Builder, rank: usize, flag: FlagRef, i: usize, previous: bool) {
        if previous || i >= self.slots.len() {
            wait_free(b, rank, i, (self.slots.len(), self.parts.len()), |_| flag);
        }
    }

    /// Partial results up to the root. Returns the flags that say that a chunk has been read. `alone`: nothing follows
    /// in this run that would keep runs apart.
    pub fn up(&self, b: &mut Builder, alone: bool) -> FlagArrayId {
        let partial = b.flags("partial", self.layout, self.tree.degree());
        let read = b.flags("read", self.layout, 1);
        let longest = self.parts.iter().map(Range::len).max().unwrap_or(0);
        let scratch = b.acc(2 * longest);
        let (received, sums) = (Place::acc(scratch), Place::acc(scratch + longest));
        for (v, &rank) in self.s.members.iter().enumerate() {
            for (i, part) in self.parts.iter().enumerate() {
                let whole = 0..part.len();
                let sum = if v == 0 { self.s.to.at(part.clone()) } else { sums.at(whole.clone()) };
                let mut so_far = self.s.from[v].at(part.clone());
                // The tile first, the row last.
                for (position, &child) in self.tree.children[v].iter().enumerate().rev() {
                    let got = received.at(whole.clone());
                    b.wait(rank, partial.at(rank, position), value(i));
                    b.mov(rank, self.slot(child, i), got); // 3.
                    b.set(rank, read.at(self.s.members[child], 0), value(i));
                    b.fold(rank, so_far, got, sum);
                    so_far = sum;
                }
                let Some(parent) = self.tree.parent[v] else { continue };
                self.wait_free(b, rank, read.at(rank, 0), i, alone); // 1.
                b.mov(rank, so_far, self.slot(v, i));
                b.set(rank, partial.at(self.s.members[parent], self.tree.position(v)), value(i));
                // 2.
            }
        }
        read
    }

    /// The root's bytes, which lie at `root`, down to everybody. `after`: the flags of [`Stream::up`] before it.
    pub fn down(&self, b: &mut Builder, root: Place, after: Option<FlagArrayId>) {
        let ready = b.flags("ready", self.layout, 1);
        let done = b.flags("done", self.layout, self.tree.degree());
        for (v, &rank) in self.s.members.iter().enumerate() {
            let children = &self.tree.children[v];
            if let (Some(read), Some(_), false) = (after, self.tree.parent[v], children.is_empty()) {
                b.wait(rank, read.at(rank, 0), value(self.parts.len() - 1));
            }
            for (i, part) in self.parts.iter().enumerate() {
                let here = if v == 0 { root } else { self.s.to }.at(part.clone());
                if let Some(parent) = self.tree.parent[v] {
                    b.wait(rank, ready.at(rank, 0), value(i));
                    b.mov(rank, self.slot(parent, i), here); // 3.
                    b.set(rank, done.at(self.s.members[parent], self.tree.position(v)), value(i));
                }
                for position in 0..children.len() {
                    self.wait_free(b, rank, done.at(rank, position), i, after.is_none());
                    // 1.
                }
                if !children.is_empty() {
                    b.mov(rank, here, self.slot(v, i));
                }
                for &child in children {
                    b.set(rank, ready.at(self.s.members[child], 0), value(i)); // 2.
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_edge_is_a_link_of_its_own_or_within_a_tile() {
        for members in 1..60 {
            for (columns, cores) in [(0, 2), (6, 2), (3, 1), (1, 3), (5, 4)] {
                let params = Params::new().with("columns", columns).with("cores", cores);
                let tiles = Tiles::read(&params, members).unwrap();
                for root in 0..members {
                    let (tree, order) = tiles.tree(root);
                    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), members);
                    assert_eq!(order[0], root);
                    let mut links = BTreeSet::new();
                    for v in 1..members {
                        let (from, to) = (order[tree.parent[v].unwrap()], order[v]);
                        let ((a, b), (c, d)) = (tiles.place(from), tiles.place(to));
                        let hops = a.abs_diff(c) + b.abs_diff(d);
                        assert!(hops <= 1, "{members} {columns} {root}: {from} to {to}");
                        assert!(hops == 0 || links.insert((a, b, c, d)));
                    }
                }
            }
        }
    }

    /// Figure 4.1: the row of the root first, then the columns, then the tiles.
    #[test]
    fn the_scc_s_tree_is_that_of_figure_4_1() {
        let tiles = Tiles::read(&Params::new().with("columns", 6), 48).unwrap();
        let (tree, order) = tiles.tree(16);
        let children = |rank: usize| -> Vec<usize> {
            let v = order.iter().position(|&m| m == rank).unwrap();
            tree.children[v].iter().map(|&c| order[c]).collect()
        };
        assert_eq!(children(16), [14, 18, 4, 28, 17]);
        assert_eq!(children(14), [12, 2, 26, 15]);
        assert_eq!(children(28), [40, 29]);
        assert_eq!(children(46), [47]);
    }
}
