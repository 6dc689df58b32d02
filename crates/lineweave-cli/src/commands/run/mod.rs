//! `lineweave run`: a program of MPI, with the library before it that takes over its collectives; with `-n` a program of
//! lineweave's own, once for each rank.
//!
//! It finds out which MPI the program loads, sets what the system shall preload, and becomes the program. Where nothing can be
//! done it says so in one line, at rank 0, and the program runs as it would without.

mod detect;
mod elf;
mod ranks;

use crate::error::CliError;
use crate::session::Session;
use detect::Abi;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to run.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Start N processes as the ranks of one team; a Python script runs in its interpreter
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["report", "link", "mpi"])]
    ranks: Option<usize>,
    /// Write what was taken over, as JSON Lines, to this file at the end
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// When the program begins, measure messages between the first two nodes and write the times to this file
    #[arg(long, value_name = "FILE")]
    link: Option<PathBuf>,
    /// The MPI that the program loads [default: found out]
    #[arg(long, value_enum)]
    mpi: Option<Abi>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The variables by which launchers number ranks.
const RANKS: [&str; 5] = ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID"];
/// What the system's loader preloads.
const PRELOAD: &str = "LD_PRELOAD";

/// Whether this rank speaks for all.
fn speaks() -> bool {
    RANKS.iter().find_map(std::env::var_os).is_none_or(|rank| rank == "0")
}

/// Becomes the program.
///
/// # Errors
/// [`CliError::Program`] when it cannot be started; a [`CliError::Setting`].
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (settings, warnings) = session.settings()?;
    let say = |session: &Session, text: &str| {
        if speaks() && !settings.quiet {
            session.out.warn(text);
        }
    };
    for warning in warnings {
        say(session, &warning.to_string());
    }
    let [program, rest @ ..] = &arguments.program[..] else { return Ok(()) };
    if let Some(ranks) = arguments.ranks {
        return ranks::run(ranks, program, rest, &session.out);
    }
    let abi = match arguments.mpi {
        Some(abi) => Ok(abi),
        None => detect::abi(Path::new(program), rest),
    };
    let mut command = Command::new(program);
    command.args(rest);
    match abi.map_err(|aside| aside.to_string()).and_then(library) {
        Ok(library) => {
            let before = std::env::var_os(PRELOAD).unwrap_or_default();
            for other in interposers(&before) {
                say(
                    session,
                    &format!(
                        "{} is preloaded too and has MPI functions: lineweave comes first, then it, then MPI",
                        other.display()
                    ),
                );
            }
            command.env(PRELOAD, preload(&library, &before));
            for (name, file) in
                [("LINEWEAVE_MPI_REPORT", &arguments.report), ("LINEWEAVE_MPI_LINK", &arguments.link)]
            {
                if let Some(file) = file {
                    command.env(name, file);
                }
            }
        }
        Err(why) => say(session, &format!("{why}; it runs without lineweave")),
    }
    let reason = command.exec();
    Err(CliError::Program { program: program.to_string_lossy().into_owned(), reason })
}

/// The library for an interface: beside this command where it was built, below its prefix where it was installed.
fn library(abi: Abi) -> Result<PathBuf, String> {
    let file = format!("liblineweave_mpi_{}.so", abi.name());
    let own = std::env::current_exe().map_err(|e| format!("cannot find this command's own file: {e}"))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(&file), beside.join("../lib/lineweave").join(&file)];
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or_else(|| {
        format!("{file} is neither beside lineweave nor in its ../lib/lineweave; build it with `make mpi`")
    })
}

/// Ours first, then what was there.
fn preload(library: &Path, before: &OsStr) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if !before.is_empty() {
        all.push(":");
        all.push(before);
    }
    all
}

/// Preloaded libraries that have functions of MPI.
fn interposers(list: &OsStr) -> Vec<PathBuf> {
    let list = list.to_string_lossy();
    let names = list.split([':', ' ']).filter(|name| !name.is_empty());
    names.map(PathBuf::from).filter(|path| has_mpi(path)).collect()
}

/// Whether a library has functions of MPI itself. (To call them, as the program's own libraries may, is another thing.)
fn has_mpi(path: &Path) -> bool {
    // What is no file may never end.
    path.is_file()
        && elf::defines(path, |name| name.starts_with(b"MPI_") || name.starts_with(b"mpi_")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_behind() {
        assert_eq!(preload(Path::new("/a.so"), OsStr::new("")), "/a.so");
        assert_eq!(preload(Path::new("/a.so"), OsStr::new("/b.so:/c.so")), "/a.so:/b.so:/c.so");
        let files = ["/no/such.so", env!("CARGO_MANIFEST_DIR"), "/dev/zero"].join(":");
        assert!(interposers(OsStr::new(&files)).is_empty());
    }
}
