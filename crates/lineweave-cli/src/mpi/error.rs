//! Errors of measuring an MPI.

use std::io;
use thiserror::Error;

/// Reason why an MPI could not be measured: each says what was expected, what was found and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// No launcher, or no library of MPI beside it.
    #[error("{0}; give an MPI's launcher and its options behind `--`, such as `-- mpirun -n 2`, and where its library lies elsewhere --mpi PREFIX")]
    NoMpi(String),
    /// The rank program cannot be built.
    #[error(
        "the program that ranks run cannot be built: {0}; it needs a C compiler, cc or the one that CC names"
    )]
    Build(String),
    /// The directory for the program cannot be used.
    #[error("a directory for the program that ranks run: {0}; TMPDIR names another place")]
    Directory(io::Error),
    /// The launcher ended without the ranks' answers.
    #[error("`{command}` did not run its ranks: {how}")]
    Broken {
        /// The launcher's line.
        command: String,
        /// The last line of its output.
        how: String,
    },
    /// The launcher started only one rank, which has no peer.
    #[error("`{command}` starts {ranks} rank: expected 2 or more, as by `-n 2`")]
    Alone {
        /// The launcher's line.
        command: String,
        /// Number of ranks found.
        ranks: usize,
    },
    /// Ranks on several nodes.
    #[error("`{command}` starts ranks on {nodes} nodes: expected one, since models and rules here are for one node's memory; give a launcher's line for one")]
    Nodes {
        /// The launcher's line.
        command: String,
        /// Number of nodes found.
        nodes: usize,
    },
    /// A library whose settings are not known.
    #[error("the algorithms of `{0}` cannot be forced: known are the settings of Open MPI 4 and 5, MPICH from 4.0 on, and Intel MPI")]
    Unknown(String),
    /// The MPI is not the one that was asked for.
    #[error("the launcher is of {found}, and the rules are to be for {wanted}")]
    Other {
        /// The MPI that the ranks report.
        found: &'static str,
        /// The MPI that was asked for.
        wanted: &'static str,
    },
    /// Numbers of ranks beside a launcher's line that has one.
    #[error("--ranks: expected no {0} in the launcher's line beside it, since `-n` is added for each number of ranks")]
    Ranks(String),
    /// Several numbers of ranks for a library whose settings are for all.
    #[error("--ranks: expected one number of ranks, found {0}: {1}'s settings are for all communicators; make a file for each")]
    Several(usize, &'static str),
    /// No algorithm could be measured.
    #[error("nothing could be measured: {0}")]
    Nothing(String),
}
