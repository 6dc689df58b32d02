//! Settings of a runtime of OpenMP: finds the best for each number of threads, and writes them as a script.

use super::{check, facts, keep, Kept};
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::Cell;
use crate::node::{self, NodeInfo};
use crate::openmp::search::{self, search, steps, Effort, Tuned};
use crate::openmp::{is_setting, label, script, Host, OpenmpError, Runtime, CONSTRUCTS};
use crate::output::table;
use crate::script::{Head, Variables, WHAT};
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Milliseconds that a construct is timed for in a launch, and rounds that decide.
const USUAL: (u32, usize) = (20, 5);
const QUICK: (u32, usize) = (8, 2);

/// The runtime of OpenMP that is tuned. Printed as `tune-openmp` by `lineweave tune --for`, one object a number of threads.
#[derive(Serialize)]
struct TunedObject<'a> {
    runtime: &'static str,
    library: &'a str,
    threads: usize,
    cpus: usize,
    /// The chosen variables; none for the default.
    settings: BTreeMap<&'a str, &'a str>,
    /// Geometric mean, over the constructs, of the default's time divided by the time with the settings.
    gain: f64,
    tried: usize,
    /// Settings that the runtime does not know.
    refused: usize,
    launches: usize,
    file: Option<String>,
}

/// The times of a construct. Printed as `tune-openmp-cell` by `lineweave tune --for`.
#[derive(Serialize)]
struct CellObject<'a> {
    threads: usize,
    #[serde(flatten)]
    cell: &'a search::Cell,
}

/// Measures, chooses, shows and writes settings.
pub fn run(tune: &Tune, runtime: Runtime, session: &mut Session) -> Result<(), CliError> {
    let arguments = &tune.rules;
    if !arguments.launcher.is_empty() {
        return Err(OpenmpError::Launcher(runtime.name()).into());
    }
    warn(tune, runtime, session);
    let node = NodeInfo::gather(&Settings::default(), &[])?;
    let cpus = node.usable.effective;
    let host = Host::start(runtime)?;
    let effort = effort(tune, cpus);
    let teams = teams(tune, cpus);
    let bar = session.out.progress(teams.iter().map(|&threads| steps(&host, threads, &effort) as u64).sum());
    let mut tuned = Vec::new();
    for &threads in &teams {
        let mut step = |setting: &str| {
            bar.set_message(format!("{threads} threads: {setting}"));
            bar.inc(1);
        };
        tuned.push(search(&host, threads, &effort, &mut step)?);
    }
    bar.finish_and_clear();
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.sh", runtime.name())));
    let choices: Vec<script::Choice> =
        tuned.iter().filter_map(|t| Some((t.threads, t.chosen.clone()?))).collect();
    let keeps = !arguments.dry_run && !choices.is_empty();
    show(&host, &tuned, cpus, keeps.then_some(&*path), session)?;
    if !keeps {
        return Ok(());
    }
    let text = head(&host, &tuned, &effort)?.script(&script::body(&choices, cpus));
    let kept = Kept { script: &path, text, files: &[], before: "the program", checked: "" };
    keep(&kept, arguments.force, session)
}

/// Compares a runtime as it is and with the settings of a file, for each number of threads of the file that was asked for.
pub fn check(
    tune: &Tune,
    runtime: Runtime,
    file: &Path,
    text: &str,
    session: &mut Session,
) -> Result<(), CliError> {
    if !tune.rules.launcher.is_empty() {
        return Err(OpenmpError::Launcher(runtime.name()).into());
    }
    warn(tune, runtime, session);
    let mut choices = script::choices(text).map_err(|why| CliError::malformed(file, WHAT, why))?;
    choices.retain(|(threads, _)| {
        tune.ranks.is_empty() || tune.ranks.iter().any(|asked| usize::from(*asked) == *threads)
    });
    if choices.is_empty() {
        return Err(CliError::malformed(file, WHAT, "nothing is exported for these numbers of threads"));
    }
    let host = Host::start(runtime)?;
    let effort = effort(tune, 0);
    let bar = session.out.progress((2 * effort.rounds * choices.len()) as u64);
    let mut all = Vec::new();
    for (threads, variables) in &choices {
        let mut launch = |variables: &Variables, side: &str| {
            host.launch(*threads, effort.window_ms, variables).map_err(|how| {
                let how = format!("{side}: {how}");
                CliError::from(OpenmpError::Broken { runtime: runtime.name(), threads: *threads, how })
            })
        };
        let (default, ruled) = check::alternate(effort.rounds, variables, &bar, &mut launch)?;
        let cells = CONSTRUCTS.map(|construct| Cell::new(construct, *threads as u64));
        all.extend(check::compared(&cells, &default, &ruled));
    }
    bar.finish_and_clear();
    let kind = check::Kind {
        json: "tune-openmp-check",
        task: "construct",
        at: "threads",
        with: "with settings",
        ranks: None,
    };
    let slower = check::show(&all, &kind, session)?;
    check::verdict(file, slower, all.len())
}

fn effort(tune: &Tune, cpus: usize) -> Effort {
    let (window_ms, rounds) = if tune.quick { QUICK } else { USUAL };
    Effort { window_ms, rounds: tune.rules.rounds.map_or(rounds, usize::from), cpus }
}

/// Returns the numbers of threads: by default half of the CPUs, all of them and twice as many.
fn teams(tune: &Tune, cpus: usize) -> BTreeSet<usize> {
    match tune.ranks.is_empty() {
        true => [cpus / 2, cpus, 2 * cpus].into_iter().filter(|threads| *threads >= 2).collect(),
        false => tune.ranks.iter().map(|n| usize::from(*n)).collect(),
    }
}

/// Warns of what has no effect, and of other work.
fn warn(tune: &Tune, runtime: Runtime, session: &Session) {
    let options = [
        (!tune.collectives.is_empty(), "--collective"),
        (!tune.bytes.is_empty(), "--bytes"),
        (tune.rules.exhaustive, "--exhaustive"),
    ];
    for (given, option) in options {
        if given {
            session.out.warn(&format!("{option} has no effect on {}", runtime.name()));
        }
    }
    if let Some(load) = node::load().filter(|load| *load > 1.0) {
        session.out.warn(&format!(
            "the load average is {load:.1}: a quiet machine, or more --rounds, gives surer settings"
        ));
    }
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_setting)) {
        session.out.warn(&format!("{} is left out while {} is measured", name.display(), runtime.name()));
    }
}

fn head(host: &Host, tuned: &[Tuned], effort: &Effort) -> Result<Head, CliError> {
    let command = format!("lineweave tune --for {}", host.runtime.name());
    let confidence = format!("medians of {} rounds of the settings near the best", effort.rounds);
    let rule = |t: &Tuned| {
        let times = t
            .cells
            .iter()
            .map(|c| format!("{} {} and {}", c.construct, Nanos(c.default_ns), Nanos(c.time_ns)));
        let times: Vec<String> = times.collect();
        format!("{} threads, by default and by these settings: {}", t.threads, times.join(", "))
    };
    let rules = tuned.iter().filter(|t| t.chosen.is_some()).map(|t| ("times", rule(t)));
    let bound = tuned.iter().flat_map(|t| t.chosen.iter().flatten()).any(|(name, _)| name == "OMP_PROC_BIND");
    let caution = "OMP_PROC_BIND is for a process that has its CPUs for itself: two that are not bound apart would share the first ones";
    let caution = bound.then(|| ("caution", caution.to_owned()));
    let runtime = [("runtime", format!("{}, {}", host.runtime.name(), host.library))];
    let facts = runtime.into_iter().chain(facts(command)?).chain([("confidence", confidence)]);
    let facts = facts.chain(caution).chain(rules).collect();
    Ok(Head {
        title: "Settings of a runtime of OpenMP: source this file where OMP_NUM_THREADS is set.",
        facts,
    })
}

fn show(
    host: &Host,
    tuned: &[Tuned],
    cpus: usize,
    file: Option<&Path>,
    session: &mut Session,
) -> Result<(), CliError> {
    let out = &mut session.out;
    out.line(&format!("{}, {}, {cpus} CPUs", host.runtime.name(), host.library))?;
    let mut lines =
        table(&["threads", "construct", "default", "chosen", "gain", "least of all"], &[0, 2, 3, 4, 5]);
    for t in tuned {
        let settings = t.chosen.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        let object = TunedObject {
            runtime: host.runtime.name(),
            library: &host.library,
            threads: t.threads,
            cpus,
            settings: settings.collect(),
            gain: t.gain(),
            tried: t.tried,
            refused: t.refused,
            launches: t.launches,
            file: file.map(|f| f.display().to_string()),
        };
        out.object("tune-openmp", &object)?;
        for c in &t.cells {
            out.object("tune-openmp-cell", &CellObject { threads: t.threads, cell: c })?;
            let time = |ns: f64| Nanos(ns).to_string();
            let (chosen, gain) = match t.chosen {
                Some(_) => (time(c.time_ns), format!("{:.2}", c.default_ns / c.time_ns)),
                None => ("(default)".to_owned(), String::new()),
            };
            let row = [t.threads.to_string(), c.construct.to_owned(), time(c.default_ns), chosen, gain];
            lines.add_row(row.into_iter().chain([time(c.least_ns)]));
        }
    }
    out.table(&lines)?;
    for t in tuned {
        let refused =
            if t.refused > 0 { format!(", {} not known to this runtime", t.refused) } else { String::new() };
        out.line(&match &t.chosen {
            Some(chosen) => {
                format!(
                    "OMP_NUM_THREADS={}: {} (gain {:.2}, {} tried{refused})",
                    t.threads,
                    label(chosen),
                    t.gain(),
                    t.tried
                )
            }
            None => format!(
                "OMP_NUM_THREADS={}: nothing clearly faster than the default ({} tried{refused})",
                t.threads, t.tried
            ),
        })?;
    }
    Ok(())
}
