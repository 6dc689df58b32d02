//! Pictures of the machine and its distances.

use super::choices::Tree;
use super::subject::Subject;
use super::{Figure, Section};
use lineweave_core::profile::Stats;
use lineweave_core::topology::{Cpu, Level};
use lineweave_core::units::Nanos;
use lineweave_lab::draw;
use std::collections::BTreeMap;

/// Returns the section about packages, NUMA nodes, caches, cores and hardware threads.
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
    let svg = draw::machine(&subject.topology, &subject.title, &detail, &[]);
    section.figures.push(Figure::new(svg, format!("{detail}.")));
    section
}

/// Returns the measured time of each pair of CPUs, by their numbers, the smaller first.
pub fn measured_pairs(subject: &Subject) -> BTreeMap<(usize, usize), f64> {
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

/// Returns the median of the measured times at each level.
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

/// Returns the section about the cost of one line from CPU to CPU, and the tree that results from it.
pub fn distances(subject: &Subject, tree: &Result<Tree, String>) -> Section {
    let mut section = Section::new("distances", "From core to core");
    if subject.topology.cpus.len() < 2 {
        return section
            .missing("The machine has one CPU: there is no other to reach; give another with --topology.");
    }
    let measured = measured_pairs(subject);
    let middles = middles(subject, &measured);
    let cost = |level| match middles.is_empty() {
        true => subject.model().level(level).0.read.value,
        // A quantity other than the measured one would have another scale.
        false => middles.get(&level).copied().unwrap_or(f64::NAN),
    };
    let of = |a: usize, b: usize| measured.get(&(a.min(b), a.max(b))).copied();
    let what = match (measured.is_empty(), subject.matrix()) {
        (true, _) => "a line read that another CPU modified",
        (false, Some(_)) => "half a round trip of a line",
        (false, None) => "a flag raised and seen",
    };
    let title = "From one CPU to another";
    let says = format!("{title}: {what}. Pointing at a cell shows pair and cost.");
    let pairs = |tree: &[(usize, usize)]| {
        Figure::new(draw::pairs(&subject.topology, title, what, &cost, &of, tree), says.clone())
    };
    section
        .text
        .push("These numbers differ because they are of different things; the table says which.".to_owned());
    section.tables.push((vec!["name", "what is timed", "value"], names(subject, &middles)));
    if !measured.is_empty() {
        let cpus = subject.topology.cpus.len();
        section.text.push(format!(
            "Pairs of CPUs: {}. Measured one by one, half a round trip each: {}; others have the median of those with the same nearest common level.",
            cpus * (cpus - 1) / 2,
            measured.len()
        ));
    }
    match tree {
        Ok(tree) => {
            let detail = format!("{} among {} ranks, predicted {}", tree.name, tree.ranks, tree.predicted);
            section.figures.push(pairs(&tree.pairs));
            let title = "The tree of an 8-byte broadcast";
            let svg = draw::machine(&subject.topology, title, &detail, &tree.pairs);
            section.figures.push(Figure::new(svg, format!("{title}: {detail}.")));
            section.text.push(format!("Chosen for a broadcast of 8 bytes: {detail}. The ring is the root, and the marks on the table of costs are the same tree."));
        }
        Err(why) => {
            section.figures.push(pairs(&[]));
            section.text.push(format!("No broadcast of 8 bytes fits: {why}."));
        }
    }
    section
}

/// Returns a row for each quantity between two CPUs: its name, its meaning and its time.
fn names(subject: &Subject, middles: &BTreeMap<Level, f64>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: String, what: &str, value: String| rows.push(vec![name, what.to_owned(), value]);
    for costs in subject.model().levels.iter().filter(|c| subject.levels().contains(&c.level)) {
        let (level, read) = (costs.level, costs.read);
        let interval = match read.ci_low < read.ci_high {
            true => format!(" ({} .. {})", Nanos(read.ci_low), Nanos(read.ci_high)),
            false => String::new(),
        };
        let value = format!("{}{interval}, {}", Nanos(read.value), read.provenance);
        row(
            format!("line read, same {level}"),
            "R_R: a CPU reads one line that the other modified; nobody answers",
            value,
        );
        if let Some(fit) = &costs.lines {
            let value = Nanos(fit.at(1.0)).to_string();
            row(
                format!("one line handed over, same {level}"),
                "T_N(1): written, flagged, seen and read; half a round trip",
                value,
            );
        }
        if let Some(ns) = middles.get(&level) {
            let what = match subject.matrix() {
                Some(_) => "half a round trip of a line between each two CPUs; the median",
                None => "a flag raised by one and seen by the other, between each two CPUs; the median",
            };
            row(format!("pair, same {level}"), what, Nanos(*ns).to_string());
        }
    }
    rows
}
