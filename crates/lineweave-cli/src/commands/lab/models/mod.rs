//! `lineweave lab models`: predictions of every published model, and of the simulated plan, for every algorithm, beside
//! measured times.

mod bounds;
mod measured;
mod report;

use super::subject::Subject;
use super::teams::question;
use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::files::replace;
use crate::question::{collective, Place};
use crate::session::Session;
use crate::size::Size;
use lineweave_core::collective::Collective;
use lineweave_core::plan::PlanError;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use lineweave_core::{algorithm, units::Bytes};
use lineweave_lab::closed_form::{farthest, rows, Absent, Row};
use lineweave_lab::models::{estimate, Estimates};
use measured::Times;
use std::path::{Path, PathBuf};

/// Names of the models, as `--model` takes them.
const MODELS: [&str; 13] = [
    "Hockney",
    "LogP",
    "LogGP",
    "PLogP",
    "log_nP",
    "mlog_nP",
    lineweave_lab::models::put_get::NAME,
    lineweave_lab::models::cache_line::BEST,
    lineweave_lab::models::cache_line::WORST,
    "tau-Lop",
    lineweave_lab::closed_form::WHOLE,
    lineweave_lab::closed_form::ALONE,
    lineweave_lab::closed_form::PLAYED,
];

/// Arguments of `lineweave lab models`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(long, value_name = "COLLECTIVE", value_parser = collective(), hide_possible_values = true)]
    collective: Collective,
    /// Lengths of the message, or of one block where ranks exchange blocks, such as 8KiB,64KiB,1MiB
    #[arg(long, short, value_name = "SIZE,..", value_delimiter = ',')]
    bytes: Vec<Size>,
    /// Number of ranks [default: the CPUs of the topology; with --measure 2]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ranks: Option<u16>,
    /// Segments of messages, for the models that have any; 0 sends them whole
    #[arg(long, value_name = "SIZE", default_value = "8KiB")]
    segment: Size,
    /// Only this model, which then must have its values; may be repeated
    #[arg(long = "model", value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(MODELS))]
    models: Vec<String>,
    /// Time each algorithm on this machine, by its threads
    #[arg(long, conflicts_with_all = ["machine", "topology"])]
    measure: bool,
    /// Also what needs sizes or concurrent transfers beyond the measured ones; it is marked
    #[arg(long)]
    extrapolate: bool,
    /// Also the least and the greatest time of each plan over all orders in which ranks may meet at cache lines, beside min-max; exact where so
    /// many states are enough [default: 20000]
    #[arg(long, value_name = "STATES", num_args = 0..=1, require_equals = true)]
    bounds: Option<Option<usize>>,
    /// Draw the times over the sizes, by a name that ends in .svg
    #[arg(long, short, value_name = "FILE.svg", value_parser = crate::commands::draw::svg)]
    output: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// The results for one size.
struct Case {
    question: Question,
    rows: Vec<Row>,
    times: Times,
    /// The bounds of each row whose plan is one window, with `--bounds`.
    bounds: Vec<bounds::Row>,
}

/// Computes the predictions, measures where asked to, and shows the result.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let collective = arguments.collective;
    let sizes: Vec<usize> = match (collective.moves_data(), arguments.bytes.is_empty()) {
        (true, true) => return Err(CliError::NoBytes(collective)),
        (false, _) => {
            if !arguments.bytes.is_empty() {
                session.out.warn(&format!("--bytes has no effect: a {collective} moves no data"));
            }
            vec![0]
        }
        (true, false) => arguments.bytes.iter().map(|s| s.0).collect(),
    };
    if let Some(bytes) = sizes.iter().find(|&&b| (collective.folds() || arguments.measure) && b % 8 != 0) {
        return Err(PlanError::Ragged { bytes: *bytes, grain: 8 }.into());
    }
    let settings = session.settings_warned()?;
    let subject = Subject::of(session, arguments.place)?;
    let ranks = arguments.ranks.map_or(subject.topology.cpus.len().max(1), usize::from);
    let ranks = if arguments.measure && arguments.ranks.is_none() { 2 } else { ranks };
    if ranks > algorithm::MAX_RANKS {
        return Err(PlanError::TooManyRanks { ranks, most: algorithm::MAX_RANKS }.into());
    }
    let (shape, placed) = subject.shape(ranks, arguments.place);
    if shape.oversubscription() > 1 {
        session.out.warn("ranks share CPUs, of which no published model knows");
    }
    let estimates = estimates(&subject, &shape, arguments.segment.0 as u64)?;
    known(&estimates, &arguments.models)?;
    let simulated = bounds::machine(arguments.bounds, &subject)?;
    let mut timer = match arguments.measure {
        true => Some(measured::Timer::new(ranks, session)?),
        false => None,
    };
    let bar = session.out.progress_of_work(sizes.len() as u64);
    let mut cases = Vec::new();
    for bytes in sizes {
        bar.set_message(Bytes(bytes as u64).to_string());
        let question = question(collective, &shape, bytes, &settings);
        let mut rows = rows(&estimates, &subject.model, &question, arguments.extrapolate);
        let bounds = match simulated {
            Some((machine, states)) => {
                bounds::rows(machine, &subject, &question, &rows, (arguments.place, states))?
            }
            None => Vec::new(),
        };
        if !arguments.models.is_empty() {
            let asked = |name: &str| arguments.models.iter().any(|m| m == name);
            rows.iter_mut().for_each(|r| r.predictions.retain(|p| asked(p.model)));
        }
        let times = match &mut timer {
            Some(timer) => timer.time(&question, &rows)?,
            None => Times::of_choices(subject.choices.as_ref(), &question, &rows),
        };
        if rows.is_empty() {
            return Err(LabError::NoRows { collective, ranks, bytes }.into());
        }
        cases.push(Case { question, rows, times, bounds });
        bar.inc(1);
    }
    bar.finish_and_clear();
    if let Some(file) = &arguments.output {
        replace(file, &report::drawing(&subject.origin, &cases), "-o")?;
    }
    let file = arguments.output.as_deref().map(Path::display).map(|d| d.to_string());
    let head = report::Head {
        costs: &subject.origin,
        placed: placed.as_deref(),
        level: estimates.level.name(),
        file: file.as_deref(),
    };
    report::report(&head, &estimates, &cases, session)
}

fn estimates(subject: &Subject, shape: &Shape, segment: u64) -> Result<Estimates, CliError> {
    let level = farthest(shape);
    match (&subject.profile, &subject.machine) {
        (Some((profile, file)), _) => {
            // A profile of one distance stands for all levels that it has no cells of.
            let level = subject.model.level(level).0.level;
            estimate(profile, level, segment).map_err(|e| CliError::malformed(file, "profile", e))
        }
        (None, Some(machine)) => Ok(Estimates::from_machine(machine, level, segment)),
        (None, None) => Err(LabError::NoCells { costs: subject.origin.clone() }.into()),
    }
}

/// Checks that every model that was asked for has its values, or at least one model if none was asked for.
fn known(estimates: &Estimates, asked: &[String]) -> Result<(), CliError> {
    let all = estimates.all();
    let name = |model: &str| {
        if model == lineweave_lab::closed_form::WHOLE {
            "tau-Lop".to_owned()
        } else {
            model.to_owned()
        }
    };
    for model in asked.iter().map(|m| name(m)) {
        if let Some((_, Err(lacking))) = all.iter().find(|(n, _)| *n == model) {
            return Err(CliError::NotKnown(lacking.clone()));
        }
    }
    match all.iter().rev().find_map(|(_, m)| m.as_ref().err()) {
        Some(lacking) if asked.is_empty() && all.iter().all(|(_, m)| m.is_err()) => {
            Err(CliError::NotKnown(lacking.clone()))
        }
        _ => Ok(()),
    }
}

/// Returns the reason for a missing prediction, for people and programs.
fn because(absent: &Absent) -> String {
    match absent {
        Absent::Beyond { .. } => format!("{absent}; --extrapolate gives it, marked"),
        other => other.to_string(),
    }
}
