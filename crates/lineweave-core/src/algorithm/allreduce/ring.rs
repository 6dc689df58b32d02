//! Ring reduce-scatter and allgather: each block travels once round the ring, gathering contributions.
//!
//! Thakur, Rabenseifner & Gropp 2005 and Patarasu & Yuan 2009: 2 (P - 1) / P of the message per rank, whatever P. In shared
//! memory the sum of a block is folded from the left neighbour's box straight into the own one: nothing is copied
//! but the first block. The allgather follows the ring (`gather=ring`) or reads each block where it was finished
//! (`gather=pull`), which saves the copies on the way. Any P; blocks are empty where elements are fewer than ranks.

use super::super::pieces::LAYOUT;
use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "ring",
    about: "blocks travel round a ring to be folded, then to be gathered",
    source: "Thakur, Rabenseifner & Gropp 2005; Patarasu & Yuan 2009",
    params: &[
        ParamSpec {
            name: "gather",
            default: "pull",
            about: "pull: read each block at its owner; ring: from the neighbour",
        },
        LAYOUT,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes < problem.ranks() * problem.grain {
        return Vec::new();
    }
    ["pull", "ring"].into_iter().map(|gather| Params::new().with("gather", gather)).collect()
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let pull = params.one_of("gather", true, &[("pull", true), ("ring", false)])?;
    if super::trivial(b, s) {
        return Ok(());
    }
    b.ring();
    let (p, grain) = (s.len(), b.grain());
    let range = |j: usize| block(s.bytes, grain, p, j % p);
    let slot = b.slot(s.bytes);
    // Blocks passed on while gathering.
    let passed = b.slot(if pull { 0 } else { s.bytes });
    // Set by the left neighbour: the block of step n is in its box.
    let step = b.flags("step", layout, 1);
    // Set by each rank: its block is finished in its box.
    let finished = if pull { Some(b.flags("finished", layout, 1)) } else { None };
    for i in 0..p {
        let rank = s.members[i];
        let mine = |j: usize| boxed(rank, slot, range(j));
        // 1. and 2. Sums go round; the last is finished.
        let ring = Around { members: &s.members, i, ahead: 0, step };
        ring.emit(b, |j| s.from[i].at(range(j)), |of, j| boxed(of, slot, range(j)), None);
        if !pull {
            b.set(rank, step.at(s.members[(i + 1) % p], 0), p as i32);
        }
        // 3. Every block from its owner, or step by step from the neighbour. Block j is finished at j - 1.
        let own = (i + 1) % p;
        if let Some(finished) = finished {
            b.set(rank, finished.at(rank, 0), 1);
            b.mov(rank, mine(own), s.to.at(range(own)));
            for d in 1..p {
                let owner = (i + p - d) % p;
                let from = s.members[owner];
                b.wait(rank, finished.at(from, 0), 1);
                b.mov(rank, boxed(from, slot, range(owner + 1)), s.to.at(range(owner + 1)));
            }
        } else {
            b.mov(rank, mine(own), s.to.at(range(own)));
            along_the_ring(b, s, i, [slot, passed], step);
        }
    }
    Ok(())
}

/// One member's part of the sums that go round: the first half of a ring allreduce, or a reduce-scatter.
pub(crate) struct Around<'a> {
    /// The ranks round the ring.
    pub members: &'a [usize],
    /// Index of this member in `members`.
    pub i: usize,
    /// It sends block `i - ahead` first, and finishes the one after that.
    pub ahead: usize,
    /// Set by the left neighbour: the block of step n is in its box.
    pub step: FlagArrayId,
}

impl Around<'_> {
    /// `from` is where the own contribution to a block lies, `boxed` where a rank's box holds it; the last block is
    /// finished there, or at `last`.
    pub fn emit(
        &self,
        b: &mut Builder,
        from: impl Fn(usize) -> Region,
        boxed: impl Fn(usize, usize) -> Region,
        last: Option<Region>,
    ) {
        let p = self.members.len();
        let (rank, right) = (self.members[self.i], self.members[(self.i + 1) % p]);
        let left = self.members[(self.i + p - 1) % p];
        let block = |n: usize| (self.i + 2 * p - self.ahead - n) % p;
        // 1. Step 0: the own contribution to the first block sets out.
        b.mov(rank, from(block(0)), boxed(rank, block(0)));
        b.set(rank, self.step.at(right, 0), 1);
        // 2. Step n: the next block arrives with n contributions and leaves with one more.
        for n in 1..p {
            let j = block(n);
            let dst = last.filter(|_| n + 1 == p).unwrap_or_else(|| boxed(rank, j));
            b.wait(rank, self.step.at(rank, 0), n as i32);
            b.fold(rank, boxed(left, j), from(j), dst);
            if n + 1 < p {
                b.set(rank, self.step.at(right, 0), n as i32 + 1);
            }
        }
    }
}

/// Blocks finished elsewhere come through the left neighbour's box and go on through a second slot of the own.
fn along_the_ring(b: &mut Builder, s: &Participants, i: usize, slots: [u16; 2], step: FlagArrayId) {
    let (p, grain) = (s.len(), b.grain());
    let (rank, left, right) = (s.members[i], s.members[(i + p - 1) % p], s.members[(i + 1) % p]);
    // The first step reads what the neighbour finished in its first slot, the others what it passed on in its second.
    let [finished, passed] = slots;
    for n in 1..p {
        let j = (i + p + 1 - n) % p;
        let range = block(s.bytes, grain, p, j);
        b.wait(rank, step.at(rank, 0), (p + n - 1) as i32);
        let source = boxed(left, if n == 1 { finished } else { passed }, range.clone());
        b.mov(rank, source, s.to.at(range.clone()));
        if n + 1 < p {
            b.mov(rank, s.to.at(range.clone()), boxed(rank, passed, range));
            b.set(rank, step.at(right, 0), (p + n) as i32);
        }
    }
}
