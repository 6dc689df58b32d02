//! Machines whose caches agree: what a load or store costs depends on who has the line, and where.
//!
//! [`lineweave_core::lines`] says what becomes of a line. Here:
//!
//! 1. Each core has one cache, which its hardware threads share. A hit costs R_L, a miss R by state and distance of the core that
//!    answers: the nearest that has it (`mesi`; also `mesif`, as Ramos & Hoefler 2013 find a forwarder in every package,
//!    section 1.3.4), or the last that wrote it (`gols`); a line in no cache R_I, and more from a farther node.
//! 2. A read keeps its line busy for T_C's slope `c`, so that n readers of one line take R_R + c (n - 1) (Ramos & Hoefler
//!    2013, Eq. 3.2); where `c` is unknown, for a whole transfer.
//! 3. As many stores as the machine keeps in flight are under way at once. Of flags that a rank waits for one after the other
//!    it polls as many at once.
//! 4. A poll that misses makes the prefetcher fetch the next lines of that box, but for lines that are under way:
//!    flags that lie within its reach are taken from their writers.
//! 5. Lines that one op misses in a row cost R for the first, and what T_N adds for each more (Eq. 3.1).
//! 6. On a machine that is described as a mesh, lines travel over its links and through its ports (`links.rs`), and wait for them.
//! 7. A node's memory serves one line after the other at its bandwidth, where that is known.
//!
//! # What is not
//!
//! Capacity, associativity and eviction; write-backs; rings between cores, and links between packages; the time that
//! instructions take, threads of a core that share its pipelines, and sleeping. The first run begins with boxes in memory and
//! private buffers exclusive in their owners' caches; later runs find lines as they were left.

mod caches;
mod costs;
mod floor;
mod links;
mod memory;
mod requests;
mod state;
mod symmetry;

pub(super) use caches::Caches;

use super::{play, Fidelity, Options, Outcome, Playable, SimulateError};
use lineweave_core::machine::Machine;
use lineweave_core::plan::{Footprint, Plan};
use lineweave_core::topology::{Placement, Shape};

/// Settings of the simulation of coherent caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Flags on a line in every array, instead of what the plan's layouts say: 32 where a flag is a 4-byte
    /// integer of a line of 128.
    pub flags_per_line: Option<usize>,
    /// Lines that the prefetcher fetches behind a missed one, instead of the machine's; 0 turns it off.
    pub prefetch_lines: Option<usize>,
    /// Misses that a thread keeps in flight, instead of the machine's; at least 1.
    pub accesses_in_flight: Option<usize>,
    /// Fill the hardware threads of a core before the next core, as a team that runs is bound; otherwise a core each first.
    pub threads_first: bool,
    /// True if nobody waits for links and ports of a mesh.
    pub ideal: bool,
}

impl Settings {
    /// Returns where ranks are placed.
    pub fn placement(&self) -> Placement {
        match self.threads_first {
            true => Placement::Thread,
            false => Placement::Core,
        }
    }
}

/// Plays `plan` on a machine with coherent caches, ranks sitting as `shape` says.
///
/// # Errors
/// A [`SimulateError`] when the machine's description does not say enough, when ranks outnumber the shape's
/// hardware threads, or when a rank waits for ever.
pub fn simulate(
    machine: &Machine,
    shape: &Shape,
    plan: &Plan,
    options: &Options,
) -> Result<Outcome, SimulateError> {
    let (program, mut caches) = prepare(machine, shape, plan, options)?;
    let played = play(&mut caches, &program, options.runs.max(1), options.fidelity, options.trace)?;
    let load = caches.costs.links.as_ref().map(|links| links.load(&played));
    Ok(Outcome { load, ..Outcome::of(plan, played, options.trace) })
}

/// Returns the plan as a program, and the machine's caches before it.
///
/// # Errors
/// As of [`simulate`], but for ranks that wait for ever.
pub(super) fn prepare(
    machine: &Machine,
    shape: &Shape,
    plan: &Plan,
    options: &Options,
) -> Result<(Playable, Caches), SimulateError> {
    super::within_memory(plan, options)?;
    let threads = machine.topology().map_or(0, |t| t.cpus.len());
    if shape.ranks() != plan.ranks || shape.oversubscription() > 1 {
        return Err(SimulateError::TooManyRanks {
            machine: machine.name.clone(),
            ranks: plan.ranks,
            cores: threads.min(shape.ranks()),
        });
    }
    let (cores, of_rank) = costs::cores(shape);
    let nodes = 1 + cores.iter().map(|c| c.numa).max().unwrap_or(0);
    let settings = &options.coherent;
    let costs = costs::Costs::of(machine, &cores, nodes, settings)?;
    let footprint = match settings.flags_per_line {
        None => Footprint::of(plan, costs.line_bytes),
        Some(n) => Footprint::per_line(plan, costs.line_bytes, n),
    };
    let program = Playable::compile(plan, &footprint, options.banks)?.together(options.together);
    let needs = memory::Memory::needs(plan, &program, costs.line_bytes);
    if needs > options.memory_bytes {
        let ops = plan.programs.iter().map(Vec::len).sum();
        return Err(SimulateError::TooLarge { ops, needs, limit: options.memory_bytes });
    }
    let homes = of_rank.iter().map(|&c| (c, cores[c as usize].numa as u32)).collect();
    let memory = memory::Memory::of(plan, &program, costs.line_bytes, homes);
    let chunks = options.fidelity == Fidelity::Chunk;
    let caches = Caches::new(costs, memory, &of_rank, chunks);
    Ok((program, caches))
}

/// One rank a core as long as there are cores, then a further thread of each: where a plan's ranks sit when
/// nothing else is said.
///
/// # Errors
/// [`SimulateError::TooManyRanks`].
pub fn placed(machine: &Machine, ranks: usize) -> Result<Shape, SimulateError> {
    placed_by(machine, ranks, Placement::Core)
}

/// Returns ranks on a machine's hardware threads, in this order.
///
/// # Errors
/// [`SimulateError::TooManyRanks`].
pub fn placed_by(machine: &Machine, ranks: usize, placement: Placement) -> Result<Shape, SimulateError> {
    let cpus = machine.topology().unwrap_or_default().placed(placement).cpus;
    let cores = cpus.len();
    match ranks <= cores {
        true => Ok(Shape::on(cpus.into_iter().take(ranks).collect())),
        false => Err(SimulateError::TooManyRanks { machine: machine.name.clone(), ranks, cores }),
    }
}

#[cfg(test)]
mod tests;
