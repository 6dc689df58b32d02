//! Errors of measuring a runtime of OpenMP.

use std::io;
use thiserror::Error;

/// Reason why a runtime could not be measured: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenmpError {
    #[error("{0}; the program that is timed is compiled by gcc and linked with the runtime")]
    Missing(String),
    #[error("a directory for the program that is timed: {0}; TMPDIR names another place")]
    Directory(io::Error),
    #[error("{runtime} with {threads} threads: {how}")]
    Broken { runtime: &'static str, threads: usize, how: String },
    #[error("--for {0}: expected no launcher behind `--`, since a runtime of OpenMP is measured in one process; give threads with --ranks")]
    Launcher(&'static str),
}
