//! Slices: every rank puts what it has for others into its box, and folds its own block from all boxes.
//!
//! The first half of `allreduce/slices`: one round whatever P, every contribution copied once and folded once, in rank
//! order. An input that fits beside a flag rides with it. Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::{copy, input, layouts, output, part, trivial, Packed, LAYOUT};
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "slices",
    about: "each folds its block from everybody's box",
    source: "Ramos & Hoefler 2013, section 4.1.3, applied to a reduction",
    params: &[LAYOUT, ORDER],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    layouts(problem.bytes * problem.ranks())
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let packed = Packed::new((0..p).map(|j| grid.len(j, j)));
    let carried = packed.total() <= layout.payload();
    let written = b.flags("written", layout, 1);
    let boxes: Vec<Packed> = (0..p).map(|i| Packed::of_others(p, i, |j| grid.len(j, j))).collect();
    let largest = boxes.iter().map(Packed::total).max().unwrap_or(0);
    let slot = b.slot(if carried { 0 } else { largest });
    // With the flags, each input is taken to a place of its own, the own one among them.
    let scratch = b.acc(if carried { p * packed.total() } else { 0 });
    let longest = (0..p).map(|j| grid.len(j, j)).max().unwrap_or(0);
    let brackets = Brackets::read(b, params, p, longest)?;
    for rank in 0..p {
        let store = |j: usize| Place::acc(scratch + j * packed.total()).at(0..packed.total());
        let piece = |j: usize, block: usize| -> Region {
            match carried {
                true => part(store(j), packed.at(block)),
                false => boxed(j, slot, boxes[j].at(block)),
            }
        };
        // 1. What others need; all of it where it must be one piece.
        let blocks = (0..p).filter(|&j| carried || j != rank);
        copy(b, rank, blocks.map(|j| [input(grid.given(rank, j)), piece(rank, j)]));
        b.set_with(rank, written.at(rank, 0), 1, carried.then(|| store(rank)));
        // 2. The own block of everybody's.
        if grid.len(rank, rank) == 0 {
            continue;
        }
        for j in (1..p).map(|d| (rank + d) % p) {
            b.wait_with(rank, written.at(j, 0), 1, carried.then(|| store(j)));
        }
        let out = output(grid.taken(rank, rank));
        let source = |j: usize| if j == rank { input(grid.given(rank, rank)) } else { piece(j, rank) };
        brackets.fold(b, rank, p, source, out, out);
    }
    Ok(())
}
