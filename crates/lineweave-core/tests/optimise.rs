//! What optimisers choose are parameters of real plans: they are proved, and played beside the closed form.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::cost::cost;
use lineweave_core::machine::{shipped, Machine};
use lineweave_core::model::Model;
use lineweave_core::optimise::methods::{methods, Case, Method};
use lineweave_core::optimise::Optimum;
use lineweave_core::plan::Plan;
use lineweave_core::topology::Shape;
use lineweave_core::verify::verify;

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
    let case = Case { machine, model: &model, shape: &shape, root, bytes };
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
    };
    let algorithm = algorithm::find(collective, found.choice.algorithm).expect("an algorithm of the table");
    let plan =
        algorithm.plan(&problem, &found.choice.params).unwrap_or_else(|e| panic!("{}: {e}", method.name));
    Some((found.cost_ns, found.bound_ns, plan, shape))
}

#[test]
fn every_choice_is_a_plan_that_is_proved() {
    let mut proved = 0;
    for name in ["xeon-phi-5110p", "generic-x86", "epyc-rome-7742-2s", "sandy-bridge-e5-2670-2s"] {
        for method in methods() {
            for (ranks, root) in [(1, 0), (2, 1), (3, 0), (7, 3), (16, 15), (33, 8), (60, 0)] {
                let bytes = match (method.collective.moves_data(), method.small) {
                    (false, _) => 0,
                    (true, true) => 8,
                    (true, false) => 4096,
                };
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

#[test]
fn closed_forms_beside_played_plans() {
    for name in ["xeon-phi-5110p", "generic-x86", "epyc-rome-7742-2s"] {
        let model = Model::from_machine(machine(name));
        for method in methods().into_iter().filter(|m| m.of_model) {
            for ranks in [2, 8, 32, 60] {
                let bytes = if method.small {
                    if method.collective == Collective::Barrier {
                        0
                    } else {
                        8
                    }
                } else {
                    65536
                };
                let Some((closed, bound, plan, shape)) = planned(&method, machine(name), ranks, 0, bytes)
                else {
                    continue;
                };
                let played = cost(&model, &shape, &plan);
                println!("{name} {:?} {} {ranks}: closed {closed:.0} bound {bound:.0} first {:.0} steady {:.0} f/c {:.2} {}", method.collective, method.name, played.first.0, played.total.0, played.first.0/closed, plan.params);
            }
        }
    }
}
