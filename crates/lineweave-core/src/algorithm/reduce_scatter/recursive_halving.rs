//! Recursive halving: partners share out what they both still hold, each keeping the half with its own block.
//!
//! Thakur, Rabenseifner & Gropp 2005; the first half of Rabenseifner's allreduce, with the farthest partner first, so that
//! each player ends with its own blocks. log P rounds. A part that will be given is folded straight into the
//! box, one that is kept into scratch, the last into `out`; each byte of the box is written once. Any P: surplus ranks join
//! their neighbours, who play for both. The lower rank's value is the left operand.

use super::super::allreduce::core_ranks::{Core, Role};
use super::super::allreduce::rabenseifner::halves;
use super::super::pieces::{copy, fold, input, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, FlagArrayId, Grid, Layout, Params, PlanError, Region};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "recursive-halving",
    about: "partners fold and share out what they hold, half of it each round",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes == 0 {
        return Vec::new();
    }
    vec![Params::new()]
}

/// Grid, core, slot and flag arrays that the steps of the emission share.
struct Game<'a> {
    grid: Grid<'a>,
    core: Core,
    packed: Packed,
    slot: u16,
    /// Sums that are kept.
    kept: Place,
    /// Round `n`: flag `n` at the partner's home.
    halving: FlagArrayId,
    /// 0: the guest's contribution is in its box. 1, at the guest's home: its block is finished.
    guest: FlagArrayId,
}

/// Function that gives, block by block, the place of an operand of a fold or of its result.
type Lie<'a> = &'a dyn Fn(usize) -> Region;

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let core = Core::of(p);
    let packed = Packed::new((0..p).map(|j| grid.len(j, j)));
    let slot = b.slot(packed.total());
    let kept = Place::acc(b.acc(packed.total()));
    let halving = b.flags("halving", layout, core.rounds);
    let guest = b.flags("guest", layout, 2);
    let game = Game { grid, core, packed, slot, kept, halving, guest };
    for rank in 0..p {
        match core.role(rank) {
            Role::Guest => game.guest(b, rank),
            Role::Player { core, host } => game.player(b, rank, core, host),
        }
    }
    Ok(())
}

impl Game<'_> {
    /// The ranks whose blocks the players `players` are to finish.
    fn blocks(&self, players: Range<usize>) -> Range<usize> {
        let first = |player: usize| match player == self.core.players() {
            true => self.grid.ranks,
            false => self.core.member(player),
        };
        first(players.start)..first(players.end)
    }

    fn boxed(&self, rank: usize, block: usize) -> Region {
        boxed(rank, self.slot, self.packed.at(block))
    }

    fn guest(&self, b: &mut Builder, rank: usize) {
        let (host, all) = (rank - 1, 0..self.grid.ranks);
        copy(b, rank, all.map(|j| [input(self.grid.given(rank, j)), self.boxed(rank, j)]));
        b.set(rank, self.guest.at(host, 0), 1);
        b.wait(rank, self.guest.at(rank, 1), 1);
        b.mov(rank, self.boxed(host, rank), output(self.grid.taken(rank, rank)));
    }

    fn player(&self, b: &mut Builder, rank: usize, number: usize, host: bool) {
        let given = |j: usize| input(self.grid.given(rank, j));
        let in_box = |j: usize| self.boxed(rank, j);
        let kept = |j: usize| self.kept.at(self.packed.at(j));
        let finished = |j: usize| match j == rank {
            true => output(self.grid.taken(rank, rank)),
            false => self.boxed(rank, j),
        };
        let rounds = self.core.rounds;
        // 0. The first round's halves, with the guest's contribution where there is one.
        let lower = |round: usize| number & 1 << round == 0;
        let (mut keep, give) = halves(0..self.core.players(), lower(rounds - 1));
        if host {
            b.wait(rank, self.guest.at(rank, 0), 1);
            for (players, dst) in [(give, &in_box as Lie<'_>), (keep.clone(), &kept)] {
                let theirs = |j: usize| self.boxed(rank + 1, j);
                fold(b, rank, self.blocks(players).map(|j| [given(j), theirs(j), dst(j)]));
            }
        } else {
            copy(b, rank, self.blocks(give).map(|j| [given(j), in_box(j)]));
        }
        let mut mine: Lie<'_> = if host { &kept } else { &given };
        // 1. Fold what the partner gives; what will be given next goes straight into the box.
        for round in (0..rounds).rev() {
            let partner = self.core.member(number ^ 1 << round);
            let flag = rounds - 1 - round;
            b.set(rank, self.halving.at(partner, flag), 1);
            b.wait(rank, self.halving.at(rank, flag), 1);
            let mut parts: Vec<(Range<usize>, Lie<'_>)> = Vec::with_capacity(2);
            if round == 0 {
                parts.push((keep.clone(), &finished));
            } else {
                let (kept_half, given_half) = halves(keep, lower(round - 1));
                parts.push((given_half, &in_box));
                parts.push((kept_half.clone(), &kept));
                keep = kept_half;
            }
            for (players, dst) in parts {
                let theirs = |j: usize| self.boxed(partner, j);
                fold(
                    b,
                    rank,
                    self.blocks(players).map(|j| match lower(round) {
                        true => [mine(j), theirs(j), dst(j)],
                        false => [theirs(j), mine(j), dst(j)],
                    }),
                );
            }
            mine = &kept;
        }
        if host {
            b.set(rank, self.guest.at(rank + 1, 1), 1);
        }
    }
}
