//! Flat tree: everybody copies from the root's box.
//!
//! The rival of the cyclic algorithm in Ramos & Hoefler 2013, 4.1.3, Eq. 4.10, through boxes. With `chunk` and
//! `slots` the root fills one slot while others are read: at P = 2 copy-in and copy-out overlap. Any P and
//! root. `flat` always reads the root's one copy; the deeper trees relay it, unless `source=root`.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Problem, Scope};
use super::relay::{self, chunk_grid, cyclic, tree_candidates, Notify, Relay};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "flat",
    about: "everybody copies from the root's box, chunk by chunk",
    source: "Ramos & Hoefler 2013, 4.1.3, Eq. 4.10",
    params: &[
        relay::LAYOUT,
        ParamSpec { default: "shared", ..relay::NOTIFY },
        relay::CARRY,
        relay::CHUNK,
        relay::SLOTS,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    // One reader has nobody to share a flag with.
    let notify: &[&str] = match p {
        0..=2 => &["each"],
        3 => &["each", "shared"],
        _ => &["each", "shared", "binary"],
    };
    let mut out = tree_candidates(problem, &[Params::new()], notify);
    for chunk in chunk_grid(problem.bytes) {
        for slots in [2, 4] {
            for layout in ["alone", "paired"] {
                out.push(
                    Params::new()
                        .with("chunk", chunk)
                        .with("slots", slots)
                        .with("layout", layout)
                        .with("notify", notify[usize::from(notify.len() > 1 && layout == "alone")]),
                );
            }
        }
    }
    out.truncate(24);
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Scope, params: &Params) -> Result<(), PlanError> {
    let relay = Relay { notify: Notify::Shared, ..Relay::PLAIN }.read(params)?;
    relay.emit(b, s, &Tree::flat(s.len()), &cyclic(s));
    Ok(())
}
