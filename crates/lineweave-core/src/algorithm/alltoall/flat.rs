//! Flat: every rank puts all its blocks into its box and says so once; everybody copies its own out of all boxes.
//!
//! One round and one flag a rank, whatever P. Readers start with the rank after them, so that they do not all read one
//! box. Any P.

use super::super::pieces::{copy, input, keep_own, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "flat",
    about: "everybody copies its blocks out of all boxes",
    source: "Rico-Gallego & Diaz-Martin 2015, section 4 (linear)",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let packed: Vec<Packed> = (0..p).map(|i| Packed::of_others(p, i, |j| grid.len(i, j))).collect();
    let slot = b.slot(packed.iter().map(Packed::total).max().unwrap_or(0));
    let written = b.flags("written", layout, 1);
    for rank in 0..p {
        let others = (0..p).filter(|&j| j != rank);
        copy(b, rank, others.map(|j| [input(grid.given(rank, j)), boxed(rank, slot, packed[rank].at(j))]));
        b.set(rank, written.at(rank, 0), 1);
        keep_own(b, &grid, rank);
        for giver in (1..p).map(|d| (rank + d) % p).filter(|&giver| grid.len(giver, rank) > 0) {
            b.wait(rank, written.at(giver, 0), 1);
            b.mov(rank, boxed(giver, slot, packed[giver].at(rank)), output(grid.taken(rank, giver)));
        }
    }
    Ok(())
}
