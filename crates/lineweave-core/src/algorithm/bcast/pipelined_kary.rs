//! OC-Bcast: a pipelined k-ary tree with a binary tree of notifications among siblings and double buffering.
//!
//! Petrovic et al. 2012, section 4. The k children of a rank copy a chunk from its box at the same time; two
//! of them hear of it from the parent and tell the others (Fig. 5), while each raises a done flag in the parent's
//! box, which frees the slot. Flags count chunks and are never reset. Steps (i) to (v) of section 4.1 are
//! steps 2, 3, 4, 3 and 5 of the common relay. Any P and root; chunks of half a box are `slots=2`.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, chunk_grid, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const K: ParamSpec = ParamSpec { name: "k", default: "7", about: "children of a rank" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "pipelined-kary",
    about: "OC-Bcast: k-ary tree, binary notification among siblings, double buffering",
    source: "Petrovic et al. 2012, section 4",
    params: &[
        K,
        settings::LAYOUT,
        ParamSpec { default: "binary", ..settings::NOTIFY },
        settings::CARRY,
        ParamSpec { default: "8192", ..settings::CHUNK },
        ParamSpec { default: "2", ..settings::SLOTS },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    if p < 3 {
        return Vec::new(); // With one reader this is `flat` or `chain`.
    }
    let ks = [2, 3, 4, 7, 15, 47].into_iter().filter(|&k| k < p);
    let mut out = Vec::new();
    for k in ks {
        let params = Params::new().with("k", k);
        if problem.bytes <= Layout::Alone.payload() {
            out.push(params);
            continue;
        }
        for chunk in chunk_grid(problem.bytes).into_iter().take(3) {
            out.push(params.clone().with("chunk", chunk));
            if chunk == 16 << 10 {
                out.push(params.clone().with("chunk", chunk).with("notify", "shared"));
            }
        }
        if problem.bytes <= 16 << 10 {
            out.push(params.with("chunk", 0).with("slots", 0));
        }
    }
    out.truncate(24);
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 7, 1..129)?;
    let base =
        Relay { notify: Notify::Binary, chunk: 8 << 10, slots: 2, done_at_parent: true, ..Relay::PLAIN };
    base.read(params)?.emit(b, s, &Tree::kary(s.len(), k), &cyclic(s));
    Ok(())
}
