//! Measurements of the Python package beside others' by `lineweave.bench`, run by an interpreter that has the package.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use thiserror::Error;

/// Reason why Python could not be measured.
#[derive(Debug, Error)]
pub enum PythonError {
    #[error("{}: {reason}; set PYTHON to an interpreter that has the package lineweave", python.display())]
    Start { python: PathBuf, reason: std::io::Error },
    #[error("{} -m lineweave.bench ended with {status}; is the package there? pip install lineweave numpy, or set PYTHON", python.display())]
    Ended { python: PathBuf, status: std::process::ExitStatus },
    #[error("lineweave.bench printed `{0}` where a JSON object was expected; use one version of command and package")]
    Line(String),
}

/// Returns `$PYTHON`, or the interpreter beside the command (in a virtual environment both are), or `python3`.
pub fn interpreter() -> PathBuf {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("python")).filter(|p| p.exists());
    let set = std::env::var_os("PYTHON").filter(|p| !p.is_empty()).map(PathBuf::from);
    set.or_else(beside).unwrap_or_else(|| PathBuf::from("python3"))
}

/// Measures the subjects whose names begin with `only` among these numbers of ranks, and hands over each result as it comes.
pub fn measure<E: From<PythonError>>(
    ranks: &[usize],
    only: &str,
    quick: bool,
    mut each: impl FnMut(Value) -> Result<(), E>,
) -> Result<(), E> {
    let python = interpreter();
    let ranks = if ranks.is_empty() { &[2][..] } else { ranks };
    let list: Vec<String> = ranks.iter().map(ToString::to_string).collect();
    let mut command = Command::new(&python);
    command.args(["-m", "lineweave.bench", "--ranks", &list.join(","), "--only", only]);
    if quick {
        command.args(["--rounds", "2", "--window", "0.05"]);
    }
    let start = |reason| PythonError::Start { python: python.clone(), reason };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(start)?;
    let mut done = Ok(());
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let value = serde_json::from_str(&line).ok().filter(Value::is_object);
            done = value.ok_or_else(|| E::from(PythonError::Line(line))).and_then(&mut each);
            if done.is_err() {
                // The interpreter may have ended by itself already.
                let _ = child.kill();
                break;
            }
        }
    }
    let status = child.wait().map_err(start)?;
    done?;
    if !status.success() {
        return Err(PythonError::Ended { python, status }.into());
    }
    Ok(())
}
