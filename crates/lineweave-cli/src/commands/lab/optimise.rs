//! `lineweave lab optimise`: parameters of least cost in closed forms, and their distance from a bound.

mod compare;

use crate::commands::lab::subject::Subject;
use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::machines;
use crate::output::table;
use crate::question::{collective, Place};
use crate::session::Session;
use crate::size::Size;
use lineweave_core::algorithm::MAX_RANKS;
use lineweave_core::collective::Collective;
use lineweave_core::machine::{self, Machine};
use lineweave_core::model::Model;
use lineweave_core::plan::{Params, PlanError};
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::Nanos;
use lineweave_lab::optimise::methods::{methods, Case, Method};
use serde::Serialize;
use std::time::Instant;

/// Arguments of `lineweave lab optimise`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast or reduce; with --compare allreduce too
    #[arg(value_parser = collective(), hide_possible_values = true)]
    collective: Collective,
    /// Length of the message: bytes, or with KiB, MiB, GiB; 8 bytes where it is not given
    bytes: Option<Size>,
    /// Number of ranks; a machine with fewer CPUs is continued with packages of its kind [default: its CPUs]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_RANKS as i64))]
    ranks: Option<u32>,
    /// The root of a rooted collective
    #[arg(long, default_value_t = 0)]
    root: usize,
    /// Only optimisers of this name: published, degrees, hierarchy, matrix ...
    #[arg(long, value_name = "NAME")]
    method: Option<String>,
    /// On every machine that comes with lineweave instead
    #[arg(long, conflicts_with_all = ["compare", "machine", "profile"])]
    all: bool,
    /// Instead, trees generated from what lies between each two CPUs beside the usual ones, simulated: of --machine, or of
    /// all whose pairs were measured
    #[arg(long, conflicts_with_all = ["method", "bytes"])]
    compare: bool,
    #[command(flatten)]
    place: Place,
}

/// A machine, by its description or by a fitted model.
struct On<'a> {
    name: &'a str,
    machine: Option<&'a Machine>,
    model: &'a Model,
    topology: Topology,
}

/// The plan that an optimiser chooses by a closed form. Printed as `optimum` by `lineweave lab optimise`, one object a machine and optimiser.
#[derive(Serialize)]
struct OptimumObject<'a> {
    machine: &'a str,
    collective: Collective,
    ranks: usize,
    bytes: usize,
    method: &'static str,
    algorithm: Option<&'static str>,
    params: Option<&'a Params>,
    predicted_ns: Option<f64>,
    bound_ns: Option<f64>,
    ratio: Option<f64>,
    /// True if no other parameters of the family cost less; otherwise it is a heuristic's best.
    exact: Option<bool>,
    elapsed_ms: f64,
    /// Values that stand in, in the machine's model, and that this closed form uses.
    assumed: &'a [String],
    /// The number that is unknown for the machine, and why.
    error: Option<String>,
}

/// Optimises and prints the parameters.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.compare {
        return compare::run(arguments, session);
    }
    let collective = arguments.collective;
    let bytes = match collective.moves_data() {
        true => arguments.bytes.map_or(8, |size| size.0),
        false => 0,
    };
    let wanted = arguments.method.as_deref();
    let methods: Vec<Method> = methods()
        .into_iter()
        .filter(|m| m.collective == collective && m.applies(bytes) && wanted.is_none_or(|w| w == m.name))
        .collect();
    if methods.is_empty() {
        return Err(LabError::NoOptimiser { collective, bytes }.into());
    }
    let mut rows = table(
        &["machine", "method", "algorithm", "predicted", "bound", "ratio", "elapsed", "remark"],
        &[3, 4, 5, 6],
    );
    if arguments.all {
        for machine in machine::shipped() {
            let topology = machines::topology(machine)?.placed(arguments.place.place);
            let model = Model::from_machine(machine);
            let on = On { name: &machine.name, machine: Some(machine), model: &model, topology };
            each(arguments, &methods, &on, bytes, session, &mut rows)?;
        }
    } else {
        let subject = Subject::of(session, arguments.place)?;
        let ranks = arguments.ranks.map_or(subject.topology.cpus.len(), |n| n as usize);
        head(&subject, ranks, arguments.place, session)?;
        let (machine, topology) = (subject.machine.as_ref(), subject.topology.clone());
        let on = On { name: &subject.name, machine, model: &subject.model, topology };
        each(arguments, &methods, &on, bytes, session, &mut rows)?;
    }
    session.out.table(&rows)
}

/// Prints the source of the costs, and the placement of ranks.
fn head(subject: &Subject, ranks: usize, place: Place, session: &mut Session) -> Result<(), CliError> {
    session.out.line(&format!("costs: {}", subject.origin))?;
    let cpus = subject.topology.cpus.len();
    let further = (ranks > cpus)
        .then(|| format!("it has {cpus} CPUs; for {ranks} ranks further packages of its kind are assumed"));
    let placed = subject.shape(ranks, place).1;
    subject
        .notes
        .iter()
        .chain(&placed)
        .chain(&further)
        .try_for_each(|note| session.out.line(&format!("  {note}")))
}

fn each(
    arguments: &Arguments,
    methods: &[Method],
    on: &On,
    bytes: usize,
    session: &mut Session,
    rows: &mut comfy_table::Table,
) -> Result<(), CliError> {
    let On { name, machine, model, ref topology } = *on;
    let ranks = arguments.ranks.map_or(topology.cpus.len(), |n| n as usize);
    if arguments.collective.rooted() && arguments.root >= ranks {
        return Err(PlanError::RootOutOfRange { root: arguments.root, ranks }.into());
    }
    let shape = Shape::place(ranks, &topology.repeated(ranks));
    let case = Case { machine, model, shape: &shape, root: arguments.root, bytes };
    for method in methods {
        let started = Instant::now();
        let found = (method.run)(&case);
        let elapsed = started.elapsed();
        let assumed: Vec<String> = match method.of_model || machine.is_none() {
            true => assumptions(model, arguments.collective, bytes),
            false => Vec::new(),
        };
        let elapsed_ms = elapsed.as_secs_f64() * 1e3;
        let optimum = found.as_ref().ok();
        let object = OptimumObject {
            machine: name,
            collective: arguments.collective,
            ranks,
            bytes,
            method: method.name,
            algorithm: optimum.map(|o| o.choice.algorithm),
            params: optimum.map(|o| &o.choice.params),
            predicted_ns: optimum.map(|o| o.cost_ns),
            bound_ns: optimum.map(|o| o.bound_ns),
            ratio: optimum.map(lineweave_lab::optimise::Optimum::ratio),
            exact: optimum.map(|o| o.exact),
            elapsed_ms,
            assumed: &assumed,
            error: found.as_ref().err().map(ToString::to_string),
        };
        session.out.object("optimum", &object)?;
        let elapsed = format!("{elapsed_ms:.1} ms");
        match found {
            Ok(optimum) => {
                const SHOWN: usize = 64;
                let mut plan = format!("{} {}", optimum.choice.algorithm, optimum.choice.params);
                if plan.len() > SHOWN {
                    plan = plan.chars().take(SHOWN).chain("...".chars()).collect();
                }
                let remark = match assumed.is_empty() {
                    true => String::new(),
                    false => format!("assumed: {}", assumed.join(", ")),
                };
                rows.add_row([
                    name,
                    method.name,
                    plan.trim_end(),
                    &Nanos(optimum.cost_ns).to_string(),
                    &Nanos(optimum.bound_ns).to_string(),
                    &format!("{:.2}", optimum.ratio()),
                    &elapsed,
                    &remark,
                ]);
            }
            Err(error) => {
                rows.add_row([name, method.name, "-", "-", "-", "-", &elapsed, &error.to_string()]);
            }
        }
    }
    Ok(())
}

/// Returns the parameters that these closed forms use and that the model only assumes.
fn assumptions(model: &Model, collective: Collective, bytes: usize) -> Vec<String> {
    let used: &[&str] = match collective {
        Collective::Barrier => &["R_R", "T_N", "signal, exchange"],
        Collective::Reduce => &["R_R", "T_N", "signal, exchange", "fold rate"],
        _ if bytes > 56 => &["R_R", "T_C", "T_N", "signal, exchange", "copy rate"],
        _ => &["R_R", "T_C", "T_N", "signal, exchange"],
    };
    let names = model.unidentified.iter().map(|u| u.what.clone());
    names.filter(|what| used.contains(&what.as_str())).collect()
}
