//! `lineweave run -n`: a program, started once for each rank of a new team.

use super::detect::{find, links_mpi};
use crate::error::CliError;
use crate::output::{shell_word, Output};
use lineweave::team::Team;
use lineweave_core::names::shortened;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts `program` `ranks` times and waits for all. A Python script is passed to the interpreter. No process is left running where
/// it fails.
pub fn run(
    ranks: usize,
    program: &OsStr,
    path: &Path,
    arguments: &[OsString],
    out: &Output,
) -> Result<(), CliError> {
    let script = Path::new(program).extension().is_some_and(|e| e == "py");
    if let Some(with_mpi) = with_mpi(path, arguments) {
        let started = script.then(|| OsStr::new("python3")).into_iter().chain([program]);
        let words = started.chain(arguments.iter().map(OsString::as_os_str));
        let words: Vec<_> = words.map(|word| shell_word(&shortened(&word.to_string_lossy()))).collect();
        out.warn(&format!(
            "{with_mpi} loads an MPI, and without its launcher each of these {ranks} is a job of one rank; as ranks of one job: \
             mpirun -n {ranks} lineweave run -- {}",
            words.join(" ")
        ));
    }
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

/// Returns the first of the program and its arguments that would load an MPI: a program that is linked to one, a script of mpi4py's, or code
/// that names either.
fn with_mpi(path: &Path, arguments: &[OsString]) -> Option<String> {
    if file_with_mpi(path) {
        return Some(shortened(&path.to_string_lossy()));
    }
    arguments.iter().map(|argument| argument.to_string_lossy()).find_map(|argument| {
        if argument == "mpi4py" || imports_mpi(&argument) {
            return Some("its Python code".to_owned());
        }
        let file =
            |word| Some(PathBuf::from(word)).filter(|file| file.is_file()).or_else(|| find(Path::new(word)));
        let mut files = argument.split_whitespace().filter_map(file);
        files.find(|file| file_with_mpi(file)).map(|file| shortened(&file.to_string_lossy()))
    })
}

/// Longest script that is looked into.
const LONGEST_SCRIPT: u64 = 1 << 20;

fn file_with_mpi(path: &Path) -> bool {
    let is_script = path.extension().is_some_and(|e| e == "py");
    let short = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= LONGEST_SCRIPT);
    match is_script && short {
        true => std::fs::read_to_string(path).is_ok_and(|text| imports_mpi(&text)),
        false => links_mpi(path),
    }
}

/// Returns whether some statement of Python code imports mpi4py.
fn imports_mpi(code: &str) -> bool {
    let statements = code.split(['\n', ';']).map(str::trim_start);
    let module = |statement: &str| {
        let words = statement.strip_prefix("import ").or_else(|| statement.strip_prefix("from "));
        words.is_some_and(|words| words.trim_start().starts_with("mpi4py"))
    };
    statements.into_iter().any(module)
}

/// Returns the interpreter that this command was installed with, or the one on the PATH.
fn python() -> PathBuf {
    let own = std::env::current_exe().ok();
    // The command itself is in bin, or in libexec beside it.
    let beside = own.as_deref().and_then(Path::parent).map(|dir| dir.join("../bin/python3"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("python3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_imports_mpi4py_is_seen() {
        for code in [
            "from mpi4py import MPI",
            "import os; import mpi4py.MPI as m",
            "import os\nfrom  mpi4py import MPI",
        ] {
            assert!(imports_mpi(code), "{code}");
        }
        for code in ["", "mpi4py", "# import mpi4py", "import numpy", "print('from mpi4py')"] {
            assert!(!imports_mpi(code), "{code}");
        }
    }
}
