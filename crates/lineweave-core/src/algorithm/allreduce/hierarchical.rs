//! Hierarchical: groups reduce to their leaders, the leaders play an allreduce, groups hear it from their leaders.
//!
//! The shape of every NUMA-aware allreduce; Ramos & Hoefler 2013, section 4.3, for the threads of a core. `levels`
//! names what each level reduces with and, as `machine`, the allreduce among the leaders left; `down` names what each
//! level broadcasts with. Any P; on a shape without levels it is the `machine` level alone. Partial sums lie in
//! `out`, so no scratch is needed.

use super::super::levels::{combined, stages, Levels, Spec, Stage};
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};
use crate::topology::Level;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "hierarchical",
    about: "reduce in groups, allreduce among leaders, broadcast in groups",
    source: "Ramos & Hoefler 2013, section 4.3",
    params: &[
        ParamSpec {
            name: "levels",
            default: "auto",
            about: "reductions by level, and the leaders' allreduce: core:flat,machine:recursive-doubling",
        },
        ParamSpec { name: "down", default: "auto", about: "broadcasts by level: core:binomial" },
    ],
    candidates,
    emit,
};

fn default_up(level: Level) -> Spec {
    match level {
        Level::Core | Level::L3 => Spec::named("flat"),
        Level::Numa | Level::Package => Spec::named("binomial"),
        Level::Machine => Spec::named("recursive-doubling"),
    }
}

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes == 0 {
        return Vec::new();
    }
    let outer = ["recursive-doubling", "all-read-all", "rabenseifner", "slices"];
    combined(&problem.shape.useful_levels(), &["flat", "binomial", "pipelined"], &outer)
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let levels = params.read("levels", Levels::Auto)?;
    let down = params.read("down", Levels::Auto)?;
    let stages = stages(&problem.shape, s, &levels, default_up);
    let Some((leaders, inner)) = stages.split_last() else { return Ok(()) };
    // Parts count runs by spans of their own: a fresh bank each run suits all.
    b.ring();
    let mut from = s.from.clone();
    for stage in inner {
        let algorithm = stage.spec.find(Collective::Reduce)?;
        b.alike(&stage.groups, |b, group| {
            (algorithm.emit)(b, problem, &group.participants(s, &from, s.to), &stage.spec.params)
        })?;
        for group in &stage.groups {
            from[group.leader_index()] = s.to;
        }
    }
    let top = leaders.spec.find(Collective::Allreduce)?;
    match leaders.groups.first() {
        Some(group) => (top.emit)(b, problem, &group.participants(s, &from, s.to), &leaders.spec.params)?,
        None => b.mov(s.members[s.root], from[s.root].at(0..s.bytes), s.to.at(0..s.bytes)),
    }
    let everywhere = vec![s.to; s.len()];
    for stage in inner.iter().rev() {
        let spec = spec_down(&down, stage);
        let algorithm = spec.find(Collective::Bcast)?;
        b.alike(&stage.groups, |b, group| {
            (algorithm.emit)(b, problem, &group.participants(s, &everywhere, s.to), &spec.params)
        })?;
    }
    Ok(())
}

/// Returns the spec of the broadcast at this stage's level; `binomial` where none is given.
fn spec_down(down: &Levels, stage: &Stage) -> Spec {
    match down {
        Levels::Auto => None,
        Levels::Given(list) => {
            list.iter().find(|(level, _)| *level == stage.level).map(|(_, spec)| spec.clone())
        }
    }
    .unwrap_or_else(|| Spec::named("binomial"))
}
