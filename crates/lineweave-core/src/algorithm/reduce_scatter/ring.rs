//! Ring: each block travels once round the ring, gathering contributions, and ends where it belongs.
//!
//! The first half of `allreduce/ring` (Thakur, Rabenseifner & Gropp 2005; Patarasu & Yuan 2009): (P - 1) / P of the input
//! a rank, between neighbours only. Any P.

use super::super::allreduce::ring::Around;
use super::super::pieces::{input, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "ring",
    about: "blocks travel round a ring to be folded and end where they belong",
    source: "Thakur, Rabenseifner & Gropp 2005; Patarasu & Yuan 2009",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes < 64 {
        return Vec::new();
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let packed = Packed::new((0..p).map(|j| grid.len(j, j)));
    let slot = b.slot(packed.total());
    let step = b.flags("step", layout, 1);
    for rank in 0..p {
        let ring = Around { members: &s.members, i: rank, ahead: 1, step };
        ring.emit(
            b,
            |j| input(grid.given(rank, j)),
            |of, j| boxed(of, slot, packed.at(j)),
            Some(output(grid.taken(rank, rank))),
        );
    }
    Ok(())
}
