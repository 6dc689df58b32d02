//! `lineweave list`: the algorithms, or the machines that come with lineweave.

use super::plan::full_name;
use crate::error::CliError;
use crate::machines::{beside, with_matrix};
use crate::output::table;
use crate::question::collective;
use crate::session::Session;
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{self, Machine};
use serde::Serialize;

/// Arguments of `lineweave list`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only this collective's algorithms
    #[arg(conflicts_with = "machines", value_parser = collective(), hide_possible_values = true)]
    collective: Option<Collective>,
    /// List machine descriptions instead
    #[arg(long)]
    machines: bool,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    default: &'static str,
    about: &'static str,
}

/// An algorithm. Printed as `algorithm` by `lineweave list`.
#[derive(Serialize)]
struct Row {
    collective: Collective,
    name: &'static str,
    about: &'static str,
    /// The paper and section that it is from.
    source: &'static str,
    parameters: Vec<Parameter>,
}

impl Row {
    fn of(algorithm: &Algorithm) -> Row {
        let parameter =
            |p: &algorithm::ParamSpec| Parameter { name: p.name, default: p.default, about: p.about };
        Row {
            collective: algorithm.collective,
            name: algorithm.name,
            about: algorithm.about,
            source: algorithm.source,
            parameters: algorithm.params.iter().map(parameter).collect(),
        }
    }
}

/// A description of a machine. Printed as `machine` by `lineweave list --machines`.
#[derive(Serialize)]
struct MachineRow<'a> {
    /// The value that `--machine` takes.
    name: &'a str,
    title: &'a str,
    /// Its instruction set.
    arch: &'a str,
    /// Synthetic form; `None` where groups differ in size.
    topology: Option<&'a str>,
    cpus: Option<usize>,
    /// The authors of the machine's matrix.
    matrix: Option<&'a str>,
}

/// Lists the algorithms or the machines.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.machines {
        return machines(session);
    }
    let wanted = |a: &&Algorithm| arguments.collective.is_none_or(|c| a.collective == c);
    for algorithm in algorithm::all().filter(wanted) {
        session.out.object("algorithm", &Row::of(algorithm))?;
        session.out.line(&full_name(algorithm))?;
        session.out.line(&format!("  {}", algorithm.about))?;
        session.out.line(&format!("  source: {}", algorithm.source))?;
        if !algorithm.params.is_empty() {
            let mut rows = table(&["  parameter", "default", "meaning"], &[]);
            for p in algorithm.params {
                rows.add_row([&format!("  {}", p.name), p.default, p.about]);
            }
            session.out.table(&rows)?;
        }
        session.out.line("")?;
    }
    Ok(())
}

fn machines(session: &mut Session) -> Result<(), CliError> {
    let mut all: Vec<Machine> = machine::shipped().to_vec();
    let measured = beside()?;
    if measured.is_empty() {
        session.out.warn(
            "the machines with measured matrices are not installed beside this program: expected them in share/lineweave/machines",
        );
    }
    for (file, machine) in measured {
        // The CPUs of other machines follow from their topologies.
        all.push(match machine.topology.value {
            Some(_) => machine,
            None => with_matrix(&file, machine)?,
        });
    }
    let mut rows = table(&["machine", "arch", "cpus", "matrix", "topology", "what it is"], &[2]);
    for machine in &all {
        let row = MachineRow {
            name: &machine.name,
            title: &machine.title,
            arch: &machine.arch,
            topology: machine.topology.value.as_deref(),
            cpus: machine.topology().map(|t| t.cpus.len()),
            matrix: machine.matrix.as_ref().map(|m| m.source.as_str()),
        };
        session.out.object("machine", &row)?;
        let unknown = if row.matrix.is_some() { "groups of different size" } else { "unknown" };
        let cpus = row.cpus.map_or_else(|| unknown.to_owned(), |n| n.to_string());
        let matrix = if row.matrix.is_some() { "yes" } else { "" };
        let topology = row.topology.unwrap_or(unknown);
        rows.add_row([row.name, row.arch, &cpus, matrix, topology, row.title]);
    }
    session.out.table_without(&rows, &["topology", "matrix", "arch"])
}
