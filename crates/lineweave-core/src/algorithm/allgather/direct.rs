//! Direct: everybody copies every block straight out of its owner's buffer.
//!
//! The zero-copy protocol of Ramos & Hoefler 2013, 4.1.1, every rank a root. Nobody returns before everybody is done.
//! Needs direct access; any P.

use super::super::bcast::direct::applies;
use super::super::pieces::{check_direct, from_peers_inputs, keep_own, output, peer_input, trivial, LAYOUT};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "direct",
    about: "everybody copies out of everybody's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.1 (zero copy), applied to an allgather",
    params: &[LAYOUT],
    candidates,
    emit,
};

/// Returns one empty parameter set where peers can be reached, and none elsewhere.
pub(in super::super) fn candidates(problem: &Problem) -> Vec<Params> {
    match applies(problem) {
        true => vec![Params::new()],
        false => Vec::new(),
    }
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    read_blocks(&ALGORITHM, b, problem, params)
}

/// Every rank copies the blocks that it takes out of their owners' inputs.
pub(in super::super) fn read_blocks(
    algorithm: &Algorithm,
    b: &mut Builder,
    problem: &Problem,
    params: &Params,
) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    check_direct(algorithm, problem, layout)?;
    let grid = problem.grid();
    if trivial(b, &grid) {
        return Ok(());
    }
    from_peers_inputs(
        b,
        layout,
        |b, rank| keep_own(b, &grid, rank),
        |b, rank, q| b.mov(rank, peer_input(q, grid.given(q, rank)), output(grid.taken(rank, q))),
        |_, _| {},
    );
    Ok(())
}
