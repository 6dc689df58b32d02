//! `lineweave run`: a program of MPI or OpenMP, with libraries before it that take over its collectives and barriers; with
//! `-n` a program of lineweave's own, once for each rank.
//!
//! It finds out which MPI the program loads and whether it loads OpenMP, sets what the system shall preload, and becomes the
//! program. Where nothing can be done it says so in one line, at rank 0, and the program runs as it would without.

mod detect;
mod elf;
mod python;
mod ranks;

use crate::error::CliError;
use crate::session::Session;
use detect::{Abi, Aside};
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
    /// Write what was taken over of MPI, as JSON Lines, to this file at the end
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// After the first collective call of all ranks, measure messages between the first two nodes and write the times to this file
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
        if speaks() && !settings.run.quiet {
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
    let found = detect::look(Path::new(program), rest, arguments.mpi);
    let mut wanted = Vec::new();
    let openmp = found.openmp && settings.run.openmp;
    if openmp {
        wanted.push("liblineweave_openmp.so".to_owned());
    }
    match &found.mpi {
        Ok(abi) => wanted.push(format!("liblineweave_mpi_{}.so", abi.name())),
        Err(Aside::NoMpi(_)) if found.openmp => {}
        Err(why) if openmp => say(session, &format!("{why}; only its OpenMP runs with lineweave")),
        Err(why) => say(session, &format!("{why}; it runs without lineweave")),
    }
    let mut libraries = Vec::new();
    for file in wanted {
        match library(&file) {
            Ok(path) => libraries.push(path),
            Err(why) => say(session, &format!("{why}; it runs without that")),
        }
    }
    let mut command = Command::new(program);
    command.args(rest);
    if !libraries.is_empty() {
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
        command.env(PRELOAD, preload(&libraries, &before));
    }
    for (name, file) in [("LINEWEAVE_MPI_REPORT", &arguments.report), ("LINEWEAVE_MPI_LINK", &arguments.link)]
    {
        if let (Some(file), Ok(_)) = (file, &found.mpi) {
            command.env(name, file);
        }
    }
    let reason = command.exec();
    Err(CliError::Program { program: program.to_string_lossy().into_owned(), reason })
}

/// A library: beside this command where it was built, below its prefix where it was installed.
fn library(file: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this command's own file: {e}"))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(file), beside.join("../lib/lineweave").join(file)];
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or_else(|| {
        format!("{file} is neither beside lineweave nor in its ../lib/lineweave; build it with `make mpi`")
    })
}

/// Ours first, then what was there.
fn preload(libraries: &[PathBuf], before: &OsStr) -> OsString {
    let all = libraries.iter().map(|path| path.as_os_str()).chain([before]).filter(|path| !path.is_empty());
    all.collect::<Vec<_>>().join(OsStr::new(":"))
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
        let ours = ["/a.so", "/o.so"].map(PathBuf::from);
        assert_eq!(preload(&ours[..1], OsStr::new("")), "/a.so");
        assert_eq!(preload(&ours, OsStr::new("/b.so:/c.so")), "/a.so:/o.so:/b.so:/c.so");
        let files = ["/no/such.so", env!("CARGO_MANIFEST_DIR"), "/dev/zero"].join(":");
        assert!(interposers(OsStr::new(&files)).is_empty());
    }
}
