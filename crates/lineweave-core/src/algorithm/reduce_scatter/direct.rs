//! Direct: each rank folds its block from everybody's buffer.
//!
//! The first half of `allreduce/direct`: nothing is copied but what is folded, in rank order. Nobody returns before
//! everybody is done. Needs direct access; any P.

use super::super::bcast::direct::applies;
use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::{
    check_direct, from_peers_inputs, input, output, part, peer_input, trivial, LAYOUT,
};
use super::super::ranks::chunks;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::ReduceScatter,
    name: "direct",
    about: "each folds its block from all buffers (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.3 (zero copy), applied to a reduction",
    params: &[
        ParamSpec { name: "chunk", default: "8192", about: "bytes folded over all ranks before the next" },
        LAYOUT,
        ORDER,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !applies(problem) {
        return Vec::new();
    }
    let chunks = [2048, 8192, 32768].into_iter().filter(|&c| c == 2048 || c < problem.bytes);
    chunks.map(|chunk| Params::new().with("chunk", chunk)).collect()
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let chunk = params.int("chunk", 8192, 1..usize::MAX)?;
    check_direct(&ALGORITHM, problem, layout)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    let grain = b.grain();
    // Sums on the way stay in this rank's cache.
    let via = Place::acc(b.acc(if p > 2 { chunk.max(grain).min(grid.bytes) } else { 0 }));
    let brackets = Brackets::read(b, params, p, chunk.max(grain).min(grid.bytes))?;
    from_peers_inputs(
        b,
        layout,
        |_, _| {},
        |_, _, _| {},
        |b, rank| {
            let block = grid.given(rank, rank);
            let out = output(grid.taken(rank, rank));
            for range in chunks(0..block.len(), chunk, grain) {
                let source = |j: usize| match j == rank {
                    true => part(input(block.clone()), range.clone()),
                    false => part(peer_input(j, block.clone()), range.clone()),
                };
                let dst = part(out, range.clone());
                brackets.fold(b, rank, p, source, via.at(0..range.len()), dst);
            }
        },
    );
    Ok(())
}
