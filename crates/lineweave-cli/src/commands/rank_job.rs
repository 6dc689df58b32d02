//! `lineweave rank-job`: a rank of a team of processes that `bench` or `tune` started. Trials come on standard input,
//! and answers go to standard output; each is a line of JSON.

use super::bench::first;
use crate::bench::{load, Team};
use crate::error::CliError;
use crate::session::Session;
use lineweave::team::{self, TeamConfig};
use lineweave_tune::trial::{serve, TrialTeam};
use std::io;
use std::process::Command;

/// Arguments of `lineweave rank-job`. The team's creator passes everything else in the environment.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// What to do for `bench first`, instead of trials
    #[arg(long, value_name = "JSON")]
    first: Option<String>,
    /// A load to be for `bench --beside`, instead of trials
    #[arg(long, value_name = "KIND", value_enum)]
    load: Option<load::Kind>,
}

/// Serves trials until standard input ends.
pub fn run(arguments: &Arguments, _: &mut Session) -> Result<(), CliError> {
    if let Some(task) = &arguments.first {
        return first::rank(task);
    }
    if let Some(kind) = arguments.load {
        return load::carry_out(kind);
    }
    let comm = team::from_environment()?;
    Ok(serve(comm, io::stdin().lock(), io::stdout().lock())?)
}

/// Returns a function that makes the command which starts a rank.
pub fn command() -> Result<impl FnMut(usize) -> Command, CliError> {
    let program = std::env::current_exe().map_err(CliError::OwnFile)?;
    Ok(move |_| {
        let mut command = Command::new(&program);
        command.arg("rank-job");
        command
    })
}

/// Starts a team of threads, or of processes that serve trials.
pub fn crew(team: Team, config: TeamConfig) -> Result<TrialTeam, CliError> {
    Ok(match team {
        Team::Threads => TrialTeam::threads(config)?,
        Team::Processes => TrialTeam::processes(config, command()?)?,
    })
}
