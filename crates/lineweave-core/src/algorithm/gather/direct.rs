//! Direct: the root says where its `out` is, and every rank writes its block there.
//!
//! The zero-copy protocol of Ramos & Hoefler 2013, 4.1.1, for the opposite direction: P - 1 ranks copy at once, each
//! block once. The root waits until all are done, by a flag a rank, one counter or a tree. Needs direct access;
//! any P and root.

use super::super::bcast::direct::{self, Ack, Done};
use super::super::pieces::{check_direct, input, keep_own, peer_output, LAYOUT};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Space};
use crate::units::Rank;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Gather,
    name: "direct",
    about: "every rank writes its block into the root's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.1 (zero copy), applied to a gather",
    params: &[LAYOUT, direct::ACK],
    candidates: direct::ack_candidates,
    emit,
};

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let grid = problem.grid();
    blocks(&ALGORITHM, b, problem, s, params, Space::Out, |b, root, rank| {
        b.mov(rank, input(grid.given(rank, root)), peer_output(root, grid.taken(root, rank)));
    })
}

/// The root gives its buffer, in `space`, and every other rank copies a block by `copy(b, root, rank)`.
pub(in super::super) fn blocks(
    algorithm: &Algorithm,
    b: &mut Builder,
    problem: &Problem,
    s: &Participants,
    params: &Params,
    space: Space,
    copy: impl Fn(&mut Builder, usize, usize),
) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let ack = params.read(direct::ACK.name, Ack::Flags)?;
    check_direct(algorithm, problem, layout)?;
    let grid = problem.grid();
    let ranks = s.virtual_ranks();
    if s.bytes == 0 || ranks.len() < 2 {
        keep_own(b, &grid, grid.root);
        return Ok(());
    }
    b.ring();
    b.direct();
    let ready = b.flags("ready", layout, 1);
    let done = Done::new(b, ack, layout, &ranks, None);
    let (root, flag) = (grid.root, ready.at(grid.root, 0));
    let peer = match space {
        Space::In => Space::PeerIn(Rank::from(root)),
        _ => Space::PeerOut(Rank::from(root)),
    };
    for (v, &rank) in ranks.iter().enumerate() {
        if v == 0 {
            b.set_address(rank, flag, 1, space);
            keep_own(b, &grid, root);
        } else {
            b.wait_address(rank, flag, 1, peer);
            copy(b, root, rank);
        }
        done.emit(b, v);
    }
    Ok(())
}
