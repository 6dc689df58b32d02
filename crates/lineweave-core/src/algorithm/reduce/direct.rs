//! Direct: children publish the address of their buffers, and the parent folds straight from them.
//!
//! Ramos & Hoefler's zero-copy notification, for threads and shared heaps. A leaf of the tree copies nothing; it
//! returns when its parent has read. Ranks inside the tree hand on their partial sums in their boxes. Any P and root.

use super::super::pieces::check_direct;
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::up::{in_rank_order, up, Travel};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "direct",
    about: "the parent folds straight from its children's buffers",
    source: "Ramos & Hoefler 2013, section 4.1.3 (zero copy)",
    params: &[
        ParamSpec { name: "k", default: "flat", about: "children of a rank; flat: all of the root" },
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags; not packed" },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !problem.direct || problem.bytes == 0 {
        return Vec::new();
    }
    let mut out = vec![Params::new()];
    out.extend(
        [2, 3, 4, 8].into_iter().filter(|k| k + 1 < problem.ranks()).map(|k| Params::new().with("k", k)),
    );
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    check_direct(&ALGORITHM, problem, layout)?;
    let tree = match params.get("k") {
        None | Some("flat") => Tree::flat(s.len()),
        Some(_) => Tree::kary(s.len(), params.int("k", 2, 1..super::super::MAX_RANKS)?),
    };
    up(b, s, &in_rank_order(tree), Travel { layout, at_parent: false, direct: true, rows: None })
}
