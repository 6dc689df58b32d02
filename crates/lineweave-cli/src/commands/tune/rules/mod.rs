//! `lineweave tune --for openmpi|mpich|intel`: races an MPI's own algorithms, and writes the best ones in the form that this MPI reads.
//!
//! 1. One round runs all algorithms. Those that come near the best at some length are finalists.
//! 2. Further rounds run the finalists and the default. Only their times decide, since the first round selected the finalists.
//! 3. A choice is written where its median beats the first quartile of the default's launches by 5 %.

mod check;
mod choose;

use super::Arguments as Tune;
use crate::error::CliError;
use crate::files::{replace, to_write};
use crate::mpi::rules::{can_say, write, Head, Written};
use crate::mpi::{Effort, Flavour, Host, HostError, Order, Runs};
use crate::node::NodeInfo;
use crate::output::table;
use crate::session::Session;
use choose::{choose, finalists, Choice};
use lineweave::settings::Settings;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// For which MPI, and what to do.
#[derive(clap::Args, Debug, Default)]
pub struct ForMpi {
    /// Tune an MPI's own algorithms instead of lineweave's, and write what that MPI reads; its launcher stands behind --
    #[arg(long = "for", value_name = "MPI", requires = "launcher", conflicts_with_all = ["seconds", "ranks"], help_heading = "For an MPI")]
    flavour: Option<Flavour>,
    /// Compare an MPI as it is with this file's `export` lines in turns, instead of tuning
    #[arg(long, value_name = "FILE", requires = "launcher", conflicts_with_all = ["flavour", "seconds", "ranks"], help_heading = "For an MPI")]
    check: Option<PathBuf>,
    /// Where to write the `export` lines; files that they name lie beside it [default: MPI-RANKS.sh]
    #[arg(long, short, value_name = "FILE.sh", value_parser = to_write, requires = "flavour", help_heading = "For an MPI")]
    output: Option<PathBuf>,
    /// Show what would change and the gain, and write nothing
    #[arg(long, requires = "flavour", help_heading = "For an MPI")]
    dry_run: bool,
    /// Replace a file that is there
    #[arg(long, requires = "flavour", help_heading = "For an MPI")]
    force: bool,
    /// Launches of each setting [default: 3]
    #[arg(long, value_name = "N", requires = "launcher", value_parser = clap::value_parser!(u8).range(1..=50), help_heading = "For an MPI")]
    rounds: Option<u8>,
    /// Where the MPI is, if not where its launcher is
    #[arg(long, value_name = "PREFIX", requires = "launcher", help_heading = "For an MPI")]
    mpi: Option<PathBuf>,
    /// The MPI's launcher and its options, without a program: mpirun -n 2
    #[arg(last = true, value_name = "LAUNCHER", help_heading = "For an MPI")]
    launcher: Vec<OsString>,
}

impl ForMpi {
    /// Returns whether an MPI is to be tuned or checked.
    pub fn are_asked(&self) -> bool {
        self.flavour.is_some() || self.check.is_some() || !self.launcher.is_empty()
    }
}

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

/// Measures, chooses, shows and writes rules; or checks existing ones.
///
/// # Errors
/// [`CliError::Host`]; [`CliError::Kept`] where a file with other rules exists; [`CliError::Slower`] where the checked rules are slower.
pub fn run(tune: &Tune, session: &mut Session) -> Result<(), CliError> {
    let arguments = &tune.rules;
    let order = Order {
        launcher: &arguments.launcher,
        prefix: arguments.mpi.as_deref(),
        collectives: &tune.collectives,
        bytes: &tune.bytes,
        quick: tune.quick,
        rounds: arguments.rounds,
        channel: false,
    };
    let (host, found) = order.start()?;
    if let Some(file) = &arguments.check {
        return check::run(file, &host, &order.effort(), session);
    }
    let flavour = arguments.flavour.unwrap_or(found);
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
    let head = head(&host, flavour, &runs, &effort, &choices)?;
    let keep = !arguments.dry_run && !written.variables.is_empty();
    show(&host, flavour, &runs, &choices, keep.then_some(&*script), session)?;
    match keep {
        true => keep_rules(&script, &head, &written, arguments.force, session),
        false => Ok(()),
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
    let node = NodeInfo::gather(&Settings::default(), &[])?;
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
    Ok(Head {
        mpi: version,
        machine: format!("{}, {} CPUs", node.fingerprint.cpu, node.fingerprint.cpus),
        date: lineweave_tune::measure::utc::now(),
        command: format!("lineweave tune --for {} -- {}", flavour.value(), host.command),
        ranks: host.facts.ranks,
        confidence: format!(
            "medians of {} rounds; {} of {} launches were disturbed by other work",
            effort.rounds, runs.disturbed, runs.launches
        ),
        rules: choices.iter().filter_map(rule).collect(),
    })
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

/// Writes the script and its files, unless a file with other rules exists.
fn keep_rules(
    script: &Path,
    head: &Head,
    written: &Written,
    force: bool,
    session: &mut Session,
) -> Result<(), CliError> {
    let text = head.script(&written.variables);
    if let (Ok(there), false) = (std::fs::read_to_string(script), force) {
        let changes = differences(&there, &text);
        if !changes.is_empty() && !session.out.is_json() {
            session.out.line(&format!("{}, as it is (-) and as it would be (+):", script.display()))?;
            changes.iter().try_for_each(|line| session.out.line(line))?;
        }
        return Err(CliError::Kept { path: script.to_owned() });
    }
    for (path, text) in &written.files {
        replace(path, text, "-o")?;
    }
    replace(script, &text, "-o")?;
    if !session.out.is_json() {
        session.out.line(&format!(
            "kept in {}: `. {}` before mpirun; `lineweave tune --check {} -- ...` compares it with the default",
            script.display(),
            script.display(),
            script.display()
        ))?;
    }
    Ok(())
}

/// Returns the lines that only one of the texts has, marked `-` and `+`.
fn differences(old: &str, new: &str) -> Vec<String> {
    let only = |a: &str, b: &str, mark: char| -> Vec<String> {
        a.lines().filter(|line| !b.lines().any(|l| l == *line)).map(|line| format!("{mark} {line}")).collect()
    };
    only(old, new, '-').into_iter().chain(only(new, old, '+')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_there_are_kept_and_what_differs_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("t.sh");
        let head = |date: &str| Head {
            mpi: "m".into(),
            machine: "c".into(),
            date: date.into(),
            command: "x".into(),
            ranks: 2,
            confidence: "3".into(),
            rules: Vec::new(),
        };
        let written = Written { variables: vec![("A".into(), "1".into())], files: Vec::new() };
        let mut session =
            Session::new(crate::session::Globals { json: true, quiet: true, ..Default::default() });
        keep_rules(&script, &head("1"), &written, false, &mut session).unwrap();
        let first = std::fs::read_to_string(&script).unwrap();
        let again = keep_rules(&script, &head("2"), &written, false, &mut session);
        assert!(matches!(again, Err(CliError::Kept { .. })));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), first);
        keep_rules(&script, &head("2"), &written, true, &mut session).unwrap();
        let second = std::fs::read_to_string(&script).unwrap();
        assert_eq!(differences(&first, &second), ["- # date: 1", "+ # date: 2"]);
    }
}
