//! All read all: each rank writes its contribution once, everybody reads and folds all of them in rank order.
//!
//! One round whatever P, for tiny messages; when ranks outnumber CPUs one turn of the scheduler suffices. What fits
//! beside a flag rides with it: with `home=root` the flags of all ranks lie side by side (two a line with the layout
//! `paired`), with `home=own` each at its writer's. Longer contributions lie in slots and are folded from there. Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::reduce::layouts;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "all-read-all",
    about: "each writes once, everybody folds all in rank order",
    source: "Ramos & Hoefler 2013, section 4.2, with m = P - 1 and a payload",
    params: &[
        super::HOME,
        ParamSpec {
            name: "layout",
            default: "auto",
            about: "lines of the flags; auto: paired up to 24 bytes, then alone",
        },
        ORDER,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes > 8192 {
        return Vec::new();
    }
    let mut out = layouts(problem, &Params::new());
    out.push(Params::new().with("home", "own").with("layout", Layout::Alone));
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = super::layout_or_auto(params, s.bytes)?;
    let home = super::Home::read(params)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    b.ring();
    let p = s.len();
    let written = b.flags("written", layout, home.count(p));
    let carried = s.bytes <= layout.payload();
    // With the flags, each contribution is taken to a place of its own; otherwise it is read in its slot.
    let scratch = b.acc(if carried { p * s.bytes } else { 0 });
    let slot = b.slot(if carried { 0 } else { s.bytes });
    let brackets = Brackets::read(b, params, p, s.bytes)?;
    for i in 0..p {
        let rank = s.members[i];
        let own = s.from[i].at(0..s.bytes);
        let at = |j: usize| -> Region {
            match carried {
                true => Place::acc(scratch + j * s.bytes).at(0..s.bytes),
                false => boxed(s.members[j], slot, 0..s.bytes),
            }
        };
        let flag = |j: usize| home.flag(written, s, j);
        let others = (1..p).map(|d| (i + d) % p);
        // 1. Write.
        if !carried {
            b.mov(rank, own, at(i));
        }
        b.set_with(rank, flag(i), 1, carried.then_some(own));
        // 2. Read everybody's.
        for j in others {
            b.wait_with(rank, flag(j), 1, carried.then(|| at(j)));
        }
        // 3. Fold in rank order. What `out` holds may be the contribution: it is read there last, or not at all.
        let to = s.to.at(0..s.bytes);
        if carried {
            brackets.fold(b, rank, p, |j| if j == i { own } else { at(j) }, at(i), to);
        } else {
            // Of two, the first fold is the last, so the contribution itself can be read; the box is farther away.
            brackets.fold(b, rank, p, |j| if j == i && p == 2 { own } else { at(j) }, to, to);
        }
    }
    Ok(())
}
