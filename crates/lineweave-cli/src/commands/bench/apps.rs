//! `lineweave bench apps`: real programs end to end, with lineweave and without.

use super::{begun, here, mpi::prefixes, peers_directory, written, Arguments};
use crate::bench::apps::{apps, install, measure, Ask, Part, Row};
use crate::error::CliError;
use crate::node;
use crate::output::{table, Output};
use crate::session::Session;
use clap::ValueEnum;
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// A program that did not run, and the reason. Printed as `skipped` by `lineweave bench apps`.
#[derive(Serialize)]
struct LeftOut {
    part: Part,
    because: String,
}

/// The load of the machine from other programs. Printed as `app-load` by `lineweave bench apps`, before the figures.
#[derive(Serialize)]
struct Load {
    /// The load average when measuring began.
    one_minute: f64,
}

/// Measures and shows.
pub(super) fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (_, node, tuning) = here(session)?;
    let directory = peers_directory(arguments).join("apps");
    let lineweave = std::env::current_exe().map_err(CliError::OwnFile)?;
    if arguments.install {
        install(&directory, &lineweave).map_err(CliError::Apps)?;
    }
    let mpis = match arguments.mpi.is_empty() {
        true => mpis_below(&directory.join("mpi")).unwrap_or_else(|| prefixes(arguments)),
        false => arguments.mpi.clone(),
    };
    let (provenance, mut report) = begun(arguments, &node, &tuning, session)?;
    let load = Load { one_minute: node::load().unwrap_or(0.0) };
    report.line(&mut session.out, "app-load", &load)?;
    let workers = match (arguments.ranks.as_slice(), arguments.quick) {
        ([], true) => vec![2],
        ([], false) => vec![2, 4],
        (given, _) => given.to_vec(),
    };
    let (launches, seconds) = (arguments.launches(), if arguments.quick { 0.5 } else { 1.0 });
    let cpus = node.usable.cpus.len();
    let ask =
        Ask { directory: &directory, lineweave: &lineweave, mpis: &mpis, workers: &workers, cpus, seconds };
    let parts = if arguments.parts.is_empty() { Part::value_variants() } else { &arguments.parts };
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for &part in parts {
        let found = apps(part, &ask);
        let bar = session.out.progress((found.len() * launches * 2) as u64);
        for app in found {
            let measured = app.and_then(|app| {
                let said = format!("{}, {}", app.program, app.workers);
                let step = |way| {
                    bar.set_message(format!("{said}: {way:?}").to_lowercase());
                    bar.inc(1);
                };
                measure(&app, launches, step).map_err(|why| format!("{said}: {why}"))
            });
            match measured {
                Ok(of_app) => rows.extend(of_app),
                Err(because) => left_out.push(LeftOut { part, because }),
            }
        }
        bar.finish_and_clear();
    }
    for row in &rows {
        report.line(&mut session.out, "app", row)?;
    }
    for skipped in &left_out {
        report.line(&mut session.out, "skipped", skipped)?;
    }
    show(&rows, &left_out, load.one_minute, &mut session.out)?;
    written(arguments, "apps", &provenance, &report, &mut session.out)
}

/// Returns the MPIs that were installed for this benchmark, or `None`.
fn mpis_below(directory: &Path) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|prefix| prefix.join("bin/mpirun").exists()).collect();
    found.sort();
    (!found.is_empty()).then_some(found)
}

/// Returns a figure as text: the time of a run, or the rate of work that is repeated.
fn told(of: &str, ns: f64) -> String {
    match of {
        "run" => Nanos(ns).to_string(),
        _ => format!("{:.1} {of}s/s", 1e9 / ns),
    }
}

fn show(rows: &[Row], left_out: &[LeftOut], load: f64, out: &mut Output) -> Result<(), CliError> {
    let heading = [
        "program",
        "ranks or threads",
        "what it runs",
        "without",
        "with lineweave",
        "time, with over without",
        "communication",
    ];
    let mut lines = table(&heading, &[1, 3, 4, 5]);
    for row in rows {
        let share =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |s| format!("{:.0} %", 100.0 * s));
        let [low, high] = row.ratio_interval;
        lines.add_row([
            row.program.clone(),
            row.workers.to_string(),
            row.runs.to_owned(),
            told(&row.of, row.without_median_ns),
            told(&row.of, row.with_median_ns),
            format!("{:.2} ({low:.2} to {high:.2})", row.ratio),
            match (row.communication_without, row.communication_with) {
                (None, None) => "-".to_owned(),
                (without, with) => format!("{} to {}", share(without), share(with)),
            },
        ]);
    }
    out.table(&lines)?;
    if !left_out.is_empty() {
        out.line("\nnot measured:")?;
    }
    for skipped in left_out {
        out.line(&format!("  {}", skipped.because))?;
    }
    out.line(&format!("\nIn the minute before, {load:.2} programs ran on this machine on average."))
}
