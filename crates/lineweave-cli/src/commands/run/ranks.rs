//! `lineweave run -n`: a program, started once for each rank of a new team.

use super::detect::links_mpi;
use crate::error::CliError;
use crate::output::Output;
use lineweave::team::Team;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts `program` `ranks` times and waits for all. A Python script is passed to the interpreter.
///
/// # Errors
/// A team that cannot be made, a program that cannot be started, or [`CliError::Launched`]. No process is left running.
pub fn run(
    ranks: usize,
    program: &OsStr,
    path: &Path,
    arguments: &[OsString],
    out: &Output,
) -> Result<(), CliError> {
    if links_mpi(path) {
        let program = program.to_string_lossy();
        out.warn(&format!(
            "{program} loads an MPI, and without its launcher each of these {ranks} is a job of one rank; as ranks of one job: \
             mpirun -n {ranks} lineweave run -- {program}"
        ));
    }
    let script = Path::new(program).extension().is_some_and(|e| e == "py");
    let command = |_rank| {
        let mut command = match script {
            true => Command::new(python()),
            false => Command::new(program),
        };
        command.args(script.then_some(program)).args(arguments);
        command
    };
    match Team::new(ranks)?.launch(command, |remark| out.warn(remark))? {
        None => Ok(()),
        Some(failed) => Err(CliError::Launched(failed)),
    }
}

/// Returns the interpreter that this command was installed with, or the one on the PATH.
fn python() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|dir| dir.join("python3"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("python3"))
}
