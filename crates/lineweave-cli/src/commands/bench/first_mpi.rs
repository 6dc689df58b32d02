//! `lineweave bench first --mpi`: single calls of a program of an MPI (`bench/mpi/first.c`), with lineweave in front of it and without.
//!
//! Launches alternate. Each has a cache of its own with what `tune` and `measure` kept for the machine, and nothing that earlier programs kept: it is the
//! first one, and what it keeps is there for its later calls.

use super::first::Task;
use super::mpi::found;
use super::report::Report;
use super::{peers_directory, Arguments};
use crate::bench::installed::Mpi;
use crate::bench::mpi::{median, ratio};
use crate::error::CliError;
use crate::mpi::{lines, Line};
use crate::output::table;
use crate::session::Session;
use lineweave::tuning::{CHOICES_FILE, COSTS_FILE, PROFILE_FILE};
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::{fs, io};
use tempfile::TempDir;

const PROGRAM: &str = include_str!("../../../bench/mpi/first.c");

/// The calls of one line that the program prints, over all launches. Printed as `first-mpi` by `lineweave bench first --mpi`, one object an MPI,
/// number of ranks and line of `bench/mpi/first.c`.
#[derive(Clone, Debug, Serialize)]
struct Row {
    mpi: String,
    ranks: usize,
    /// `sweep` and `again`: reduces of many lengths to many roots, and the same once more; `allreduce`: the first call and the second.
    calls: String,
    /// Number of calls, or length of the allreduce in bytes.
    n: u64,
    /// Medians over the launches: of a sweep the median, the time that a thousandth exceeds, and the longest; else the first call and the second.
    without_ns: Vec<f64>,
    with_ns: Vec<f64>,
    /// The longest call, or the first one, with lineweave over without: the median of the rounds' ratios, and its interval.
    ratio: f64,
    ratio_interval: [f64; 2],
}

/// The command before the program, and the directory that has this machine's profile, if any directory can.
struct Lineweave {
    command: PathBuf,
    machine: Option<PathBuf>,
}

impl Lineweave {
    /// Makes a cache directory with the machine's profile, costs and choices, and nothing that programs kept.
    fn new_cache(&self) -> io::Result<TempDir> {
        let cache = tempfile::Builder::new().prefix("lineweave-first-").tempdir()?;
        let Some(machine) = &self.machine else { return Ok(cache) };
        let copies = cache.path().join("lineweave").join(machine.file_name().unwrap_or_default());
        fs::create_dir_all(&copies)?;
        for name in [PROFILE_FILE, COSTS_FILE, CHOICES_FILE] {
            match fs::copy(machine.join(name), copies.join(name)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(cache)
    }
}

/// Launches the program once and returns its lines.
fn launch(
    (mpi, program): &(Mpi, PathBuf),
    (ranks, cpus): (usize, usize),
    task: &Task,
    lineweave: Option<&Lineweave>,
) -> Result<Vec<Line>, String> {
    let sizes: Vec<String> = task.sizes.iter().map(usize::to_string).collect();
    let mut command = mpi.started(ranks, cpus, program, lineweave.map(|it| it.command.as_path()));
    command.args([task.lengths.to_string(), task.roots.to_string(), sizes.join(",")]);
    let cache = lineweave.map(Lineweave::new_cache).transpose();
    let cache = cache.map_err(|e| format!("cannot make a cache for a launch: {e}"))?;
    if let Some(cache) = &cache {
        command.env("XDG_CACHE_HOME", cache.path());
    }
    mpi.said(&mut command).map(|out| lines(&out))
}

/// Returns the rows of one MPI and number of ranks.
fn measure(
    subject: &(Mpi, PathBuf),
    (ranks, cpus): (usize, usize),
    task: &Task,
    launches: usize,
    lineweave: &Lineweave,
    mut step: impl FnMut(),
) -> Result<Vec<Row>, CliError> {
    let mut rounds: [Vec<Vec<Line>>; 2] = Default::default();
    for round in 0..launches {
        for with in [round % 2 == 0, round % 2 != 0] {
            let lines = launch(subject, (ranks, cpus), task, with.then_some(lineweave));
            rounds[usize::from(with)].push(lines.map_err(CliError::Mpi)?);
            step();
        }
    }
    let [without, with] = &rounds;
    let row = |(i, line): (usize, &Line)| {
        let each = |rounds: &[Vec<Line>], at: usize| -> Vec<f64> {
            rounds.iter().filter_map(|lines| lines.get(i)?.times.get(at).copied()).collect()
        };
        let medians = |rounds| (0..line.times.len()).map(|at| median(&each(rounds, at))).collect();
        let compared = if line.task == "allreduce" { 0 } else { line.times.len() - 1 };
        let (ratio, ratio_interval) = ratio(&each(with, compared), &each(without, compared));
        let (mpi, calls) = (subject.0.name.clone(), line.task.clone());
        Row {
            mpi,
            ranks,
            calls,
            n: line.bytes,
            without_ns: medians(without),
            with_ns: medians(with),
            ratio,
            ratio_interval,
        }
    };
    Ok(with.first().into_iter().flatten().enumerate().map(row).collect())
}

/// Measures under each MPI that was named, and shows.
pub(super) fn run(
    arguments: &Arguments,
    teams: &[usize],
    cpus: usize,
    task: &Task,
    report: &mut Report,
    session: &mut Session,
) -> Result<(), CliError> {
    let mut rows = Vec::new();
    let directory = peers_directory(arguments);
    let machine = match session.cached_profile() {
        Ok((_, profile)) => profile.parent().map(Path::to_owned),
        Err(CliError::NoCache) => None,
        Err(e) => return Err(e),
    };
    let lineweave = Lineweave { command: std::env::current_exe().map_err(CliError::OwnFile)?, machine };
    let subjects = found(arguments, session, |mpi| mpi.build("first", PROGRAM, &directory))?;
    let bar = session.out.progress((2 * arguments.launches() * teams.len() * subjects.len()) as u64);
    for subject in &subjects {
        for &ranks in teams {
            bar.set_message(format!("{}, {ranks} ranks", subject.0.name));
            rows.extend(measure(subject, (ranks, cpus), task, arguments.launches(), &lineweave, || {
                bar.inc(1)
            })?);
        }
    }
    bar.finish_and_clear();
    for row in &rows {
        report.line(&mut session.out, "first-mpi", row)?;
    }
    session.out.line("")?;
    let heading = [
        "mpi",
        "ranks",
        "calls",
        "lineweave",
        "median or second",
        "99.9 %",
        "slowest or first",
        "with / without",
        "interval",
    ];
    let mut shown = table(&heading, &[1, 4, 5, 6, 7]);
    for row in &rows {
        let calls = match row.calls.as_str() {
            "allreduce" => format!("allreduce of {}", Bytes(row.n)),
            calls => format!("{calls}: {} reduces", row.n),
        };
        for (with, times) in [(false, &row.without_ns), (true, &row.with_ns)] {
            let time = |at: usize| times.get(at).map(|&ns| Nanos(ns).to_string()).unwrap_or_default();
            let spread =
                if times.len() > 2 { [time(0), time(1), time(2)] } else { [time(1), String::new(), time(0)] };
            let compared = match with {
                true => [
                    format!("{:.2}", row.ratio),
                    format!("{:.2} to {:.2}", row.ratio_interval[0], row.ratio_interval[1]),
                ],
                false => [String::new(), String::new()],
            };
            let subject = [
                row.mpi.clone(),
                row.ranks.to_string(),
                calls.clone(),
                if with { "with" } else { "without" }.to_owned(),
            ];
            shown.add_row(subject.into_iter().chain(spread).chain(compared));
        }
    }
    session.out.table(&shown)
}
