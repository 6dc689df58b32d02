//! A machine's description: what moving a line costs on it, each value with where it comes from.
//!
//! Descriptions are TOML files under `machines/`. Every value says its status, and a value that nobody knows
//! says so: it is never filled in with a default. A key's suffix is its unit (`_ns`, `_bytes`,
//! `_bytes_per_ns`):
//!
//! ```toml
//! l3_ns = { value = 25.0, status = "cited", source = "core-to-core-latency, public submissions" }
//! numa_ns = { value = 98.0, low = 91.0, high = 105.0, status = "cited", source = "..." }
//! package_ns = { status = "unknown", source = "one NUMA node a package: no such pair of cores" }
//! ```

mod coherent;
mod home;
mod line;
mod mesh;
mod nearest;
mod pairs;
mod read;
mod shipped;
mod synthetic;

pub use coherent::{Coherent, NumaTransfer, Protocol};
pub use home::{is_away, Away};
pub use line::{Bandwidth, Contention, LineRead, Location, MultiLine, State};
pub use mesh::{Arbiter, Controllers, Dimensions, Mesh, Network, Routing};
pub use nearest::nearest;
pub use pairs::{Matrix, MatrixFile, Measured};
pub use shipped::{shipped, SOURCES};
pub use synthetic::topology;

use crate::names::named;
use crate::topology::{Cpu, Level, Topology};
use serde::Deserialize;

/// Kind of evidence for a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured with lineweave's own probes.
    Measured,
    /// Printed in the source.
    Cited,
    /// Follows from other values by the reasoning that the source gives.
    Inferred,
    /// Nobody here knows; the source says why.
    Unknown,
}

named!(Status, Measured = "measured", Cited = "cited", Inferred = "inferred", Unknown = "unknown");

/// A value and where it comes from. `T` is `f64`, or `String` for a topology.
#[derive(Clone, PartialEq, Debug)]
pub struct Value<T = f64> {
    /// The value; `None` exactly when the status is [`Status::Unknown`].
    pub value: Option<T>,
    /// The smallest plausible value, where the source gives a range.
    pub low: Option<T>,
    /// The largest plausible value, where the source gives a range.
    pub high: Option<T>,
    /// Kind of evidence for the value.
    pub status: Status,
    /// Paper and table, record, or reasoning.
    pub source: String,
}

impl<T> Default for Value<T> {
    /// A value that a description leaves to its matrix, or to a machine like it.
    fn default() -> Value<T> {
        let source = "the description leaves it to its matrix".to_owned();
        Value { value: None, low: None, high: None, status: Status::Unknown, source }
    }
}

/// CPUs that a description is for: patterns looked for in the CPU's model name, without regard to case; `?`
/// stands for any one character.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patterns {
    /// One must occur, or the description is not for this CPU; none means any vendor.
    #[serde(deserialize_with = "read::lower_case")]
    pub vendor: Vec<String>,
    /// Names of the microarchitecture and model numbers of its kin.
    #[serde(deserialize_with = "read::lower_case")]
    pub family: Vec<String>,
    /// Names of this very model.
    #[serde(deserialize_with = "read::lower_case")]
    pub model: Vec<String>,
}

/// One-way transfer of a modified line between two cores, by the nearest level they share: half the round
/// trip of a compare-and-swap ping-pong unless the source says otherwise. Never decreases with distance.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Between SMT siblings.
    pub core_ns: Value,
    /// Under one last-level cache.
    pub l3_ns: Value,
    /// Within a NUMA node, under different caches.
    pub numa_ns: Value,
    /// Within a package, in different NUMA nodes.
    pub package_ns: Value,
    /// Between packages.
    pub machine_ns: Value,
}

/// Access to one line by the core that keeps or fetches it (Ramos & Hoefler, Table 1.5b).
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// R_L: the line is in the own cache.
    pub local_ns: Value,
    /// R_I: the line is in no cache and comes from memory.
    pub memory_ns: Value,
}

/// Rates of bulk work, all threads of other cores idle.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Bytes copied by one core from and to memory (each byte counted once).
    pub copy_bytes_per_ns: Value,
    /// Bytes that all cores of a package together can read and write in memory.
    pub memory_bytes_per_ns: Value,
    /// Bytes of result of one core's elementwise fold of two operands (`f64` sum).
    pub fold_bytes_per_ns: Value,
}

/// L(m, tau): the time of a transfer of m bytes while tau of them go on, synchronisation included (Rico-Gallego &
/// Diaz-Martin 2015, section 3.1), as one of their set-ups estimates it. Never decreases with m or tau.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concurrent {
    /// Set-up: `ring`, `ping` or `bcast` (section 5).
    #[serde(deserialize_with = "read::pattern")]
    pub pattern: String,
    /// m, in bytes.
    #[serde(deserialize_with = "read::from_1")]
    pub bytes: u64,
    /// tau.
    #[serde(deserialize_with = "read::from_1")]
    pub tau: u32,
    /// The time.
    pub l_ns: Value,
}

/// The description of a machine.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name, as its file is called.
    #[serde(deserialize_with = "read::words")]
    pub name: String,
    /// Description in words.
    #[serde(deserialize_with = "read::words")]
    pub title: String,
    /// Instruction set as the kernel names it: `x86_64`, `aarch64`, `ppc64le`.
    #[serde(deserialize_with = "read::words")]
    pub arch: String,
    /// CPUs that the description is for.
    #[serde(default)]
    pub cpu: Patterns,
    /// hwloc's synthetic form: `pack:2 numa:1 l3:16 core:4 pu:2`. The outermost cache named is the last-level
    /// cache (`l2` on machines without a third level).
    #[serde(default)]
    pub topology: Value<String>,
    /// Length of a cache line.
    #[serde(default)]
    pub line_bytes: Value,
    /// Its caches, where a simulation of them is wanted.
    pub coherent: Option<Coherent>,
    /// Costs of moving a line between cores.
    #[serde(default)]
    pub transfer: Transfer,
    /// Costs of reaching a line.
    #[serde(default)]
    pub access: Access,
    /// Bulk rates.
    #[serde(default)]
    pub rates: Rates,
    /// Fits of handing over many lines, one a pair of states; empty where nobody measured them.
    #[serde(default)]
    pub multi_line: Vec<MultiLine>,
    /// Fits of contention on one line, one a pair of states; empty where nobody measured them.
    #[serde(default)]
    pub contention: Vec<Contention>,
    /// Pairs of NUMA nodes whose transfers differ from their level's; empty where none are known to.
    #[serde(default)]
    pub numa_transfer: Vec<NumaTransfer>,
    /// Transfers within a package of lines whose home is in another one; empty where nobody saw that this matters.
    #[serde(default)]
    pub away: Vec<Away>,
    /// Reading one line, by location and state; empty where nobody measured it by state.
    #[serde(default, rename = "read")]
    pub reads: Vec<LineRead>,
    /// Fits of bandwidth, by location and number of threads; empty where nobody measured it.
    #[serde(default)]
    pub bandwidth: Vec<Bandwidth>,
    /// Times of concurrent transfers; empty where nobody published any.
    #[serde(default)]
    pub concurrent: Vec<Concurrent>,
    /// Parameters for the message-passing mesh family; `None` where cores share memory.
    pub mesh: Option<Mesh>,
    /// The matrix of core-to-core latencies that it names; what the matrix tells need not be described.
    pub matrix: Option<MatrixFile>,
    /// Measurements from that matrix, once it was read.
    #[serde(skip)]
    pub measured: Option<Measured>,
}

impl Transfer {
    /// To set: the cost between cores whose nearest common level is `level`.
    pub fn at_mut(&mut self, level: Level) -> &mut Value {
        match level {
            Level::Core => &mut self.core_ns,
            Level::L3 => &mut self.l3_ns,
            Level::Numa => &mut self.numa_ns,
            Level::Package => &mut self.package_ns,
            Level::Machine => &mut self.machine_ns,
        }
    }
}

impl Machine {
    /// The cost of moving a line between cores whose nearest common level is `level`.
    pub fn transfer(&self, level: Level) -> &Value {
        match level {
            Level::Core => &self.transfer.core_ns,
            Level::L3 => &self.transfer.l3_ns,
            Level::Numa => &self.transfer.numa_ns,
            Level::Package => &self.transfer.package_ns,
            Level::Machine => &self.transfer.machine_ns,
        }
    }

    /// The cost of moving a line between two CPUs, in ns: what was measured for them, or else that of their nodes' pair where it is
    /// known, otherwise that of their nearest common level.
    pub fn transfer_between(&self, a: &Cpu, b: &Cpu) -> Option<f64> {
        if let Some(ns) = self.measured.as_ref().and_then(|m| m.matrix.between(a.os, b.os)) {
            return Some(ns);
        }
        let pair = |t: &&NumaTransfer| t.nodes == (a.numa, b.numa) || t.nodes == (b.numa, a.numa);
        let pair = self.numa_transfer.iter().find(pair).map(|pair| &pair.transfer_ns);
        pair.unwrap_or(self.transfer(a.common(b))).value
    }

    /// Its CPUs; `None` when the topology is unknown.
    pub fn topology(&self) -> Option<Topology> {
        if let Some(measured) = &self.measured {
            return Some(measured.topology.clone());
        }
        // Reading the file has checked the string.
        self.topology.value.as_deref().and_then(|text| topology(text).ok())
    }
}

/// Why a text is not a machine's description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct MachineError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Words for what was expected and what was found.
    pub message: String,
}
