//! Rabenseifner: recursive halving scatters the sums, recursive doubling gathers them.
//!
//! Rabenseifner 2004; Thakur, Rabenseifner & Gropp 2005. In round `i` players that differ in bit `i` share out the part
//! of the message they both hold: each gives the half that the other keeps. Neighbours meet first, when there is
//! most to give, and contributions stay in rank order. In shared memory a part that
//! will be given is folded straight into the box, one that is kept straight into `out`, and each byte of the box is
//! written once. In the gathering half a player learns from its partner that blocks are finished and reads
//! them where they are. Any P: surplus ranks join their neighbours. The lower rank's value is the left operand.

use super::super::pieces::LAYOUT;
use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use super::core_ranks::{Core, Role};
use crate::collective::Collective;
use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "rabenseifner",
    about: "recursive halving scatters sums, recursive doubling gathers them",
    source: "Rabenseifner 2004",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes < problem.ranks() * problem.grain {
        return Vec::new();
    }
    [Layout::Paired, Layout::Alone].into_iter().map(|l| Params::new().with("layout", l)).collect()
}

/// Participants, core, grain, slot and flag arrays that the steps of the emission share.
struct Game<'a> {
    s: &'a Participants,
    core: Core,
    grain: usize,
    slot: u16,
    /// Round `n` of the halving: flag `n` at the partner's home.
    halving: FlagArrayId,
    /// Round `n` of the doubling.
    doubling: FlagArrayId,
    /// 0: the guest's contribution is in its box. 1, at the guest's home: all is finished.
    guest: FlagArrayId,
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    b.ring();
    let core = Core::of(s.len());
    let game = Game {
        s,
        core,
        grain: b.grain(),
        slot: b.slot(s.bytes),
        halving: b.flags("halving", layout, core.rounds),
        doubling: b.flags("doubling", layout, core.rounds),
        guest: b.flags("guest", layout, 2),
    };
    for i in 0..s.len() {
        match core.role(i) {
            Role::Guest => game.guest(b, i),
            Role::Player { core, host } => game.player(b, i, core, host),
        }
    }
    Ok(())
}

impl Game<'_> {
    /// The player that finishes a block: halving by the lowest bit first reverses the bits.
    fn owner(&self, block: usize) -> usize {
        (0..self.core.rounds).fold(0, |owner, i| owner << 1 | (block >> i & 1))
    }

    /// The bytes of the blocks `blocks`.
    fn bytes(&self, blocks: Range<usize>) -> Range<usize> {
        let at = |i: usize| block(self.s.bytes, self.grain, self.core.players(), i);
        at(blocks.start).start..at(blocks.end - 1).end
    }

    fn rank(&self, player: usize) -> usize {
        self.s.members[self.core.member(player)]
    }

    fn guest(&self, b: &mut Builder, i: usize) {
        let s = self.s;
        let (rank, host) = (s.members[i], s.members[i - 1]);
        b.mov(rank, s.from[i].at(0..s.bytes), boxed(rank, self.slot, 0..s.bytes));
        b.set(rank, self.guest.at(host, 0), 1);
        b.wait(rank, self.guest.at(rank, 1), 1);
        for block in 0..self.core.players() {
            self.fetch(b, rank, block);
        }
    }

    /// Rank `rank` copies a finished block from its owner's box.
    fn fetch(&self, b: &mut Builder, rank: usize, block: usize) {
        let range = self.bytes(block..block + 1);
        b.mov(rank, boxed(self.rank(self.owner(block)), self.slot, range.clone()), self.s.to.at(range));
    }

    fn player(&self, b: &mut Builder, i: usize, number: usize, host: bool) {
        let s = self.s;
        let rank = s.members[i];
        let rounds = self.core.rounds;
        // 0. Round 0's halves: what is given goes into the box, with the guest's contribution where there is one.
        let (mut keep, give) = halves(0..self.core.players(), number & 1 == 0);
        let mut so_far = s.from[i];
        let (given, kept) = (self.bytes(give), self.bytes(keep.clone()));
        if host {
            let guest = s.members[i + 1];
            b.wait(rank, self.guest.at(rank, 0), 1);
            for (range, dst) in
                [(given.clone(), boxed(rank, self.slot, given)), (kept.clone(), s.to.at(kept))]
            {
                b.fold(rank, so_far.at(range.clone()), boxed(guest, self.slot, range), dst);
            }
            so_far = s.to;
        } else {
            b.mov(rank, so_far.at(given.clone()), boxed(rank, self.slot, given));
        }
        // 1. Halving: fold what the partner gives; what will be given next goes straight into the box.
        for round in 0..rounds {
            let bit = 1 << round;
            let partner = self.rank(number ^ bit);
            b.set(rank, self.halving.at(partner, round), 1);
            b.wait(rank, self.halving.at(rank, round), 1);
            let mut parts = Vec::with_capacity(2);
            if round + 1 == rounds {
                parts.push((self.bytes(keep.clone()), true));
            } else {
                let (kept, given) = halves(keep, number & bit << 1 == 0);
                parts.push((self.bytes(given), true));
                parts.push((self.bytes(kept.clone()), false));
                keep = kept;
            }
            for (range, into_box) in parts {
                let mine = so_far.at(range.clone());
                let theirs = boxed(partner, self.slot, range.clone());
                let dst = if into_box { boxed(rank, self.slot, range) } else { s.to.at(range) };
                if number & bit == 0 {
                    b.fold(rank, mine, theirs, dst);
                } else {
                    b.fold(rank, theirs, mine, dst);
                }
            }
            so_far = s.to;
        }
        // 2. Doubling: the partner vouches for as many blocks as this rank has by now.
        for round in (0..rounds).rev() {
            b.set(rank, self.doubling.at(self.rank(number ^ 1 << round), round), 1);
            if keep.len() == 1 {
                self.fetch(b, rank, keep.start);
            }
            b.wait(rank, self.doubling.at(rank, round), 1);
            let parent = keep.start & !(2 * keep.len() - 1)..(keep.start | (2 * keep.len() - 1)) + 1;
            parent.clone().filter(|block| !keep.contains(block)).for_each(|block| self.fetch(b, rank, block));
            keep = parent;
        }
        if host {
            b.set(rank, self.guest.at(s.members[i + 1], 1), 1);
        }
    }
}

/// The half of `blocks` that is kept, and the other.
pub(crate) fn halves(blocks: Range<usize>, lower: bool) -> (Range<usize>, Range<usize>) {
    let middle = blocks.start + blocks.len() / 2;
    if lower {
        (blocks.start..middle, middle..blocks.end)
    } else {
        (middle..blocks.end, blocks.start..middle)
    }
}
