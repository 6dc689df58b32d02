//! `lineweave lab what-if`: limits of a growing mesh by its links or its ports, as its cores and their accesses in flight grow in number.

use super::coherence;
use super::subject::Subject;
use crate::commands::draw::svg;
use crate::commands::lab::LabError;
use crate::curve::{extend, spot};
use crate::error::CliError;
use crate::files::replace;
use crate::question::Place;
use crate::session::{load_machine, Session};
use lineweave_core::machine::{Dimensions, Machine, Value};
use lineweave_core::units::Nanos;
use lineweave_lab::draw::{compared, Axis, Chart, Scale};
use lineweave_lab::what_if::{limit, Found, Pattern, Traffic};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// The machine that supplies the constants where none is named.
const MACHINE: &str = "intel-scc";
/// The coherent mesh that is compared with it.
const COHERENT: &str = "knights-landing-7210";

/// Arguments of `lineweave lab what-if`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Meshes, as columns x rows x cores a tile [default: 6x4x2,12x8x2,24x16x2,48x32x2,80x64x2; of coherent caches the machine's own, with
    /// twice and with four times as many columns and rows]
    #[arg(long, value_name = "CxR[xK],..", value_delimiter = ',')]
    mesh: Vec<Dimensions>,
    /// Accesses that each core has under way
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,16", value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: Vec<u32>,
    /// Cores whose buffers, or lines in caches, each core reads: uniform, any; opposite, across its row; row, the first of its row
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "uniform,opposite")]
    pattern: Vec<Pattern>,
    /// Gets of each core, one after the other
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    gets: u32,
    /// Lines of a get
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lines: u32,
    /// Compare coherent caches with message buffers that are put into and got from: the same plans, latency of a line, links and ports; of
    /// intel-scc and knights-landing-7210, or of --machine
    #[arg(long, conflicts_with_all = ["mesh", "in_flight", "pattern", "gets", "lines"])]
    coherence: bool,
    /// Draw how links and ports compare, or caches and buffers, by a name that ends in .svg
    #[arg(long, short, value_name = "FILE.svg", value_parser = svg)]
    output: Option<PathBuf>,
}

/// One traffic on a mesh. Printed as `what-if` by `lineweave lab what-if`, one object a mesh, number of accesses in flight, and pattern.
#[derive(Serialize)]
struct Row {
    machine: String,
    /// Columns x rows x cores of a tile.
    mesh: String,
    ranks: usize,
    /// Accesses that a core has under way.
    in_flight: u32,
    /// The cores whose buffers, or whose lines in caches, each core reads.
    pattern: &'static str,
    /// Reads of each core.
    gets: u32,
    /// Lines of a get.
    lines: u32,
    /// Time until the last core is done.
    time_ns: f64,
    /// Time where nothing waits.
    ideal_ns: f64,
    slowdown: f64,
    /// Share of the time that the busiest port is busy.
    port_share: f64,
    link_share: f64,
    /// `neither` where the slowdown is below 1.05, else `port` or `link`, the busier one.
    limit: &'static str,
    events: u64,
}

/// Simulates every combination, and prints each as it is done.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.coherence {
        let machines = match session.machine()? {
            Some(machine) => vec![machine],
            None => vec![load_machine(MACHINE)?, load_machine(COHERENT)?],
        };
        return coherence::run(&machines, arguments.output.as_deref(), session);
    }
    let machine = match session.machine()? {
        Some(machine) => machine,
        None => ours(session)?,
    };
    let meshes = if arguments.mesh.is_empty() { usual(&machine) } else { arguments.mesh.clone() };
    let each = meshes.len() * arguments.in_flight.len();
    let bar = session.out.progress_of_work((each * arguments.pattern.len()) as u64);
    let (mut rows, mut begun) = (Vec::new(), false);
    let started = Instant::now();
    for &pattern in &arguments.pattern {
        for &mesh in &meshes {
            for &in_flight in &arguments.in_flight {
                bar.set_message(format!("{pattern} on {mesh}, {in_flight} in flight"));
                let row = one(arguments, &machine, pattern, mesh, in_flight)?;
                bar.inc(1);
                bar.suspend(|| print(&row, &machine, &mut begun, session))?;
                rows.push(row);
            }
        }
    }
    bar.finish_and_clear();
    if let Some(file) = &arguments.output {
        replace(file, &picture(&machine, &rows), "-o")?;
    }
    let events: u64 = rows.iter().map(|r| r.events).sum();
    let seconds = started.elapsed().as_secs_f64();
    let rate = events as f64 / seconds.max(1e-9) / 1e6;
    session.out.line(&format!("\n{events} events in {}: {rate:.1} million a second", Nanos(seconds * 1e9)))
}

/// Returns the machine that costs are taken from, if it is a mesh; otherwise [`MACHINE`], with a remark.
fn ours(session: &mut Session) -> Result<Machine, CliError> {
    let named = session.profile_option().is_some();
    let subject = Subject::of(session, Place::default())?;
    match subject.machine.filter(|m| m.network().is_some()) {
        Some(machine) => Ok(machine),
        None if named => Err(LabError::NoMeshCosts { costs: subject.origin }.into()),
        None => {
            let costs = subject.origin;
            let said = format!(
                "{costs}: caches, and no links or ports to ask about; constants of {MACHINE} instead"
            );
            session.out.line(&said)?;
            load_machine(MACHINE)
        }
    }
}

/// Returns the meshes that are compared where none are named.
fn usual(machine: &Machine) -> Vec<Dimensions> {
    let sizes = |of: &[(u32, u32, u32)]| {
        of.iter()
            .map(|&(columns, rows, cores_per_tile)| Dimensions { columns, rows, cores_per_tile })
            .collect()
    };
    let own = || {
        let network = machine.network().filter(|_| machine.mesh.is_none())?;
        let of = |value: &Value| Some(value.value? as u32);
        Some((of(&network.columns)?, of(&network.rows)?, of(&network.cores_per_tile)?))
    };
    match own() {
        Some((c, r, k)) => sizes(&[1, 2, 4].map(|n| (n * c, n * r, k))),
        None => sizes(&[(6, 4, 2), (12, 8, 2), (24, 16, 2), (48, 32, 2), (80, 64, 2)]),
    }
}

fn one(
    arguments: &Arguments,
    machine: &Machine,
    pattern: Pattern,
    mesh: Dimensions,
    in_flight: u32,
) -> Result<Row, CliError> {
    let traffic = Traffic { pattern, gets: arguments.gets as usize, lines: arguments.lines as usize };
    let Found { time, ideal, port, link, limit, events } = limit(machine, mesh, in_flight, traffic)?;
    Ok(Row {
        machine: machine.name.clone(),
        mesh: mesh.to_string(),
        ranks: mesh.cores(),
        in_flight,
        pattern: pattern.name(),
        gets: arguments.gets,
        lines: arguments.lines,
        time_ns: time.nanos(),
        ideal_ns: ideal.nanos(),
        slowdown: time.0 as f64 / ideal.0.max(1) as f64,
        port_share: port,
        link_share: link,
        limit: limit.name(),
        events,
    })
}

/// Prints a row as soon as it is known: printed rows stay when the command is interrupted.
fn print(row: &Row, machine: &Machine, begun: &mut bool, session: &mut Session) -> Result<(), CliError> {
    session.out.object("what-if", row)?;
    if !*begun {
        *begun = true;
        session.out.line(&format!("Constants of {}", machine.title))?;
        session.out.line(&format!(
            "each core {} {} lines {} times, one after the other\n",
            if machine.mesh.is_some() { "gets" } else { "reads from another's cache" },
            row.lines,
            row.gets
        ))?;
        session.out.line(&format!(
            "{:>9}  {:>10}  {:>6}  {:>9}  {:>9}  {:>6}  {:>6}  {:>6}  LIMIT",
            "TRAFFIC", "MESH", "CORES", "IN FLIGHT", "TIME", "SLOWER", "PORT", "LINK"
        ))?;
    }
    session.out.line(&format!(
        "{:>9}  {:>10}  {:>6}  {:>9}  {:>9}  {:>5.2}x  {:>4.0} %  {:>4.0} %  {}",
        row.pattern,
        row.mesh,
        row.ranks,
        row.in_flight,
        Nanos(row.time_ns).to_string(),
        row.slowdown,
        100.0 * row.port_share,
        100.0 * row.link_share,
        row.limit
    ))?;
    session.out.flush()
}

/// Draws, for each pattern, the ratio of the busiest link to the busiest port and the slowdown, over the number of cores, with a curve for each
/// number of accesses in flight.
fn picture(machine: &Machine, rows: &[Row]) -> String {
    let mut panels = Vec::new();
    let mut patterns: Vec<&str> = rows.iter().map(|r| r.pattern).collect();
    patterns.dedup();
    for pattern in patterns {
        for (what, of) in [
            ("busiest link / busiest port", (|r| r.link_share / r.port_share) as fn(&Row) -> f64),
            ("time / time where nothing waits", |r| r.slowdown),
        ] {
            let mut curves = Vec::new();
            for row in rows.iter().filter(|r| r.pattern == pattern) {
                let name = format!("{} in flight", row.in_flight);
                extend(&mut curves, name, spot((row.ranks as f64, of(row))), false);
            }
            panels.push(Chart {
                title: pattern.to_owned(),
                x: Axis::new("cores", Scale::Doubling),
                y: Axis::new(what, Scale::Log),
                series: curves,
            });
        }
    }
    let detail = format!("over numbers of cores; above 1 links are busier than ports; {}", machine.title);
    compared("What limits a mesh: links or ports", &detail, &panels)
}
