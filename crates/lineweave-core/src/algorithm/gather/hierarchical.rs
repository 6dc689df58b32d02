//! Hierarchical: blocks go up a tree shaped by the topology, each group's together.
//!
//! A group's leader collects, and one copy crosses to the next level for the group instead of one a rank. The shape is
//! that of NUMA-aware collectives (Open MPI's XHC and HAN). Any P and root; on a shape without levels it is one
//! tree.

use super::super::bcast::topology_tree::joined;
use super::super::levels::{given, Levels};
use super::super::pieces::LAYOUT;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::up;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The parameter `levels` of gathers and scatters along a topology's tree.
pub(in super::super) const LEVELS: ParamSpec = ParamSpec {
    name: "levels",
    default: "auto",
    about: "tree of each level: flat, chain, binomial, knomial(k=4), kary(k=2), degrees(degrees=3,2)",
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Gather,
    name: "hierarchical",
    about: "blocks go up a tree shaped by the topology, each group's together",
    source: "Open MPI XHC; Ramos & Hoefler 2013, section 4.3",
    params: &[LEVELS, LAYOUT],
    candidates: trees,
    emit,
};

/// The trees worth costing on a shape.
pub(in super::super) fn trees(problem: &Problem) -> Vec<Params> {
    let useful = problem.shape.useful_levels();
    match useful.is_empty() {
        true => Vec::new(),
        false => ["flat", "binomial"].map(|outer| given(&useful, "flat", outer)).into(),
    }
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let levels = params.read(LEVELS.name, Levels::Auto)?;
    let (tree, members) = joined(problem, s, &levels)?;
    let (tree, order) = tree.renumbered();
    let ranks = order.into_iter().map(|v| s.members[members[v]]).collect();
    up::emit(b, problem, tree, ranks, layout);
    Ok(())
}
