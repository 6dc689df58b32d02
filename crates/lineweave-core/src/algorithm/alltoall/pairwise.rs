//! Pairwise: in step `d` each rank gives to the rank `d` after it and takes from the rank `d` before it.
//!
//! Thakur, Rabenseifner & Gropp 2005. A flag a pair: a block that fits beside it travels with it, a longer one is put and
//! fetched while others are under way. With the layout `paired` the flags of two ranks for each other lie on one
//! line, which then carries both ways. Any P.

use super::super::pieces::{input, keep_own, layouts, output, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "pairwise",
    about: "in step d each gives to the rank d after it, a flag a pair",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 2 {
        return Vec::new();
    }
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
    let packed: Vec<Packed> = (0..p).map(|i| Packed::of_others(p, i, |j| grid.len(i, j))).collect();
    let largest = packed.iter().map(Packed::total).max().unwrap_or(0);
    let slot = b.slot(if carried { 0 } else { largest });
    let shared = layout == Layout::Paired;
    let given = b.flags("given", layout, if shared { 2 * p } else { p });
    let flag = |giver: usize, taker: usize| match shared {
        // At the lower one's home, side by side.
        true => given.at(giver.min(taker), 2 * giver.max(taker) + usize::from(giver > taker)),
        false => given.at(taker, giver),
    };
    for rank in 0..p {
        for d in 1..p {
            let (taker, giver) = ((rank + d) % p, (rank + p - d) % p);
            let block = input(grid.given(rank, taker));
            match (block.len, carried) {
                (0, _) => {}
                (_, true) => b.set_carrying(rank, flag(rank, taker), 1, block),
                (_, false) => {
                    b.mov(rank, block, boxed(rank, slot, packed[rank].at(taker)));
                    b.set(rank, flag(rank, taker), 1);
                }
            }
            if d == 1 {
                // While the first one comes. What `out` takes the place of has been given where it may be `in`.
                keep_own(b, &grid, rank);
            }
            let place = output(grid.taken(rank, giver));
            match (place.len, carried) {
                (0, _) => {}
                (_, true) => b.wait_taking(rank, flag(giver, rank), 1, place),
                (_, false) => {
                    b.wait(rank, flag(giver, rank), 1);
                    b.mov(rank, boxed(giver, slot, packed[giver].at(rank)), place);
                }
            }
        }
    }
    Ok(())
}
