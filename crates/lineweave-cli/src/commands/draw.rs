//! `lineweave draw`: a plan as SVG.

use crate::error::CliError;
use crate::files::to_write;
use crate::question::{read_plan, Wanted};
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_lab::draw;
use serde::Serialize;
use std::path::PathBuf;

/// The arguments by which a plan is made, rather than read.
const MADE: [&str; 8] = ["collective", "algorithm", "bytes", "ranks", "root", "elements", "direct", "counts"];

/// What, and where to.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(required_unless_present = "plan")]
    collective: Option<Collective>,
    /// The algorithm: a name of `lineweave list`, or as it is printed, with parameters and window [default: the one that would be chosen]
    algorithm: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Draw this plan: a file as `lineweave plan` prints it, or `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = MADE)]
    plan: Option<PathBuf>,
    /// Where to, by a name that ends in .svg [default: standard output]
    #[arg(long, short, value_name = "FILE.svg", value_parser = svg)]
    output: Option<PathBuf>,
}

/// The name of a drawing.
pub(super) fn svg(name: &str) -> Result<PathBuf, String> {
    match name.to_lowercase().ends_with(".svg") {
        true => to_write(name),
        false => Err("expected a name that ends in .svg, the only format there is".to_owned()),
    }
}

#[derive(Serialize)]
struct Drawing {
    plan: String,
    ranks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    svg: Option<String>,
}

/// Draws the plan.
///
/// # Errors
/// A [`CliError`] when there is no plan, or the file cannot be written.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let plan = match (&arguments.plan, arguments.collective) {
        (Some(file), _) => read_plan(file)?,
        (None, Some(collective)) => {
            arguments.wanted.plan(session, collective, arguments.algorithm.as_deref())?
        }
        (None, None) => return Ok(()),
    };
    let svg = draw::plan(&plan);
    if let Some(file) = &arguments.output {
        let error = |reason| CliError::Write { path: file.clone(), option: "-o", reason };
        std::fs::write(file, &svg).map_err(error)?;
    }
    let file = arguments.output.as_ref().map(|f| f.display().to_string());
    if session.out.is_json() {
        let svg = file.is_none().then_some(svg);
        return session.out.object("drawing", &Drawing { plan: plan.name(), ranks: plan.ranks, file, svg });
    }
    match file {
        Some(file) => session.out.line(&file),
        None => session.out.text(&svg),
    }
}
