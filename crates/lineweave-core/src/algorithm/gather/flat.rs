//! Flat: every rank offers its block, the root copies each.
//!
//! Any P and root. A block that fits beside a flag travels with it; a longer one lies in its owner's box, and the root
//! copies it straight to its place. What the root must copy it copies once, which no deeper tree improves on.

use super::super::pieces::{layouts, LAYOUT};
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::up;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Gather,
    name: "flat",
    about: "the root copies every rank's block out of its box",
    source: "Rico-Gallego & Diaz-Martin 2015, section 4 (linear)",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    layouts(problem.bytes)
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    up::emit(b, problem, Tree::flat(s.len()), s.virtual_ranks(), layout);
    Ok(())
}
