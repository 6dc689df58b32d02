//! Parameters that a simulation of coherent caches needs beyond the cost of moving a line.

use super::mesh::Network;
use super::{read, Value};
use crate::names::named;
use serde::Deserialize;

/// Protocol by which caches agree on a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Modified, exclusive, shared, invalid: the nearest core that shares a line answers.
    Mesi,
    /// MESI and a forwarder: of those that share a line the last that asked for it answers (Ramos & Hoefler 2013,
    /// section 1.2.2).
    Mesif,
    /// MESI within cores, globally owned, locally shared between them: distributed tag directories, and the
    /// core that modified a line keeps answering for it (Ramos & Hoefler 2013, section 1.2.1).
    Gols,
}

named!(Protocol, Mesi = "mesi", Mesif = "mesif", Gols = "gols");

/// The caches of a machine as a simulation needs them; a description may do without.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coherent {
    /// Protocol by which the caches agree.
    pub protocol: Value<Protocol>,
    /// Misses that one hardware thread keeps in flight: of flags that it polls together, or of stores that
    /// follow each other. 1 for a core that stalls on each.
    #[serde(deserialize_with = "read::whole::<1, 1024, _>")]
    pub accesses_in_flight: Value,
    /// Lines behind a missed one that the hardware fetches too; 0 for none.
    #[serde(deserialize_with = "read::whole::<0, 1024, _>")]
    pub prefetch_lines: Value,
    /// The mesh that lines travel on: a table `[coherent.mesh]`; `None` where it is another network, or nobody describes it.
    #[serde(rename = "mesh")]
    pub network: Option<Network>,
}

/// The cost of moving a line between two NUMA nodes, where pairs at one level differ.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumaTransfer {
    /// The two nodes, as the topology numbers them.
    #[serde(deserialize_with = "read::nodes")]
    pub nodes: (usize, usize),
    /// One-way, as [`Transfer`](super::Transfer).
    pub transfer_ns: Value,
}
