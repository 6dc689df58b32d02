//! Ring: each block travels once round the ring, from neighbour's box to neighbour's box.
//!
//! Thakur, Rabenseifner & Gropp 2005; Chan et al. 2007: P - 1 steps between neighbours only, where far transfers
//! are dear. Every block is copied into each box on its way but the last and out of it. Any P.

use super::super::pieces::{input, keep_own, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "ring",
    about: "blocks travel round a ring of neighbours' boxes",
    source: "Thakur, Rabenseifner & Gropp 2005; Chan et al. 2007",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes < 512 {
        return Vec::new();
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let packed = Packed::new((0..p).map(|i| grid.len(i, i)));
    let slot = b.slot(packed.total());
    // Set by the left neighbour: the block of step n is in its box.
    let step = b.flags("step", layout, 1);
    for rank in 0..p {
        let (left, right) = ((rank + p - 1) % p, (rank + 1) % p);
        b.mov(rank, input(grid.given(rank, rank)), boxed(rank, slot, packed.at(rank)));
        b.set(rank, step.at(right, 0), 1);
        keep_own(b, &grid, rank);
        for n in 1..p {
            let j = (rank + p - n) % p;
            let (theirs, mine) = (boxed(left, slot, packed.at(j)), boxed(rank, slot, packed.at(j)));
            let out = output(grid.taken(rank, j));
            b.wait(rank, step.at(rank, 0), n as i32);
            if n + 1 < p {
                b.mov(rank, theirs, mine);
                b.set(rank, step.at(right, 0), n as i32 + 1);
                b.mov(rank, mine, out);
            } else {
                b.mov(rank, theirs, out);
            }
        }
    }
    Ok(())
}
