//! Hierarchical: each group reduces to its leader, leaders of groups to theirs, up to the root.
//!
//! Ramos & Hoefler 2013, section 4.3, where the threads of a core reduce first; Rico-Gallego & Diaz-Martin 2015 on NUMA
//! nodes. Each level plays any reduction of the table. Any P and root (which leads every group it is in); on a shape
//! without levels it is the `machine` level alone.

use super::super::levels::{combined, stages, Levels, Spec};
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};
use crate::topology::Level;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "hierarchical",
    about: "groups reduce to their leaders, level by level",
    source: "Ramos & Hoefler 2013, section 4.3",
    params: &[ParamSpec {
        name: "levels",
        default: "auto",
        about: "what each level plays: core:flat,l3:tree(degrees=4,2),machine:binomial",
    }],
    candidates,
    emit,
};

/// Few and near: the leader folds all. Far: as few rounds as a binomial tree takes.
fn default_spec(level: Level) -> Spec {
    match level {
        Level::Core | Level::L3 => Spec::named("flat"),
        Level::Numa | Level::Package | Level::Machine => Spec::named("binomial"),
    }
}

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes == 0 {
        return Vec::new();
    }
    let inner = ["flat", "binomial", "tree", "pipelined"];
    combined(&problem.shape.useful_levels(), &inner, &["flat", "binomial", "pipelined(k=1)"])
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let levels = params.read("levels", Levels::Auto)?;
    gather(b, problem, s, &levels, s.to)
}

/// Reduces level by level into `to` at the participants' root.
fn gather(
    b: &mut Builder,
    problem: &Problem,
    s: &Participants,
    levels: &Levels,
    to: Place,
) -> Result<(), PlanError> {
    // Parts that acknowledge within themselves count runs by their own span: a fresh bank each run suits all.
    b.ring();
    let stages = stages(&problem.shape, s, levels, default_spec);
    let mut from = s.from.clone();
    let last = stages.iter().rposition(|stage| !stage.groups.is_empty());
    for (depth, stage) in stages.iter().enumerate() {
        let algorithm = stage.spec.find(Collective::Reduce)?;
        if stage.groups.is_empty() {
            continue;
        }
        // Where nobody is left to meet, the root's group is the only one.
        let sum = if Some(depth) == last { to } else { Place::acc(b.acc(s.bytes)) };
        b.alike(&stage.groups, |b, group| {
            (algorithm.emit)(b, problem, &group.participants(s, &from, sum), &stage.spec.params)
        })?;
        for group in &stage.groups {
            from[group.leader_index()] = sum;
        }
    }
    b.mov(s.members[s.root], from[s.root].at(0..s.bytes), to.at(0..s.bytes));
    Ok(())
}
