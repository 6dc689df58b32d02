//! Gain by the homes of flags on the dual EPYCs whose owners measured them: the table of docs/explanation/homes.md.
//!
//! ```sh
//! cargo test --locked -p lineweave-cli --test homes -- --nocapture
//! ```

use lineweave_cli::load_machine;
use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::plan::Params;
use lineweave_core::select::{list, on_one_node, Candidate, Question};
use lineweave_core::topology::{Level, Shape};
use lineweave_lab::generate::{generate, Case};
use lineweave_lab::simulate::coherent::{placed, simulate};
use lineweave_lab::simulate::Options;

/// The machines with two packages of EPYCs whose matrices show that homes matter.
const MATTERS: [&str; 7] = ["7302", "7601", "7702", "7742", "7r13", "9454", "9754"];
/// Such machines whose matrices do not show that.
const EQUAL: [&str; 2] = ["7763", "9654"];

/// Times of a plan with each line at its preferred home, compared with lines at the node of the process that touched them first.
struct Row {
    /// Predicted time of the choice, as one call of many.
    ns: f64,
    /// Factor by which the same plan takes longer.
    same: f64,
    /// Factor by which the best of all plans takes longer.
    best: f64,
    /// Factor by which the same plan takes longer when it is simulated with each pair's own latency.
    simulated: Option<f64>,
    /// Factor by which the best of all plans takes longer when it is simulated so.
    best_simulated: Option<f64>,
}

fn row(machine: &Machine, collective: Collective, shape: &Shape) -> Row {
    let model = Model::from_machine(machine);
    let bytes = if collective.moves_data() { 8 } else { 0 };
    let question = Question { shape: shape.clone(), ..Question::flat(collective, shape.ranks(), bytes, 1) };
    let choice = list(&model, &question).unwrap();
    let is_chosen =
        |c: &&Candidate| (c.name, &c.params, c.window) == (choice.algorithm, &choice.params, choice.window);
    let chosen = choice.considered.iter().find(is_chosen).unwrap();
    let there = |candidates: &[Candidate]| on_one_node(&model, &question, candidates);
    let times =
        |found: &Option<Candidate>| found.as_ref().map_or(1.0, |c| c.predicted.0 / choice.predicted.0);
    let simulated = |name: &str, params: &Params| {
        let plan = algorithm::find(collective, name).unwrap().plan(&question.window(bytes), params).unwrap();
        let options = Options { runs: 40, ..Options::default() };
        simulate(machine, shape, &plan, &options).unwrap().each.nanos()
    };
    let elsewhere = choice.params.clone().with("home", "node0");
    // Within one package, no rank is far from a line.
    let several = shape.groups(Level::Package).len() > 1;
    let best = there(&choice.considered);
    let [own, moved, best_moved] = [
        (choice.algorithm, &choice.params),
        (choice.algorithm, &elsewhere),
        best.as_ref().map_or((choice.algorithm, &elsewhere), |c| (c.name, &c.params)),
    ]
    .map(|(name, params)| several.then(|| simulated(name, params)));
    let ratio = |moved: Option<f64>| Some(moved? / own?);
    Row {
        ns: choice.predicted.0,
        same: times(&there(std::slice::from_ref(chosen))),
        best: times(&best),
        simulated: ratio(moved),
        best_simulated: ratio(best_moved),
    }
}

/// Returns the rows for a rank on each core of both packages, and of one.
fn rows(name: &str) -> Vec<(&'static str, Collective, Row)> {
    let machine = load_machine(&format!("dual-epyc-{name}")).unwrap();
    let cores = machine.topology().unwrap().cpus.iter().map(|cpu| cpu.core).max().unwrap() + 1;
    let mut rows = Vec::new();
    for (place, ranks) in [("both packages", cores), ("one package", cores / 2)] {
        let shape = placed(&machine, ranks).unwrap();
        assert_eq!(shape.groups(Level::Package).len(), if ranks == cores { 2 } else { 1 });
        for collective in [Collective::Barrier, Collective::Bcast] {
            let row = row(&machine, collective, &shape);
            let [same, best] = [row.simulated, row.best_simulated]
                .map(|times| times.map_or("-".to_owned(), |times| format!("{times:.2}")));
            println!(
                "| {name} | {collective}, {ranks} ranks, {place} | {:.0} | {:.2} | {:.2} | {same} | {best} |",
                row.ns, row.same, row.best
            );
            rows.push((place, collective, row));
        }
    }
    rows
}

/// Times of a single call along the best tree that is generated for all cores, in ns.
struct Trees {
    /// Time with each line at its preferred home.
    own: f64,
    /// Lower bound for all trees, wherever lines lie.
    bound: f64,
    /// Time of the same tree with all lines on one node, as the owner had them.
    same: f64,
    /// Time of the best tree that is generated for such lines.
    best: f64,
}

fn trees(machine: &Machine, collective: Collective) -> Trees {
    let cores = machine.topology().unwrap().cpus.iter().map(|cpu| cpu.core).max().unwrap() + 1;
    let shape = placed(machine, cores).unwrap();
    let there = Machine { away: Vec::new(), ..machine.clone() };
    let case = |machine| Case { machine, shape: &shape, collective, root: 0 };
    let own = generate(&case(machine)).unwrap();
    let same = case(&there).plan(&own.best.spec).unwrap();
    Trees {
        own: own.best.ns,
        bound: own.bound_ns,
        same: case(&there).simulated(&same).unwrap(),
        best: generate(&case(&there)).unwrap().best.ns,
    }
}

/// Checks that homes gain little with the best tree across both packages, and that no other tree gains more by them. That tree can avoid
/// transfers within the second package: a message across takes as long as one within it whose lines are in the first.
#[test]
fn the_best_tree_across_packages_needs_no_homes() {
    for name in MATTERS.iter().chain(&EQUAL) {
        let machine = load_machine(&format!("dual-epyc-{name}")).unwrap();
        for collective in [Collective::Barrier, Collective::Bcast] {
            let Trees { own, bound, same, best } = trees(&machine, collective);
            println!(
                "| {name} | {collective}, generated | {own:.0} | {:.2} | {:.2} | {:.2} |",
                same / own,
                best / own,
                best / bound
            );
            let apart = if EQUAL.contains(name) { 1.0 } else { 1.1 };
            assert!(0.99 * own <= best && best <= apart * own, "{name} {collective}: {own}, {best}");
            assert!(best < 1.3 * bound, "{name} {collective}: {best}, {bound}");
        }
    }
}

#[test]
fn homes_are_worth_their_factor() {
    for name in MATTERS {
        for (place, collective, row) in rows(name) {
            // The factor is large where every transfer is at home or away; it is smaller where crossing takes a part of the time, and
            // absent in a broadcast that crosses once.
            let at_least = match (place, collective) {
                ("one package", _) => 1.3,
                (_, Collective::Barrier) => 1.1,
                (_, _) => 0.99,
            };
            assert!(
                row.best > at_least && row.best <= row.same + 1e-9,
                "{name} {collective}, {place}: {}",
                row.best
            );
            // With each pair's own latency, the factor of a barrier is larger than the model's medians say.
            let counts = (place, collective) == ("both packages", Collective::Barrier);
            assert!(!counts || row.best_simulated.is_some_and(|times| times >= 1.3), "{name}: {collective}");
        }
    }
    for name in EQUAL {
        assert!(rows(name).iter().all(|(_, _, row)| (row.same, row.best) == (1.0, 1.0)), "{name}");
    }
}
