//! Places of a plan's lines, and the worth of these places on machines where they matter.

use super::candidates::Search;
use super::{predict, Candidate, Choice, Question};
use crate::algorithm;
use crate::model::Model;
use crate::plan::Home;
use crate::topology::Level;
use crate::units::{Nanos, Rank};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Another home has to be better by this much: the algorithms' own are what is measured and tuned.
const CLEARLY: f64 = 0.99;

/// Plans of more ops keep their algorithm's homes: each home is played in full.
const SMALL: usize = 20_000;

/// The first NUMA node of each package on which ranks sit.
fn nodes(question: &Question) -> Vec<usize> {
    let first = |ranks: &Vec<usize>| question.shape.cpu(Rank::from(ranks[0])).numa;
    question.shape.groups(Level::Package).iter().map(first).collect()
}

/// The model of lines that are away from all ranks, which share a package; `None` where nobody saw that this matters.
fn all_away(model: &Model) -> Option<Model> {
    model.levels.iter().find(|level| level.away.is_some())?;
    let mut far = model.clone();
    for level in &mut far.levels {
        let times = level.farther_away();
        let one_line = [Some(&mut level.read), Some(&mut level.own), level.own_modified.as_mut()];
        let bytes = [&mut level.get, &mut level.put].into_iter().flat_map(|s| s.cost.iter_mut().flatten());
        one_line.into_iter().flatten().chain(bytes).for_each(|cost| *cost = cost.inferred(times));
    }
    Some(far)
}

/// A candidate with its lines at another home.
fn at(model: &Model, question: &Question, candidate: &Candidate, home: Home) -> Option<Candidate> {
    let algorithm = algorithm::find(question.collective, candidate.name).ok()?;
    let params = candidate.params.clone().with("home", home);
    let plan = algorithm.plan(&question.window(candidate.window), &params).ok()?;
    let fits = question.fits(&plan, model.line_bytes);
    fits.then(|| Search::new(model, question).evaluate(algorithm, &params, &plan, 4, f64::INFINITY))
}

/// Returns the same plan with another home, if that is clearly faster.
pub(super) fn better(model: &Model, question: &Question, best: &Candidate) -> Option<Candidate> {
    let nodes = nodes(question);
    if nodes.len() < 2 || best.ops > SMALL || model.levels.iter().all(|level| level.away.is_none()) {
        return None;
    }
    let homes = nodes.into_iter().map(Home::Node).chain([Home::Poller, Home::Setter]);
    let found = homes.filter_map(|home| at(model, question, best, home));
    let least = found.min_by(|a, b| a.predicted.0.total_cmp(&b.predicted.0))?;
    (least.predicted.0 < CLEARLY * best.predicted.0).then_some(least)
}

/// The best of these plans if nothing is done about homes, and all lines lie where one process touched them first: on the node of rank
/// 0, or in another package where all ranks are in one (as of a communicator of the second package alone). `None` where nobody saw
/// that homes matter.
pub fn on_one_node(model: &Model, question: &Question, candidates: &[Candidate]) -> Option<Candidate> {
    let far = all_away(model)?;
    let there = |c: &Candidate| match nodes(question)[..] {
        [node, _, ..] => at(model, question, c, Home::Node(node)),
        _ => predict(&far, question, c.name, &c.params, c.window).ok(),
    };
    candidates.iter().filter_map(there).min_by(|a, b| a.predicted.0.total_cmp(&b.predicted.0))
}

/// Writes the places of the chosen plan's lines, and the reason: lines of text, none where nobody saw that places matter.
pub(super) fn explain(
    out: &mut String,
    model: &Model,
    question: &Question,
    choice: &Choice,
) -> std::fmt::Result {
    let seen = model.levels.iter().filter_map(|level| Some((level, level.away?)));
    let most = seen.max_by(|a, b| a.0.farther_away().total_cmp(&b.0.farther_away()));
    let Some((level, away)) = most else { return Ok(()) };
    let homes: Vec<(Rank, bool)> = choice.plan().homes().collect();
    if homes.is_empty() {
        return Ok(());
    }
    let package = |rank: Rank| question.shape.cpu(rank).package;
    let mut packages: BTreeMap<usize, usize> = BTreeMap::new();
    homes.iter().for_each(|&(home, _)| *packages.entry(package(home)).or_default() += 1);
    let places: Vec<String> =
        packages.iter().map(|(name, lines)| format!("{lines} in package {name}")).collect();
    let (own, all) = (homes.iter().filter(|(_, own)| *own).count(), homes.len());
    writeln!(
        out,
        "home: {own} of {all} lines lie with a rank that polls or sets them; {}",
        places.join(", ")
    )?;
    writeln!(
        out,
        "  a line between two CPUs of the same {} takes {} if its memory is in their package, {} if in another",
        level.level,
        Nanos(level.read.value),
        Nanos(away.value)
    )?;
    let is_chosen =
        |c: &&Candidate| (c.name, &c.params, c.window) == (choice.algorithm, &choice.params, choice.window);
    let Some(chosen) = choice.considered.iter().find(is_chosen) else { return Ok(()) };
    let Some(one) = on_one_node(model, question, std::slice::from_ref(chosen)) else { return Ok(()) };
    let place = match nodes(question)[..] {
        [node, _, ..] => format!("on node {node}"),
        _ => "in another package".to_owned(),
    };
    let times = one.predicted.0 / choice.predicted.0.max(1e-9);
    writeln!(
        out,
        "  with all lines {place} the same plan is predicted {}, {times:.2} times as long",
        one.predicted
    )
}
