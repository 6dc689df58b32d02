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
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(io::Error),
    /// A file that cannot be read.
    #[error("{path}: expected a readable {what}, found: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The kind of file that was expected.
        what: &'static str,
        /// The system's message.
        reason: io::Error,
    },
    /// A file that cannot be written.
    #[error("{path}: cannot be written: {reason}; name another with {option}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
        /// The system's message.
        reason: io::Error,
    },
    /// More flags than a message buffer has room for.
    #[error("k={k}: of the {lines} lines of a message buffer of {machine} chunks take {taken}, so at most {fit} flags fit, one notification and k done flags: k is at most {most}; take a smaller k, or smaller chunks (-p chunk=..)")]
    FlagBudget {
        /// Name of the machine.
        machine: String,
        /// Asked for.
        k: usize,
        /// Limit.
        most: usize,
        /// Lines of a message buffer.
        lines: usize,
        /// Of those, for chunks.
        taken: usize,
        /// Flags that fit the rest.
        fit: usize,
    },
    /// A file whose text is not what it should be; the reason has the line.
    #[error("{path}: expected a {what}, found: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The kind of file that was expected.
        what: &'static str,
        /// The line and the reason.
        reason: String,
    },
    /// A process that is not in any team.
    #[error("process {pid}: expected one with a team of lineweave {version}, found none; `lineweave who` lists all", version = env!("CARGO_PKG_VERSION"))]
    NoTeam {
        /// The number as given.
        pid: u32,
    },
    /// A job of which nothing was recorded.
    #[error("{}: expected what a job's ranks recorded, in {}: {reason}; `lineweave run --trace FILE` records it", timeline.display(), folder.display())]
    NoTrace {
        /// The file that was named.
        timeline: PathBuf,
        /// The folder in which the record would be.
        folder: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Things that do not work on this node.
    #[error("{problems} of the above {} not work", if *problems == 1 { "does" } else { "do" })]
    Unwell {
        /// The number of problems.
        problems: usize,
    },
    /// The name of an unknown machine.
    #[error("machine `{name}`{}: expected the path of a description or one of\n{}", did_you_mean(name, known.iter().map(String::as_str)), columns(known))]
    UnknownMachine {
        /// The name as given.
        name: String,
        /// Names of the shipped descriptions.
        known: Vec<String>,
    },
    /// The Python package could not be measured.
    #[error(transparent)]
    Python(#[from] crate::bench::PythonError),
    /// A simulation for which no machine is given.
    #[error("a simulation needs a machine: give one with --machine, such as --machine intel-scc")]
    NoMachine,
    /// A choice that needs costs of shared caches, for a machine that has none.
    #[error("costs of cache lines decide here, and the cores of {name} share no cache: ask `lineweave lab simulate --machine {name} --collective {collective} --algorithm all`")]
    NoCaches {
        /// Name of the machine.
        name: String,
        /// The collective that was asked for.
        collective: lineweave_core::collective::Collective,
    },
    /// A question of the laboratory that has no answer.
    #[error(transparent)]
    Lab(#[from] crate::commands::lab::LabError),
    /// A plan that cannot be simulated.
    #[error(transparent)]
    Simulate(#[from] lineweave_lab::simulate::SimulateError),
    /// Trees that cannot be generated.
    #[error(transparent)]
    Generate(#[from] lineweave_lab::generate::GenerateError),
    /// A load beside what is measured cannot run.
    #[error("a process of the load cannot run: {reason}; measure without --beside, or with fewer processes")]
    Load {
        /// The reason why.
        reason: io::Error,
    },
    /// A rank of a program that the bench started failed.
    #[error("rank {rank} ended with {how}")]
    RankFailed {
        /// The rank.
        rank: usize,
        /// The status that it ended with.
        how: String,
    },
    /// A rank of a launched program failed: the command ends with its status.
    #[error(transparent)]
    Launched(lineweave::team::Failed),
    /// A plan whose ops have no times.
    #[error("{plan} has no times: a rank of it waits for ever; `lineweave draw` without --time shows where")]
    NoTimes {
        /// The plan's name.
        plan: String,
    },
    /// A timeline without calls of a kind.
    #[error("{}: expected calls of {plan} of {bytes} B among {ranks} ranks that lineweave carried out, and all ranks recorded; found none", path.display())]
    NoCalls {
        /// The timeline.
        path: PathBuf,
        /// The plan's name.
        plan: String,
        /// The number of ranks.
        ranks: usize,
        /// The length of the message.
        bytes: usize,
    },
    /// Output in pixels without a file to write to.
    #[error("a png is not written to standard output; name its file by -o, or ask for --format svg")]
    NoFile,
    /// A file whose ending belongs to no format, or to another format than the given one.
    #[error("{path}: {why}")]
    Format {
        /// The file.
        path: PathBuf,
        /// A sentence that says what does not fit, and what to do.
        why: String,
    },
    /// A picture that cannot be drawn.
    #[error("the picture cannot be drawn: {why}; ask for --format svg")]
    Picture {
        /// The reason.
        why: String,
    },
    /// A machine's description without CPUs to place ranks on.
    #[error("machine `{name}` does not say its topology: give one with --topology")]
    NoTopology {
        /// Name of the machine.
        name: String,
    },
    /// A matrix where a description is expected.
    #[error("{path}: expected a machine description, found the name of a matrix: `lineweave profile import {path} -o machine.toml` makes one of it")]
    MatrixAlone {
        /// The file.
        path: String,
    },
    /// Costs that programs on this machine would refuse.
    #[error("{name}: {why}, or write the costs for that machine with `-o FILE.json`")]
    OtherMachine {
        /// The name as given.
        name: String,
        /// The difference between the machines.
        why: String,
    },
    /// A description without a matrix.
    #[error("machine `{name}` has no matrix of latencies: `lineweave list --machines` shows which have one")]
    NoMatrix {
        /// Name of the machine.
        name: String,
    },
    /// No profile where one is needed.
    #[error("no profile of this machine: {looked}; measure it with `lineweave measure`, or name a profile")]
    NoProfile {
        /// The places that were searched.
        looked: String,
    },
    /// There is no directory to keep a profile in.
    #[error("neither XDG_CACHE_HOME nor HOME is set, so there is nowhere to keep the profile: name a file with -o")]
    NoCache,
    /// A collective without its message.
    #[error("{0} moves a message: give its length with --bytes, such as --bytes 64KiB")]
    NoBytes(Collective),
    /// A collective without its message, in a command that takes the length as an argument.
    #[error("{0} moves a message: give its length, such as `lineweave explain {0} 64KiB`")]
    NoMessage(Collective),
    /// A plan or algorithm that is neither a file nor a name.
    #[error("`{found}`: expected the file of a plan, `-`, a collective, or COLLECTIVE/ALGORITHM: {reason}")]
    NoTarget {
        /// The text as given.
        found: String,
        /// The reason why it is neither.
        reason: String,
    },
    /// Plans that were refuted; their violations were printed.
    #[error("{violations} of {plans} plans refuted; the counter-examples are on standard output")]
    Refuted {
        /// Number of plans that were verified.
        plans: usize,
        /// Number of plans that were refuted.
        violations: usize,
    },
    /// Mutants that the checker let pass.
    #[error("{missed} of {mutants} changed plans passed: the checker has a hole; please report it")]
    Missed {
        /// Number of mutants.
        mutants: usize,
        /// Number of wrong mutants that passed.
        missed: usize,
    },
    /// An environment variable with a value it cannot take.
    #[error(transparent)]
    Setting(#[from] lineweave::settings::SettingError),
    /// A topology that cannot be read.
    #[error(transparent)]
    Topology(#[from] lineweave::topology::TopologyError),
    /// The text of an algorithm that cannot be parsed.
    #[error("`{written}` is no choice: expected as it is printed, NAME parameter=value ... by SIZE, or NAME(parameter=value,...); found {found}")]
    Written {
        /// The text as given.
        written: String,
        /// A sentence that says what was found in it.
        found: String,
    },
    /// More ranks than a team can have.
    #[error("{ranks} ranks: a team has at most {most}; plans for larger meshes are made by `lineweave lab simulate`")]
    TeamTooLarge {
        /// Ranks that were asked for.
        ranks: usize,
        /// Largest number of ranks.
        most: usize,
    },
    /// A plan that cannot be made.
    #[error(transparent)]
    Plan(#[from] lineweave_core::plan::PlanError),
    /// A value of a model that is not known.
    #[error(transparent)]
    NotKnown(#[from] lineweave_lab::models::NotKnown),
    /// No plan can be chosen.
    #[error(transparent)]
    Select(#[from] lineweave_core::select::SelectError),
    /// A benchmark's definition that cannot be used.
    #[error(transparent)]
    Definition(#[from] crate::bench::DefinitionError),
    /// A program for comparison that gave no measurement.
    #[error(transparent)]
    Peer(#[from] crate::bench::PeerError),
    /// A team for trials that failed.
    #[error(transparent)]
    TrialTeam(#[from] lineweave_tune::trial::TrialTeamError),
    /// This program cannot start itself as a rank.
    #[error("cannot find this program's own file to start ranks with: {0}; run it by its path")]
    OwnFile(io::Error),
    /// MPIs that cannot be measured.
    #[error("{0}; name the MPIs' directories, which have bin/mpirun, with --mpi")]
    Mpi(String),
    /// An MPI that cannot be measured.
    #[error(transparent)]
    Host(#[from] crate::mpi::HostError),
    /// A runtime of OpenMP that cannot be measured.
    #[error(transparent)]
    Openmp(#[from] crate::openmp::OpenmpError),
    /// Existing rules that differ from the new ones.
    #[error(
        "{path}: it is there and differs as shown, and was kept; --force replaces it, and -o names another"
    )]
    Kept {
        /// The file.
        path: PathBuf,
    },
    /// Rules that are slower than the library's own choices.
    #[error("{path}: {slower} of {cells} cells slower than by default by more than 3 %")]
    Slower {
        /// The file.
        path: PathBuf,
        /// The number of slower cells.
        slower: usize,
        /// The number of all cells.
        cells: usize,
    },
    /// Programs that cannot be installed.
    #[error("what the programs need could not be installed: {0}")]
    Apps(String),
    /// A choice for several nodes without the costs of their link.
    #[error("what a message between two nodes costs is not known; measure it by `lineweave run --link FILE` on them and give --link FILE, keep it by `lineweave profile link FILE`, or say --link LATENCY_NS,BYTES_PER_NS")]
    NoLink,
    /// A number of ranks that does not divide evenly among the nodes.
    #[error("{ranks} ranks cannot be divided among {nodes} nodes alike; give another --ranks, which counts those of all nodes")]
    RanksOfNodes {
        /// Ranks.
        ranks: usize,
        /// Nodes.
        nodes: usize,
    },
    /// A collective whose cost over several nodes is not known.
    #[error(transparent)]
    Nodes(#[from] lineweave_lab::nodes::NoNodes),
    /// A program that was not found.
    #[error("{program}: {}{hint}", if program.contains('/') { "no such file" } else { "no such program on the PATH" })]
    NoProgram {
        /// The name as given.
        program: String,
        /// A hint about a file of that name.
        hint: String,
    },
    /// A program whose settings cannot be tried.
    #[error("{program}: {why}")]
    NotTried {
        /// The program as given.
        program: String,
        /// A sentence that says why, and what to do.
        why: String,
    },
    /// A library of lineweave's own that is not installed.
    #[error("{0}")]
    NoLibrary(String),
    /// A program that could not be started.
    #[error("`{program}` cannot be started: {reason}")]
    Program {
        /// The name as given.
        program: String,
        /// The system's message.
        reason: io::Error,
    },
    /// The profile that LINEWEAVE_PROFILE names was refused before a job.
    #[error("{0}; LINEWEAVE_PROFILE_OPTIONAL=1 runs the program without it")]
    RefusedProfile(lineweave::Error),
    /// An error of the runtime.
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
