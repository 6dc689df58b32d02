//! `lineweave trace`: the timeline of a job that `lineweave run --trace` recorded.

use crate::calls::{call, posed};
use crate::error::CliError;
use crate::files;
use crate::output::table;
use crate::question::Where;
use crate::session::Session;
use crate::trace::chrome::{shape, timeline, Shape};
use crate::trace::record::Part;
use crate::trace::waits::{self, Total};
use crate::trace::{load, remove};
use lineweave::settings::Settings;
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shapes of calls are predicted, the most frequent first, for so long.
const LONGEST: Duration = Duration::from_secs(3);
/// So many ranks that others waited for are named at the end of a job.
const NAMED: usize = 3;

/// The timeline to write.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The file that `run --trace` named; what the ranks recorded is in FILE.parts
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Keep what the ranks recorded
    #[arg(long)]
    keep: bool,
    /// Called by the job's last rank
    #[arg(long, hide = true)]
    of_job: bool,
}

/// A job's timeline, which has the form of Chrome's trace events. Printed as `trace` by `lineweave trace FILE`.
#[derive(Serialize)]
struct TraceObject<'a> {
    file: &'a Path,
    mpi: &'a str,
    /// Ranks that recorded something.
    ranks: usize,
    calls: usize,
    /// Calls before those, which the ranks' records no longer had.
    dropped: u64,
    /// Source of the costs by which calls are predicted.
    predicted_by: &'a str,
}

/// A rank of the job. Printed as `trace-rank` by `lineweave trace FILE`.
#[derive(Serialize)]
struct TraceRankObject<'a> {
    node: &'a str,
    rank: usize,
    pid: u32,
    /// True if it came to `MPI_Finalize`.
    complete: bool,
    calls: usize,
    /// Time in blocking collectives.
    inside_ms: f64,
    /// The part of that in which it waited for others.
    waited_ms: f64,
    /// Time of others in which they waited for this rank.
    waited_for_ms: f64,
    waited_for_calls: usize,
    /// The collective in which they waited for it most.
    waited_for_most_in: Option<&'a str>,
}

/// Writes the timeline.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (parts, warnings) = load(&arguments.file)?;
    warnings.iter().for_each(|warning| session.out.warn(warning));
    let waits = waits::find(&parts);
    let totals = waits::totals(&parts, &waits);
    let (settings, _) = session.settings()?;
    let (predicted, by) = predict(&parts, &settings, session)?;
    files::replace_bytes(&arguments.file, &timeline(&parts, &waits, &predicted, &by), "FILE")?;
    if parts.iter().any(Part::runs) {
        session.out.warn("some ranks still run: what they recorded is kept");
    } else if !arguments.keep {
        remove(&arguments.file);
    }
    if arguments.of_job {
        if !settings.run.quiet {
            say(&arguments.file, &parts, &totals, session);
        }
        return Ok(());
    }
    show(&arguments.file, &parts, &totals, &by, session)
}

/// Writes the timeline of a job that is over.
pub fn of_job(file: &Path, session: &mut Session) -> Result<(), CliError> {
    run(&Arguments { file: file.to_owned(), keep: false, of_job: true }, session)
}

/// Returns what lineweave's plans take by this machine's costs, for the shapes that occur most often, and the source of these costs.
fn predict(
    parts: &[Part],
    settings: &Settings,
    session: &mut Session,
) -> Result<(HashMap<Shape, f64>, String), CliError> {
    let mut often: HashMap<Shape, usize> = HashMap::new();
    for shape in parts.iter().flat_map(|part| &part.calls).filter_map(shape) {
        *often.entry(shape).or_default() += 1;
    }
    let mut often: Vec<(Shape, usize)> = often.into_iter().collect();
    often.sort_by_key(|((collective, ranks, bytes), many)| {
        (Reverse(*many), collective.to_string(), *ranks, *bytes)
    });
    let Ok(costs) = session.costs() else { return Ok((HashMap::new(), "nothing".to_owned())) };
    let began = Instant::now();
    let mut predicted = HashMap::new();
    for ((collective, ranks, bytes), _) in often {
        if began.elapsed() > LONGEST {
            break;
        }
        let place = Where { ranks: Some(ranks), ..Where::default() };
        let length = if collective.moves_data() { usize::try_from(bytes).unwrap_or(usize::MAX) } else { 0 };
        let asked = place.question(session, collective, length, &costs.topology, settings.box_bytes)?;
        if let Ok(found) = call(&costs.tuning, &posed(asked, &costs.tuning, settings), None) {
            predicted.insert((collective, ranks, bytes), found.predicted.0);
        }
    }
    Ok((predicted, costs.origin))
}

fn many(parts: &[Part]) -> (usize, u64) {
    (parts.iter().map(|part| part.calls.len()).sum(), parts.iter().map(|part| part.dropped).sum())
}

/// Returns the parts that others waited for, the longest first.
fn late(totals: &[Total]) -> Vec<usize> {
    let mut late: Vec<usize> = (0..totals.len()).filter(|&p| totals[p].kept_ns > 0).collect();
    late.sort_by_key(|&p| Reverse(totals[p].kept_ns));
    late
}

fn heading(file: &Path, parts: &[Part]) -> String {
    let (calls, dropped) = many(parts);
    let lost = match dropped {
        0 => String::new(),
        n => format!("; the {n} before them are not there (LINEWEAVE_MPI_TRACE_CALLS)"),
    };
    let dead = parts.iter().filter(|part| !part.complete).count();
    let dead = if dead == 0 { String::new() } else { format!("; {dead} did not come to MPI_Finalize") };
    format!("{}: {calls} calls of {} ranks{lost}{dead}", file.display(), parts.len())
}

/// One line at the end of a job, and one for each of the ranks that others waited for most.
fn say(file: &Path, parts: &[Part], totals: &[Total], session: &Session) {
    session.out.note(&format!("timeline {}", heading(file, parts)));
    for p in late(totals).into_iter().take(NAMED) {
        let total = &totals[p];
        session.out.note(&format!(
            "  rank {} was waited for: {} in all, in {} calls, most in {}",
            parts[p].rank,
            Nanos(total.kept_ns as f64),
            total.kept_calls,
            total.kept_most.as_deref().unwrap_or("-")
        ));
    }
}

fn show(
    file: &Path,
    parts: &[Part],
    totals: &[Total],
    by: &str,
    session: &mut Session,
) -> Result<(), CliError> {
    let (calls, dropped) = many(parts);
    let mpi = parts.first().map_or("", |part| &part.mpi);
    let object = TraceObject { file, mpi, ranks: parts.len(), calls, dropped, predicted_by: by };
    session.out.object("trace", &object)?;
    session.out.line(&heading(file, parts))?;
    let titles = ["rank", "calls", "in them", "waiting", "waited for", "in calls", "most in"];
    let mut rows = table(&titles, &[0, 1, 2, 3, 4, 5]);
    for (part, total) in parts.iter().zip(totals) {
        let ms = |ns: i64| ns as f64 / 1e6;
        let object = TraceRankObject {
            node: &part.node,
            rank: part.rank,
            pid: part.pid,
            complete: part.complete,
            calls: part.calls.len(),
            inside_ms: ms(total.inside_ns),
            waited_ms: ms(total.waited_ns),
            waited_for_ms: ms(total.kept_ns),
            waited_for_calls: total.kept_calls,
            waited_for_most_in: total.kept_most.as_deref(),
        };
        session.out.object("trace-rank", &object)?;
        let time = |ns: i64| Nanos(ns as f64).to_string();
        rows.add_row([
            part.rank.to_string(),
            part.calls.len().to_string(),
            time(total.inside_ns),
            time(total.waited_ns),
            time(total.kept_ns),
            total.kept_calls.to_string(),
            total.kept_most.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    session.out.table(&rows)?;
    session.out.line("Open it in ui.perfetto.dev or chrome://tracing.")
}
