//! Hierarchical: blocks go down a tree shaped by the topology, each group's together.
//!
//! One copy crosses to a group for all its ranks, whose leader hands the blocks on. The shape is that of NUMA-aware
//! collectives (Open MPI's XHC and HAN). Any P and root; on a shape without levels it is one tree.

use super::super::bcast::settings::SOURCE;
use super::super::bcast::topology_tree::joined;
use super::super::gather::hierarchical::{trees, LEVELS};
use super::super::levels::Levels;
use super::super::pieces::LAYOUT;
use super::super::{Algorithm, Participants, Problem};
use super::down::{self, Travel};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "hierarchical",
    about: "blocks go down a tree shaped by the topology, each group's together",
    source: "Open MPI XHC; Ramos & Hoefler 2013, section 4.3",
    params: &[LEVELS, LAYOUT, SOURCE],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    trees(problem).into_iter().flat_map(|p| [p.clone(), p.with("source", "root")]).collect()
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let travel = Travel::read(params)?;
    let levels = params.read(LEVELS.name, Levels::Auto)?;
    let (tree, members) = joined(problem, s, &levels)?;
    let (tree, order) = tree.renumbered();
    let ranks = order.into_iter().map(|v| s.members[members[v]]).collect();
    down::emit(b, problem, tree, ranks, travel);
    Ok(())
}
