//! The machine, its distances, and its fitted costs as pictures.

use super::choices::Tree;
use super::subject::Subject;
use super::Section;
use lineweave_core::draw::{self, Axes, Curve, Panel};
use lineweave_core::model::Surface;
use lineweave_core::units::{Bytes, Nanos};

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
            "Measured at {} by lineweave {}: {} cells.",
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
    section.figures.push(draw::pairs(&subject.topology, "Reading a line that another CPU modified", &cost));
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
            let title = "The tree of an 8-byte broadcast";
            section.figures.push(draw::machine(&subject.topology, title, &detail, &tree.pairs));
            section.text.push(format!("Chosen for a broadcast of 8 bytes: {detail}. The ring is the root."));
        }
        Err(why) => section.text.push(format!("No broadcast of 8 bytes fits: {why}.")),
    }
    section
}

/// A curve with its intervals.
fn curve(name: String, points: Vec<(f64, f64)>, intervals: Vec<(f64, f64, f64)>) -> Curve {
    Curve { name, points, measured: false, intervals }
}

/// One curve a tau of a surface, in bytes.
fn by_tau(surface: &Surface) -> Vec<Curve> {
    let column = |(j, tau): (usize, &u32)| {
        let nodes = || surface.bytes.iter().zip(&surface.cost).map(move |(b, row)| (*b as f64, row[j]));
        let apart = nodes().filter(|(_, c)| c.ci_low < c.ci_high);
        curve(
            format!("tau {tau}"),
            nodes().map(|(b, c)| (b, c.value)).collect(),
            apart.map(|(b, c)| (b, c.ci_low, c.ci_high)).collect(),
        )
    };
    surface.taus.iter().enumerate().map(column).collect()
}

/// N lines, and L(m, tau).
pub fn fitted(subject: &Subject) -> Section {
    let mut section = Section::new("fitted", "Fitted costs");
    let model = &subject.model;
    let mut lines = Vec::new();
    for costs in &model.levels {
        if let Some(fit) = &costs.lines {
            let points = (0..=10).map(|i| f64::from(1 << i)).map(|n| (n, fit.at(n))).collect();
            lines.push(curve(format!("T_N, {}", costs.level), points, Vec::new()));
        }
    }
    // What was measured, under what was fitted to it.
    for cell in subject.profile.iter().flat_map(|p| p.probe("pingpong")) {
        let n = cell.factors.get("lines").and_then(|n| n.parse::<f64>().ok());
        let (Some(n), Some(level)) = (n, cell.factors.get("level")) else { continue };
        let (name, s) = (format!("measured, {level}"), &cell.stats);
        // Cells are of half a round trip already, as the fit takes them.
        let at = ((n, s.median), (n, s.ci_low, s.ci_high));
        match lines.iter_mut().find(|c: &&mut Curve| c.name == name) {
            Some(c) => {
                c.points.push(at.0);
                c.intervals.push(at.1);
            }
            None => lines.push(Curve { name, points: vec![at.0], measured: true, intervals: vec![at.1] }),
        }
    }
    match lines.is_empty() {
        true => section.text.push(
            "Transfers of several lines: not known; `lineweave measure` without --quick times them."
                .to_owned(),
        ),
        false => {
            let axes = Axes { x: |n| format!("{n:.0}"), y: |n| Nanos(n).to_string() };
            let panels = [Panel { title: "T_N(N) by lines".to_owned(), curves: lines }];
            let title = "Handing over N lines";
            section.figures.push(draw::curves_on(
                title,
                "half a round trip; bars are intervals",
                &panels,
                axes,
            ));
        }
    }
    let mut panels = vec![Panel { title: "copy, private memory".to_owned(), curves: by_tau(&model.copy) }];
    for costs in &model.levels {
        for (name, surface) in
            [("get", Some(&costs.get)), ("put", Some(&costs.put)), ("stream", costs.stream.as_ref())]
        {
            if let Some(surface) = surface {
                let title = format!("L {name}, {}", costs.level);
                panels.push(Panel { title, curves: by_tau(surface) });
            }
        }
    }
    let axes = Axes { x: |n| Bytes(n.round() as u64).to_string(), y: |n| Nanos(n).to_string() };
    let detail = "cost of m bytes while tau such transfers run; bars are intervals";
    section.figures.push(draw::curves_on("L(m, tau)", detail, &panels, axes));
    if !model.residuals.is_empty() {
        let percent = |x: f64| format!("{:.1} %", x * 100.0);
        let rows = model.residuals.iter().map(|r| {
            vec![r.of.clone(), r.from.to_string(), r.to.to_string(), percent(r.bias), percent(r.worst)]
        });
        section.tables.push((vec!["fit", "from", "to", "bias", "worst"], rows.collect()));
    }
    section
}
