//! Direct: the root says where its `in` is, and every rank copies its block from there.
//!
//! The zero-copy protocol of Ramos & Hoefler 2013, 4.1.1: P - 1 ranks copy at once, each block once. The root waits until
//! all are done, by a flag a rank, one counter or a tree. Needs direct access; any P and root.

use super::super::bcast::direct;
use super::super::gather::direct::blocks;
use super::super::pieces::{output, peer_input, LAYOUT};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError, Space};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "direct",
    about: "every rank copies its block out of the root's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.1 (zero copy), applied to a scatter",
    params: &[LAYOUT, direct::ACK],
    candidates: direct::ack_candidates,
    emit,
};

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let grid = problem.grid();
    blocks(&ALGORITHM, b, problem, s, params, Space::In, |b, root, rank| {
        b.mov(rank, peer_input(root, grid.given(root, rank)), output(grid.taken(rank, root)));
    })
}
