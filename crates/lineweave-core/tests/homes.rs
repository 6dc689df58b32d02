//! Where a plan's lines lie changes its cost and nothing else: every plan is proved alike with all of its lines anywhere.

use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::cost::cost;
use lineweave_core::model::{Fitted, Model, Values};
use lineweave_core::plan::{Builder, Home, Layout, Params, Plan, PlanError, Space};
use lineweave_core::select::{explain, on_one_node, predict, select, Question};
use lineweave_core::topology::{Cpu, Level, Shape, Topology};
use lineweave_core::units::Rank;
use lineweave_core::verify::verify;

/// Two packages of four CPUs, a node each.
fn machine() -> Topology {
    let cpus = (0..8).map(|c| Cpu { os: c, core: c, l3: c / 2, numa: c / 4, package: c / 4, kind: 0 });
    Topology { cpus: cpus.collect() }
}

fn question(collective: Collective, ranks: usize, bytes: usize) -> Question {
    let bytes = if collective.moves_data() { bytes } else { 0 };
    let shape = Shape::place(ranks, &machine());
    Question { direct: true, shape, ..Question::flat(collective, ranks, bytes, 8) }
}

/// The ranks in whose boxes its lines and slots lie.
fn boxes(plan: &Plan) -> Vec<Rank> {
    let mut all: Vec<Rank> = plan.homes().map(|(home, _)| home).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn homes_change_nothing_in_a_proof() {
    let mut plans = 0;
    for collective in Collective::ALL {
        for (ranks, bytes) in [(2, 8), (7, 64), (8, 4096)] {
            let question = question(collective, ranks, bytes);
            let problem = question.window(question.bytes);
            for algorithm in algorithm::table(collective) {
                for params in algorithm.trials(&problem) {
                    let Ok(plan) = algorithm.plan(&problem, &params) else { continue };
                    let proof = verify(&plan).expect("a plan of the table");
                    for home in ["poller", "setter", "node0", "node1"] {
                        let Ok(moved) = algorithm.plan(&problem, &params.clone().with("home", home)) else {
                            assert!(ranks < 5 && home == "node1", "{} {home}", plan.name());
                            continue;
                        };
                        let found = verify(&moved).unwrap_or_else(|v| panic!("{}: {v:?}", moved.name()));
                        assert_eq!(found, proof, "{}", moved.name());
                        let first = if home == "node1" { Rank(4) } else { Rank(0) };
                        let on_a_node = home.starts_with("node");
                        assert!(!on_a_node || boxes(&moved).iter().all(|&r| r == first), "{}", moved.name());
                        assert_eq!(
                            moved.to_string().parse::<Plan>().as_ref(),
                            Ok(&moved),
                            "{}",
                            moved.name()
                        );
                        plans += 1;
                    }
                }
            }
        }
    }
    assert!(plans > 2000, "{plans} plans");
}

#[test]
fn a_line_moves_with_all_flags_on_it() {
    let question = question(Collective::Barrier, 8, 0);
    let plan = |home: &str| {
        let params = Params::new().with("layout", "packed").with("home", home);
        algorithm::find(Collective::Barrier, "centralized")?.plan(&question.window(0), &params)
    };
    // The root polls the flags of all, on one line, and sets its answer, which all poll.
    for home in ["poller", "setter"] {
        let own = plan(home).unwrap();
        assert_eq!(own.homes().collect::<Vec<_>>(), [(Rank(0), true); 2], "{home}");
    }
    let there = plan("node1").unwrap();
    assert_eq!(there.homes().map(|(home, _)| home).collect::<Vec<_>>(), [Rank(4); 2]);
    assert_eq!(there.flags.iter().map(|array| array.count).collect::<Vec<_>>(), [7, 1]);
    assert!(matches!(plan("node7"), Err(PlanError::BadParameter { .. })));
    assert!(plan("nowhere").unwrap_err().to_string().contains("own or root"));
}

#[test]
fn slots_move_as_flags_do() {
    let question = question(Collective::Bcast, 8, 4096);
    let problem = question.window(4096);
    let slots = |plan: &Plan| -> Vec<(Rank, u16)> {
        let spaces = plan.ops().flat_map(|(_, op)| match op {
            lineweave_core::plan::Op::Move { src, dst } => vec![src.space, dst.space],
            _ => Vec::new(),
        });
        let slot = |space| match space {
            Space::Slot { rank, slot } => Some((rank, slot)),
            _ => None,
        };
        let mut all: Vec<(Rank, u16)> = spaces.filter_map(slot).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let tree = algorithm::find(Collective::Bcast, "binomial").unwrap();
    let (own, moved) = (
        tree.plan(&problem, &Params::new()).unwrap(),
        tree.plan(&problem, &Params::new().with("home", Home::Node(1))).unwrap(),
    );
    let (before, after) = (slots(&own), slots(&moved));
    assert!(before.len() > 1 && before.iter().any(|(rank, _)| *rank != Rank(0)), "{before:?}");
    assert_eq!(before.len(), after.len());
    assert!(after.iter().all(|(rank, _)| *rank == Rank(4)), "{after:?}");
    assert_eq!(moved.slots.len(), own.slots.len() * before.len());
}

#[test]
fn a_part_of_a_plan_has_no_home_of_its_own() {
    let question = question(Collective::Barrier, 8, 0);
    let algorithm = algorithm::find(Collective::Barrier, "hierarchical").unwrap();
    let levels = "numa:dissemination(home=node1),machine:dissemination";
    let found = algorithm.plan(&question.window(0), &Params::new().with("levels", levels));
    assert!(matches!(found, Err(PlanError::NotApplicable { .. })), "{found:?}");
    let whole = Params::new().with("home", "node1");
    assert_eq!(boxes(&algorithm.plan(&question.window(0), &whole).unwrap()), [Rank(4)]);
}

/// A model of two packages, in which a line within one takes 100 ns at home and 200 ns away.
fn model() -> Model {
    let levels = vec![(Level::L3, 25.0, 25.0), (Level::Numa, 100.0, 100.0), (Level::Machine, 200.0, 200.0)];
    let mut model = Values { levels, ..Values::default() }.model();
    model.levels[1].away = Some(Fitted::cited(200.0));
    model
}

/// Rank 0 of the first package, and two of the second that tell each other through a flag in the box of `home`.
fn told(model: &Model, home: usize) -> f64 {
    let cpus = machine().cpus;
    let shape = Shape::on([0, 4, 6].map(|i| cpus[i].clone()).to_vec());
    let mut b = Builder::new(Collective::Barrier, "told", &Params::new(), 3, 0, 0, 1);
    let flags = b.flags("flag", Layout::Alone, 1);
    b.set(1, flags.at(home, 0), 1);
    b.wait(2, flags.at(home, 0), 1);
    cost(model, &shape, &b.finish()).first.0
}

#[test]
fn a_line_away_from_home_takes_longer_by_what_the_model_says() {
    let model = model();
    assert_eq!(told(&model, 1), told(&model, 2));
    // The store takes the line from who polled it last, and the poller reads it.
    assert_eq!(told(&model, 0) - told(&model, 1), 2.0 * 100.0);
    let mut blind = model.clone();
    blind.levels[1].away = None;
    assert_eq!(told(&blind, 0), told(&model, 1));
}

#[test]
fn ranks_of_one_package_cost_and_choose_as_if_homes_did_not_matter() {
    let (model, mut blind) = (model(), model());
    blind.levels[1].away = None;
    for collective in [Collective::Barrier, Collective::Bcast, Collective::Allreduce] {
        let question = question(collective, 4, 64);
        let (one, other) = (select(&model, &question).unwrap(), select(&blind, &question).unwrap());
        assert_eq!(one, other, "{collective}");
        assert!(!explain(&blind, &question, &other).contains("home:"));
        // All of it would be slower in the other package's memory.
        let elsewhere = on_one_node(&model, &question, &one.considered).unwrap();
        assert!(elsewhere.predicted.0 > 1.2 * one.predicted.0, "{collective}: {}", elsewhere.predicted);
        assert_eq!(on_one_node(&blind, &question, &one.considered), None);
    }
}

#[test]
fn no_choice_is_clearly_slower_than_its_plan_with_another_home() {
    let model = model();
    let cpus = machine().cpus;
    let mut moved = Vec::new();
    for order in [[0, 1, 2, 3, 4, 5, 6, 7], [0, 4, 1, 5, 2, 6, 3, 7]] {
        for ranks in 2..=8 {
            let shape = Shape::on(order[8 - ranks..].iter().map(|&i: &usize| cpus[i].clone()).collect());
            for collective in Collective::ALL {
                let question = Question { shape: shape.clone(), ..question(collective, ranks, 64) };
                let choice = select(&model, &question).unwrap();
                for home in ["poller", "setter", "node0", "node1"] {
                    let params = choice.params.clone().with("home", home);
                    let Ok(other) = predict(&model, &question, choice.algorithm, &params, choice.window)
                    else {
                        continue;
                    };
                    assert!(
                        choice.predicted.0 < 1.02 * other.predicted.0,
                        "{collective} {} {home}",
                        choice.algorithm
                    );
                }
                if choice.params.get("home").is_some_and(|home| home.parse::<Home>().is_ok()) {
                    moved.push(format!("{ranks} {}", choice.named(64)));
                }
            }
        }
    }
    // Where more ranks sit in the package that is not the root's, lines of several are better there.
    assert!(moved.iter().any(|choice| choice.contains("home=node1")), "{moved:?}");
}
