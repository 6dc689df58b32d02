//! Recursive doubling: in round `i` players that differ in bit `i` exchange partial results and both fold.
//!
//! Thakur, Rabenseifner & Gropp 2005; Rico-Gallego & Diaz-Martin 2015 for its cost in shared memory. Tiny messages ride
//! with the flags, and both flags of a pair lie at the lower one's home next to each other: with the layout `paired`
//! (up to 24 bytes) one line carries both ways. Up to 56 bytes travel with flags a line apart. Longer ones lie in a slot a
//! round, into which the fold of the round before writes: nothing is copied but the first contribution.
//! Any P: surplus ranks join their neighbours. The lower rank's value is the left operand on both sides, so
//! all ranks compute the same association.

use super::super::reduce::layouts;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use super::core_ranks::{Core, Role};
use crate::collective::Collective;
use crate::plan::{Builder, FlagArrayId, Layout, Params, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "recursive-doubling",
    about: "pairs exchange and fold, twice as far apart each round",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[ParamSpec {
        name: "layout",
        default: "auto",
        about: "lines of the flags; auto: paired up to 24 bytes, then alone",
    }],
    candidates,
    emit: |b, _, s, params| {
        let layout = super::layout_or_auto(params, s.bytes)?;
        emit(b, s, layout);
        Ok(())
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    layouts(problem, &Params::new())
}

fn emit(b: &mut Builder, s: &Participants, layout: Layout) {
    let p = s.len();
    if super::trivial(b, s) {
        return;
    }
    b.ring();
    let core = Core::of(p);
    let pair = b.flags("pair", layout, 2 * (core.rounds + usize::from(core.guests > 0)));
    if s.bytes <= layout.payload() {
        carried(b, s, core, pair);
    } else {
        through_slots(b, s, core, pair);
    }
}

/// The pair of flags between a host and its guest follows those of the rounds.
fn guest_flags(core: Core) -> (usize, usize) {
    (2 * core.rounds, 2 * core.rounds + 1)
}

/// Partial results travel with the flags.
fn carried(b: &mut Builder, s: &Participants, core: Core, pair: FlagArrayId) {
    let whole = 0..s.bytes;
    let sum = Place::acc(b.acc(s.bytes)).at(whole.clone());
    let taken = Place::acc(b.acc(s.bytes)).at(whole.clone());
    let to = s.to.at(whole.clone());
    let (result, arrival) = guest_flags(core);
    for i in 0..s.len() {
        let rank = s.members[i];
        let mut mine = s.from[i].at(whole.clone());
        let (number, host) = match core.role(i) {
            Role::Guest => {
                let home = s.members[i - 1];
                b.set_carrying(rank, pair.at(home, arrival), 1, mine);
                b.wait_taking(rank, pair.at(home, result), 1, to);
                continue;
            }
            Role::Player { core, host } => (core, host),
        };
        if host {
            b.wait_taking(rank, pair.at(rank, arrival), 1, taken);
            b.fold(rank, mine, taken, sum);
            mine = sum;
        }
        for round in 0..core.rounds {
            let Meeting { partner: _, home, side } = meeting(s, core, number, round);
            b.set_carrying(rank, pair.at(home, 2 * round + side), 1, mine);
            b.wait_taking(rank, pair.at(home, 2 * round + 1 - side), 1, taken);
            let dst = if round + 1 == core.rounds { to } else { sum };
            fold_in_order(b, rank, side, mine, taken, dst);
            mine = dst;
        }
        if host {
            b.set_carrying(rank, pair.at(rank, result), 1, to);
        }
    }
}

/// Partial results lie in a slot a round.
fn through_slots(b: &mut Builder, s: &Participants, core: Core, pair: FlagArrayId) {
    let whole = 0..s.bytes;
    let slots: Vec<u16> = (0..core.rounds).map(|_| b.slot(s.bytes)).collect();
    let for_guest = b.slot(if core.guests > 0 { s.bytes } else { 0 });
    let to = s.to.at(whole.clone());
    let (result, arrival) = guest_flags(core);
    for i in 0..s.len() {
        let rank = s.members[i];
        let mine = |slot: u16| boxed(rank, slot, 0..s.bytes);
        let from = s.from[i].at(whole.clone());
        let (number, host) = match core.role(i) {
            Role::Guest => {
                let home = s.members[i - 1];
                b.mov(rank, from, mine(slots[0]));
                b.set(rank, pair.at(home, arrival), 1);
                b.wait(rank, pair.at(home, result), 1);
                b.mov(rank, boxed(home, for_guest, whole.clone()), to);
                continue;
            }
            Role::Player { core, host } => (core, host),
        };
        if host {
            b.wait(rank, pair.at(rank, arrival), 1);
            b.fold(rank, from, boxed(s.members[i + 1], slots[0], whole.clone()), mine(slots[0]));
        } else {
            b.mov(rank, from, mine(slots[0]));
        }
        for (round, &slot) in slots.iter().enumerate() {
            let Meeting { partner, home, side } = meeting(s, core, number, round);
            b.set(rank, pair.at(home, 2 * round + side), 1);
            b.wait(rank, pair.at(home, 2 * round + 1 - side), 1);
            let theirs = boxed(partner, slot, whole.clone());
            let dst = slots.get(round + 1).map_or(to, |&next| mine(next));
            // What is in the box is needed by others; this rank has it nearer.
            let own = if round == 0 && !host { from } else { mine(slot) };
            fold_in_order(b, rank, side, own, theirs, dst);
        }
        if host {
            b.mov(rank, to, boxed(rank, for_guest, whole.clone()));
            b.set(rank, pair.at(rank, result), 1);
        }
    }
}

/// Meeting of two players in a round: the partner, the home of their flags, and the player's own side (0: it is the lower).
struct Meeting {
    partner: usize,
    home: usize,
    side: usize,
}

fn meeting(s: &Participants, core: Core, number: usize, round: usize) -> Meeting {
    let bit = 1 << round;
    let rank_of = |number: usize| s.members[core.member(number)];
    Meeting {
        partner: rank_of(number ^ bit),
        home: rank_of(number & !bit),
        side: usize::from(number & bit != 0),
    }
}

/// `side` 0 is the lower rank of the two, whose value is the left operand.
fn fold_in_order(b: &mut Builder, rank: usize, side: usize, mine: Region, theirs: Region, dst: Region) {
    match side {
        0 => b.fold(rank, mine, theirs, dst),
        _ => b.fold(rank, theirs, mine, dst),
    }
}
