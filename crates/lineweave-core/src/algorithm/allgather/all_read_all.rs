//! All read all: every rank writes its block once, everybody copies all of them.
//!
//! One round whatever P, and every block is copied once into a box and once by each reader. What fits beside a flag
//! rides with it. Any P.

use super::super::pieces::{input, keep_own, layouts, output, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Problem, Scope};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
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

fn emit(b: &mut Builder, problem: &Problem, _: &Scope, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    b.ring();
    let carried = grid.bytes <= layout.payload();
    let written = b.flags("written", layout, 1);
    let slot = b.slot(if carried || p < 2 { 0 } else { grid.bytes });
    for rank in 0..p {
        let own = grid.given(rank, rank);
        if own.is_empty() || p < 2 {
        } else if carried {
            b.set_carrying(rank, written.at(rank, 0), 1, input(own));
        } else {
            b.mov(rank, input(own.clone()), boxed(rank, slot, own));
            b.set(rank, written.at(rank, 0), 1);
        }
        keep_own(b, &grid, rank);
        for giver in (1..p).map(|d| (rank + d) % p) {
            let place = grid.taken(rank, giver);
            if place.is_empty() {
            } else if carried {
                b.wait_taking(rank, written.at(giver, 0), 1, output(place));
            } else {
                b.wait(rank, written.at(giver, 0), 1);
                b.mov(rank, boxed(giver, slot, 0..place.len()), output(place));
            }
        }
    }
    Ok(())
}
