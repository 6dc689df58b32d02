//! `lineweave lab what-if --coherence`: the same plans where caches agree and with message buffers, all else equal.

use super::LabError;
use crate::curve::{extend, spot};
use crate::error::CliError;
use crate::files::replace;
use crate::output::table;
use crate::session::Session;
use lineweave_core::machine::Machine;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::coherence::{plan, readers, Times, Twins, ALGORITHMS};
use lineweave_lab::draw::{charts, Axis, Chart, Scale, Series};
use lineweave_lab::simulate::SimulateError;
use serde::Serialize;
use std::path::Path;

/// Lengths of messages, ranks beside all cores, and how often a line is read.
const BYTES: [usize; 3] = [64, 1 << 10, 8 << 10];
const RANKS: [usize; 3] = [2, 8, 24];
const AGAIN: [usize; 3] = [1, 2, 4];
/// Calls, of which the first is not counted.
const RUNS: usize = 3;
/// Within this factor both are alike.
const ALIKE: f64 = 1.05;

/// A plan where caches agree, and with message buffers. Printed as `coherence` by `lineweave lab what-if --coherence`, one object a machine, plan,
/// number of ranks and length.
#[derive(Serialize, Clone)]
struct Row {
    machine: String,
    /// Time of a line from one core to another.
    line_ns: f64,
    /// `None` where ranks read 8 lines of one buffer, and the algorithm is `readers`.
    collective: Option<String>,
    algorithm: &'static str,
    ranks: usize,
    bytes: usize,
    /// Number of times that each reader reads the buffer.
    reads: Option<usize>,
    /// One call where caches agree.
    caches_ns: f64,
    /// One call with message buffers.
    buffers_ns: f64,
    /// The time with message buffers divided by the other.
    ratio: f64,
    /// `pays` where the ratio is above 1.05, `costs` where its inverse is, else `alike`.
    coherence: &'static str,
}

impl Row {
    /// Readers of one buffer, if `collective` is `None`.
    fn of(
        (twins, machine): (&Twins, &Machine),
        (collective, algorithm): (Option<String>, &'static str),
        (ranks, bytes, reads): (usize, usize, Option<usize>),
        times: Times,
    ) -> Row {
        let ratio = times.ratio();
        Row {
            machine: machine.name.clone(),
            line_ns: twins.line_ns,
            collective,
            algorithm,
            ranks,
            bytes,
            reads,
            caches_ns: times.caches.nanos(),
            buffers_ns: times.buffers.nanos(),
            ratio,
            coherence: match ratio {
                pays if pays > ALIKE => "pays",
                costs if costs < 1.0 / ALIKE => "costs",
                _ => "alike",
            },
        }
    }

    fn name(&self) -> String {
        match (&self.collective, self.reads) {
            (Some(collective), _) => format!("{collective}/{}", self.algorithm),
            (None, reads) => format!("readers, {} x", reads.unwrap_or(1)),
        }
    }
}

/// Compares both on each machine, and prints and draws what comes out.
pub fn run(machines: &[Machine], output: Option<&Path>, session: &mut Session) -> Result<(), CliError> {
    let mut panels = Vec::new();
    for machine in machines {
        let twins = Twins::of(machine).map_err(|e| match e {
            SimulateError::NoFamily { machine, .. } => LabError::NoMeshCosts { costs: machine }.into(),
            other => CliError::from(other),
        })?;
        let rows = rows(&twins, machine, session)?;
        print(&rows, &twins, machine, session)?;
        panels.extend(pictures(&rows, machine));
    }
    let Some(file) = output else { return Ok(()) };
    let detail = "above 1 coherence pays, below 1 it costs; the same latency of a line, links and ports";
    replace(file, &charts("Put/get by coherence: time by time", detail, &panels), "-o")
}

fn rows(twins: &Twins, machine: &Machine, session: &mut Session) -> Result<Vec<Row>, CliError> {
    let mut ranks: Vec<usize> = RANKS.into_iter().filter(|&n| n < twins.cores).collect();
    ranks.push(twins.cores);
    let bar = session.out.progress_of_work((ranks.len() * (AGAIN.len() + ALGORITHMS.len())) as u64);
    let mut rows = Vec::new();
    for again in AGAIN {
        for &ranks in &ranks {
            let lines = 8;
            let times = twins.play(&readers(ranks - 1, lines, again, twins.line_bytes), 1)?;
            let size = (ranks, lines * twins.line_bytes, Some(again));
            rows.push(Row::of((twins, machine), (None, "readers"), size, times));
            bar.inc(1);
        }
    }
    for (collective, algorithm) in ALGORITHMS {
        let lengths = if collective.moves_data() { &BYTES[..] } else { &[0] };
        for &ranks in &ranks {
            for &bytes in lengths {
                // Where a flag is a byte no message fits in its line.
                let times = match twins.play(&plan(collective, algorithm, ranks, bytes)?, RUNS) {
                    Err(SimulateError::Payload { .. }) => continue,
                    other => other?,
                };
                let what = (Some(collective.to_string()), algorithm);
                rows.push(Row::of((twins, machine), what, (ranks, bytes, None), times));
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(rows)
}

fn print(rows: &[Row], twins: &Twins, machine: &Machine, session: &mut Session) -> Result<(), CliError> {
    rows.iter().try_for_each(|row| session.out.object("coherence", row))?;
    session.out.line(&format!("Constants of {}: a line takes {}", machine.title, Nanos(twins.line_ns)))?;
    session.out.line(
        "the same plans where caches agree, and with message buffers that are put into and got from\n",
    )?;
    let mut shown =
        table(&["plan", "ranks", "bytes", "coherent", "put/get", "ratio", "coherence"], &[1, 2, 3, 4, 5]);
    for row in rows {
        shown.add_row([
            row.name(),
            row.ranks.to_string(),
            Bytes(row.bytes as u64).to_string(),
            Nanos(row.caches_ns).to_string(),
            Nanos(row.buffers_ns).to_string(),
            format!("{:.2}", row.ratio),
            row.coherence.to_owned(),
        ]);
    }
    session.out.table(&shown)?;
    session.out.line("")
}

/// Draws the ratio over ranks, and over bytes for all cores.
fn pictures(rows: &[Row], machine: &Machine) -> [Chart; 2] {
    let most = rows.iter().map(|row| row.ranks).max().unwrap_or(0);
    let curves = |wanted: &dyn Fn(&&Row) -> bool, x: fn(&Row) -> f64| {
        let mut curves = Vec::new();
        for row in rows.iter().filter(wanted) {
            extend(&mut curves, row.name(), spot((x(row), row.ratio)), false);
        }
        curves
    };
    let by_ranks = |row: &&Row| row.reads.is_some() || row.bytes == 0 || row.bytes == BYTES[1];
    let by_bytes = |row: &&Row| row.reads.is_none() && row.bytes > 0 && row.ranks == most;
    let chart = |title: String, x: Axis, series: Vec<Series>| Chart {
        title: format!("{}: {title}", machine.name),
        x,
        y: Axis::new("times as long", Scale::Log),
        series,
    };
    [
        chart(
            format!("messages of {}", Bytes(BYTES[1] as u64)),
            Axis::new("ranks", Scale::Doubling),
            curves(&by_ranks, |row| row.ranks as f64),
        ),
        chart(
            format!("{most} ranks"),
            Axis::new("bytes", Scale::Bytes),
            curves(&by_bytes, |row| row.bytes as f64),
        ),
    ]
}
