//! Flat tree: everybody copies from the root's box.
//!
//! The rival of the cyclic algorithm in Ramos & Hoefler 2013, 4.1.3, Eq. 4.10, through boxes. With `chunk` and
//! `slots` the root fills one slot while others are read: at P = 2 copy-in and copy-out overlap. Any P and
//! root. `flat` always reads the root's one copy; the deeper trees relay it, unless `source=root`.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, chunk_grid, tree_candidates, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "flat",
    about: "everybody copies from the root's box, chunk by chunk",
    source: "Ramos & Hoefler 2013, 4.1.3, Eq. 4.10",
    params: &[
        settings::LAYOUT,
        ParamSpec { default: "shared", ..settings::NOTIFY },
        settings::CARRY,
        settings::CHUNK,
        settings::SLOTS,
    ],
    candidates,
    emit,
};

/// Bytes of the longest ring tried.
const RING: usize = 1 << 20;

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
        // A ring that outgrows the writer's own caches can be faster than one within them.
        for (slots, layout) in [(2, "paired"), (4, "alone"), (4, "paired"), (RING / chunk, "paired")] {
            out.push(
                Params::new()
                    .with("chunk", chunk)
                    .with("slots", slots)
                    .with("layout", layout)
                    .with("notify", notify[usize::from(notify.len() > 1 && layout == "alone")]),
            );
        }
    }
    out.dedup();
    out.truncate(24);
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let relay = Relay { notify: Notify::Shared, ..Relay::PLAIN }.read(params)?;
    relay.emit(b, s, &Tree::flat(s.len()), &cyclic(s));
    Ok(())
}
