//! Errors of measuring a runtime of OpenMP.

use std::io;
use thiserror::Error;

/// Reason why a runtime could not be measured: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenmpError {
    /// The compiler or the runtime is not installed.
    #[error("{0}; the program that is timed is compiled by gcc and linked with the runtime")]
    Missing(String),
    /// The directory for the program cannot be used.
    #[error("a directory for the program that is timed: {0}; TMPDIR names another place")]
    Directory(io::Error),
    /// The program did not run with the default settings.
    #[error("{runtime} with {threads} threads: {how}")]
    Broken {
        /// The runtime.
        runtime: &'static str,
        /// Number of threads.
        threads: usize,
        /// The reason.
        how: String,
    },
    /// A launcher is given, which a runtime of OpenMP does not have.
    #[error("--for {0}: expected no launcher behind `--`, since a runtime of OpenMP is measured in one process; give threads with --ranks")]
    Launcher(&'static str),
}
