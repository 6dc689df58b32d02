//! OC-Bcast as published: the pipelined k-ary tree for message buffers, with chunks of 96 lines of 32 bytes.
//!
//! Petrovic et al. 2012, section 4 and 5.1. The steps are those of `pipelined-kary`; here every rank, leaves
//! too, copies a chunk into its own box and from there to its memory (section 5.4 names the shortcut for leaves
//! and leaves it out; `leaf=direct` takes it), nothing travels in flags' lines, and chunks and slots are the
//! paper's: two of 96 lines beside k + 1 flags. The children of core i are (s + ik + 1) mod P to
//! (s + (i + 1)k) mod P for a root s. On the Intel SCC k is at most 63: the lines that two chunks leave
//! are 64. For comparison: not among the candidates for selection, `pipelined-kary` is.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "oc-bcast",
    about: "OC-Bcast as published for the Intel SCC: 2 chunks of 96 lines, leaves copy twice",
    source: "Petrovic et al. 2012, sections 4, 5.1",
    params: &[
        ParamSpec { name: "k", default: "7", about: "children of a rank" },
        settings::LAYOUT,
        ParamSpec { default: "binary", ..settings::NOTIFY },
        ParamSpec {
            name: "siblings",
            default: "2",
            about: "most flags that a rank raises for siblings; 2 as published",
        },
        ParamSpec { default: "0", ..settings::CARRY },
        ParamSpec { default: "3072", ..settings::CHUNK },
        ParamSpec { default: "2", ..settings::SLOTS },
        ParamSpec {
            name: "leaf",
            default: "box",
            about: "box: a leaf copies through its own box too, as published; direct: straight to its memory",
        },
    ],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 7, 1..1025)?;
    let leaf_boxed = params.one_of("leaf", true, &[("box", true), ("direct", false)])?;
    let base = Relay {
        notify: Notify::Binary,
        carry: 0,
        chunk: 96 * 32,
        slots: 2,
        done_at_parent: true,
        leaf_boxed,
        ..Relay::PLAIN
    };
    base.read(params)?.emit(b, s, &Tree::kary(s.len(), k), &cyclic(s));
    Ok(())
}
