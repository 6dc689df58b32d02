//! What optimisers choose are parameters of real plans: they are proved, and played beside the closed form.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::cost::cost;
use lineweave_core::machine::{shipped, Machine};
use lineweave_core::model::Model;
use lineweave_core::plan::{Blocks, Params, Plan};
use lineweave_core::topology::Shape;
use lineweave_core::verify::verify;
use lineweave_lab::optimise::methods::{methods, Case, Method};
use lineweave_lab::optimise::Optimum;

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).expect("a shipped machine")
}

/// What a method chooses for so many ranks of a machine, and its plan; none where a number is unknown.
fn planned(
    method: &Method,
    machine: &Machine,
    ranks: usize,
    root: usize,
    bytes: usize,
) -> Option<(f64, f64, Plan, Shape)> {
    let model = Model::from_machine(machine);
    let shape = Shape::place(ranks, &machine.topology().unwrap().repeated(ranks));
    let case = Case { machine: Some(machine), model: &model, shape: &shape, root, bytes };
    let found: Optimum<_> = (method.run)(&case).ok()?;
    assert!(found.ratio() >= 1.0 - 1e-9, "{} {ranks}: {found:?}", method.name);
    let collective = method.collective;
    let problem = Problem {
        collective,
        shape: shape.clone(),
        root: if collective.rooted() { root } else { 0 },
        bytes,
        grain: if collective.folds() { 8 } else { 1 },
        direct: true,
        blocks: Blocks::Dense,
    };
    let algorithm = algorithm::find(collective, found.choice.algorithm).expect("an algorithm of the table");
    let plan =
        algorithm.plan(&problem, &found.choice.params).unwrap_or_else(|e| panic!("{}: {e}", method.name));
    Some((found.cost_ns, found.bound_ns, plan, shape))
}

/// The length of a method's message, if it is for long ones so many bytes.
fn bytes(method: &Method, long: usize) -> usize {
    match (method.collective.moves_data(), method.small) {
        (false, _) => 0,
        (true, true) => 8,
        (true, false) => long,
    }
}

#[test]
fn every_choice_is_a_plan_that_is_proved() {
    let mut proved = 0;
    for name in ["xeon-phi-5110p", "generic-x86", "epyc-rome-7742-2s", "sandy-bridge-e5-2670-2s"] {
        for method in methods() {
            for (ranks, root) in [(1, 0), (2, 1), (3, 0), (7, 3), (16, 15), (33, 8), (60, 0)] {
                let bytes = bytes(&method, 4096);
                let Some((_, _, plan, _)) = planned(&method, machine(name), ranks, root, bytes) else {
                    continue;
                };
                verify(&plan).unwrap_or_else(|v| panic!("{name} {} {ranks}: {v}", method.name));
                proved += 1;
            }
        }
    }
    // All 14 methods on the Xeon Phi, and those of models on the others at least.
    assert!(proved >= 7 * (14 + 3 * 8), "{proved}");
}

/// The closed form and the played plan of the first run, everybody starting at once, in ns.
fn beside(method: &Method, name: &str, ranks: usize) -> (f64, f64) {
    let bytes = bytes(method, 64 << 10);
    let (closed, bound, plan, shape) =
        planned(method, machine(name), ranks, 0, bytes).expect("models know or assume every number");
    let played = cost(&Model::from_machine(machine(name)), &shape, &plan).first.0;
    // A bound of the closed form's own model: plans add what the engine itself costs, never less.
    assert!(played >= 0.98 * bound, "{name} {} {ranks}: {played} below {bound}", method.name);
    (closed, played)
}

/// What the engine costs a run and a move, which closed forms leave out: 4 + 2 + 2 ns in a described machine, in up
/// to two ranks one after the other.
const ENGINE: f64 = 16.0;

/// Where all ranks are as near, closed forms of trees and rounds are those of the plan. Reductions are up to an eighth
/// faster: the children of unequal subtrees arrive apart, so that a parent folds early ones while it waits. So are
/// barriers, up to a tenth, in rounds of several peers: the later flags arrive while the first is awaited.
#[test]
fn closed_forms_are_played_where_distances_are_even() {
    for method in methods().into_iter().filter(|m| m.of_model && m.small) {
        for ranks in [2, 5, 8, 32, 60] {
            let (closed, played) = beside(&method, "graviton3", ranks);
            let name = format!("{:?} {} {ranks}: {closed} {played}", method.collective, method.name);
            assert!(played <= 1.03 * closed + ENGINE, "{name}");
            let least = match method.collective {
                Collective::Reduce => 0.85,
                Collective::Barrier => 0.9,
                _ => 0.97,
            };
            assert!(played >= least * closed, "{name}");
        }
    }
}

/// A tree over latencies between ranks is played as it was computed, whatever the machine: at most 5 % slower, and down to a tenth
/// faster where the last of several sets to far ranks leaves early, since two are under way at once. Reductions are up to a fifth
/// faster: lines of children that have come meanwhile are fetched in a row, where the tree was computed with a read for each.
#[test]
fn trees_over_latencies_are_played_as_computed() {
    for name in ["xeon-phi-5110p", "epyc-rome-7742-2s", "power9-2s", "sapphire-rapids"] {
        for method in methods().into_iter().filter(|m| m.name == "matrix") {
            for ranks in [2, 8, 32, 60] {
                let (closed, played) = beside(&method, name, ranks);
                let name = format!("{name} {:?} {ranks}: {closed} {played}", method.collective);
                let least = if method.collective == Collective::Reduce { 0.8 } else { 0.9 };
                assert!(played >= least * closed && played <= 1.05 * closed + ENGINE, "{name}");
            }
        }
    }
}

/// With one degree or radix for all, the closed form takes every step at the farthest distance: the plan, in which
/// neighbours are near, is faster, down to half.
#[test]
fn forms_with_one_distance_are_on_the_safe_side() {
    for name in ["xeon-phi-5110p", "epyc-rome-7742-2s"] {
        for method in methods().into_iter().filter(|m| m.of_model && ["degrees", "model"].contains(&m.name)) {
            for ranks in [8, 32, 60] {
                let (closed, played) = beside(&method, name, ranks);
                let name =
                    format!("{name} {:?} {} {ranks}: {closed} {played}", method.collective, method.name);
                assert!(played <= 1.03 * closed + ENGINE && played >= 0.4 * closed, "{name}");
            }
        }
    }
}

/// Pipelines: a third too fast or a quarter too slow. Not in the closed form: ranks of a level drift apart, copies slow
/// each other, and near levels copy faster than the farthest.
#[test]
fn pipelines_are_played_within_a_third() {
    for name in ["xeon-phi-5110p", "graviton3", "epyc-rome-7742-2s"] {
        for method in methods().into_iter().filter(|m| m.name == "pipeline") {
            for ranks in [2, 8, 32] {
                let (closed, played) = beside(&method, name, ranks);
                let ratio = played / closed;
                assert!((0.75..1.34).contains(&ratio), "{name} {ranks}: {closed} {played}");
            }
        }
    }
}

/// What the closed forms lead to is also what is played fastest, but for what they leave out: the child that is served first tells
/// its own children while the others are served, which can make another tree up to a tenth faster.
#[test]
fn optimal_degrees_are_played_fastest() {
    let method =
        methods().into_iter().find(|m| m.collective == Collective::Bcast && m.name == "degrees").unwrap();
    let model = Model::from_machine(machine("graviton3"));
    let bcast = algorithm::find(Collective::Bcast, "degrees").unwrap();
    for ranks in [9, 24, 60] {
        let (_, best) = beside(&method, "graviton3", ranks);
        let problem = Problem {
            shape: Shape::place(ranks, &machine("graviton3").topology().unwrap()),
            ..Problem::flat(Collective::Bcast, ranks, 8)
        };
        for first in 1..ranks {
            for second in 1..=first {
                let params = Params::new().with("degrees", format!("{first},{second}"));
                let plan = bcast.plan(&problem, &params).unwrap();
                let played = cost(&model, &problem.shape, &plan).first.0;
                assert!(played >= 0.9 * best, "{ranks}: {first},{second} {played} {best}");
            }
        }
    }
}
