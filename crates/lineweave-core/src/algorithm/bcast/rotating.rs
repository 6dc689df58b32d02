//! Rotating relays: blocks of k + 1 ranks, whose members take turns in fetching a chunk for their block.
//!
//! In OC-Bcast (Petrovic et al. 2012, section 4) few ranks of the tree are interior, and they do twice the work: on
//! the Intel SCC a line costs them 0.879 us and a leaf 0.607 us, so all go at the pace of those few. Here the ranks
//! but the root are cut into blocks of at most k + 1, alike within one. Chunk `i` comes from the root's box into
//! that of each block's member `i` modulo the block's size, from where the others copy it: everybody is interior
//! once in k + 1 chunks, a line costs 0.607 us and 0.272 / (k + 1) us, and the pace is that of the mean. For that
//! a relay fetches its chunk `ahead` chunks before it is due, when the others still copy earlier ones.
//!
//! Flags count chunks. `ready` of a rank has a flag for each turn: in its own the root raises it, in others'
//! the relay or, with binary notification, a sibling. `done` of a rank has one a member of its block, who has
//! copied out of its box, and its own, which the root looks at: the root's box has been copied. Any P and root.

use super::super::pieces::{value, wait_free};
use super::super::ranks::{block, chunks};
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::settings::{self, chunk_grid, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, FlagArrayId, FlagRef, Layout, Params, PlanError, Region};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "rotating",
    about: "blocks of k+1 ranks that take turns in fetching a chunk for the others",
    source: "here; what Petrovic et al. 2012, section 4 leaves to be gained",
    params: &[
        ParamSpec { name: "k", default: "7", about: "ranks that copy a chunk from one that has fetched it" },
        settings::LAYOUT,
        settings::NOTIFY,
        ParamSpec { default: "3072", ..settings::CHUNK },
        ParamSpec { default: "2", about: "chunk slots in a box", ..settings::SLOTS },
        ParamSpec { name: "ahead", default: "1", about: "chunks that a relay fetches its own ahead of time" },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    // Without a second chunk for each member there are no turns; within one block a flat tree is as good.
    let p = problem.ranks();
    if p < 6 || problem.bytes < 64 << 10 {
        return Vec::new();
    }
    let ks: Vec<usize> = [3, 7].into_iter().filter(|&k| 2 * (k + 1) < p).collect();
    let mut out = Vec::new();
    for chunk in chunk_grid(problem.bytes).into_iter().take(2) {
        out.extend(ks.iter().map(|k| Params::new().with("k", k).with("chunk", chunk)));
    }
    out
}

/// State that the ranks of all blocks share.
struct Rotation {
    ready: FlagArrayId,
    done: FlagArrayId,
    notify: Notify,
    slots: Vec<u16>,
    parts: Vec<Range<usize>>,
    /// Members of the largest block.
    turns: usize,
    root: usize,
}

/// Ranks that take turns, in their order.
struct Block<'a> {
    all: &'a Rotation,
    ranks: &'a [usize],
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 7, 1..129)?;
    let layout = params.read("layout", Layout::Alone)?;
    let notify = Notify::read(params, Notify::Each)?;
    let chunk = params.int("chunk", 96 * 32, 1..usize::MAX)?;
    let slots = params.int("slots", 2, 1..1025)?;
    let ahead = params.int("ahead", 1, 0..1025)?;
    let others = s.len().saturating_sub(1);
    if s.bytes == 0 || others == 0 {
        return Ok(());
    }
    let ranks = s.virtual_ranks();
    let count = others.div_ceil(k + 1);
    let parts = chunks(0..s.bytes, chunk, b.grain());
    let longest = parts.iter().map(Range::len).max().unwrap_or(0);
    let turns = others.div_ceil(count);
    // With shared notification the last flag is the one that a relay's siblings poll.
    let ready = b.flags("ready", layout, turns + usize::from(notify == Notify::Shared && turns > 1));
    let done = b.flags("done", layout, turns);
    let slots = (0..slots.min(parts.len())).map(|_| b.slot(longest)).collect();
    let all = Rotation { ready, done, notify, slots, parts, turns, root: ranks[0] };
    let blocks: Vec<Block> = (0..count)
        .map(|j| block(others, 1, count, j))
        .map(|members| Block { all: &all, ranks: &ranks[members.start + 1..members.end + 1] })
        .collect();
    for i in 0..all.parts.len() {
        for block in &blocks {
            block.fetched(b, i);
        }
        b.mov(all.root, s.from[s.root].at(all.parts[i].clone()), all.at_root(i));
        for block in &blocks {
            let turn = block.turn(i);
            b.set(all.root, ready.at(block.ranks[turn], turn), value(i));
        }
    }
    for block in &blocks {
        // A relay's own slot must not be filled again before it has copied it out itself.
        let ahead = ahead.min(block.ranks.len() * all.slots.len() - 1);
        for m in 0..block.ranks.len() {
            for i in 0..all.parts.len() + ahead {
                if i < all.parts.len() && block.turn(i) == m {
                    block.fetch(b, i);
                }
                if let Some(i) = i.checked_sub(ahead) {
                    block.deliver(b, m, i, s.to.at(all.parts[i].clone()));
                }
            }
        }
    }
    Ok(())
}

impl Rotation {
    fn at_root(&self, i: usize) -> Region {
        boxed(self.root, self.slots[i % self.slots.len()], 0..self.parts[i].len())
    }
}

impl Block<'_> {
    /// Returns the index of the member that fetches chunk `i`.
    fn turn(&self, i: usize) -> usize {
        i % self.ranks.len()
    }

    /// Returns the place of chunk `i` in the box of the member that fetches it.
    fn place(&self, i: usize) -> Region {
        let slot = self.all.slots[i / self.ranks.len() % self.all.slots.len()];
        boxed(self.ranks[self.turn(i)], slot, 0..self.all.parts[i].len())
    }

    /// The other members in the order in which they hear of chunk `i`: from the relay onwards, cyclically.
    fn siblings(&self, i: usize) -> Vec<usize> {
        (1..self.ranks.len()).map(|d| (self.turn(i) + d) % self.ranks.len()).collect()
    }

    /// The root waits until the block has fetched what chunk `i` is to overwrite.
    fn fetched(&self, b: &mut Builder, i: usize) {
        let times = (self.all.slots.len(), self.all.parts.len());
        wait_free(b, self.all.root, i, times, |before| {
            let turn = self.turn(before);
            self.all.done.at(self.ranks[turn], turn)
        });
    }

    /// The flag by which member `m` learns that the relay of chunk `i` has it.
    fn told(&self, m: usize, i: usize) -> FlagRef {
        let turn = self.turn(i);
        match self.all.notify {
            Notify::Shared => self.all.ready.at(self.ranks[turn], self.all.turns),
            Notify::Each | Notify::Binary => self.all.ready.at(self.ranks[m], turn),
        }
    }

    /// The relay of chunk `i` fetches it and tells its siblings.
    fn fetch(&self, b: &mut Builder, i: usize) {
        let turn = self.turn(i);
        let rank = self.ranks[turn];
        b.wait(rank, self.all.ready.at(rank, turn), value(i));
        let siblings = self.siblings(i);
        for &m in &siblings {
            let times = (self.ranks.len() * self.all.slots.len(), self.all.parts.len());
            wait_free(b, rank, i, times, |_| self.all.done.at(rank, m));
        }
        b.mov(rank, self.all.at_root(i), self.place(i));
        b.set(rank, self.all.done.at(rank, turn), value(i));
        let hear_of_it = match self.all.notify {
            Notify::Each => siblings.len(),
            Notify::Shared => siblings.len().min(1),
            Notify::Binary => siblings.len().min(2),
        };
        for &m in &siblings[..hear_of_it] {
            b.set(rank, self.told(m, i), value(i));
        }
    }

    /// Member `m` copies chunk `i` to where it goes.
    fn deliver(&self, b: &mut Builder, m: usize, i: usize, to: Region) {
        let (turn, rank) = (self.turn(i), self.ranks[m]);
        if turn == m {
            b.mov(rank, self.place(i), to);
            return;
        }
        b.wait(rank, self.told(m, i), value(i));
        if self.all.notify == Notify::Binary {
            let siblings = self.siblings(i);
            let q = (m + self.ranks.len() - turn) % self.ranks.len();
            for &next in (2 * q..2 * q + 2).filter_map(|j| siblings.get(j)) {
                b.set(rank, self.told(next, i), value(i));
            }
        }
        b.mov(rank, self.place(i), to);
        b.set(rank, self.all.done.at(self.ranks[turn], m), value(i));
    }
}
