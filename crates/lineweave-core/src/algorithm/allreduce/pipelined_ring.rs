//! A ring through few slots: blocks travel round the ring and are gathered, round by round, a block in a slot.
//!
//! As `ring`, but a box holds two travelling blocks and a finished one, not the window: on machines with small message
//! buffers blocks are then long and their overheads small. The ring can follow the tiles of a mesh (`columns`,
//! `cores`), so that each step goes to a neighbour. On the Intel SCC a line costs a core 0.490 us to fold on its way and
//! 0.607 us to fetch, where no allreduce does with less than 0.961 us (`simulate/mesh/bound.rs`).
//!
//! The message is cut into rounds of P blocks. In each, with i the place of a rank on the ring:
//!
//! 1. It puts its contribution to block i into a travelling slot and tells the right neighbour.
//! 2. P - 1 times: it waits for the left neighbour's block, folds its own contribution onto it into a slot of its own,
//!    once the right neighbour has read what was there, and tells both. The last one is finished, in a slot of its own.
//! 3. It tells everybody that the block is finished, and gets every block where it is finished.
//!
//! A finished block needs no acknowledgement: the block of the next round gets there after everybody has folded its
//! contribution onto it, which each does after having got all of this round. So runs follow each other in the same
//! memory. Any P; blocks are empty where elements are fewer than ranks.

use super::super::pieces::{value, wait_free, LAYOUT};
use super::super::ranks::{around, block, chunks};
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem, MAX_RANKS};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "pipelined-ring",
    about: "a ring whose blocks travel through a few slots, round by round",
    source: "here; Patarasu & Yuan 2009 for message buffers as small as those of Petrovic et al. 2012",
    params: &[
        ParamSpec { name: "chunk", default: "2048", about: "bytes of a block at most" },
        ParamSpec { name: "slots", default: "2", about: "travelling blocks in a box, at least 2" },
        ParamSpec {
            name: "columns",
            default: "0",
            about: "tiles of a row of the mesh that the ring follows; 0: the order of ranks",
        },
        ParamSpec { name: "cores", default: "1", about: "cores of a tile" },
        LAYOUT,
    ],
    // `ring` and `slices` are for boxes that hold a window.
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let chunk = params.int("chunk", 2048, 1..usize::MAX)?;
    // With one, everybody would wait for the right neighbour to read before it reads itself.
    let slots = params.int("slots", 2, 2..1025)?;
    let columns = params.int("columns", 0, 0..MAX_RANKS + 1)?;
    let cores = params.int("cores", 1, 1..MAX_RANKS + 1)?;
    let layout = params.read("layout", Layout::Alone)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let (p, grain) = (s.len(), b.grain());
    let whole = (chunk / grain).max(1) * grain;
    let rounds = chunks(0..s.bytes, whole.saturating_mul(p), grain);
    let longest = rounds[0].len().div_ceil(grain).div_ceil(p) * grain;
    let ring = Ring { p, grain, rounds: &rounds };
    // Blocks that each rank sends in a run, and the slots that they take turns in.
    let sends = rounds.len() * (p - 1);
    let times = (slots.min(sends), sends);
    let order = around(p, columns, cores);
    // Set by the left neighbour: so many blocks have been sent. Set by the right one: so many have been read.
    let sent = b.flags("sent", layout, 1);
    let read = b.flags("read", layout, 1);
    let finished = b.flags("finished", layout, 1);
    let travelling: Vec<u16> = (0..times.0).map(|_| b.slot(longest)).collect();
    let done = b.slot(longest);
    let at = |i: usize| s.members[order[i % p]];
    for (i, &member) in order.iter().enumerate() {
        let (rank, left, right) = (at(i), at(i + p - 1), at(i + 1));
        let from = s.from[member];
        let slot = |of: usize, send: usize, len: usize| -> Region {
            boxed(of, travelling[send % travelling.len()], 0..len)
        };
        for r in 0..rounds.len() {
            // 1.
            let first = r * (p - 1);
            let range = ring.block(r, i);
            wait_free(b, rank, first, times, |_| read.at(rank, 0));
            b.mov(rank, from.at(range.clone()), slot(rank, first, range.len()));
            b.set(rank, sent.at(right, 0), value(first));
            // 2.
            for n in 1..p {
                let range = ring.block(r, i + p - n);
                let (came, goes) = (first + n - 1, first + n);
                b.wait(rank, sent.at(rank, 0), value(came));
                let last = n + 1 == p;
                if !last {
                    wait_free(b, rank, goes, times, |_| read.at(rank, 0));
                }
                let dst = match last {
                    true => boxed(rank, done, 0..range.len()),
                    false => slot(rank, goes, range.len()),
                };
                b.fold(rank, slot(left, came, range.len()), from.at(range.clone()), dst);
                if !last {
                    b.set(rank, sent.at(right, 0), value(goes));
                }
                b.set(rank, read.at(left, 0), value(came));
            }
            // 3.
            b.set(rank, finished.at(rank, 0), value(r));
            for d in 0..p {
                let owner = i + p - d;
                let range = ring.block(r, owner + 1);
                if d > 0 {
                    b.wait(rank, finished.at(at(owner), 0), value(r));
                }
                b.mov(rank, boxed(at(owner), done, 0..range.len()), s.to.at(range));
            }
        }
    }
    Ok(())
}

struct Ring<'a> {
    p: usize,
    grain: usize,
    rounds: &'a [Range<usize>],
}

impl Ring<'_> {
    /// Block `j` (modulo P) of a round within the message.
    fn block(&self, round: usize, j: usize) -> Range<usize> {
        let round = &self.rounds[round];
        let within = block(round.len(), self.grain, self.p, j % self.p);
        round.start + within.start..round.start + within.end
    }
}
