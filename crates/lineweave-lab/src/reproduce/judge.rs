//! One judge for all claims: by the rules of a study, or by what stands behind the claim.

use super::points::{pairs, APART};
use super::{Ask, Factor, Here, Needs, Point, Rule, Study, MEASURED};
use crate::models::error::mean_relative;
use crate::paper::limit::{Judged, Outcome, ALMOST, SAME};
use crate::paper::{Basis, Claim, Verdict};
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;

/// A claim of a paper, and what becomes of it on this machine. Printed as `judgement` by `lineweave lab reproduce`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgement {
    /// Key of the paper.
    pub paper: &'static str,
    /// Place of the claim in the paper.
    pub item: String,
    /// The claim, in words.
    pub claimed: String,
    /// Holds, differs, or cannot be asked here.
    pub verdict: Verdict,
    /// The measured outcome, or why the claim cannot be asked.
    pub here: String,
    /// The limit, where the verdict has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
}

/// Returns a judgement of every claim.
pub fn judge(study: &Study, claims: &[Claim], here: &Here, points: &[Point]) -> Vec<Judgement> {
    claims.iter().map(|claim| one(study, claim, here, points)).collect()
}

fn one(study: &Study, claim: &Claim, here: &Here, points: &[Point]) -> Judgement {
    let rule = study.rules.iter().find(|r| r.item == claim.item && claim.claimed.starts_with(r.begins));
    let (outcome, said) = match rule {
        Some(rule) => lacks(rule.needs, here).map_or_else(|| asked(study, rule, points), cannot),
        None if claim.basis == Basis::ByConstruction => {
            cannot("it is about what the paper prints, of which this machine is no part".to_owned())
        }
        None => cannot(study.otherwise.to_owned()),
    };
    Judgement {
        paper: study.paper,
        item: claim.item.clone(),
        claimed: claim.claimed.clone(),
        verdict: outcome.verdict,
        here: said,
        judged: outcome.judged,
    }
}

fn cannot(why: String) -> (Outcome, String) {
    (Verdict::NotReproduced.into(), why)
}

/// Returns what a claim needs and this machine has not.
fn lacks(needs: Needs, here: &Here) -> Option<String> {
    let threads = here.cpus / here.cores.max(1);
    let list = [
        ("CPUs", needs.cpus, here.cpus),
        ("hardware threads a core", needs.threads, threads),
        ("NUMA nodes", needs.numa, here.numa),
        ("packages", needs.packages, here.packages),
    ];
    let found = list.into_iter().find(|(_, needs, has)| needs > has)?;
    Some(format!("it needs {} {}, and here are {}", found.1, found.0, found.2))
}

/// Medians of one picture: by x in order, then by series.
type Times<'a> = Vec<(f64, BTreeMap<&'a str, f64>)>;

fn times<'a>(points: &'a [Point], picture: &str, source: &str) -> Times<'a> {
    let mut list: Times = Vec::new();
    for point in points.iter().filter(|p| p.picture == picture && p.source == source) {
        match list.iter_mut().find(|(x, _)| *x == point.x) {
            Some((_, series)) => drop(series.insert(&point.series, point.median_ns)),
            None => list.push((point.x, BTreeMap::from([(point.series.as_str(), point.median_ns)]))),
        }
    }
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    list
}

fn shown(series: &BTreeMap<&str, f64>) -> String {
    series.iter().map(|(name, ns)| format!("{name} {}", Nanos(*ns))).collect::<Vec<_>>().join(", ")
}

fn asked(study: &Study, rule: &Rule, points: &[Point]) -> (Outcome, String) {
    let picture = rule.picture;
    let own = |p: &&Point| p.picture == picture && p.source == MEASURED;
    let (all, steady) =
        (points.iter().filter(own).count(), points.iter().filter(own).filter(|p| p.is_steady()).count());
    if all == 0 && !matches!(rule.ask, Ask::Cannot(_)) {
        return cannot(study.otherwise.to_owned());
    }
    if steady < all {
        return cannot(format!(
            "{} of the {all} points that it compares were disturbed by other work: the same command repeats them on a quieter machine",
            all - steady
        ));
    }
    let mut times = times(points, picture, MEASURED);
    let found = match &rule.ask {
        Ask::Cannot(why) => return cannot((*why).to_owned()),
        Ask::Fastest { who, than, at_last } => {
            let rival = |name: &&str| than.is_empty() || than.contains(name) || name == who;
            times.iter_mut().for_each(|(_, series)| series.retain(|name, _| rival(name)));
            fastest(&times, who, *at_last)
        }
        Ask::Best { series, printed } => best(&times, series, printed),
        Ask::Order { series, at } => order(&times, series, at),
        Ask::Times { series, at, factor } => so_many_times(&times, *series, *at, factor),
        Ask::Constant { series, from } => constant(&times, series, *from),
        Ask::Within { models } => within(points, picture, *models),
        Ask::Off { but } => off(points, picture, but),
        Ask::LeastError { model } => least_error(points, picture, model),
        Ask::Alike => alike(&times),
    };
    found.unwrap_or_else(|| {
        cannot(
            "there are not the points that it compares; a plan that does not fit this machine has none"
                .to_owned(),
        )
    })
}

fn fastest(times: &Times<'_>, who: &str, at_last: bool) -> Option<(Outcome, String)> {
    let both: Vec<_> = times.iter().filter(|(_, s)| s.len() > 1 && s.contains_key(who)).collect();
    let looked = if at_last { &both[both.len().saturating_sub(1)..] } else { &both[..] };
    let behind = |series: &BTreeMap<&str, f64>| {
        let least = series.values().copied().fold(f64::INFINITY, f64::min);
        series[who] / least - 1.0
    };
    let (x, series) = looked.iter().max_by(|a, b| behind(&a.1).total_cmp(&behind(&b.1)))?;
    let off = behind(series);
    Some((SAME.of(off), format!("{:.1} % behind the fastest at {x}: {}", 100.0 * off, shown(series))))
}

/// The most values that are listed.
const MANY: usize = 12;

fn best(times: &Times<'_>, series: &str, printed: &[f64]) -> Option<(Outcome, String)> {
    let all: Vec<(f64, f64)> = times.iter().filter_map(|(x, s)| Some((*x, *s.get(series)?))).collect();
    let least = all.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let of_printed = all.iter().filter(|p| printed.contains(&p.0)).map(|p| p.1).fold(f64::INFINITY, f64::min);
    if all.len() < 2 || of_printed.is_infinite() {
        return None;
    }
    let off = of_printed / least - 1.0;
    let shown = |(x, ns): &(f64, f64)| format!("{x}: {}", Nanos(*ns));
    // Of many the best and the claimed ones.
    let few = all.iter().filter(|p| all.len() <= MANY || p.1 == least || printed.contains(&p.0));
    let list: Vec<String> = few.take(MANY).map(shown).collect();
    Some((
        SAME.of(off),
        format!("{:.1} % behind the best of {}: {}", 100.0 * off, all.len(), list.join(", ")),
    ))
}

fn order(times: &Times<'_>, series: &[&str], at: &[f64]) -> Option<(Outcome, String)> {
    let row =
        |s: &BTreeMap<&str, f64>| series.iter().map(|name| s.get(name).copied()).collect::<Option<Vec<_>>>();
    let asked = times.iter().filter(|(x, _)| at.is_empty() || at.contains(x));
    let rows: Vec<(f64, Vec<f64>)> = asked.filter_map(|(x, s)| Some((*x, row(s)?))).collect();
    let falls = rows.iter().all(|(_, times)| times.windows(2).all(|pair| pair[1] < pair[0]));
    let list = |(x, times): &(f64, Vec<f64>)| {
        let times: Vec<String> = times.iter().map(|ns| Nanos(*ns).to_string()).collect();
        format!("at {x} {}", times.join(", "))
    };
    let list: Vec<String> = rows.iter().map(list).collect();
    (!rows.is_empty()).then(|| (falls.into(), format!("{}: {}", series.join(", "), list.join("; "))))
}

fn so_many_times(
    times: &Times<'_>,
    [fast, slow]: [&str; 2],
    at: f64,
    factor: &Factor,
) -> Option<(Outcome, String)> {
    let both = |s: &BTreeMap<&str, f64>| Some((*s.get(fast)?, *s.get(slow)?));
    let there = times.iter().rev().filter(|(x, _)| at.is_infinite() || *x == at);
    let (x, (fast_ns, slow_ns)) = there.filter_map(|(x, s)| Some((x, both(s)?))).next()?;
    let ratio = slow_ns / fast_ns;
    let said = format!(
        "{fast} is {ratio:.2} times as fast as {slow} at {x}: {} and {}",
        Nanos(fast_ns),
        Nanos(slow_ns)
    );
    let outcome = match factor {
        Factor::About(factor, limit) => limit.beside(ratio, *factor),
        Factor::Between(least, most) => (*least..=*most).contains(&ratio).into(),
    };
    Some((outcome, said))
}

fn constant(times: &Times<'_>, series: &str, from: f64) -> Option<(Outcome, String)> {
    let of = |(x, s): &(f64, BTreeMap<&str, f64>)| Some((*x, *s.get(series)?)).filter(|(x, _)| *x >= from);
    let all: Vec<(f64, f64)> = times.iter().filter_map(of).collect();
    let (low, high) = all.iter().fold((f64::MAX, 0.0f64), |(l, h), p| (l.min(p.1), h.max(p.1)));
    let list: Vec<String> = all.iter().map(|(x, ns)| format!("at {x} {}", Nanos(*ns))).collect();
    (all.len() > 1).then(|| (ALMOST.of(high / low - 1.0), list.join(", ")))
}

fn within(points: &[Point], picture: &str, [least, most]: [&str; 2]) -> Option<(Outcome, String)> {
    let of = |model: &str, p: &Point| {
        let same = |q: &&Point| q.picture == picture && q.series == p.series && q.x == p.x;
        points.iter().filter(same).find(|q| q.source == model).map(|q| q.median_ns)
    };
    let measured = points.iter().filter(|p| p.picture == picture && p.source == MEASURED);
    let bands: Vec<(f64, f64, f64)> =
        measured.filter_map(|p| Some((p.median_ns, of(least, p)?, of(most, p)?))).collect();
    // A worst case can lie below the best one.
    let inside = bands.iter().filter(|(t, a, b)| a.min(*b) <= *t && *t <= a.max(*b)).count();
    let off = |(t, a, b): &(f64, f64, f64)| (a.min(*b) / t).max(t / a.max(*b));
    let far = bands.iter().map(off).fold(0.0, f64::max);
    (!bands.is_empty()).then(|| {
        let said =
            format!("{inside} of {} points; the farthest is {far:.2} times outside (1: within)", bands.len());
        ((inside == bands.len()).into(), said)
    })
}

fn off(points: &[Point], picture: &str, but: &str) -> Option<(Outcome, String)> {
    let shown = |(measured, predicted): &(&Point, &Point)| {
        let at = measured.label.clone().unwrap_or_else(|| measured.x.to_string());
        format!(
            "{at} {}: {}, predicted {}",
            measured.series,
            Nanos(measured.median_ns),
            Nanos(predicted.median_ns)
        )
    };
    let asked = pairs(points).filter(|(m, _)| {
        m.picture == picture && !m.label.as_ref().is_some_and(|label| label.starts_with(but))
    });
    let all: Vec<(&Point, &Point)> = asked.collect();
    let far = |(measured, predicted): &&(&Point, &Point)| {
        let deviation = measured.whiskers_ns.map_or(0.0, |[p5, p95]| (p95 - p5) / APART);
        (predicted.median_ns - measured.median_ns).abs() >= deviation
    };
    let list: Vec<String> = all.iter().filter(far).map(shown).collect();
    let of = format!("{} of {} are off by more", list.len(), all.len());
    let said = if list.is_empty() { of } else { format!("{of}: {}", list.join("; ")) };
    (!all.is_empty()).then(|| (list.is_empty().into(), said))
}

fn least_error(points: &[Point], picture: &str, model: &str) -> Option<(Outcome, String)> {
    let mut by: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (measured, predicted) in pairs(points).filter(|p| p.0.picture == picture) {
        by.entry(&predicted.source).or_default().push((measured.median_ns, predicted.median_ns));
    }
    let errors: BTreeMap<&str, f64> =
        by.iter().filter_map(|(name, pairs)| Some((*name, mean_relative(pairs)?))).collect();
    let own = *errors.get(model)?;
    let least = errors.iter().filter(|(name, _)| **name != model).map(|e| *e.1).fold(f64::INFINITY, f64::min);
    let list: Vec<String> = errors.iter().map(|(name, e)| format!("{name} {:.0} %", 100.0 * e)).collect();
    least.is_finite().then(|| ((own < least).into(), format!("mean relative errors: {}", list.join(", "))))
}

fn alike(times: &Times<'_>) -> Option<(Outcome, String)> {
    let apart = |series: &BTreeMap<&str, f64>| {
        let (low, high) = series.values().fold((f64::MAX, 0.0f64), |(l, h), &t| (l.min(t), h.max(t)));
        high / low - 1.0
    };
    let several = times.iter().filter(|(_, s)| s.len() > 1);
    let (_, series) = several.max_by(|a, b| apart(&a.1).total_cmp(&apart(&b.1)))?;
    let off = apart(series);
    Some((SAME.of(off), format!("at most {:.0} % apart: {}", 100.0 * off, shown(series))))
}
