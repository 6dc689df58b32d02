//! Errors of measuring an MPI.

use std::io;
use thiserror::Error;

/// Reason why an MPI could not be measured: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    #[error("{0}; give an MPI's launcher and its options behind `--`, such as `-- mpirun -n 2`, and where its library lies elsewhere --mpi PREFIX")]
    NoMpi(String),
    #[error(
        "the program that ranks run cannot be built: {0}; it needs a C compiler, cc or the one that CC names"
    )]
    Build(String),
    #[error("a directory for the program that ranks run: {0}; TMPDIR names another place")]
    Directory(io::Error),
    #[error("`{command}` did not run its ranks: {how}")]
    Broken {
        command: String,
        /// The last line of its output.
        how: String,
    },
    #[error("`{command}` starts {ranks} rank: expected 2 or more, as by `-n 2`")]
    Alone { command: String, ranks: usize },
    #[error("`{command}` starts ranks on {nodes} nodes: expected one, since models and rules here are for one node's memory; give a launcher's line for one")]
    Nodes { command: String, nodes: usize },
    #[error("the algorithms of `{0}` cannot be forced: known are the settings of Open MPI 4 and 5, MPICH from 4.0 on, and Intel MPI; `lineweave lab mpi` measures it all the same")]
    Unknown(String),
    #[error("the launcher is of {found}, and the rules are to be for {wanted}")]
    Other { found: &'static str, wanted: &'static str },
    #[error("--ranks: expected no {0} in the launcher's line beside it, since `-n` is added for each number of ranks")]
    Ranks(String),
    #[error("--ranks: expected one number of ranks, found {0}: {1}'s settings are for all communicators; make a file for each")]
    Several(usize, &'static str),
    #[error("nothing could be measured: {0}")]
    Nothing(String),
}
