//! Rules of an MPI: races the MPI's own algorithms, and writes the best ones in the form that this MPI reads.
//!
//! 1. One round runs all algorithms. Those that come near the best at some length are finalists.
//! 2. Further rounds run the finalists and the default. Only their times decide, since the first round selected the finalists.
//! 3. A choice is written where its median beats the first quartile of the default's launches by 5 %.

use super::choose::{self, choose, finalists, Choice};
use super::{check, facts, keep, Kept};
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::rules::{can_say, write};
use crate::mpi::{lengths, task, with_reference, Cell, Effort, Flavour, Host, HostError, Order, Runs};
use crate::output::table;
use crate::script::{export_lines, exports, fact, Head, Variables};
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct HeadObject<'a> {
    mpi: &'static str,
    version: &'a str,
    command: &'a str,
    ranks: usize,
    launches: usize,
    disturbed: usize,
    /// Geometric mean, over all cells, of the default's time divided by the time with the rules.
    gain: f64,
    /// Number of cells for which an algorithm is chosen.
    chosen: usize,
    cells: usize,
    file: Option<String>,
}

/// Measures, chooses, shows and writes rules.
///
/// # Errors
/// [`CliError::Host`]; [`CliError::Kept`] where a file with other rules exists.
pub fn run(tune: &Tune, flavour: Flavour, session: &mut Session) -> Result<(), CliError> {
    let arguments = &tune.rules;
    let order = order(tune);
    let (host, found) = order.start()?;
    if flavour != found {
        return Err(HostError::Other { found: found.name(), wanted: flavour.name() }.into());
    }
    order.warn_of_crowds(&host, session);
    let effort = order.effort();
    let runs = raced(&order, &host, flavour, &effort, session)?;
    let choices = choose(&effort, &runs);
    let script = arguments.output.clone().unwrap_or_else(|| usual(flavour, host.facts.ranks));
    let tables = choose::tables(&choices, &effort);
    let mut written = write(flavour, &host.mpi, &tables, host.facts.ranks, &script)?;
    if !written.variables.is_empty() {
        // The settings for ranks that share CPUs were in force during the measurement, so they belong to the rules.
        written.variables.extend(host.crowded().iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    }
    let keeps = !arguments.dry_run && !written.variables.is_empty();
    show(&host, flavour, &runs, &choices, keeps.then_some(&*script), session)?;
    if !keeps {
        return Ok(());
    }
    let text = head(&host, flavour, &runs, &effort, &choices)?.script(&export_lines(&written.variables));
    let checked = format!(" -- {}", host.command);
    let kept = Kept { script: &script, text, files: &written.files, before: "mpirun", checked: &checked };
    keep(&kept, arguments.force, session)
}

/// Compares an MPI as it is and with the rules of a file.
///
/// # Errors
/// [`CliError::Malformed`] for a file without `export` lines; [`CliError::Host`] when a launch fails, also by a wrong result;
/// [`CliError::Slower`].
pub fn check(tune: &Tune, file: &Path, text: &str, session: &mut Session) -> Result<(), CliError> {
    let variables = exports(text).map_err(|why| CliError::malformed(file, check::WHAT, why))?;
    let order = order(tune);
    let (host, _) = order.start()?;
    let effort = order.effort();
    if let Some(of) = fact(text, "ranks").filter(|of| *of != host.facts.ranks.to_string()) {
        session.out.warn(&format!(
            "the file's rules are for {of} ranks, and the launcher starts {}",
            host.facts.ranks
        ));
    }
    let tasks = with_reference(effort.collectives.iter().map(|c| task(*c, &effort.bytes)).collect());
    let mut launch = |variables: &Variables, side: &str| {
        host.launch(&tasks, effort.window_ms, variables).map_err(|failed| {
            let command = format!("{}, {side}", host.command);
            CliError::from(HostError::Broken { command, how: failed.how })
        })
    };
    let bar = session.out.progress(2 * effort.rounds as u64);
    let (default, ruled) = check::alternate(effort.rounds, &variables, &bar, file, &mut launch)?;
    bar.finish_and_clear();
    let lengths =
        |&c: &Collective| lengths(c, &effort.bytes).into_iter().map(move |b| Cell::new(c.name(), b));
    let cells: Vec<Cell> = effort.collectives.iter().flat_map(lengths).collect();
    let kind = check::Kind { json: "tune-mpi-check", task: "collective", at: "bytes", with: "with rules" };
    check::report(file, &check::compared(&cells, &default, &ruled), &kind, session)
}

fn order(tune: &Tune) -> Order<'_> {
    Order {
        launcher: &tune.rules.launcher,
        prefix: tune.rules.mpi.as_deref(),
        collectives: &tune.collectives,
        bytes: &tune.bytes,
        quick: tune.quick,
        rounds: tune.rules.rounds,
        channel: false,
    }
}

/// Runs one round of all algorithms, then rounds of those near the best.
fn raced(
    order: &Order<'_>,
    host: &Host,
    flavour: Flavour,
    effort: &Effort,
    session: &Session,
) -> Result<Runs, CliError> {
    let mut all = flavour.algorithms(&host.mpi, host.facts.ranks, &effort.collectives);
    all.retain(|algorithm| can_say(flavour, algorithm));
    let first = order.measure(host, flavour, &Effort { rounds: 1, ..effort.clone() }, all, session)?;
    Ok(order.measure(host, flavour, effort, finalists(effort, &first), session)?)
}

/// Returns the default path of the `export` lines.
fn usual(flavour: Flavour, ranks: usize) -> PathBuf {
    PathBuf::from(format!("{}-{ranks}.sh", flavour.value()))
}

fn head(
    host: &Host,
    flavour: Flavour,
    runs: &Runs,
    effort: &Effort,
    choices: &[Choice],
) -> Result<Head, CliError> {
    let version: String = host.facts.version.chars().take(80).collect();
    let rule = |c: &Choice| {
        let best = c.best.as_ref()?;
        let sure = if best.sure { "" } else { ", not in every launch" };
        Some(format!(
            "{} {}: {} {}, by default {}{sure}",
            c.collective,
            Bytes(c.bytes),
            best.algorithm.name,
            Nanos(best.nanos),
            Nanos(c.default_ns)
        ))
    };
    let command = format!("lineweave tune --for {} -- {}", flavour.value(), host.command);
    let confidence = format!(
        "medians of {} rounds; {} of {} launches were disturbed by other work",
        effort.rounds, runs.disturbed, runs.launches
    );
    let own = [("ranks", host.facts.ranks.to_string()), ("confidence", confidence)];
    let rules = choices.iter().filter_map(rule).map(|rule| ("rule", rule));
    let facts = [("mpi", version)].into_iter().chain(facts(command)?).chain(own).chain(rules).collect();
    Ok(Head { title: "Algorithms of collectives: source this file before mpirun.", facts })
}

fn show(
    host: &Host,
    flavour: Flavour,
    runs: &Runs,
    choices: &[Choice],
    file: Option<&Path>,
    session: &mut Session,
) -> Result<(), CliError> {
    let gain = choose::gain(choices);
    let chosen = choices.iter().filter(|c| c.best.is_some()).count();
    let out = &mut session.out;
    if out.is_json() {
        let head = HeadObject {
            mpi: flavour.name(),
            version: &host.facts.version,
            command: &host.command,
            ranks: host.facts.ranks,
            launches: runs.launches,
            disturbed: runs.disturbed,
            gain,
            chosen,
            cells: choices.len(),
            file: file.map(|f| f.display().to_string()),
        };
        out.object("tune-mpi", &head)?;
        return choices.iter().try_for_each(|choice| out.object("tune-mpi-cell", choice));
    }
    out.line(&format!("{flavour}, {} ranks by `{}`", host.facts.ranks, host.command))?;
    let mut lines = table(&["collective", "bytes", "default", "best", "time", "gain"], &[1, 2, 4, 5]);
    for c in choices {
        let best = c.best.as_ref();
        lines.add_row([
            c.collective.to_string(),
            Bytes(c.bytes).to_string(),
            Nanos(c.default_ns).to_string(),
            best.map_or_else(|| "(default)".to_owned(), |b| b.algorithm.name.clone()),
            best.map(|b| Nanos(b.nanos).to_string()).unwrap_or_default(),
            best.map(|b| format!("{:.2}", c.default_ns / b.nanos)).unwrap_or_default(),
        ]);
    }
    out.table(&lines)?;
    out.line(&format!(
        "{chosen} of {} cells have a faster algorithm than the default; mean gain over all {gain:.2}",
        choices.len()
    ))
}
