//! Parameters that a simulation of coherent caches needs beyond the cost of moving a line.

use super::mesh::{network, Network};
use super::read::{value, Read};
use super::tree::{Entry, Table};
use super::Value;
use crate::names::named;

/// The most lines or accesses that a count of them may name.
const MOST_LINES: f64 = 1024.0;

/// Protocol by which caches agree on a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
#[derive(Clone, PartialEq, Debug)]
pub struct Coherent {
    /// Protocol by which the caches agree.
    pub protocol: Value<Protocol>,
    /// Misses that one hardware thread keeps in flight: of flags that it polls together, or of stores that
    /// follow each other. 1 for a core that stalls on each.
    pub accesses_in_flight: Value,
    /// Lines behind a missed one that the hardware fetches too; 0 for none.
    pub prefetch_lines: Value,
    /// The mesh that lines travel on: a table `[coherent.mesh]`; `None` where it is another network, or nobody describes it.
    pub network: Option<Network>,
}

/// The cost of moving a line between two NUMA nodes, where pairs at one level differ.
#[derive(Clone, PartialEq, Debug)]
pub struct NumaTransfer {
    /// The two nodes, as the topology numbers them.
    pub nodes: (usize, usize),
    /// One-way, as [`Transfer`](super::Transfer).
    pub transfer_ns: Value,
}

/// A table `[coherent]`.
pub(super) fn read(table: Table<'_>) -> Read<Coherent> {
    table.only(&["protocol", "accesses_in_flight", "prefetch_lines", "mesh"])?;
    let protocol = |entry: &Entry<'_>| {
        let name = entry.text()?;
        let found = Protocol::ALL.into_iter().find(|p| p.name() == name);
        found.ok_or_else(|| entry.bad("mesi, mesif or gols"))
    };
    let count = |least: f64, expected: &'static str| {
        move |entry: &Entry<'_>| {
            let n = entry.number(true)?;
            if n.fract() == 0.0 && n >= least && n <= MOST_LINES {
                Ok(n)
            } else {
                Err(entry.bad(expected))
            }
        }
    };
    Ok(Coherent {
        protocol: value(table.get("protocol")?, protocol)?,
        accesses_in_flight: value(
            table.get("accesses_in_flight")?,
            count(1.0, "a whole number from 1 to 1024"),
        )?,
        prefetch_lines: value(table.get("prefetch_lines")?, count(0.0, "a whole number from 0 to 1024"))?,
        network: table.find("mesh").map(|e| network(e.table("coherent.mesh")?)).transpose()?,
    })
}
