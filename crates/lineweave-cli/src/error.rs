//! Why a command could not do what was asked: what was expected, what was found, what to do.

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
        /// What it should be.
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
        /// What it should be.
        what: &'static str,
        /// Line and reason.
        reason: String,
    },
    /// A process that is not in any team.
    #[error("process {pid}: expected one with a team of lineweave {version}, found none; `lineweave who` lists all", version = env!("CARGO_PKG_VERSION"))]
    NoTeam {
        /// As given.
        pid: u32,
    },
    /// A job of which nothing was recorded.
    #[error("{}: expected what a job's ranks recorded, in {}: {reason}; `lineweave run --trace FILE` records it", timeline.display(), folder.display())]
    NoTrace {
        /// The file that was named.
        timeline: PathBuf,
        /// Where the record would be.
        folder: PathBuf,
        /// What is the matter with it.
        reason: String,
    },
    /// Things that do not work on this node.
    #[error("{problems} of the above {} not work", if *problems == 1 { "does" } else { "do" })]
    Unwell {
        /// The number of slower cells.
        problems: usize,
    },
    /// A machine's name that nobody knows.
    #[error("machine `{name}`{}: expected the path of a description or one of\n{}", did_you_mean(name, known.iter().map(String::as_str)), columns(known))]
    UnknownMachine {
        /// As given.
        name: String,
        /// Names of the shipped descriptions.
        known: Vec<String>,
    },
    /// The Python package could not be measured.
    #[error(transparent)]
    Python(#[from] crate::bench::PythonError),
    /// A simulation without a machine.
    #[error("a simulation needs a machine: give one with --machine, such as --machine intel-scc")]
    NoMachine,
    /// Dimensions for a machine that has none.
    #[error("machine `{name}` is no mesh: --mesh needs one, such as intel-scc")]
    NoMesh {
        /// Name of the machine.
        name: String,
    },
    /// No experiments of a paper on hardware.
    #[error("no experiments of `{name}` for a machine at hand: expected one of {known}")]
    NoStudy {
        /// The value that was asked for.
        name: String,
        /// Keys.
        known: String,
    },
    /// Points of another machine or paper.
    #[error("{path} holds points of {found}, and this is {expected}: name another directory with -o, or remove it")]
    OtherPoints {
        /// The file.
        path: PathBuf,
        /// The paper and machine that the points are of.
        found: String,
        /// The paper and machine that were asked for.
        expected: String,
    },
    /// Costs without a mesh.
    #[error("{costs}: it tells nothing of links and ports, which a description with [mesh] does: --machine intel-scc")]
    NoMeshCosts {
        /// Where they come from.
        costs: String,
    },
    /// More memory controllers than tiles.
    #[error("--controllers {controllers}: expected at most one a tile, {most} on a mesh of {mesh}")]
    TooManyControllers {
        /// The value that was asked for.
        controllers: u32,
        /// The mesh.
        mesh: String,
        /// The number of tiles of the mesh.
        most: u32,
    },
    /// Costs that are a model alone.
    #[error("{costs}: expected a profile or a machine's description, whose values the published models take; name one with --profile or --machine")]
    NoCells {
        /// Where they come from.
        costs: String,
    },
    /// No algorithm has a plan.
    #[error("no algorithm of {collective} has a plan of {bytes} bytes among {ranks} ranks: `lineweave list {collective}` shows for what each is")]
    NoRows {
        /// The collective.
        collective: Collective,
        /// Ranks.
        ranks: usize,
        /// Length of the message.
        bytes: usize,
    },
    /// A choice by costs of caches for a machine that has none in common.
    #[error("costs of cache lines decide here, and the cores of {name} share no cache: ask `lineweave lab simulate --machine {name} --collective {collective} --algorithm all`")]
    NoCaches {
        /// Name of the machine.
        name: String,
        /// What was asked for.
        collective: lineweave_core::collective::Collective,
    },
    /// A plan that cannot be simulated.
    #[error(transparent)]
    Simulate(#[from] lineweave_lab::simulate::SimulateError),
    /// Trees that cannot be generated.
    #[error(transparent)]
    Generate(#[from] lineweave_lab::generate::GenerateError),
    /// A rank of a program that the bench started failed.
    #[error("rank {rank} ended with {how}")]
    RankFailed {
        /// Which.
        rank: usize,
        /// Its status.
        how: String,
    },
    /// A rank of a program that was launched failed: the command's status is its own.
    #[error(transparent)]
    Launched(lineweave::team::Failed),
    /// A plan whose ops have no times.
    #[error("{plan} has no times: a rank of it waits for ever; `lineweave draw` without --time shows where")]
    NoTimes {
        /// Its name.
        plan: String,
    },
    /// Pixels are no text.
    #[error("a png is not written to standard output; name its file by -o, or ask for --format svg")]
    NoFile,
    /// A file whose ending is of no format, or of another than the one that is asked for.
    #[error("{path}: {why}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What does not fit, and what to do.
        why: String,
    },
    /// A picture that cannot be drawn.
    #[error("the picture cannot be drawn: {why}; ask for --format svg")]
    Picture {
        /// By what.
        why: String,
    },
    /// A paper that is not among those reproduced.
    #[error("paper `{name}`{}: expected part of one of {known}", did_you_mean(name, [known.as_str()]))]
    UnknownPaper {
        /// As given.
        name: String,
        /// Keys of the papers.
        known: String,
    },
    /// A collective, a size or a name that no optimiser is for.
    #[error("no optimiser for {collective} of {bytes} bytes (or none of that name): expected barrier, bcast, or reduce of up to 56 bytes")]
    NoOptimiser {
        /// The collective.
        collective: Collective,
        /// Length of the message.
        bytes: usize,
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
    /// Costs that programs of this machine would refuse.
    #[error("{name}: {why}, or write the costs for that machine with `-o FILE.json`")]
    OtherMachine {
        /// As given.
        name: String,
        /// In what it is another one.
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
        /// Where it was looked for.
        looked: String,
    },
    /// There is no directory to keep a profile in.
    #[error("neither XDG_CACHE_HOME nor HOME is set, so there is nowhere to keep the profile: name a file with -o")]
    NoCache,
    /// A collective without its message.
    #[error("{0} moves a message: give its length with --bytes, such as --bytes 64KiB")]
    NoBytes(Collective),
    /// The same where the length is an argument.
    #[error("{0} moves a message: give its length, such as `lineweave explain {0} 64KiB`")]
    NoMessage(Collective),
    /// A plan or algorithm that is neither a file nor a name.
    #[error("`{found}`: expected the file of a plan, `-`, a collective, or COLLECTIVE/ALGORITHM: {reason}")]
    NoTarget {
        /// As given.
        found: String,
        /// Why it is neither.
        reason: String,
    },
    /// Proofs that failed; what is wrong was printed.
    #[error("{violations} of {plans} plans refuted; the counter-examples are on standard output")]
    Refuted {
        /// Plans looked at.
        plans: usize,
        /// Plans refuted.
        violations: usize,
    },
    /// Mutants that the checker let pass.
    #[error("{missed} of {mutants} changed plans passed: the checker has a hole; please report it")]
    Missed {
        /// Changed plans.
        mutants: usize,
        /// Of those, passed though wrong.
        missed: usize,
    },
    /// An environment variable with a value it cannot take.
    #[error(transparent)]
    Setting(#[from] lineweave::settings::SettingError),
    /// A topology that cannot be had.
    #[error(transparent)]
    Topology(#[from] lineweave::topology::TopologyError),
    /// An algorithm that cannot be read.
    #[error("`{written}` is no choice: expected as it is printed, NAME parameter=value ... by SIZE, or NAME(parameter=value,...); found {found}")]
    Written {
        /// What was given.
        written: String,
        /// What was found.
        found: String,
    },
    /// More ranks than a team can have.
    #[error("{ranks} ranks: a team has at most {most}; plans for larger meshes are made by `lineweave lab simulate`")]
    TeamTooLarge {
        /// Asked for.
        ranks: usize,
        /// Limit.
        most: usize,
    },
    /// A plan that cannot be made.
    #[error(transparent)]
    Plan(#[from] lineweave_core::plan::PlanError),
    /// A model's value that nobody knows.
    #[error(transparent)]
    NotKnown(#[from] lineweave_lab::models::NotKnown),
    /// Nothing to choose.
    #[error(transparent)]
    Select(#[from] lineweave_core::select::SelectError),
    /// A benchmark's definition.
    #[error(transparent)]
    Definition(#[from] crate::bench::DefinitionError),
    /// A program that lineweave is compared with.
    #[error(transparent)]
    Peer(#[from] crate::bench::PeerError),
    /// A team that is kept for measuring.
    #[error(transparent)]
    TrialTeam(#[from] lineweave_tune::trial::TrialTeamError),
    /// This program cannot start itself as a rank.
    #[error("cannot find this program's own file to start ranks with: {0}; run it by its path")]
    OwnFile(io::Error),
    /// MPIs that cannot be measured.
    #[error("{0}; name the MPIs' directories, which have bin/mpirun, with --mpi")]
    Mpi(String),
    /// Somebody's MPI.
    #[error(transparent)]
    Host(#[from] crate::mpi::HostError),
    /// Rules that are there already, and other ones.
    #[error(
        "{path}: it is there and differs as shown, and was kept; --force replaces it, and -o names another"
    )]
    Kept {
        /// The file.
        path: PathBuf,
    },
    /// Rules that are worse than none.
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
    /// Several nodes without what is between them.
    #[error("what a message between two nodes costs is not known; measure it by `lineweave run --link FILE` on them and give --link FILE, keep it by `lineweave profile link FILE`, or say --link LATENCY_NS,BYTES_PER_NS")]
    NoLink,
    /// Nodes are alike.
    #[error("{ranks} ranks cannot be divided among {nodes} nodes alike; give another --ranks, which counts those of all nodes")]
    RanksOfNodes {
        /// Ranks.
        ranks: usize,
        /// Nodes.
        nodes: usize,
    },
    /// No cost over several nodes.
    #[error(transparent)]
    Nodes(#[from] lineweave_lab::nodes::NoNodes),
    /// A program that is nowhere.
    #[error("{program}: {}{hint}", if program.contains('/') { "no such file" } else { "no such program on the PATH" })]
    NoProgram {
        /// As given.
        program: String,
        /// What is there instead.
        hint: String,
    },
    /// A library of lineweave's own that is not installed.
    #[error("{0}")]
    NoLibrary(String),
    /// A program that was to be run.
    #[error("`{program}` cannot be started: {reason}")]
    Program {
        /// As given.
        program: String,
        /// The system's message.
        reason: io::Error,
    },
    /// What LINEWEAVE_PROFILE names, before a job.
    #[error("{0}; LINEWEAVE_PROFILE_OPTIONAL=1 runs the program without it")]
    RefusedProfile(lineweave::Error),
    /// The runtime.
    #[error(transparent)]
    Runtime(#[from] lineweave::Error),
}

impl CliError {
    /// The status of a job that was refused before it began.
    pub const REFUSED: u8 = 2;

    /// Returns whether the reader of standard output went away.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, CliError::Output(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The status that the command ends with.
    pub fn status(&self) -> u8 {
        match self {
            CliError::Launched(failed) => failed.code(),
            CliError::RefusedProfile(_) => CliError::REFUSED,
            // As shells have it.
            CliError::NoProgram { .. } => 127,
            CliError::Program { reason, .. } if reason.kind() == io::ErrorKind::NotFound => 127,
            CliError::Program { .. } => 126,
            // It could not do what was asked, or refuted what was claimed.
            _ => 1,
        }
    }

    /// A file that cannot be read as what it should be.
    pub fn read(path: &Path, what: &'static str, reason: io::Error) -> CliError {
        CliError::Read { path: path.to_owned(), what, reason }
    }

    /// A file that is not what it should be.
    pub fn malformed(path: &Path, what: &'static str, reason: impl ToString) -> CliError {
        CliError::Malformed { path: path.to_owned(), what, reason: reason.to_string() }
    }
}
