//! Chain: each rank hands chunks on to the next.
//!
//! Pipelined, it moves a long message at the rate of one hop however many ranks there are; it is k-ary with
//! k = 1 (Petrovic et al. 2012, Fig. 5). Any P and root. Neighbours only: a slot is filled again once the next
//! rank has acknowledged, so runs need no further order.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, chunk_grid};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "chain",
    about: "each rank hands chunks on to the next, pipelined",
    source: "Open MPI's pipeline; Petrovic et al. 2012 with k = 1",
    params: &[
        settings::LAYOUT,
        settings::CARRY,
        ParamSpec { default: "16384", ..settings::CHUNK },
        ParamSpec { default: "2", ..settings::SLOTS },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 {
        return Vec::new(); // With one reader this is `flat`.
    }
    if problem.bytes <= Layout::Alone.payload() {
        return vec![Params::new()];
    }
    let mut out = vec![Params::new().with("chunk", 0).with("slots", 0)];
    for chunk in chunk_grid(problem.bytes) {
        for slots in [2, 4] {
            for layout in [Layout::Alone, Layout::Paired] {
                out.push(Params::new().with("chunk", chunk).with("slots", slots).with("layout", layout));
            }
        }
    }
    out.truncate(24);
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let relay = Relay { chunk: 16 << 10, slots: 2, ..Relay::PLAIN }.read(params)?;
    relay.emit(b, s, &Tree::chain(s.len()), &cyclic(s));
    Ok(())
}
