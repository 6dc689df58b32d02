//! Errors of the command. Each says what was expected, what was found and what to do.

use crate::output::columns;
use lineweave_core::collective::Collective;
use lineweave_core::names::did_you_mean;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Every error of the command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CliError {
    #[error("standard output: {0}")]
    Output(io::Error),
    #[error("{path}: expected a readable {what}, found: {reason}")]
    Read { path: PathBuf, what: &'static str, reason: io::Error },
    #[error("{path}: cannot be written: {reason}; name another with {option}")]
    Write { path: PathBuf, option: &'static str, reason: io::Error },
    #[error("k={k}: of the {lines} lines of a message buffer of {machine} chunks take {taken}, so at most {fit} flags fit, one notification and k done flags: k is at most {most}; take a smaller k, or smaller chunks (-p chunk=..)")]
    FlagBudget {
        machine: String,
        k: usize,
        most: usize,
        lines: usize,
        /// Of those, for chunks.
        taken: usize,
        fit: usize,
    },
    /// A file whose text is not what it should be; the reason has the line.
    #[error("{path}: expected a {what}, found: {reason}")]
    Malformed { path: PathBuf, what: &'static str, reason: String },
    #[error("process {pid}: expected one with a team of lineweave {version}, found none; `lineweave who` lists all", version = env!("CARGO_PKG_VERSION"))]
    NoTeam { pid: u32 },
    #[error("{}: expected what a job's ranks recorded, in {}: {reason}; `lineweave run --trace FILE` records it", timeline.display(), folder.display())]
    NoTrace { timeline: PathBuf, folder: PathBuf, reason: String },
    #[error("{problems} of the above {} not work", if *problems == 1 { "does" } else { "do" })]
    Unwell { problems: usize },
    #[error("machine `{name}`{}: expected the path of a description or one of\n{}", did_you_mean(name, known.iter().map(String::as_str)), columns(known))]
    UnknownMachine { name: String, known: Vec<String> },
    #[error(transparent)]
    Python(#[from] crate::bench::PythonError),
    #[error("a simulation needs a machine: give one with --machine, such as --machine intel-scc")]
    NoMachine,
    #[error("costs of cache lines decide here, and the cores of {name} share no cache: ask `lineweave lab simulate --machine {name} --collective {collective} --algorithm all`")]
    NoCaches { name: String, collective: lineweave_core::collective::Collective },
    #[error(transparent)]
    Lab(#[from] crate::commands::lab::LabError),
    #[error(transparent)]
    Simulate(#[from] lineweave_lab::simulate::SimulateError),
    #[error(transparent)]
    Generate(#[from] lineweave_lab::generate::GenerateError),
    #[error("a process of the load cannot run: {reason}; measure without --beside, or with fewer processes")]
    Load { reason: io::Error },
    #[error("rank {rank} ended with {how}")]
    RankFailed { rank: usize, how: String },
    /// A rank of a launched program failed: the command ends with its status.
    #[error(transparent)]
    Launched(lineweave::team::Failed),
    #[error("{plan} has no times: a rank of it waits for ever; `lineweave draw` without --time shows where")]
    NoTimes { plan: String },
    #[error("{}: expected calls of {plan} of {bytes} B among {ranks} ranks that lineweave carried out, and all ranks recorded; found none", path.display())]
    NoCalls { path: PathBuf, plan: String, ranks: usize, bytes: usize },
    #[error("a png is not written to standard output; name its file by -o, or ask for --format svg")]
    NoFile,
    #[error("{path}: {why}")]
    Format {
        path: PathBuf,
        /// A sentence that says what does not fit, and what to do.
        why: String,
    },
    #[error("the picture cannot be drawn: {why}; ask for --format svg")]
    Picture { why: String },
    #[error("machine `{name}` does not say its topology: give one with --topology")]
    NoTopology { name: String },
    #[error("{path}: expected a machine description, found the name of a matrix: `lineweave profile import {path} -o machine.toml` makes one of it")]
    MatrixAlone { path: String },
    #[error("{name}: {why}, or write the costs for that machine with `-o FILE.json`")]
    OtherMachine {
        name: String,
        /// The difference between the machines.
        why: String,
    },
    #[error("machine `{name}` has no matrix of latencies: `lineweave list --machines` shows which have one")]
    NoMatrix { name: String },
    #[error("no profile of this machine: {looked}; measure it with `lineweave measure`, or name a profile")]
    NoProfile { looked: String },
    #[error("neither XDG_CACHE_HOME nor HOME is set, so there is nowhere to keep the profile: name a file with -o")]
    NoCache,
    #[error("{0} moves a message: give its length with --bytes, such as --bytes 64KiB")]
    NoBytes(Collective),
    /// A collective without its message, in a command that takes the length as an argument.
    #[error("{0} moves a message: give its length, such as `lineweave explain {0} 64KiB`")]
    NoMessage(Collective),
    #[error("`{found}`: expected the file of a plan, `-`, a collective, or COLLECTIVE/ALGORITHM: {reason}")]
    NoTarget { found: String, reason: String },
    #[error("{violations} of {plans} plans refuted; the counter-examples are on standard output")]
    Refuted { plans: usize, violations: usize },
    #[error("{missed} of {mutants} changed plans passed: the checker has a hole; please report it")]
    Missed { mutants: usize, missed: usize },
    #[error(transparent)]
    Setting(#[from] lineweave::settings::SettingError),
    #[error(transparent)]
    Topology(#[from] lineweave::topology::TopologyError),
    #[error("`{written}` is no choice: expected as it is printed, NAME parameter=value ... by SIZE, or NAME(parameter=value,...); found {found}")]
    Written {
        written: String,
        /// A sentence that says what was found in it.
        found: String,
    },
    #[error("{ranks} ranks: a team has at most {most}; plans for larger meshes are made by `lineweave lab simulate`")]
    TeamTooLarge { ranks: usize, most: usize },
    #[error(transparent)]
    Plan(#[from] lineweave_core::plan::PlanError),
    #[error(transparent)]
    NotKnown(#[from] lineweave_lab::models::NotKnown),
    #[error(transparent)]
    Select(#[from] lineweave_core::select::SelectError),
    #[error(transparent)]
    Definition(#[from] crate::bench::DefinitionError),
    #[error(transparent)]
    Peer(#[from] crate::bench::PeerError),
    #[error(transparent)]
    TrialTeam(#[from] lineweave_tune::trial::TrialTeamError),
    #[error("cannot find this program's own file to start ranks with: {0}; run it by its path")]
    OwnFile(io::Error),
    #[error("{0}; name the MPIs' directories, which have bin/mpirun, with --mpi")]
    Mpi(String),
    #[error(transparent)]
    Host(#[from] crate::mpi::HostError),
    #[error(transparent)]
    Openmp(#[from] crate::openmp::OpenmpError),
    /// Existing rules that differ from the new ones.
    #[error(
        "{path}: it is there and differs as shown, and was kept; --force replaces it, and -o names another"
    )]
    Kept { path: PathBuf },
    #[error("{path}: {slower} of {cells} cells slower than by default by more than 3 %")]
    Slower { path: PathBuf, slower: usize, cells: usize },
    #[error("what the programs need could not be installed: {0}")]
    Apps(String),
    #[error("what a message between two nodes costs is not known; measure it by `lineweave run --link FILE` on them and give --link FILE, keep it by `lineweave profile link FILE`, or say --link LATENCY_NS,BYTES_PER_NS")]
    NoLink,
    #[error("{ranks} ranks cannot be divided among {nodes} nodes alike; give another --ranks, which counts those of all nodes")]
    RanksOfNodes { ranks: usize, nodes: usize },
    #[error(transparent)]
    Nodes(#[from] lineweave_lab::nodes::NoNodes),
    #[error("{program}: {}{hint}", if program.contains('/') { "no such file" } else { "no such program on the PATH" })]
    NoProgram { program: String, hint: String },
    #[error("{program}: {why}")]
    NotTried {
        program: String,
        /// A sentence that says why, and what to do.
        why: String,
    },
    #[error("{0}")]
    NoLibrary(String),
    #[error("`{program}` cannot be started: {reason}")]
    Program { program: String, reason: io::Error },
    /// The profile that LINEWEAVE_PROFILE names was refused before a job.
    #[error("{0}; LINEWEAVE_PROFILE_OPTIONAL=1 runs the program without it")]
    RefusedProfile(lineweave::Error),
    #[error(transparent)]
    Runtime(#[from] lineweave::Error),
}

impl CliError {
    /// The exit status of a job that was refused before it began.
    pub const REFUSED: u8 = 2;

    /// Returns whether the reader of standard output went away.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CliError::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the exit status of the command.
    pub fn status(&self) -> u8 {
        match self {
            CliError::Launched(failed) => failed.code(),
            CliError::RefusedProfile(_) => CliError::REFUSED,
            // Shells use this status.
            CliError::NoProgram { .. } => 127,
            CliError::Program { reason, .. } if reason.kind() == io::ErrorKind::NotFound => 127,
            CliError::Program { .. } => 126,
            // The command could not do its task, or refuted a claim.
            _ => 1,
        }
    }

    /// Returns the error for a file that cannot be read.
    pub fn read(path: &Path, what: &'static str, reason: io::Error) -> CliError {
        CliError::Read { path: path.to_owned(), what, reason }
    }

    /// Returns the error for a file with the wrong contents.
    pub fn malformed(path: &Path, what: &'static str, reason: impl ToString) -> CliError {
        CliError::Malformed { path: path.to_owned(), what, reason: reason.to_string() }
    }
}
