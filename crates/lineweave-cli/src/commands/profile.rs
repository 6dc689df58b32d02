//! `lineweave profile`: comparison of profiles, additions to one, exchange of matrices with other tools, and adopted costs.

mod adopt;
mod export;
mod import;

use super::fit::parameters::{parameters, Parameter};
use crate::error::CliError;
use crate::files::{replace, to_write};
use crate::output::table;
use crate::session::{load_profile, Session};
use clap::Subcommand;
use lineweave_core::model::Provenance;
use lineweave_core::topology::Level;
use lineweave_lab::models::link;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `lineweave profile`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Compare two profiles, parameter by parameter, and say which differences are significant
    Diff(Diff),
    /// Keep in a profile what messages between nodes take, for `lineweave explain --nodes`
    Link(Link),
    /// Write the latencies between each two CPUs for others: as CSV, or for hwloc
    Export(export::Export),
    /// Make a machine's description of a matrix of core-to-core latencies that somebody measured
    Import(import::Import),
    /// Let programs choose by a described machine's costs, and by the trees that its matrix gives, where it is a machine like this one
    Adopt(adopt::Adopt),
}

/// Arguments of `lineweave profile link`.
#[derive(clap::Args, Debug)]
struct Link {
    /// What `lineweave run --link FILE` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The profile [default: this machine's]
    #[arg(long, value_name = "PROFILE", value_parser = to_write)]
    to: Option<PathBuf>,
}

/// Arguments of `lineweave profile diff`.
#[derive(clap::Args, Debug)]
struct Diff {
    /// The one
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The other
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Show every point of the copy and fold surfaces, not only the sizes that powers of 16 make
    #[arg(long)]
    full: bool,
}

/// One parameter in both profiles, with the keys of `parameter`. Printed as `profile-diff` by `lineweave profile diff A B`.
#[derive(Serialize)]
struct Row {
    parameter: String,
    level: Option<Level>,
    layout: Option<String>,
    bytes: Option<u64>,
    tau: Option<u32>,
    per: Option<&'static str>,
    /// `None` where only B has it.
    a_ns: Option<f64>,
    a_ci_low_ns: Option<f64>,
    a_ci_high_ns: Option<f64>,
    b_ns: Option<f64>,
    b_ci_low_ns: Option<f64>,
    b_ci_high_ns: Option<f64>,
    /// B's value divided by A's.
    ratio: Option<f64>,
    /// True if the intervals do not overlap; `None` where either is missing.
    significant: Option<bool>,
}

/// Runs the subcommand.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    match &arguments.what {
        What::Diff(diff) => compare(diff, session),
        What::Link(link) => keep(link, session),
        What::Export(export) => export::run(export, session),
        What::Import(import) => import::run(import, session),
        What::Adopt(adopt) => adopt::run(adopt, session),
    }
}

/// Replaces the profile's cells of messages between nodes.
fn keep(link: &Link, session: &mut Session) -> Result<(), CliError> {
    let added = crate::link::read(&link.file)?;
    let to = match &link.to {
        Some(to) => to.clone(),
        None => session.cached_profile()?.1,
    };
    let (mut profile, _) = load_profile(&to)?;
    profile.cells.retain(|cell| cell.probe != link::PROBE);
    let cells = added.cells.len();
    profile.cells.extend(added.cells);
    replace(&to, &profile.to_toml(), "--to")?;
    session.out.object("profile-link", &Kept { file: to.display().to_string(), cells })?;
    session.out.line(&format!("{}: messages of {cells} lengths between nodes", to.display()))
}

/// The file that the cells were added to. Printed as `profile-link` by `lineweave profile link`.
#[derive(Serialize)]
struct Kept {
    file: String,
    /// Number of lengths.
    cells: usize,
}

fn compare(diff: &Diff, session: &mut Session) -> Result<(), CliError> {
    let (profile_a, model_a) = load_profile(&diff.a)?;
    let (profile_b, model_b) = load_profile(&diff.b)?;
    if let Err(why) = profile_a.matches(&profile_b.machine) {
        session.out.warn(&format!("the profiles are of two machines: {why}"));
    }
    let all = diff.full || session.out.is_json();
    let (list_a, list_b) = (parameters(&model_a), parameters(&model_b));
    let pairs: Vec<(Option<&Parameter>, Option<&Parameter>)> = paired(&list_a, &list_b)
        .into_iter()
        .filter(|p| all || p.0.or(p.1).is_some_and(Parameter::is_typical))
        .collect();
    for (name, file, p) in [("A", &diff.a, &profile_a), ("B", &diff.b, &profile_b)] {
        let line = format!("{name}: {}, {}, measured at {}", file.display(), p.machine.cpu, p.measured_at);
        session.out.line(&line)?;
    }
    session.out.line("")?;
    let head =
        ["parameter", "where", "A", "95 % interval", "B", "95 % interval", "unit", "B / A", "significant"];
    let mut rows = table(&head, &[2, 3, 4, 5, 7]);
    let mut apart = 0;
    for &(a, b) in &pairs {
        let (Some(any), Some(row)) = (a.or(b), row(a, b)) else { continue };
        session.out.object("profile-diff", &row)?;
        let value = |p: Option<&Parameter>| p.map_or_else(|| "-".to_owned(), Parameter::value);
        let interval = |p: Option<&Parameter>| p.map_or_else(String::new, Parameter::interval);
        apart += usize::from(row.significant == Some(true));
        rows.add_row([
            any.parameter.clone(),
            any.place(),
            value(a),
            interval(a),
            value(b),
            interval(b),
            any.unit(),
            row.ratio.map_or_else(String::new, |r| format!("{r:.3}")),
            match row.significant {
                Some(true) => "yes",
                Some(false) => "no",
                None => "not known",
            }
            .to_owned(),
        ]);
    }
    session.out.table_without(&rows, &["95 % interval", "unit"])?;
    session.out.line(&format!("\n{apart} of {} differ: their intervals lie apart", pairs.len()))
}

/// Returns the fields by which two parameters count as the same.
fn key(p: &Parameter) -> (&str, Option<Level>, Option<&str>, Option<u64>, Option<u32>) {
    (&p.parameter, p.level, p.layout.as_deref(), p.bytes, p.tau)
}

/// Pairs A's parameters with B's, followed by those that only B has.
fn paired<'a>(a: &'a [Parameter], b: &'a [Parameter]) -> Vec<(Option<&'a Parameter>, Option<&'a Parameter>)> {
    let in_b = |p: &Parameter| b.iter().find(|q| key(q) == key(p));
    let only_b = b.iter().filter(|q| !a.iter().any(|p| key(p) == key(q)));
    a.iter().map(|p| (Some(p), in_b(p))).chain(only_b.map(|q| (None, Some(q)))).collect()
}

/// Returns whether the parameter has an interval of its own.
fn spread(p: &Parameter) -> bool {
    p.ci_low_ns < p.ci_high_ns && p.provenance != Provenance::Assumed
}

fn row(a: Option<&Parameter>, b: Option<&Parameter>) -> Option<Row> {
    let any = a.or(b)?;
    let both = a.zip(b);
    let tested = both.filter(|(a, b)| spread(a) && spread(b));
    Some(Row {
        parameter: any.parameter.clone(),
        level: any.level,
        layout: any.layout.clone(),
        bytes: any.bytes,
        tau: any.tau,
        per: any.per,
        a_ns: a.map(|p| p.value_ns),
        a_ci_low_ns: a.map(|p| p.ci_low_ns),
        a_ci_high_ns: a.map(|p| p.ci_high_ns),
        b_ns: b.map(|p| p.value_ns),
        b_ci_low_ns: b.map(|p| p.ci_low_ns),
        b_ci_high_ns: b.map(|p| p.ci_high_ns),
        ratio: both.filter(|(a, _)| a.value_ns != 0.0).map(|(a, b)| b.value_ns / a.value_ns),
        significant: tested.map(|(a, b)| a.ci_high_ns < b.ci_low_ns || b.ci_high_ns < a.ci_low_ns),
    })
}
