//! Pipelined k-ary tree: chunks of the message climb a k-ary tree, each through one of a few slots.
//!
//! The reduction that mirrors OC-Bcast's pipeline (Petrovic et al. 2012): a child fills one slot while its parent
//! reads the other.
//!
//! 1. A rank waits until its parent has read what the slot held before: `slots` chunks ago, or in the last run.
//! 2. It folds its children's chunk onto its own, into the slot, and tells them that their slots are free.
//! 3. It tells the parent that the chunk is there.
//!
//! With `k = 1` it is a chain. Any P and root. Only neighbours wait for each other, so runs follow each other in
//! the same memory.

use super::super::pieces::{wait_free, LAYOUT};
use super::super::ranks::chunks;
use super::super::trees::{boxed, Tree};
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::up::in_rank_order;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "pipelined",
    about: "chunks climb a k-ary tree, several under way at once",
    source: "Petrovic et al. 2012, section 4, mirrored",
    params: &[
        ParamSpec { name: "k", default: "2", about: "children of a rank" },
        ParamSpec { name: "chunk", default: "8192", about: "bytes of a chunk" },
        ParamSpec { name: "slots", default: "2", about: "chunks a rank holds for its parent" },
        LAYOUT,
    ],
    candidates,
    emit,
};

/// Bytes of the rings tried, whatever their chunks. One that outgrows the writer's own caches can be faster than one within them, and the
/// longest that stays in them beside a long message than either: of 1 MiB among 2 processes of a Xeon with 2 MiB of L2 a core, 256 KiB
/// took 100 us, 128 KiB 140 and 1 MiB 154.
const RINGS: [usize; 2] = [256 << 10, 1 << 20];

fn candidates(problem: &Problem) -> Vec<Params> {
    let mut out = Vec::new();
    for k in [1, 2, 3, 4].into_iter().filter(|&k| k < problem.ranks()) {
        for chunk in [2048, 8192, 32768].into_iter().filter(|&chunk| chunk < problem.bytes) {
            for slots in [2, 4].into_iter().chain(RINGS.map(|ring| ring / chunk)) {
                out.push(Params::new().with("k", k).with("chunk", chunk).with("slots", slots));
            }
        }
    }
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 2, 1..super::super::MAX_RANKS)?;
    let chunk = params.int("chunk", 8192, 1..usize::MAX)?;
    let depth = params.int("slots", 2, 1..1025)?;
    let layout = params.read("layout", Layout::Alone)?;
    climb(b, s, &in_rank_order(Tree::kary(s.len(), k)), Pipeline { chunk, depth, layout });
    Ok(())
}

/// Settings for the way of chunks up the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    /// Bytes of a chunk.
    pub chunk: usize,
    /// Chunks that a rank holds for its parent.
    pub depth: usize,
    /// Lines of the flags.
    pub layout: Layout,
}

/// Emits the reduction up `tree`, of which each subtree should be a run of virtual ranks.
pub(super) fn climb(b: &mut Builder, s: &Participants, tree: &Tree, how: Pipeline) {
    let Pipeline { chunk, depth, layout } = how;
    if s.len() == 1 {
        b.mov(s.members[0], s.from[0].at(0..s.bytes), s.to.at(0..s.bytes));
        return;
    }
    let chunks = chunks(0..s.bytes, chunk, b.grain());
    let Some(first) = chunks.first() else { return };
    let ready = b.flags("ready", layout, tree.degree());
    let done = b.flags("done", layout, 1);
    let slots: Vec<u16> = (0..depth.min(chunks.len())).map(|_| b.slot(first.len())).collect();
    for v in 0..s.len() {
        let rank = s.rank_of_virtual(v);
        let from = s.from[s.index_of_virtual(v)];
        for (i, range) in chunks.iter().enumerate() {
            let slot = slots[i % slots.len()];
            let dst = match tree.parent[v] {
                None => s.to.at(range.clone()),
                Some(_) => {
                    wait_free(b, rank, i, (slots.len(), chunks.len()), |_| done.at(rank, 0));
                    boxed(rank, slot, 0..range.len())
                }
            };
            let mut so_far = from.at(range.clone());
            for (position, &child) in tree.children[v].iter().enumerate() {
                let child = s.rank_of_virtual(child);
                b.wait(rank, ready.at(rank, position), i as i32 + 1);
                b.fold(rank, so_far, boxed(child, slot, 0..range.len()), dst);
                b.set(rank, done.at(child, 0), i as i32 + 1);
                so_far = dst;
            }
            if let Some(parent) = tree.parent[v] {
                b.mov(rank, so_far, dst);
                b.set(rank, ready.at(s.rank_of_virtual(parent), tree.position(v)), i as i32 + 1);
            }
        }
    }
}
