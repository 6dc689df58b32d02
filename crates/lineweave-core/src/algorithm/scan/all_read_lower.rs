//! All read lower: each rank writes its contribution once, everybody folds those of the ranks below it.
//!
//! One round whatever P, for tiny messages and few ranks: the last rank folds P contributions. What fits beside a flag
//! rides with it. Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::{layouts, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use super::{trivial, Kind};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scan,
    name: "all-read-lower",
    about: "each writes once, everybody folds those of the ranks below",
    source: "Ramos & Hoefler 2013, section 4.2, with a payload",
    params: &[LAYOUT, ORDER],
    candidates,
    emit: |b, _, s, params| emit(b, s, params, Kind::Inclusive),
};

pub(super) static EXCLUSIVE: Algorithm = Algorithm {
    collective: Collective::Exscan,
    emit: |b, _, s, params| emit(b, s, params, Kind::Exclusive),
    ..ALGORITHM
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 2 || problem.bytes > 8192 {
        return Vec::new();
    }
    layouts(problem.bytes)
}

fn emit(b: &mut Builder, s: &Participants, params: &Params, kind: Kind) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    if trivial(b, s, kind) {
        return Ok(());
    }
    b.ring();
    let p = s.len();
    let carried = s.bytes <= layout.payload();
    let written = b.flags("written", layout, 1);
    let scratch = b.acc(if carried { (p - 1) * s.bytes } else { 0 });
    let slot = b.slot(if carried { 0 } else { s.bytes });
    let brackets = Brackets::read(b, params, p, s.bytes)?;
    for i in 0..p {
        let rank = s.members[i];
        let own = s.from[i].at(0..s.bytes);
        let out = s.to.at(0..s.bytes);
        let at = |j: usize| -> Region {
            match carried {
                true => Place::acc(scratch + j * s.bytes).at(0..s.bytes),
                false => boxed(s.members[j], slot, 0..s.bytes),
            }
        };
        // 1. Write, where somebody reads it.
        if i + 1 < p {
            if !carried {
                b.mov(rank, own, at(i));
            }
            b.set_with(rank, written.at(rank, 0), 1, carried.then_some(own));
        }
        // 2. Read those below, the nearest last: it is the last to be folded.
        for j in 0..i {
            b.wait_with(rank, written.at(s.members[j], 0), 1, carried.then(|| at(j)));
        }
        // 3. Fold in rank order. The own contribution may lie where the result goes: sums on the way lie elsewhere.
        let source = |j: usize| if j == i { own } else { at(j) };
        let via = if carried && i > 0 { at(0) } else { out };
        match kind.upto(i) {
            0 => {}
            1 => b.mov(rank, source(0), out),
            2 => brackets.fold(b, rank, 2, source, out, out),
            n => brackets.fold(b, rank, n, source, via, out),
        }
    }
    Ok(())
}
