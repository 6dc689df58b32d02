//! Trees generated from a machine's matrix beside the usual algorithms, and advice for the machine's owner.

use super::subject::Subject;
use super::{Figure, Section};
use crate::error::CliError;
use crate::threads::both;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::Nanos;
use lineweave_lab::draw;
use lineweave_lab::generate::{generate, usual, Case, USUAL};
use lineweave_lab::matrix;

/// CPUs up to which a broadcast is simulated too.
const BOTH: usize = 256;

/// Returns the section about the fastest tree of a barrier among all CPUs, by the table of costs; `None` for a machine
/// without a matrix.
pub fn section(subject: &Subject) -> Result<Option<Section>, CliError> {
    let Some(machine) = subject.machine.as_ref().filter(|m| m.measured.is_some()) else { return Ok(None) };
    let ranks = subject.topology.cpus.len();
    let mut section = Section::new("trees", "Trees from the matrix");
    if ranks < 2 || machine.coherent.is_none() {
        return Ok(Some(
            section.missing("There is nobody to tell, or the description has no caches to simulate."),
        ));
    }
    let shape = Shape::place(ranks, &subject.topology);
    let collectives = [Collective::Barrier, Collective::Bcast];
    let mut rows = Vec::new();
    for collective in collectives.into_iter().take(if ranks > BOTH { 1 } else { 2 }) {
        let case = Case { machine, shape: &shape, collective, root: 0 };
        let (times, made) = both(|| usual(&case), || generate(&case));
        let (times, made) = (times?, made?);
        let least = times.iter().map(|t| t.ns).fold(f64::INFINITY, f64::min);
        if rows.is_empty() {
            let title = format!(
                "The tree of a {collective}: {} simulated, no tree below {}",
                Nanos(made.best.ns),
                Nanos(made.bound_ns)
            );
            let tree = draw::tree(&case.plan(&made.best.spec)?);
            let svg = picture(machine, &subject.topology, &title, &tree);
            let says =
                format!("{title}. Rows give and columns take; pointing at a cell shows pair and cost.");
            section.figures.push(Figure::new(svg, says));
            let svg = draw::machine(&subject.topology, &title, "on the machine's caches", &tree);
            section.figures.push(Figure::new(svg, format!("{title}, on the machine.")));
        }
        let mut row = vec![collective.to_string()];
        row.extend(times.iter().map(|t| Nanos(t.ns).to_string()));
        row.extend([Nanos(made.best.ns), Nanos(made.bound_ns)].map(|ns| ns.to_string()));
        row.push(format!("{:.2}", made.best.ns / made.bound_ns));
        row.push(format!("{:.2} times", least / made.best.ns));
        rows.push(row);
    }
    section.text.push(format!(
        "Simulated, not measured: one call alone among {ranks} ranks, each two CPUs at the latency that was timed. The last column is \
         how many times longer the best of the usual trees takes; docs/explanation/trees.md says what they are and why no tree is below the bound."
    ));
    let heading = [&["collective"][..], &USUAL, &["generated", "bound", "ratio", "gain"]].concat();
    section.tables.push((heading, rows));
    section.text.extend(checks(machine, &subject.topology));
    Ok(Some(section))
}

fn picture(machine: &Machine, topology: &Topology, title: &str, tree: &[(usize, usize)]) -> String {
    let between = |a: usize, b: usize| machine.measured.as_ref().and_then(|m| m.matrix.between(a, b));
    draw::pairs(
        topology,
        title,
        "half a round trip of a line",
        &|level| machine.transfer(level).value.unwrap_or(f64::NAN),
        &between,
        tree,
    )
}

/// Returns sentences about what the owner of such a machine should check.
fn checks(machine: &Machine, topology: &Topology) -> Vec<String> {
    let Some(measured) = &machine.measured else { return Vec::new() };
    let mut said = Vec::new();
    for cost in matrix::costs(&measured.matrix, topology) {
        if let Some(away) = cost.away {
            said.push(format!(
                "To check: lines whose home is in the other package cost {} within a {}, and {} at home. `numactl -H` shows the nodes, and \
                 the firmware's NUMA nodes per socket decide how memory is dealt to them.",
                Nanos(away),
                cost.level,
                Nanos(cost.median)
            ));
        }
    }
    said.extend(measured.remarks.iter().map(|remark| format!("To check: {remark}.")));
    said.push(
        "To check: rates of copies and of memory are another machine's; `lineweave measure` on the machine itself gives its own."
            .to_owned(),
    );
    said
}
