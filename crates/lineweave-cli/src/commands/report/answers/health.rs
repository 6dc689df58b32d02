//! The answer to the question whether the machine is healthy.

use super::{time, Answer};
use crate::commands::report::plots::measured_pairs;
use crate::commands::report::subject::Subject;
use crate::node;
use lineweave_core::machine::nearest;
use lineweave_core::model::Model;
use lineweave_core::topology::{Cpu, Level};
use lineweave_lab::draw::{Row, Sign};
use std::collections::{BTreeMap, BTreeSet};

/// Distance beyond the quartiles of its level at which a pair is an outlier, as a multiple of the distance between them; at
/// least this share of the median.
const BEYOND: f64 = 1.5;
const SHARE: f64 = 0.15;
/// Pairs that are marked in a row at most.
const MARKED: usize = 40;
/// Load for each CPU from which other programs may disturb.
const LOADED: f64 = 0.25;

/// The pairs of a level: the range of most, and the outliers.
#[derive(Debug)]
struct Band {
    low: f64,
    median: f64,
    high: f64,
    pairs: usize,
    odd: Vec<((usize, usize), f64)>,
}

impl Band {
    fn of(pairs: &[((usize, usize), f64)]) -> Option<Band> {
        let mut all: Vec<f64> = pairs.iter().map(|p| p.1).collect();
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all.get(((all.len() as f64 - 1.0) * share).round() as usize).copied();
        let (first, median, third) = (at(0.25)?, at(0.5)?, at(0.75)?);
        let slack = ((third - first) * BEYOND).max(median * SHARE);
        let (from, to) = (first - slack, third + slack);
        let inside = |ns: f64| ns >= from && ns <= to;
        let most = || all.iter().copied().filter(|ns| inside(*ns));
        let odd: Vec<_> = pairs.iter().copied().filter(|p| !inside(p.1)).collect();
        let (low, high) = (most().fold(f64::INFINITY, f64::min), most().fold(0.0, f64::max));
        Some(Band { low, median, high, pairs: all.len(), odd })
    }
}

/// Two CPUs, and the nanoseconds until one sees a flag that the other raises.
type Timed = ((usize, usize), f64);

fn bands(subject: &Subject) -> BTreeMap<Level, Band> {
    let cpus: BTreeMap<usize, &Cpu> = subject.topology.cpus.iter().map(|cpu| (cpu.os, cpu)).collect();
    let mut pairs: BTreeMap<Level, Vec<Timed>> = BTreeMap::new();
    for ((a, b), ns) in measured_pairs(subject) {
        if let (Some(x), Some(y)) = (cpus.get(&a), cpus.get(&b)) {
            pairs.entry(x.common(y)).or_default().push(((a, b), ns));
        }
    }
    pairs.into_iter().filter_map(|(level, list)| Some((level, Band::of(&list)?))).collect()
}

/// Returns the answer with a row for each level.
pub fn answer(subject: &Subject) -> Answer {
    let bands = bands(subject);
    let mut rows: Vec<Row> = bands
        .iter()
        .map(|(level, band)| {
            let mut signs = vec![Sign::Band(band.low, band.high)];
            signs.extend(band.odd.iter().take(MARKED).map(|odd| Sign::Odd(odd.1)));
            Row { label: format!("flag seen, same {level}"), signs, note: time(band.median) }
        })
        .collect();
    // The measured costs of lines are compared with the published costs of a similar machine.
    let near =
        |cpu: &str| Some(nearest(cpu, std::env::consts::ARCH).0).filter(|m| !m.name.starts_with("generic"));
    let published = subject.profile.as_ref().and_then(|p| near(&p.machine.cpu));
    let theirs = published.map(|machine| (machine.name.clone(), Model::from_machine(machine)));
    for level in subject.levels() {
        let read = subject.model().level(level).0.read;
        let (low, high) =
            if read.ci_low < read.ci_high { (read.ci_low, read.ci_high) } else { (read.value, read.value) };
        let mut signs = match subject.profile {
            Some(_) => vec![Sign::Dot(read.value, low, high)],
            None => vec![Sign::Bar(read.value)],
        };
        if let Some((name, model)) = &theirs {
            signs.push(Sign::Other(name.clone(), model.level(level).0.read.value));
        }
        rows.push(Row { label: format!("line read, same {level}"), signs, note: time(read.value) });
    }
    let mut more = noticed(subject);
    if let Some((name, _)) = theirs {
        more.push(format!("Beside it: the published costs of {name}, the description nearest to this CPU."));
    }
    let sentence = sentence(subject, &bands);
    Answer::of("health", "Is this machine healthy?", sentence, "Between two CPUs", &rows, more)
}

fn sentence(subject: &Subject, bands: &BTreeMap<Level, Band>) -> String {
    let (pairs, odd) = bands.values().fold((0, 0), |(pairs, odd), b| (pairs + b.pairs, odd + b.odd.len()));
    let cells = subject
        .profile
        .as_ref()
        .map_or((0, 0), |p| (p.cells.len(), p.cells.iter().filter(|c| !c.flagged.is_empty()).count()));
    let quiet = match cells {
        (0, _) => String::new(),
        (all, 0) => format!(" None of {all} measurements scatters."),
        (all, some) => {
            format!(" {some} of {all} measurements scatter: something else ran, or a host took CPUs away.")
        }
    };
    match (pairs, odd) {
        (0, _) if subject.profile.is_some() => {
            format!("As far as it was measured: its pairs of CPUs were not timed one by one.{quiet}")
        }
        (0, _) => "Nobody measured it: these are the costs of a description. `lineweave tune` on the machine finds out.".to_owned(),
        (_, 0) => format!("Yes: each of {pairs} pairs of CPUs costs what others at its distance do.{quiet}"),
        (_, _) => {
            let mut of: BTreeMap<usize, usize> = BTreeMap::new();
            for ((a, b), _) in bands.values().flat_map(|b| &b.odd) {
                *of.entry(*a).or_default() += 1;
                *of.entry(*b).or_default() += 1;
            }
            let worst = of.iter().max_by_key(|(cpu, n)| (**n, usize::MAX - **cpu));
            let whose = worst.map_or_else(String::new, |(cpu, n)| format!(", {n} of them of CPU {cpu}"));
            format!("Mostly: {odd} of {pairs} pairs of CPUs are off what others at their distance cost{whose}.{quiet}")
        }
    }
}

/// Returns remarks on drift, on hardware threads, those by the matrix's owner, and the present state if the subject is this
/// machine.
fn noticed(subject: &Subject) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(cell) = subject.profile.iter().flat_map(|p| p.probe("drift")).next() {
        let s = &cell.stats;
        said.push(format!(
            "Drift while measuring: the same probe took {} to {} in the course of it.",
            time(s.min.min(s.ci_low)),
            time(s.ci_high)
        ));
    }
    let all = subject.profile.iter().flat_map(|p| &p.cells).map(|c| (c.stats.samples, c.stats.disturbed));
    let (samples, disturbed) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if disturbed > 0 {
        let share = 100.0 * disturbed as f64 / (samples + disturbed) as f64;
        said.push(format!("Interrupts and the like disturbed {share:.1} % of what was timed."));
    }
    let cores: BTreeSet<usize> = subject.topology.cpus.iter().map(|c| c.core).collect();
    let cpus = subject.topology.cpus.len();
    if cores.len() < cpus {
        said.push(format!("{cpus} CPUs are threads of {} cores.", cores.len()));
    }
    if let Some(measured) = subject.machine.as_ref().and_then(|m| m.measured.as_ref()) {
        said.extend(measured.remarks.iter().map(|remark| format!("Remarked: {remark}.")));
    }
    if subject.here {
        said.extend(now(cpus));
    }
    said
}

/// Returns remarks on load and frequency of this machine at the moment.
fn now(cpus: usize) -> Vec<String> {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let mut said = Vec::new();
    if let Some(load) = node::load().filter(|load| *load > LOADED * cpus as f64) {
        said.push(format!("Now: {load:.1} other programs run on {cpus} CPUs on average, so calls take longer than said here."));
    }
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if let Some(governor) = governor.as_deref().map(str::trim).filter(|g| *g != "performance") {
        said.push(format!(
            "CPUs change their frequency ({governor}): `cpupower frequency-set -g performance` keeps it."
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_that_are_off_their_level_are_named() {
        let mut pairs: Vec<((usize, usize), f64)> = (1..20).map(|b| ((0, b), 100.0 + b as f64)).collect();
        let band = Band::of(&pairs).unwrap();
        assert_eq!((band.pairs, band.odd.len(), band.low, band.high), (19, 0, 101.0, 119.0));
        pairs.push(((3, 7), 300.0));
        let band = Band::of(&pairs).unwrap();
        assert_eq!((band.odd, band.high), (vec![((3, 7), 300.0)], 119.0));
        assert!(Band::of(&[]).is_none());
    }
}
