//! `lineweave draw`: a plan as SVG, by steps or on an axis of time.

use crate::error::CliError;
use crate::files::replace;
use crate::files::to_write;
use crate::question::{algorithm, collective, read_plan, Wanted};
use crate::session::{Costs, Session};
use crate::trace::measured::nearest;
use lineweave_core::collective::Collective;
use lineweave_core::cost;
use lineweave_core::plan::Plan;
use lineweave_core::topology::Shape;
use lineweave_lab::draw;
use lineweave_lab::simulate::{simulate, Fidelity, Options};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The arguments by which a plan is made, rather than read.
const MADE: [&str; 8] = ["collective", "algorithm", "bytes", "ranks", "root", "elements", "direct", "counts"];

/// Arguments of `lineweave draw`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(required_unless_present = "plan", value_parser = collective(), hide_possible_values = true)]
    collective: Option<Collective>,
    /// The algorithm: a name of `lineweave list`, or as it is printed, with parameters and window [default: the one that would be chosen]
    #[arg(value_parser = algorithm(), hide_possible_values = true)]
    algorithm: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    /// Draw this plan: a file as `lineweave plan` prints it, or `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = MADE)]
    plan: Option<PathBuf>,
    /// One call on an axis of time: who waits how long for whom, and the critical path; predicted, and simulated where --machine says enough
    #[arg(long)]
    time: bool,
    /// With --time, show beside it a call that a job made: a timeline of `lineweave run --trace`
    #[arg(long, value_name = "FILE.json", requires = "time")]
    measured: Option<PathBuf>,
    /// Where to, by a name that ends in .svg [default: standard output]
    #[arg(long, short, value_name = "FILE.svg", value_parser = svg)]
    output: Option<PathBuf>,
}

/// Reads the name of a drawing.
pub(super) fn svg(name: &str) -> Result<PathBuf, String> {
    match name.to_lowercase().ends_with(".svg") {
        true => to_write(name),
        false => Err("expected a name that ends in .svg, the only format there is".to_owned()),
    }
}

/// Draws the plan on an axis of time, on the CPUs that ranks are placed on.
fn timed(plan: &Plan, measured: Option<&Path>, session: &mut Session) -> Result<String, CliError> {
    let Costs { tuning, topology, machine, .. } = session.costs()?;
    let shape = Shape::place(plan.ranks, &topology);
    let mut traces = Vec::new();
    // The model has no costs of a mesh without caches.
    if !machine.as_ref().is_some_and(|m| m.mesh.is_some() && m.coherent.is_none()) {
        let options = cost::Options { message: plan.bytes, ..cost::Options::default() };
        traces.extend(cost::timeline(&tuning.model, &shape, plan, &options));
    }
    if let Some(machine) = machine.filter(|m| m.mesh.is_some() || m.coherent.is_some()) {
        let options = Options { trace: true, fidelity: Fidelity::Chunk, ..Options::default() };
        match simulate(&machine, plan, &options) {
            Ok(outcome) => traces.extend(outcome.trace),
            Err(why) if traces.is_empty() => return Err(why.into()),
            Err(why) => session.out.warn(&format!("not simulated: {why}")),
        }
    }
    if let Some(file) = measured {
        traces.push(nearest(file, plan)?);
    }
    match traces.is_empty() {
        true => Err(CliError::NoTimes { plan: plan.name() }),
        false => Ok(draw::timeline(plan, &traces)),
    }
}

/// A drawing of a plan. Printed as `drawing` by `lineweave draw`.
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
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let plan = match (&arguments.plan, arguments.collective) {
        (Some(file), _) => read_plan(file)?,
        (None, Some(collective)) => {
            arguments.wanted.plan(session, collective, arguments.algorithm.as_deref())?
        }
        (None, None) => return Ok(()),
    };
    let svg = match arguments.time {
        true => timed(&plan, arguments.measured.as_deref(), session)?,
        false => draw::plan(&plan),
    };
    if let Some(file) = &arguments.output {
        replace(file, &svg, "-o")?;
    }
    let file = arguments.output.as_ref().map(|f| f.display().to_string());
    match &file {
        Some(file) => session.out.line(file)?,
        None => session.out.text(&svg)?,
    }
    let svg = file.is_none().then_some(svg);
    session.out.object("drawing", &Drawing { plan: plan.name(), ranks: plan.ranks, file, svg })
}
