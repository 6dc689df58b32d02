//! Direct: the root says where its `in` is, and every rank copies its block from there.
//!
//! The zero-copy protocol of Ramos & Hoefler 2013, 4.1.1: P - 1 ranks copy at once, each block once. The root waits until
//! all are done, by a flag a rank, one counter or a tree. Needs direct access; any P and root.

use super::super::bcast::direct::{self, Ack, Done};
use super::super::pieces::{check_direct, keep_own, output, peer_input, LAYOUT};
use super::super::{Algorithm, Problem, Scope};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Space};
use crate::units::Rank;

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "direct",
    about: "every rank copies its block out of the root's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.1 (zero copy), applied to a scatter",
    params: &[LAYOUT, direct::ACK],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    direct::ack_candidates(problem)
}

fn emit(b: &mut Builder, problem: &Problem, s: &Scope, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let ack = params.read(direct::ACK.name, Ack::Flags)?;
    check_direct(&ALGORITHM, problem, layout)?;
    let grid = problem.grid();
    let ranks = direct::virtual_ranks(s);
    if s.bytes == 0 || ranks.len() < 2 {
        keep_own(b, &grid, grid.root);
        return Ok(());
    }
    b.ring();
    b.direct();
    let ready = b.flags("ready", layout, 1);
    let done = Done::new(b, ack, layout, &ranks, None);
    let (root, flag) = (grid.root, ready.at(grid.root, 0));
    for (v, &rank) in ranks.iter().enumerate() {
        if v == 0 {
            b.set_address(rank, flag, 1, Space::In);
            keep_own(b, &grid, root);
        } else {
            b.wait_address(rank, flag, 1, Space::PeerIn(Rank::from(root)));
            b.mov(rank, peer_input(root, grid.given(root, rank)), output(grid.taken(rank, root)));
        }
        done.emit(b, v);
    }
    Ok(())
}
