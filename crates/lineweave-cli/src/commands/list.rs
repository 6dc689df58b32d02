//! `lineweave list`: the algorithms, or the machines that come with lineweave.

use super::plan::full_name;
use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{self, Machine};
use serde::Serialize;

/// Which.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only this collective's algorithms
    #[arg(conflicts_with = "machines")]
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

#[derive(Serialize)]
struct Row {
    collective: Collective,
    name: &'static str,
    about: &'static str,
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

#[derive(Serialize)]
struct MachineRow<'a> {
    name: &'a str,
    title: &'a str,
    arch: &'a str,
    topology: Option<&'a str>,
    cpus: Option<usize>,
}

/// Lists them.
///
/// # Errors
/// [`CliError::Output`].
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.machines {
        return machines(session);
    }
    let wanted = |a: &&Algorithm| arguments.collective.is_none_or(|c| a.collective == c);
    for algorithm in algorithm::all().filter(wanted) {
        if session.out.is_json() {
            session.out.object("algorithm", &Row::of(algorithm))?;
            continue;
        }
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
    let row = |m: &'static Machine| MachineRow {
        name: &m.name,
        title: &m.title,
        arch: &m.arch,
        topology: m.topology.value.as_deref(),
        cpus: m.topology().map(|t| t.cpus.len()),
    };
    let mut rows = table(&["machine", "arch", "cpus", "topology", "what it is"], &[2]);
    for machine in machine::shipped() {
        let row = row(machine);
        if session.out.is_json() {
            session.out.object("machine", &row)?;
            continue;
        }
        let unknown = "unknown".to_owned();
        let cpus = row.cpus.map_or_else(|| unknown.clone(), |n| n.to_string());
        let topology = row.topology.map_or(unknown, str::to_owned);
        rows.add_row([row.name.to_owned(), row.arch.to_owned(), cpus, topology, row.title.to_owned()]);
    }
    match session.out.is_json() {
        true => Ok(()),
        false => session.out.table(&rows),
    }
}
