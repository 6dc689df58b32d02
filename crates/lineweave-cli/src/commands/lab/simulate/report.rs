//! Output of `lineweave lab simulate`: a row for each simulation, as soon as it is done.

use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::Params;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::simulate::mesh::Overlaps;
use serde::Serialize;
use std::fmt;

/// The result of one simulation. Printed as `simulate` by `lineweave lab simulate`, as soon as it is done; with `--algorithm all` the fastest first.
#[derive(Serialize, Clone, Debug)]
pub struct Row {
    /// The description, with its dimensions where they were given.
    pub machine: String,
    pub collective: Collective,
    pub algorithm: &'static str,
    pub params: Params,
    pub ranks: usize,
    pub root: usize,
    pub bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<usize>,
    /// Runs back to back.
    pub runs: usize,
    /// `line` or `chunk`.
    pub fidelity: &'static str,
    /// Size of a flag: `line`, `byte` or `bit`.
    pub flags: &'static str,
    /// The placement of ranks: `thread` or `core`; `None` where cores have one hardware thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    #[serde(flatten)]
    pub times: Times,
    #[serde(flatten)]
    pub busy: Busy,
    #[serde(flatten)]
    pub effort: Effort,
}

/// Cost of the simulation itself.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Effort {
    pub events: u64,
    #[serde(skip)]
    pub seconds: f64,
}

/// Simulated times of the calls.
#[derive(Serialize, Clone, Debug)]
pub struct Times {
    /// The first run alone.
    pub first_ns: f64,
    /// Time from the root's entry to the last rank's return, on average over all runs but the first.
    pub latency_ns: f64,
    /// Time from run to run, or of the one run; with windows of the whole message.
    pub time_ns: f64,
    pub bound_ns: Option<f64>,
    pub ratio: Option<f64>,
    /// 10^6 bytes a second, of collectives with data.
    #[serde(rename = "throughput_MBps")]
    pub throughput_mbps: Option<f64>,
}

/// Use of what ranks share: shares of the time for which ports, links and controllers are busy, and how many use one at once.
#[derive(Serialize, Clone, Debug, Default)]
pub struct Busy {
    /// Share of the time of the busiest port; `None` without a mesh, and with `--ideal` on one of coherent caches.
    pub port_share: Option<f64>,
    pub link_share: Option<f64>,
    /// Memory controllers of a mesh of message buffers.
    pub controllers: Option<usize>,
    /// Share of the time of the busiest; at 1 memory alone bounds the time.
    pub controller_share: Option<f64>,
    /// `None` off meshes, and for plans of too many ops.
    pub at_once: Option<AtOnce>,
}

/// The most messages on a link, cores of a tile that exchange messages with other tiles, and other cores at a buffer, at once.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct AtOnce {
    link: usize,
    tile: usize,
    buffer: usize,
    /// Buffers that more than two others used at once.
    crowded_buffers: usize,
}

impl AtOnce {
    pub fn of(found: Overlaps) -> AtOnce {
        let Overlaps { links, tiles, buffers, .. } = found;
        AtOnce { link: links.most, tile: tiles.most, buffer: buffers.most, crowded_buffers: buffers.places }
    }
}

impl fmt::Display for AtOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}/{}", self.link, self.tile, self.buffer))
    }
}

/// The report while rows are still added.
pub struct Report {
    title: String,
    rows: usize,
    of: usize,
    events: u64,
    seconds: f64,
    at_once: bool,
}

impl Report {
    /// Returns a report without rows.
    pub fn new(machine: &Machine, collective: Collective, of: usize, placed: Option<String>) -> Report {
        let placed = placed.map(|p| format!("\n{p}")).unwrap_or_default();
        Report {
            title: format!("{collective} on {}{placed}", machine.title),
            rows: 0,
            of,
            events: 0,
            seconds: 0.0,
            at_once: false,
        }
    }

    /// Prints a row. Printed rows stay when the command is interrupted.
    pub fn row(&mut self, row: &Row, session: &mut Session) -> Result<(), CliError> {
        self.events += row.effort.events;
        self.seconds += row.effort.seconds;
        self.rows += 1;
        self.at_once |= row.busy.at_once.is_some();
        session.out.object("simulate", row)?;
        if self.rows == 1 {
            session.out.line(&self.title)?;
            let fidelity = match row.fidelity {
                "line" => "line by line",
                _ => "chunk by chunk",
            };
            let flags = match row.flags {
                super::LAID_OUT => "flags as laid out".to_owned(),
                what => format!("flags of a {what}"),
            };
            session.out.line(&format!(
                "{}/{} ({}), {flags}, {fidelity}\n",
                row.collective,
                row.algorithm,
                super::shown(&row.params),
            ))?;
            session.out.line(&format!(
                "{:>6}  {:>5}  {:>4}  {:>9}  {:>5}  {:>9}  {:>9}  {:>9}  {:>5}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>10}",
                "RANKS",
                "ROOT",
                "K",
                "BYTES",
                "RUNS",
                "TIME",
                "LATENCY",
                "BOUND",
                "RATIO",
                "MB/S",
                "PORT",
                "LINK",
                "MEMORY",
                "AT ONCE",
                "EVENTS"
            ))?;
        }
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let share = |share: Option<f64>| or_dash(share.map(|s| format!("{:.1} %", 100.0 * s)));
        session.out.line(&format!(
            "{:>6}  {:>5}  {:>4}  {:>9}  {:>5}  {:>9}  {:>9}  {:>9}  {:>5}  {:>7}  {:>6}  {:>6}  {:>6}  {:>7}  {:>10}",
            row.ranks,
            row.root,
            row.params.get("k").unwrap_or("-"),
            Bytes(row.bytes as u64).to_string(),
            row.runs,
            Nanos(row.times.time_ns).to_string(),
            Nanos(row.times.latency_ns).to_string(),
            or_dash(row.times.bound_ns.map(|b| Nanos(b).to_string())),
            or_dash(row.times.ratio.map(|r| format!("{r:.2}"))),
            or_dash(row.times.throughput_mbps.map(|t| format!("{t:.2}"))),
            share(row.busy.port_share),
            share(row.busy.link_share),
            share(row.busy.controller_share),
            or_dash(row.busy.at_once.map(|a| a.to_string())),
            row.effort.events
        ))?;
        session.out.flush()
    }

    /// Prints all algorithms for one case, fastest first.
    pub fn ranking(&mut self, rows: &[Row], session: &mut Session) -> Result<(), CliError> {
        for row in rows {
            self.events += row.effort.events;
            self.seconds += row.effort.seconds;
        }
        self.rows += 1;
        rows.iter().try_for_each(|row| session.out.object("simulate", row))?;
        let Some(first) = rows.first() else { return Ok(()) };
        if self.rows == 1 {
            session.out.line(&format!("{}\n", self.title))?;
        }
        let root = if first.collective.rooted() { format!(", root {}", first.root) } else { String::new() };
        let bytes = Bytes(first.bytes as u64);
        session.out.line(&format!("{} of {bytes}, {} ranks{root}\n", first.collective, first.ranks))?;
        let mut rows_table = table(
            &["algorithm", "time", "ratio", "MB/s", "port", "link", "memory", "window", "parameters"],
            &[1, 2, 3, 4, 5, 6],
        );
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let share = |share: Option<f64>| or_dash(share.map(|s| format!("{:.1} %", 100.0 * s)));
        for row in rows {
            rows_table.add_row([
                row.algorithm.to_owned(),
                Nanos(row.times.time_ns).to_string(),
                or_dash(row.times.ratio.map(|r| format!("{r:.2}"))),
                or_dash(row.times.throughput_mbps.map(|t| format!("{t:.2}"))),
                share(row.busy.port_share),
                share(row.busy.link_share),
                share(row.busy.controller_share),
                or_dash(row.window_bytes.map(|w| Bytes(w as u64).to_string())),
                super::shown(&row.params),
            ]);
        }
        session.out.table_without(&rows_table, &["port", "link", "memory", "MB/s"])?;
        session.out.line("")?;
        session.out.flush()
    }

    /// Prints the last line.
    pub fn finish(self, session: &mut Session) -> Result<(), CliError> {
        if self.at_once {
            let words = "AT ONCE: most messages on a link / cores of a tile with messages to others / other cores at a buffer";
            session.out.line(&format!("\n{words}"))?;
        }
        let rate = self.events as f64 / self.seconds.max(1e-9);
        session.out.line(&format!(
            "\n{} of {} simulations, {} events in {}: {:.1} million a second",
            self.rows,
            self.of,
            self.events,
            Nanos(self.seconds * 1e9),
            rate / 1e6
        ))
    }
}
