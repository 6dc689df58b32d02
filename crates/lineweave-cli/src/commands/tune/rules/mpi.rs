//! Rules of an MPI: races the MPI's own algorithms, and writes the best ones in the form that this MPI reads.
//!
//! 1. One round runs all algorithms. Those that come near the best at some length are finalists.
//! 2. Further rounds run the finalists and the default. Only their times decide, since the first round selected the finalists.
//! 3. A choice is written where it is faster than the default by 5 %, and faster in each round.
//! 4. Further rounds with the choices and without decide which collectives keep them.

use super::choose::{self, by_model, choose, complete, finalists, rules, ByModel, Choice};
use super::mpi_turns::faster;
use super::{facts, keep, Kept};
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::rules::{can_say, write, Table, Team};
use crate::mpi::{Effort, Flavour, Host, HostError, Models, Order};
use crate::output::{name_of, shell_word, table};
use crate::script::{export_lines, variables, Head};
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The MPI that is tuned. Printed as `tune-mpi` by `lineweave tune --for`, first.
#[derive(Serialize)]
struct HeadObject<'a> {
    mpi: &'static str,
    version: &'a str,
    command: &'a str,
    ranks: usize,
    /// Number of rounds that decide.
    rounds: usize,
    /// Geometric mean, over all cells, of the default's time divided by the time with the rules.
    gain: f64,
    /// Number of cells for which an algorithm is chosen.
    chosen: usize,
    cells: usize,
    /// Cells in which tau-Lop alone would have chosen within 5 % of the best.
    model_right: Option<usize>,
    /// Cells for which tau-Lop predicts at least two algorithms.
    model_cells: Option<usize>,
    file: Option<String>,
}

/// The choice for one collective and length. Printed as `tune-mpi-cell` by `lineweave tune --for`.
#[derive(Serialize)]
struct CellObject<'a> {
    ranks: usize,
    collective: Collective,
    bytes: u64,
    default_ns: f64,
    /// The algorithm that beats the default, if there is one.
    algorithm: Option<&'a str>,
    time_ns: Option<f64>,
    /// Its time by tau-Lop, where it has a closed form.
    predicted_ns: Option<f64>,
    /// The next best algorithm; `None` for the default.
    next: Option<&'a str>,
    next_ns: Option<f64>,
}

/// The outcome for a number of ranks.
struct Tuned {
    host: Host,
    choices: Vec<Choice>,
    by_model: Option<ByModel>,
}

/// Measures, chooses, shows and writes rules, for each number of ranks.
pub fn run(tune: &Tune, flavour: Flavour, session: &mut Session) -> Result<(), CliError> {
    let arguments = &tune.rules;
    let launchers = launchers(tune)?;
    if launchers.len() > 1 && !flavour.takes_several() {
        return Err(HostError::Several(launchers.len(), flavour.name()).into());
    }
    let effort = order(tune, &[]).effort();
    let mut tuned = Vec::new();
    for (host, found) in hosts(tune, &launchers, session)? {
        if flavour != found {
            return Err(HostError::Other { found: found.name(), wanted: flavour.name() }.into());
        }
        tuned.push(raced(tune, host, flavour, session)?);
    }
    let Some(Tuned { host, .. }) = tuned.first() else { return Ok(()) };
    let ranks: Vec<usize> = tuned.iter().map(|t| t.host.facts.ranks).collect();
    let script = arguments.output.clone().unwrap_or_else(|| usual(flavour, &ranks));
    let table = |&collective: &Collective| {
        let team = |t: &Tuned| Team { ranks: t.host.facts.ranks, rules: rules(&t.choices, collective) };
        Table::new(collective, tuned.iter().map(team))
    };
    let tables: Vec<Table> = effort.collectives.iter().map(table).collect();
    let mut written = write(flavour, &host.mpi, &tables, &script)?;
    if !written.variables.is_empty() {
        // The settings for ranks that share CPUs were in force during the measurement, so they belong to the rules.
        written.variables.extend(variables(host.crowded()));
    }
    let keeps = !arguments.dry_run && !written.variables.is_empty();
    tuned.iter().try_for_each(|t| show(t, (flavour, &effort), keeps.then_some(&*script), session))?;
    if !keeps {
        return Ok(());
    }
    let command = command(tune);
    let head = head(&tuned, format!("lineweave tune --for {}{command}", name_of(&flavour)), &effort)?;
    let text = head.script(&export_lines(&written.variables));
    let kept = Kept { script: &script, text, files: &written.files, before: "mpirun", checked: &command };
    keep(&kept, arguments.force, session)
}

/// Returns the launcher's line for each number of ranks that was asked for; that on the command line where none was.
pub(super) fn launchers(tune: &Tune) -> Result<Vec<Vec<OsString>>, HostError> {
    const NUMBERS: [&str; 4] = ["-n", "-np", "--np", "--n"];
    let given = &tune.rules.launcher;
    if tune.ranks.is_empty() {
        return Ok(vec![given.clone()]);
    }
    if let Some(word) = given.iter().find(|word| NUMBERS.iter().any(|n| *word == n)) {
        return Err(HostError::Ranks(word.to_string_lossy().into_owned()));
    }
    let of = |ranks: &u16| given.iter().cloned().chain(["-n".into(), ranks.to_string().into()]).collect();
    Ok(tune.ranks.iter().collect::<BTreeSet<_>>().into_iter().map(of).collect())
}

/// Starts all ranks once. Where those of the largest team share CPUs, the settings for that are in force for all: the rules of one file are
/// measured in one way.
pub(super) fn hosts(
    tune: &Tune,
    launchers: &[Vec<OsString>],
    session: &Session,
) -> Result<Vec<(Host, Flavour)>, HostError> {
    let mut hosts = Vec::new();
    for launcher in launchers {
        hosts.push(order(tune, launcher).start()?);
    }
    let most = hosts.iter().map(|(host, _)| host.facts.ranks).max().unwrap_or_default();
    hosts.iter_mut().for_each(|(host, _)| host.crowd = most);
    if let Some((host, _)) = hosts.last() {
        order(tune, &[]).warn_of_crowds(host, session);
    }
    Ok(hosts)
}

pub(super) fn order<'a>(tune: &'a Tune, launcher: &'a [OsString]) -> Order<'a> {
    Order {
        launcher,
        prefix: tune.rules.mpi.as_deref(),
        collectives: &tune.collectives,
        bytes: &tune.bytes,
        quick: tune.quick,
        rounds: tune.rules.rounds,
        channel: false,
    }
}

/// Runs one round of all algorithms and of the channel, then rounds of the algorithms near the best.
fn raced(tune: &Tune, host: Host, flavour: Flavour, session: &Session) -> Result<Tuned, CliError> {
    let order = order(tune, &[]);
    let effort = order.effort();
    let ranks = host.facts.ranks;
    let mut all = flavour.algorithms(&host.mpi, ranks, &effort.collectives);
    all.retain(|algorithm| can_say(flavour, algorithm));
    let first = Effort { rounds: 1, channel: true, ..effort.clone() };
    let first = order.measure(&host, flavour, &first, all, session)?.levelled();
    let models = Models::fit(&first.channel);
    let runs = order.measure(&host, flavour, &effort, finalists(&effort, &first), session)?.levelled();
    let mut choices = choose(&effort, &runs, models.as_ref(), ranks);
    if flavour != Flavour::Mpich {
        complete(&mut choices, &runs, models.as_ref(), ranks, flavour.needs_all_lengths());
    }
    keep_faster(tune, (&host, flavour), &effort, &mut choices, session)?;
    let by_model = models.map(|models| by_model(&effort, &first, &models, ranks));
    Ok(Tuned { host, choices, by_model })
}

/// Has a library carry out what is chosen, and leaves collectives that do not get faster by it to the library: a library takes time to look a rule up,
/// which it does not where an algorithm is forced.
fn keep_faster(
    tune: &Tune,
    (host, flavour): (&Host, Flavour),
    effort: &Effort,
    choices: &mut [Choice],
    session: &Session,
) -> Result<(), CliError> {
    let chosen =
        |c: &&Collective| choices.iter().any(|choice| choice.collective == **c && choice.best.is_some());
    let collectives: Vec<Collective> = effort.collectives.iter().filter(chosen).copied().collect();
    let team = |c| Team { ranks: host.facts.ranks, rules: rules(choices, c) };
    let tables: Vec<Table> = collectives.iter().map(|&c| Table::new(c, [team(c)])).collect();
    let written = write(flavour, &host.mpi, &tables, &host.directory().join("chosen.sh"))?;
    if written.variables.is_empty() {
        return Ok(());
    }
    written
        .files
        .iter()
        .try_for_each(|(path, text)| std::fs::write(path, text))
        .map_err(HostError::Directory)?;
    let effort = Effort { collectives, ..effort.clone() };
    let faster = faster(tune, (host, flavour), &effort, &written.variables, session)?;
    choices.iter_mut().filter(|c| !faster.contains(&c.collective)).for_each(|c| c.best = None);
    Ok(())
}

/// Returns the default path of the `export` lines.
fn usual(flavour: Flavour, ranks: &[usize]) -> PathBuf {
    PathBuf::from(match ranks {
        [ranks] => format!("{}-{ranks}.sh", name_of(&flavour)),
        _ => format!("{}.sh", name_of(&flavour)),
    })
}

/// Returns the arguments that say which ranks are meant: numbers of ranks, and the launcher.
fn command(tune: &Tune) -> String {
    let words = |list: Vec<String>, by: &str| list.join(by);
    let ranks = words(tune.ranks.iter().map(ToString::to_string).collect(), ",");
    let ranks = if ranks.is_empty() { ranks } else { format!(" --ranks {ranks}") };
    let launcher = tune.rules.launcher.iter().map(|word| shell_word(&word.to_string_lossy()));
    format!("{ranks} -- {}", words(launcher.collect(), " "))
}

fn head(tuned: &[Tuned], command: String, effort: &Effort) -> Result<Head, CliError> {
    let version = |t: &Tuned| t.host.facts.version.chars().take(80).collect::<String>();
    let confidence = match effort.rounds {
        1 => "one round, in turns with the default".to_owned(),
        rounds => format!("medians of {rounds} rounds, in turns with the default"),
    };
    let ranks: Vec<String> = tuned.iter().map(|t| t.host.facts.ranks.to_string()).collect();
    let rules = tuned.iter().flat_map(|t| t.choices.iter().filter_map(|c| rule(t.host.facts.ranks, c)));
    let mut all = vec![("mpi", tuned.first().map(version).unwrap_or_default())];
    all.extend(facts(command)?);
    all.extend([("ranks", ranks.join(",")), ("confidence", confidence)]);
    all.extend(rules.map(|rule| ("rule", rule)));
    Ok(Head { title: "Algorithms of collectives: source this file before mpirun.", facts: all })
}

/// Returns the reason for a choice: its time, what was predicted, what comes next, and the default.
fn rule(ranks: usize, c: &Choice) -> Option<String> {
    let best = c.best.as_ref()?;
    let predicted = best.predicted_ns.map(|ns| format!(" (predicted {})", Nanos(ns)));
    let next = best.next.0.as_ref().map(|name| format!(", next {name} {}", Nanos(best.next.1)));
    Some(format!(
        "{ranks} ranks, {} {}: {} {}{}{}, by default {}",
        c.collective,
        Bytes(c.bytes),
        best.algorithm.name,
        Nanos(best.nanos),
        predicted.unwrap_or_default(),
        next.unwrap_or_default(),
        Nanos(c.default_ns)
    ))
}

fn show(
    tuned: &Tuned,
    (flavour, effort): (Flavour, &Effort),
    file: Option<&Path>,
    session: &mut Session,
) -> Result<(), CliError> {
    let Tuned { host, choices, by_model } = tuned;
    let ranks = host.facts.ranks;
    let gain = choose::gain(choices);
    let chosen = choices.iter().filter(|c| c.best.is_some()).count();
    let out = &mut session.out;
    let head = HeadObject {
        mpi: flavour.name(),
        version: &host.facts.version,
        command: &host.command,
        ranks,
        rounds: effort.rounds,
        gain,
        chosen,
        cells: choices.len(),
        model_right: by_model.map(|m| m.right),
        model_cells: by_model.map(|m| m.cells),
        file: file.map(|f| f.display().to_string()),
    };
    out.object("tune-mpi", &head)?;
    out.line(&format!("{flavour}, {ranks} ranks by `{}`", host.command))?;
    let headings = ["collective", "bytes", "default", "best", "time", "gain", "predicted"];
    let mut lines = table(&headings, &[1, 2, 4, 5, 6]);
    for c in choices {
        let best = c.best.as_ref();
        let predicted = best.and_then(|b| b.predicted_ns);
        let object = CellObject {
            ranks,
            collective: c.collective,
            bytes: c.bytes,
            default_ns: c.default_ns,
            algorithm: best.map(|b| &*b.algorithm.name),
            time_ns: best.map(|b| b.nanos),
            predicted_ns: predicted,
            next: best.and_then(|b| b.next.0.as_deref()),
            next_ns: best.map(|b| b.next.1),
        };
        out.object("tune-mpi-cell", &object)?;
        lines.add_row([
            c.collective.to_string(),
            Bytes(c.bytes).to_string(),
            Nanos(c.default_ns).to_string(),
            best.map_or_else(|| "(default)".to_owned(), |b| b.algorithm.name.clone()),
            best.map(|b| Nanos(b.nanos).to_string()).unwrap_or_default(),
            best.map(|b| format!("{:.2}", c.default_ns / b.nanos)).unwrap_or_default(),
            predicted.map(|ns| Nanos(ns).to_string()).unwrap_or_default(),
        ]);
    }
    out.table(&lines)?;
    out.line(&format!(
        "{chosen} of {} cells have a faster algorithm than the default; mean gain over all {gain:.2}",
        choices.len()
    ))?;
    match by_model {
        Some(ByModel { right, cells }) => out.line(&format!(
            "tau-Lop alone would have chosen within 5 % of the best in {right} of {cells} cells"
        )),
        None => Ok(()),
    }
}
