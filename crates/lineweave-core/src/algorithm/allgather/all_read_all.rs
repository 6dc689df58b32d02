//! All read all: every rank writes its block once, everybody copies all of them.
//!
//! One round whatever P, and every block is copied once into a box and once by each reader. What fits beside a flag
//! rides with it. Any P.

use super::super::pieces::{input, keep_own, layouts, output, trivial, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "all-read-all",
    about: "each writes its block once, everybody copies all of them",
    source: "Ramos & Hoefler 2013, section 4.2, with m = P - 1 and a payload",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    layouts(problem.bytes)
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let carried = grid.bytes <= layout.payload();
    let written = b.flags("written", layout, 1);
    let slot = b.slot(if carried { 0 } else { grid.bytes });
    for rank in 0..p {
        let own = grid.given(rank, rank);
        let flag = |of: usize| written.at(of, 0);
        if !own.is_empty() {
            if !carried {
                b.mov(rank, input(own.clone()), boxed(rank, slot, own.clone()));
            }
            b.set_with(rank, flag(rank), 1, carried.then(|| input(own)));
        }
        keep_own(b, &grid, rank);
        for giver in (1..p).map(|d| (rank + d) % p) {
            let place = output(grid.taken(rank, giver));
            if place.len > 0 {
                b.wait_with(rank, flag(giver), 1, carried.then_some(place));
                if !carried {
                    b.mov(rank, boxed(giver, slot, 0..place.len), place);
                }
            }
        }
    }
    Ok(())
}
