//! Binomial tree: blocks go up it, each rank handing on those of its subtree together.
//!
//! Known from every MPI. The root waits for log P flags instead of P - 1, and short blocks travel several to a line;
//! long ones are copied once a level. Any P and root.

use super::super::pieces::LAYOUT;
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::up;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Gather,
    name: "binomial",
    about: "blocks go up a binomial tree, those of a subtree together",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 4 || problem.bytes > 4096 {
        return Vec::new(); // `flat` copies less, and with three ranks waits for as few.
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    up::emit(b, problem, Tree::halving(s.len()), s.virtual_ranks(), layout);
    Ok(())
}
