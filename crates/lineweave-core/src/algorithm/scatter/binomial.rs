//! Binomial tree: blocks go down it, those of a subtree together.
//!
//! Known from every MPI. The root sets log P flags instead of P - 1, and short blocks travel several to a line. Long
//! ones are copied once a level, or with `source=root` straight out of the root's box, the tree then only telling. Any
//! P and root.

use super::super::bcast::settings::SOURCE;
use super::super::pieces::LAYOUT;
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::down::{self, Travel};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "binomial",
    about: "blocks go down a binomial tree, those of a subtree together",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[LAYOUT, SOURCE],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 4 {
        return Vec::new(); // `flat` copies less, and with three ranks sets as few flags.
    }
    let root = Params::new().with("source", "root");
    match problem.bytes <= 4096 {
        true => vec![Params::new(), root],
        false => vec![root],
    }
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let travel = Travel::read(params)?;
    down::emit(b, problem, Tree::halving(s.len()), s.virtual_ranks(), travel);
    Ok(())
}
