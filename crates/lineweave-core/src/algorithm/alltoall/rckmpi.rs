//! RCKMPI's alltoall: MPICH's pairwise exchange over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005: in step `d` each rank sends to the rank `d` after
//! it and receives from the rank `d` before it, packet by packet in turn. MPICH posts the sends and receives of blocks up to
//! 32 KiB in the same order at once; for blocks up to 256 bytes it takes Bruck's algorithm, which is `alltoall/bruck`.
//! Any P, blocks of one length or of different ones. A baseline: not among the candidates for selection.

use super::super::pieces::{input, keep_own, output};
use super::super::split_box::{Channel, CHUNK, LAYOUT, SLOTS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "rckmpi",
    about: "MPICH's pairwise exchange over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: &[CHUNK, SLOTS, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let (p, grid) = (b.ranks(), problem.grid());
    (0..p).for_each(|rank| keep_own(b, &grid, rank));
    if p < 2 || grid.bytes == 0 {
        return Ok(());
    }
    let longest = (0..p).flat_map(|i| (0..p).map(move |j| (i, j))).map(|(i, j)| grid.len(i, j)).max();
    let mut link = Channel::new(b, params, longest.unwrap_or(0))?;
    for rank in 0..p {
        for d in 1..p {
            let (to, from) = ((rank + d) % p, (rank + p - d) % p);
            let (give, take) = (input(grid.given(rank, to)), output(grid.taken(rank, from)));
            link.exchange(b, rank, Some((to, give)), Some((from, take)));
        }
    }
    link.finish(b);
    Ok(())
}
