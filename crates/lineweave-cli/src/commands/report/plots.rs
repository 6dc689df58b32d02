//! The machine and its distances as pictures.

use super::choices::Tree;
use super::subject::Subject;
use super::Section;
use lineweave_core::profile::Stats;
use lineweave_core::topology::{Cpu, Level};
use lineweave_core::units::Nanos;
use lineweave_lab::draw;
use std::collections::BTreeMap;

/// Packages, NUMA nodes, caches, cores and threads.
pub fn machine(subject: &Subject) -> Section {
    let mut section = Section::new("machine", "The machine");
    let cpus = subject.topology.cpus.len();
    section.text.push(format!("Costs: {}.", subject.origin));
    if let Some(machine) = &subject.fingerprint {
        section.text.push(format!(
            "Fingerprint {}: {}, {} CPUs, lines of {} bytes, topology {}.",
            machine.id(),
            machine.cpu,
            machine.cpus,
            machine.line_bytes,
            machine.topology
        ));
    }
    if let Some(profile) = &subject.profile {
        section.text.push(format!(
            "Measured ({}) by lineweave {}: {} cells.",
            profile.measured_at,
            profile.version,
            profile.cells.len()
        ));
    }
    section.text.extend(subject.source.iter().map(|s| format!("{s}.")));
    let detail = format!("{cpus} CPUs: packages, NUMA nodes, last-level caches, cores and threads");
    section.figures.push(draw::machine(&subject.topology, &subject.title, &detail, &[]));
    section
}

/// What was measured for two CPUs, by their numbers, the smaller first.
fn measured_pairs(subject: &Subject) -> BTreeMap<(usize, usize), f64> {
    if let Some(matrix) = subject.matrix() {
        return matrix.pairs().map(|(a, b, ns)| ((a, b), ns)).collect();
    }
    let cells = subject.profile.iter().flat_map(|profile| profile.probe("pair"));
    let number = |text: Option<&String>| text.and_then(|t| t.parse::<usize>().ok());
    cells
        .filter_map(|cell| {
            let (a, b) = (number(cell.factors.get("a"))?, number(cell.factors.get("b"))?);
            Some(((a.min(b), a.max(b)), cell.stats.median))
        })
        .collect()
}

/// The median of what was measured at each level.
fn middles(subject: &Subject, measured: &BTreeMap<(usize, usize), f64>) -> BTreeMap<Level, f64> {
    let cpus: BTreeMap<usize, &Cpu> = subject.topology.cpus.iter().map(|cpu| (cpu.os, cpu)).collect();
    let mut found: BTreeMap<Level, Vec<f64>> = BTreeMap::new();
    for (&(a, b), &ns) in measured {
        if let (Some(a), Some(b)) = (cpus.get(&a), cpus.get(&b)) {
            found.entry(a.common(b)).or_default().push(ns);
        }
    }
    found.into_iter().filter_map(|(level, all)| Some((level, Stats::of(&all, 0)?.median))).collect()
}

/// One line from CPU to CPU, and the tree that comes of it.
pub fn distances(subject: &Subject, tree: &Result<Tree, String>) -> Section {
    let mut section = Section::new("distances", "From core to core");
    if subject.topology.cpus.len() < 2 {
        return section
            .missing("The machine has one CPU: there is no other to reach; give another with --topology.");
    }
    let measured = measured_pairs(subject);
    let middles = middles(subject, &measured);
    let cost = |level| match middles.is_empty() {
        true => subject.model.level(level).0.read.value,
        // Another quantity than what was measured would have another scale.
        false => middles.get(&level).copied().unwrap_or(f64::NAN),
    };
    let of = |a: usize, b: usize| measured.get(&(a.min(b), a.max(b))).copied();
    let title = match (measured.is_empty(), subject.matrix()) {
        (true, _) => "Reading a line that another CPU modified",
        (false, Some(_)) => "From one CPU to another: half a round trip of a line",
        (false, None) => "From one CPU to another: a flag raised and seen",
    };
    let pairs = |tree: &[(usize, usize)]| draw::pairs(&subject.topology, title, &cost, &of, tree);
    if !measured.is_empty() {
        let cpus = subject.topology.cpus.len();
        section.text.push(format!(
            "Pairs of CPUs: {}. Measured one by one, half a round trip each: {}; others have the median of those with the same nearest common level.",
            cpus * (cpus - 1) / 2,
            measured.len()
        ));
    }
    let mut rows = Vec::new();
    for costs in &subject.model.levels {
        let interval = match costs.read.ci_low < costs.read.ci_high {
            true => format!("{} .. {}", Nanos(costs.read.ci_low), Nanos(costs.read.ci_high)),
            false => "not known".to_owned(),
        };
        let read = Nanos(costs.read.value).to_string();
        rows.push(vec![costs.level.to_string(), read, interval, costs.read.provenance.to_string()]);
    }
    section.tables.push((vec!["nearest common level", "one line", "95 % interval", "known by"], rows));
    match tree {
        Ok(tree) => {
            let detail = format!("{} among {} ranks, predicted {}", tree.name, tree.ranks, tree.predicted);
            section.figures.push(pairs(&tree.pairs));
            let title = "The tree of an 8-byte broadcast";
            section.figures.push(draw::machine(&subject.topology, title, &detail, &tree.pairs));
            section.text.push(format!("Chosen for a broadcast of 8 bytes: {detail}. The ring is the root, and the marks on the table of costs are the same tree."));
        }
        Err(why) => {
            section.figures.push(pairs(&[]));
            section.text.push(format!("No broadcast of 8 bytes fits: {why}."));
        }
    }
    section
}
