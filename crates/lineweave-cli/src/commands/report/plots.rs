//! The machine and its distances as pictures.

use super::choices::Tree;
use super::subject::Subject;
use super::Section;
use lineweave_core::draw;
use lineweave_core::units::Nanos;

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

/// One line from CPU to CPU, and the tree that comes of it.
pub fn distances(subject: &Subject, tree: &Result<Tree, String>) -> Section {
    let mut section = Section::new("distances", "From core to core");
    if subject.topology.cpus.len() < 2 {
        return section
            .missing("The machine has one CPU: there is no other to reach; give another with --topology.");
    }
    let cost = |level| subject.model.level(level).0.read.value;
    let pairs = |title: &str, tree: &[(usize, usize)]| draw::pairs(&subject.topology, title, &cost, tree);
    const TITLE: &str = "Reading a line that another CPU modified";
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
            section.figures.push(pairs(TITLE, &tree.pairs));
            let title = "The tree of an 8-byte broadcast";
            section.figures.push(draw::machine(&subject.topology, title, &detail, &tree.pairs));
            section.text.push(format!("Chosen for a broadcast of 8 bytes: {detail}. The ring is the root, and the marks on the table of costs are the same tree."));
        }
        Err(why) => {
            section.figures.push(pairs(TITLE, &[]));
            section.text.push(format!("No broadcast of 8 bytes fits: {why}."));
        }
    }
    section
}
