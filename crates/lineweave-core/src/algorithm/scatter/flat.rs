//! Flat: the root puts every rank's block into its box, each copies its own.
//!
//! Any P and root. A block that fits beside a flag travels with it. Each block goes straight from the root's box to where
//! it belongs, which no deeper tree improves on; the root sets a flag a rank.

use super::super::pieces::{layouts, LAYOUT};
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::down::{self, Travel};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "flat",
    about: "every rank copies its block out of the root's box",
    source: "Rico-Gallego & Diaz-Martin 2015, section 4 (linear)",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    layouts(problem.bytes)
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let travel = Travel::read(params)?;
    down::emit(b, problem, Tree::flat(s.len()), s.virtual_ranks(), travel);
    Ok(())
}
