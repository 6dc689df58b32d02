//! How right the model is on a machine that nothing here was fitted to: what `select` predicts from the profile of a Xeon with 16 CPUs,
//! beside what was measured there with each algorithm forced (`bench/record/xeon-16cpu`). And how right it is where ranks share CPUs: 3, 4
//! and 8 on 2 CPUs, some 22 plans for each question (`bench/record/amd-epyc-2cpu-crowded`).
//!
//! Regret is how much slower the model's choice is than the best that was measured. The bounds are what was reached when this was written, rounded
//! up: they hold the ground. A forced algorithm runs in the largest window that fits, so that window's prediction stands beside what was measured.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::cost::{cost_with, Options};
use lineweave_core::machine;
use lineweave_core::model::{fit, Model};
use lineweave_core::plan::Params;
use lineweave_core::profile::Profile;
use lineweave_core::select::{list, select, Question};
use lineweave_core::topology::Shape;
use std::collections::BTreeMap;

const XEON: &str = "xeon-16cpu";
const CROWDED: &str = "amd-epyc-2cpu-crowded";

fn text(record: &str, file: &str) -> String {
    let path = format!("{}/../../bench/record/{record}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn profile(record: &str) -> Profile {
    Profile::from_toml(&text(record, "profile.toml")).expect("a profile")
}

fn model(record: &str) -> Model {
    fit(&profile(record)).expect("a model")
}

/// A name with its parameters in the order of their names.
fn named(choice: &str) -> String {
    let (name, params) = choice.split_once('(').unwrap_or((choice, ""));
    let mut params: Vec<&str> = params.trim_end_matches(')').split(',').filter(|p| !p.is_empty()).collect();
    params.sort_unstable();
    format!("{name}({})", params.join(","))
}

/// Collective, ranks, kind of team and bytes, and for each the measured median of each algorithm in ns, on buffers that are used again.
type Measured = BTreeMap<(String, usize, String, usize), BTreeMap<String, f64>>;

fn measured() -> Measured {
    let mut all = Measured::new();
    for line in text(XEON, "candidates.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row of JSON");
        let word = |key: &str| row[key].as_str().expect("a word").to_owned();
        let number = |key: &str| row[key].as_u64().expect("a number") as usize;
        if word("buffers") == "reuse" {
            let question = (word("collective"), number("ranks"), word("team"), number("bytes"));
            let ns = row["median_ns"].as_f64().expect("a time");
            all.entry(question).or_default().insert(named(&word("algorithm")), ns);
        }
    }
    all
}

/// What was both predicted and measured: (predicted, measured) of each candidate, in the largest window that fits, as it was measured. Predictions are
/// infinite of those that were not costed to the end, since they cannot be the choice.
fn beside(model: &Model, question: &Question, measured: &BTreeMap<String, f64>) -> Vec<(f64, f64)> {
    let choice = list(model, question).expect("a choice");
    let mut predicted: BTreeMap<String, (usize, f64)> = BTreeMap::new();
    for candidate in &choice.considered {
        let ns = if candidate.given_up { f64::INFINITY } else { candidate.predicted.0 };
        let params: Vec<String> = candidate.params.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let largest = predicted
            .entry(named(&format!("{}({})", candidate.name, params.join(","))))
            .or_insert((candidate.window, ns));
        if candidate.window > largest.0 {
            *largest = (candidate.window, ns);
        }
    }
    measured.iter().filter_map(|(name, ns)| predicted.get(name).map(|p| (p.1, *ns))).collect()
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len() as f64
}

#[test]
fn choices_among_many_ranks_are_near_the_best_measured() {
    let model = model(XEON);
    let (mut regrets, mut factors) = (Vec::new(), Vec::new());
    let mut by_collective: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for ((collective, ranks, team, bytes), measured) in measured() {
        let of: Collective = collective.parse().expect("a collective");
        let grain = if of.folds() { 8 } else { 1 };
        let question = Question { direct: team == "threads", ..Question::flat(of, ranks, bytes, grain) };
        let found = beside(&model, &question, &measured);
        if found.len() < 3 {
            continue;
        }
        let best = found.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
        let chosen = found.iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("several").1;
        regrets.push(chosen / best - 1.0);
        by_collective.entry(collective).or_default().push(chosen / best - 1.0);
        let costed = found.iter().filter(|(predicted, _)| predicted.is_finite());
        factors.extend(costed.map(|(predicted, ns)| (predicted / ns).ln().abs()));
    }
    regrets.sort_by(f64::total_cmp);
    let (median, factor) = (regrets[regrets.len() / 2], mean(&factors).exp());
    println!(
        "{} questions: regret median {:.1} %, mean {:.1} %, worst {:.0} %; {} candidates off by a factor of {factor:.2}",
        regrets.len(),
        100.0 * median,
        100.0 * mean(&regrets),
        100.0 * regrets[regrets.len() - 1],
        factors.len()
    );
    for (collective, regrets) in &by_collective {
        println!("{collective}: mean regret {:.1} %", 100.0 * mean(regrets));
    }
    assert!(regrets.len() >= 66, "{}", regrets.len());
    assert!(mean(&regrets) < 0.0501 && median < 0.01, "{} {median}", mean(&regrets));
    assert!(regrets[regrets.len() - 1] < 0.53, "{regrets:?}");
    assert!(factor < 1.186, "{factor}");
    let most =
        [("barrier", 0.059), ("bcast", 0.083), ("reduce", 0.028), ("allreduce", 0.05), ("alltoall", 0.01)];
    for (collective, most) in most {
        assert!(mean(&by_collective[collective]) < most, "{by_collective:?}");
    }
}

/// Nothing in the model is the measurement of an exchange: it comes out of transfers, within a tenth of the probe's cell.
#[test]
fn the_exchange_of_two_comes_out_of_transfers() {
    let profile = profile(XEON);
    let model = fit(&profile).expect("a model");
    let barrier = algorithm::find(Collective::Barrier, "exchange").expect("it is there");
    for layout in ["packed", "paired", "alone"] {
        let problem = Problem::flat(Collective::Barrier, 2, 0);
        let plan = barrier.plan(&problem, &Params::new().with("layout", layout)).expect("a plan");
        let options = Options { runs: 21, ..Options::default() };
        let played = cost_with(&model, &Shape::flat(2), &plan, &options).total.0;
        let cell =
            profile.cell("exchange", &[("layout", layout), ("level", "l3")]).expect("a cell").stats.median;
        assert!((played / cell - 1.0).abs() < 0.1, "{layout}: {played} beside {cell}");
    }
}

/// The order of all barriers of 16 that were measured, as Spearman's rank correlation.
#[test]
fn barriers_of_sixteen_are_ordered_as_measured() {
    let model = model(XEON);
    let measured = measured();
    let rows = &measured[&("barrier".to_owned(), 16, "threads".to_owned(), 0)];
    let question = Question::flat(Collective::Barrier, 16, 0, 1);
    let mut found = beside(&model, &question, rows);
    found.retain(|(predicted, _)| predicted.is_finite());
    let ranks = |found: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        let below = |one: &(f64, f64)| found.iter().filter(|other| of(other) < of(one)).count() as f64;
        let same = |one: &(f64, f64)| found.iter().filter(|other| of(other) == of(one)).count() as f64;
        found.iter().map(|one| below(one) + (same(one) - 1.0) / 2.0).collect()
    };
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (played, ran) = (ranks(&found, |f| f.0), ranks(&found, |f| f.1));
    let (a, b) = (mean(&played), mean(&ran));
    let sum = |f: &dyn Fn(usize) -> f64| (0..found.len()).map(f).sum::<f64>();
    let rho = sum(&|i| (played[i] - a) * (ran[i] - b))
        / (sum(&|i| (played[i] - a).powi(2)) * sum(&|i| (ran[i] - b).powi(2))).sqrt();
    println!("{} barriers of 16: Spearman {rho:.2}", found.len());
    assert!(found.len() >= 25 && rho > 0.7, "{} {rho}", found.len());
}

/// Question and what was measured for it: each plan, its window, and its median in ns.
type Crowd = (Question, String, Vec<(String, usize, f64)>);

/// The questions to ranks that share 2 CPUs, of which many plans were measured.
fn crowds() -> Vec<Crowd> {
    let profile = profile(CROWDED);
    let topology = machine::topology("pack:1 numa:1 l3:1 core:2 pu:1").expect("a topology");
    assert!(profile.machine.topology.starts_with("pack:1 numa:1 l3:1(") && profile.machine.cpus == 2);
    let mut all: BTreeMap<String, Crowd> = BTreeMap::new();
    for line in text(CROWDED, "candidates.tsv").lines().skip(1) {
        let row: Vec<&str> = line.split('\t').collect();
        let [collective, bytes, ranks, team, attach, plan, window, ns] = row[..] else {
            panic!("{} columns", row.len())
        };
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let asked = format!("{collective} {bytes} B, {ranks} {team}");
        let crowd = all.entry(asked).or_insert_with_key(|asked| {
            let (attach, ranks) = (attach == "yes", number(ranks));
            let collective: Collective = collective.parse().expect("a collective");
            let shape = Shape::place(ranks, &topology);
            let direct = attach || team == "threads";
            let grain = if collective.folds() { 8 } else { 1 };
            let flat = Question::flat(collective, ranks, number(bytes), grain);
            (Question { shape, direct, attach, ..flat }, asked.clone(), Vec::new())
        });
        crowd.2.push((named(plan), number(window), ns.parse().expect("a time")));
    }
    all.into_values().collect()
}

#[test]
fn choices_among_ranks_that_share_cpus_are_near_the_best_measured() {
    let model = model(CROWDED);
    let crowds = crowds();
    let (mut regrets, mut factors) = (Vec::new(), Vec::new());
    for (question, asked, measured) in &crowds {
        let choice = select(&model, question).expect("a choice");
        let params: Vec<String> = choice.params.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let name = named(&format!("{}({})", choice.algorithm, params.join(",")));
        let Some(chosen) = measured.iter().find(|m| (&m.0, m.1) == (&name, choice.window)) else { continue };
        let best = measured.iter().map(|m| m.2).fold(f64::INFINITY, f64::min);
        regrets.push((chosen.2 / best - 1.0, asked));
        factors.push((choice.predicted.0 / chosen.2).ln().abs());
    }
    regrets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shares: Vec<f64> = regrets.iter().map(|r| r.0).collect();
    let (worst, factor) = (regrets[regrets.len() - 1], mean(&factors).exp());
    println!(
        "{} questions: regret median {:.1} %, mean {:.1} %, worst {:.0} % ({}); choices off by a factor of {factor:.2}",
        regrets.len(),
        100.0 * shares[shares.len() / 2],
        100.0 * mean(&shares),
        100.0 * worst.0,
        worst.1
    );
    assert!(
        regrets.len() * 20 >= crowds.len() * 19,
        "{} of {} choices were measured",
        regrets.len(),
        crowds.len()
    );
    assert!(mean(&shares) < 0.095 && shares[shares.len() / 2] < 0.01, "{}", mean(&shares));
    assert!(worst.0 < 1.65 && factor < 1.3, "{worst:?} {factor}");
}
