//! Hierarchical: arrivals gathered level by level, a full barrier among the leaders left, release back down.
//!
//! Chunduri & Srinivasan 2015 (threads of a core, cores of a chip, chips); Ramos & Hoefler 2013, section 4.2, for the
//! threads of a core. Each level plays any barrier of the table: those without halves of their own are played in
//! full where arrivals are gathered, and a binomial tree releases. Any P; on a shape without levels it is the
//! `machine` level alone.

use super::super::levels::{combined, stages, Levels, Spec, Stage};
use super::super::{Algorithm, BarrierPart, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};
use crate::topology::Level;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "hierarchical",
    about: "gather level by level, a barrier among the leaders, release back down",
    source: "Chunduri & Srinivasan 2015",
    params: &[ParamSpec {
        name: "levels",
        default: "auto",
        about: "what each level plays: core:centralized,l3:tree(k=4),machine:dissemination",
    }],
    candidates,
    emit,
};

/// Barriers whose parameters are about all ranks: they play no level.
const WHOLE: [&str; 2] = ["edges", "noc-msg"];

/// Few and near: a line that all poll. Many or far: as few rounds as dissemination takes.
fn default_spec(level: Level) -> Spec {
    match level {
        Level::Core | Level::L3 => Spec::named("centralized"),
        Level::Numa | Level::Package | Level::Machine => Spec::named("dissemination"),
    }
}

fn candidates(problem: &Problem) -> Vec<Params> {
    let inner =
        ["centralized", "centralized(layout=spread2)", "counter(release=flag)", "tree(k=4)", "binomial"];
    let outer = ["dissemination", "exchange", "all-to-all", "dissemination(m=3)"];
    combined(&problem.shape.useful_levels(), &inner, &outer)
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let levels = params.read("levels", Levels::Auto)?;
    let stages = stages(&problem.shape, s, &levels, default_spec);
    let mut play = |stage: &Stage, phase: BarrierPart| {
        let algorithm = stage.spec.find(Collective::Barrier)?;
        b.alike(&stage.groups, |b, group| {
            if WHOLE.contains(&algorithm.name) {
                return Err(algorithm.not_applicable("it cannot be played in phases"));
            }
            let participants = Participants { phase, ..group.participants(s, &s.from, s.to) };
            (algorithm.emit)(b, problem, &participants, &stage.spec.params)
        })
    };
    let Some((outermost, inner)) = stages.split_last() else { return Ok(()) };
    for stage in inner {
        play(stage, BarrierPart::Gather)?;
    }
    play(outermost, BarrierPart::Full)?;
    for stage in inner.iter().rev() {
        play(stage, BarrierPart::Release)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cpu, Shape};

    fn problem(p: usize) -> Problem {
        let cpus =
            (0..p).map(|c| Cpu { os: c, core: c / 2, l3: c / 8, numa: c / 8, package: c / 16, kind: 0 });
        Problem { shape: Shape::on(cpus.collect()), ..Problem::flat(Collective::Barrier, p, 0) }
    }

    #[test]
    fn groups_of_a_level_share_their_flags() {
        let small = ALGORITHM.plan(&problem(16), &Params::new()).expect("a plan");
        let large = ALGORITHM.plan(&problem(64), &Params::new()).expect("a plan");
        // 64 ranks have one level more (packages), not one array more per group.
        assert!(large.flags.len() <= small.flags.len() + 2, "{:?}", large.flags);
    }

    #[test]
    fn a_level_that_is_no_barrier_is_refused() {
        for levels in ["core:nothing", "core:hierarchical", "core:tree(q=1)", "core:tree(k=0)"] {
            assert!(ALGORITHM.plan(&problem(8), &Params::new().with("levels", levels)).is_err(), "{levels}");
        }
    }
}
