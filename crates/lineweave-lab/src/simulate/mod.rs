//! Plans in virtual time, on machines nobody here owns: discrete events, with contention.
//!
//! [`simulate`] plays a plan op by op on a machine's description. Time is in whole picoseconds and ties are
//! broken by (time, rank, op), so a simulation is the same everywhere, bit by bit. The interpreter knows plans
//! and nothing of machines: it cuts ops into elementary accesses, and a [`Fabric`], which is a family of
//! machines, says how long each takes and which resources it keeps busy.
//!
//! Data is not moved: what a plan delivers is for [`verify`](lineweave_core::verify) to prove.

mod agenda;
pub mod bounds;
mod choices;
pub mod coherent;
pub mod copies;
mod fabric;
pub mod measuring;
pub mod mesh;
mod moves;
mod names;
mod play;
mod program;

pub use agenda::{Agenda, Agent};
pub use fabric::{Access, Call, Fabric, Lanes, Step};
pub use moves::{moves, slot};
pub use names::Names;
pub use play::{play, Played, Ran};
pub use program::{Address, Buffer, FlagAt, Playable};

use lineweave_core::machine::{Machine, Value};
use lineweave_core::names::{named, read_back};
use lineweave_core::plan::Plan;
use lineweave_core::trace::{Clock, Picos, Trace};
use lineweave_core::units::Rank;

/// Granularity at which accesses are played.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fidelity {
    /// Line by line: each line is a request of its own, and queues for itself.
    #[default]
    Line,
    /// A move or fold at once: it takes what its lines take without contention, or longer when a resource has
    /// more work to do. Faster, and the same where nothing contends.
    Chunk,
}

named!(Fidelity, Line = "line", Chunk = "chunk");
read_back!(Fidelity, String, |name| format!("unknown fidelity `{name}`: expected line or chunk"));

/// Settings of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Granularity at which accesses are played.
    pub fidelity: Fidelity,
    /// Runs back to back; at least 1.
    pub runs: usize,
    /// Banks that the runs of a [`Reuse::Ring`](lineweave_core::plan::Reuse) plan alternate between; at least 1.
    pub banks: usize,
    /// True if a run begins, at all ranks at once, when everybody has ended the one before: [`Outcome::each`] is then one call
    /// alone, its lines where the call before left them.
    pub together: bool,
    /// True if to record the ops of the first run.
    pub trace: bool,
    /// The most memory that a simulation may take, in bytes.
    pub memory_bytes: u64,
    /// Settings that only meshes have.
    pub mesh: mesh::Settings,
    /// Settings that only coherent caches have.
    pub coherent: coherent::Settings,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fidelity: Fidelity::Line,
            runs: 1,
            banks: 2,
            together: false,
            trace: false,
            memory_bytes: 4 << 30,
            mesh: mesh::Settings::default(),
            coherent: coherent::Settings::default(),
        }
    }
}

/// Outcome of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The first run alone, everybody entering at once: until the last rank has returned.
    pub first: Picos,
    /// Time from run to run, when runs follow each other; `first` when there is only one.
    pub each: Picos,
    /// Time from the root's (rank 0's, where there is none) entry into a run until the last rank's return from it,
    /// on average over all runs but the first; `first` when there is only one.
    pub latency: Picos,
    /// All runs, until the last rank has returned.
    pub total: Picos,
    /// A lower bound of one run of any plan for this collective, these ranks and bytes, where the family states
    /// one; see its documentation.
    pub bound: Option<Picos>,
    /// Time at which each rank returned from its last run.
    pub per_rank: Vec<Picos>,
    /// Events handled.
    pub events: u64,
    /// The ops of the first run, when asked for.
    pub trace: Option<Trace>,
    /// Load of ports and links, on a mesh whose messages wait for them.
    pub load: Option<mesh::Load>,
}

impl Outcome {
    /// The outcome of what was played.
    pub fn of(plan: &Plan, played: Played, wants_trace: bool) -> Outcome {
        let ended = |run: usize| played.ended[run].0;
        let last = played.ended.len() - 1;
        let each = match last {
            0 => ended(0),
            n => (ended(n) - ended(0)) / n as u64,
        };
        let took = |run: usize| ended(run) - played.began[run].0;
        let latency = match last {
            0 => took(0),
            n => (1..=n).map(took).sum::<u64>() / n as u64,
        };
        let trace = wants_trace.then(|| {
            let mut trace = Trace::of(plan, Clock::Simulated);
            for ran in &played.trace {
                trace.record(plan, Rank(ran.rank), ran.op, ran.start, ran.end);
            }
            // Each rank's ops in program order.
            trace.events.sort_by_key(|e| (e.rank, e.op));
            trace
        });
        Outcome {
            first: Picos(ended(0)),
            each: Picos(each),
            latency: Picos(latency),
            total: Picos(ended(last)),
            bound: None,
            per_rank: played.per_rank,
            events: played.events,
            trace,
            load: None,
        }
    }
}

/// Reason why a plan cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulateError {
    /// An op that names what the plan does not have.
    #[error("rank {rank}, op {op}: names a rank, flag or slot that the plan does not have; `lineweave verify` shows it")]
    Malformed {
        /// Rank of the op.
        rank: Rank,
        /// Index in its program.
        op: usize,
    },
    /// A rank waits for ever.
    #[error("rank {rank}, op {op}: waits for a flag that nobody raises; `lineweave verify` shows why")]
    Stuck {
        /// Rank of the op.
        rank: Rank,
        /// Index in its program.
        op: usize,
    },
    /// A machine that no simulated family is for.
    #[error("machine {machine}: cannot be simulated: {lacks}")]
    NoFamily {
        /// Name of the machine.
        machine: String,
        /// Part that its description lacks.
        lacks: String,
    },
    /// A value that the simulation needs and the description does not know.
    #[error("machine {machine}: `{key}` is unknown, and without it there is no simulation: {why}")]
    Unknown {
        /// Name of the machine.
        machine: String,
        /// Key of the value.
        key: String,
        /// Reason why the value is unknown, as its source says.
        why: String,
    },
    /// A plan that reads or writes peers' private memory.
    #[error("{plan} reads or writes other ranks' private memory, and the cores of {machine} share none: take an algorithm that goes through boxes")]
    NoSharedMemory {
        /// Name of the machine.
        machine: String,
        /// Name of the plan: `collective/algorithm`.
        plan: String,
    },
    /// Bytes that travel in a flag's line and do not fit it.
    #[error("{payload} bytes in a flag's line: on {machine} with {flags} flags at most {most} fit; let none travel there (parameter carry=0), or take another algorithm")]
    Payload {
        /// Name of the machine.
        machine: String,
        /// Bytes of the plan.
        payload: usize,
        /// Bytes that fit.
        most: usize,
        /// Kind of the flags.
        flags: &'static str,
    },
    /// A plan that needs more of a message buffer than there is.
    #[error("{lines} lines of each core's message buffer are needed, {banks} x ({flag_lines} for {flags} flags + {slot_lines} for slots), and {machine} has {most}: with these slots at most {flag_budget} flags fit (a tree's degree k is at most one less), or take smaller chunks or a shorter message")]
    BoxFull {
        /// Name of the machine.
        machine: String,
        /// Lines of a core's message buffer that are needed.
        lines: usize,
        /// Lines of a core's message buffer that there are.
        most: usize,
        /// Lines that flags need in one bank.
        flag_lines: usize,
        /// Lines that slots need in one bank.
        slot_lines: usize,
        /// Banks that runs alternate between.
        banks: usize,
        /// Flags at each core.
        flags: usize,
        /// Flags that would fit.
        flag_budget: usize,
    },
    /// More ranks than cores.
    #[error("{ranks} ranks: machine {machine} has {cores} cores, and a core runs one rank")]
    TooManyRanks {
        /// Name of the machine.
        machine: String,
        /// Ranks of the plan.
        ranks: usize,
        /// Cores of the machine.
        cores: usize,
    },
    /// A mesh on which nobody can talk to anybody.
    #[error("machine {machine}: a mesh of one core has nobody to exchange messages with: take one of at least 2 cores, such as --mesh 2x1")]
    OneCore {
        /// Name of the machine.
        machine: String,
    },
    /// Too large to be held.
    #[error("a simulation of {ops} ops takes about {needs} bytes, more than the limit of {limit}: take fewer ranks or runs, a shorter message, or larger chunks or windows")]
    TooLarge {
        /// Ops of all ranks.
        ops: usize,
        /// Estimate of the memory needed, in bytes.
        needs: u64,
        /// Limit in bytes: [`Options::memory_bytes`].
        limit: u64,
    },
}

impl SimulateError {
    /// A machine that no simulated family is for, since its description lacks this.
    pub(crate) fn lacks(machine: &Machine, lacks: impl Into<String>) -> SimulateError {
        SimulateError::NoFamily { machine: machine.name.clone(), lacks: lacks.into() }
    }
}

/// Plays `plan` on `machine`.
///
/// # Errors
/// A [`SimulateError`] when the machine's description does not say enough, the plan does not fit it, or a rank
/// waits for ever.
pub fn simulate(machine: &Machine, plan: &Plan, options: &Options) -> Result<Outcome, SimulateError> {
    within_memory(plan, options)?;
    match (&machine.mesh, &machine.coherent) {
        (Some(mesh), _) => mesh::simulate(machine, mesh, plan, options),
        (None, Some(_)) => {
            let shape = coherent::placed_by(machine, plan.ranks, options.coherent.placement())?;
            coherent::simulate(machine, &shape, plan, options)
        }
        (None, None) => {
            let lacks = "it has neither [mesh] nor [coherent], which intel-scc and xeon-phi-5110p have";
            Err(SimulateError::lacks(machine, lacks))
        }
    }
}

/// Returns a value that the simulation cannot do without.
///
/// # Errors
/// [`SimulateError::Unknown`], with what the description says instead.
fn known<T: Clone>(machine: &Machine, key: &str, value: &Value<T>) -> Result<T, SimulateError> {
    value.value.clone().ok_or_else(|| SimulateError::Unknown {
        machine: machine.name.clone(),
        key: key.to_owned(),
        why: value.source.clone(),
    })
}

/// Returns whether the simulation of a plan can be held: its ops as they are played, and what is traced of them.
fn within_memory(plan: &Plan, options: &Options) -> Result<(), SimulateError> {
    const OP: u64 = 96;
    const TRACED: u64 = 160;
    const RUN: u64 = 64;
    let ops: usize = plan.programs.iter().map(Vec::len).sum();
    let needs = ops as u64 * (OP + if options.trace { TRACED } else { 0 }) + options.runs as u64 * RUN;
    if needs > options.memory_bytes {
        return Err(SimulateError::TooLarge { ops, needs, limit: options.memory_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
