//! Costs from a machine's description, in picoseconds: distances, service, start-ups.

use super::super::names::Renamed;
use super::super::{known, SimulateError};
use super::links::Links;
use super::Settings;
use lineweave_core::lines::{Found, Prices};
use lineweave_core::machine::{Location, Machine, Protocol, State, Status};
use lineweave_core::topology::{Cpu, Level, Shape};
use lineweave_core::trace::Picos;

/// Costs between the cores that ranks sit on.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    protocol: Protocol,
    pub(super) line_bytes: usize,
    /// R_L.
    local: u64,
    /// A line written by another thread of the core.
    pub(super) sibling: u64,
    cores: usize,
    /// Costs core by core, for a line that is modified, exclusive or shared there; for each package that the line's home may be in,
    /// or once where that does not matter.
    between: Vec<Vec<[u64; 3]>>,
    /// Index into `between` for each NUMA node.
    of_node: Vec<usize>,
    /// Core by NUMA node: a line that no cache has.
    memory: Vec<u64>,
    /// Time from which each node's memory is free.
    nodes: Vec<Picos>,
    /// Time that a node's memory is busy with a line; `None` where its bandwidth is unknown.
    memory_line: Option<u64>,
    /// Delay until another reader of a line is served, by whether a cache has it; `None` where unknown.
    service: [Option<u64>; 2],
    /// Slope and start-up of lines in a row, by whether a cache has them; `None` where unknown.
    rows: [Option<(u64, u64)>; 2],
    pub(super) in_flight: usize,
    pub(super) prefetch: usize,
    /// The mesh that lines travel on. Homes are its tiles; without one they are NUMA nodes.
    pub(super) links: Option<Links>,
}

fn picos(ns: f64) -> u64 {
    (ns * 1e3).round() as u64
}

impl Costs {
    /// Reads a description; `cores` is a CPU of each core that has ranks, `nodes` the number of NUMA nodes.
    pub(super) fn of(
        machine: &Machine,
        cores: &[Cpu],
        nodes: usize,
        settings: &Settings,
    ) -> Result<Costs, SimulateError> {
        let none = || SimulateError::lacks(machine, "it has no table [coherent]");
        let coherent = machine.coherent.as_ref().ok_or_else(none)?;
        let local = picos(known(machine, "access.local_ns", &machine.access.local_ns)?);
        let memory = picos(known(machine, "access.memory_ns", &machine.access.memory_ns)?);
        let (homes, of_node) = homes(machine, nodes);
        let mut between = Vec::with_capacity(homes.len());
        for home in homes {
            let mut of_home = Vec::with_capacity(cores.len() * cores.len());
            for a in cores {
                for b in cores {
                    of_home.push(match a.common(b) {
                        Level::Core => [local; 3],
                        level => by_state(machine, a, b, home, level)?,
                    });
                }
            }
            between.push(of_home);
        }
        let sibling = machine.transfer.core_ns.value.map_or(local, picos);
        let mut costs = Costs {
            protocol: known(machine, "coherent.protocol", &coherent.protocol)?,
            line_bytes: known(machine, "line_bytes", &machine.line_bytes)? as usize,
            local,
            sibling,
            cores: cores.len(),
            between,
            of_node,
            memory: Vec::new(),
            nodes: vec![Picos(0); nodes],
            memory_line: None,
            links: match (&coherent.network, settings.ideal) {
                (Some(network), false) => Some(Links::of(machine, network, cores, nodes)?),
                (None, _) | (_, true) => None,
            },
            service: [Found::Cached, Found::Memory].map(|f| service(machine, f)),
            rows: [Found::Cached, Found::Memory].map(|f| row(machine, f)),
            in_flight: match settings.accesses_in_flight {
                Some(n) => n.max(1),
                None => known(machine, "coherent.accesses_in_flight", &coherent.accesses_in_flight)? as usize,
            },
            prefetch: match settings.prefetch_lines {
                Some(n) => n,
                None => known(machine, "coherent.prefetch_lines", &coherent.prefetch_lines)? as usize,
            },
        };
        costs.memory = farther_memory(machine, cores, nodes, memory);
        costs.memory_line = memory_line(machine, costs.line_bytes);
        Ok(costs)
    }

    /// Returns the home of a line of a node's memory.
    pub(super) fn home(&self, node: u32, line: usize) -> u32 {
        self.links.as_ref().map_or(node, |links| links.home(node, line))
    }

    fn node(&self, home: u32) -> usize {
        self.links.as_ref().map_or(home, |links| links.node(home)) as usize
    }

    /// Moving a line from one core's cache, where it is in this state, to another's.
    fn between(&self, a: u32, b: u32, home: u32, state: State) -> u64 {
        let of_home = &self.between[self.of_node[self.node(home)]];
        let [modified, exclusive, shared] = of_home[a as usize * self.cores + b as usize];
        match state {
            State::M => modified,
            State::E => exclusive,
            State::S | State::F | State::I => shared,
        }
    }
}

impl Costs {
    /// Returns the times from which the nodes' memories are free.
    pub(super) fn nodes_free(&self) -> &[Picos] {
        &self.nodes
    }

    /// Returns whether all costs are the same when cores change places.
    pub(super) fn alike(&self, core: &Renamed) -> bool {
        let all = || 0..self.cores as u32;
        let place = |a: u32, b: u32| a as usize * self.cores + b as usize;
        let reads = |of_home: &Vec<[u64; 3]>| {
            all().all(|a| all().all(|b| of_home[place(a, b)] == of_home[place(core.to(a), core.to(b))]))
        };
        let memory = |a: u32| self.memory.chunks(self.nodes.len()).nth(a as usize);
        self.between.iter().all(reads) && all().all(|a| memory(a) == memory(core.to(a)))
    }

    /// Returns the least that a core waits for a line that another has written, or a thread of its own.
    pub(super) fn least(&self, core: u32, other: u32) -> u64 {
        match core == other {
            true => self.local.min(self.sibling),
            // Whoever has the line by then may answer.
            false => {
                let others = (0..self.cores as u32).filter(|&from| from != core);
                let reads = others.flat_map(|from| self.between.iter().map(move |home| (from, home)));
                let read = reads.filter_map(|(from, home)| {
                    home[core as usize * self.cores + from as usize].into_iter().min()
                });
                read.min().unwrap_or(self.local)
            }
        }
    }

    /// Returns the least that a line of a message takes.
    pub(super) fn least_line(&self) -> u64 {
        let first = (0..self.cores as u32).map(|core| self.least(core, u32::MAX)).min().unwrap_or(0);
        let later = [Found::Cached, Found::Memory].map(|found| self.nth(found, FAR, first));
        later.into_iter().min().unwrap_or(0).min(self.local)
    }
}

/// A line so far behind the first in a row that the start-up no longer counts.
const FAR: u64 = 1 << 20;

impl Prices for Costs {
    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn hit(&self) -> u64 {
        self.local
    }

    fn read(&self, core: u32, from: u32, home: u32, state: State) -> u64 {
        self.between(core, from, home, state)
    }

    fn own(&self, core: u32, from: u32, home: u32, state: State) -> u64 {
        self.between(core, from, home, state)
    }

    fn sent(
        &mut self,
        now: Picos,
        core: u32,
        home: u32,
        from: impl Iterator<Item = u32>,
        fetches: bool,
    ) -> Picos {
        self.links.as_mut().map_or(now, |links| links.ask_caches(now, core, home, from, fetches))
    }

    fn memory(&mut self, now: Picos, core: u32, home: u32) -> (Picos, u64) {
        let node = self.node(home);
        let now = self.links.as_mut().map_or(now, |links| links.ask_memory(now, core, home));
        let time = self.memory[core as usize * self.nodes.len() + node];
        let Some(busy) = self.memory_line else { return (now, time) };
        let free = &mut self.nodes[node];
        let start = now.max(*free);
        *free = Picos(start.0 + busy);
        (start, time)
    }

    /// Returns the time that a request keeps other requests for its line waiting. Where T_C was not measured a line serves one request
    /// after the other, each a transfer long.
    fn service(&self, found: Found, transfer: u64) -> u64 {
        self.service[found as usize].unwrap_or(transfer)
    }

    /// Returns the time that the `nth` line in a row adds, by T_N's `o` and `p / N`. Where T_N was not measured, as many as the core
    /// keeps in flight overlap.
    fn nth(&self, found: Found, nth: u64, first: u64) -> u64 {
        match (nth, self.rows[found as usize]) {
            (0 | 1, _) => first,
            // o holds the hit on the other buffer's line, which is charged where it happens.
            (n, Some((o, p))) => o.saturating_sub(self.local) + p / (n * (n - 1)),
            (_, None) => first / self.in_flight as u64,
        }
    }

    /// The papers' machines share a line that was modified.
    fn upgrade(&self) -> Option<u64> {
        None
    }
}

/// The packages that homes may be in, and for each NUMA node which of them it is in; one stands for all where homes do not matter.
fn homes(machine: &Machine, nodes: usize) -> (Vec<usize>, Vec<usize>) {
    if machine.away.is_empty() {
        return (vec![0], vec![0; nodes]);
    }
    let cpus = machine.topology().unwrap_or_default().cpus;
    let package = |node| cpus.iter().find(|cpu| cpu.numa == node).map_or(0, |cpu| cpu.package);
    let of_node: Vec<usize> = (0..nodes).map(package).collect();
    let packages = 1 + of_node.iter().max().copied().unwrap_or(0);
    ((0..packages).collect(), of_node)
}

/// R by state between two cores, where it was measured by state; otherwise the transfer of a modified line. A
/// line shared in another package was measured with a sharer nearby, which answered: it counts as exclusive.
fn by_state(
    machine: &Machine,
    a: &Cpu,
    b: &Cpu,
    home: usize,
    level: Level,
) -> Result<[u64; 3], SimulateError> {
    let location = match level {
        Level::Core => Location::Core,
        Level::L3 | Level::Numa | Level::Package => Location::Package,
        Level::Machine => Location::Machine,
    };
    let read = |state: State| {
        let cell = machine.reads.iter().find(|r| r.location == location && r.state == state)?;
        cell.mean_ns.value.map(picos)
    };
    let transfer = match machine.transfer_at(a, b, home) {
        Some(ns) => picos(ns),
        None => {
            picos(known(machine, &format!("transfer between cores of one {level}"), machine.transfer(level))?)
        }
    };
    let (modified, exclusive) = (read(State::M).unwrap_or(transfer), read(State::E).unwrap_or(transfer));
    let shared = if location == Location::Machine { exclusive } else { read(State::S).unwrap_or(transfer) };
    Ok([modified, exclusive, shared])
}

/// T_C's slope (Ramos & Hoefler 2013, Eq. 3.2), receivers' lines exclusive.
fn service(machine: &Machine, found: Found) -> Option<u64> {
    let send = state(found);
    let fit = machine.contention.iter().find(|c| c.send == send && c.recv == State::E)?;
    fit.c_ns.value.map(picos)
}

/// T_N's slope and start-up (Ramos & Hoefler 2013, Eq. 3.1), the other buffer's lines exclusive.
fn row(machine: &Machine, found: Found) -> Option<(u64, u64)> {
    let send = state(found);
    let fit = machine.multi_line.iter().find(|m| m.send == send && m.recv == State::E)?;
    Some((picos(fit.o_ns.value?), picos(fit.p_ns.value?)))
}

fn state(found: Found) -> State {
    match found {
        Found::Cached => State::E,
        Found::Memory => State::I,
    }
}

/// A node's memory is as much farther than the own one's as its caches are farther than those of the own node.
fn farther_memory(machine: &Machine, cores: &[Cpu], nodes: usize, memory: u64) -> Vec<u64> {
    let topology = machine.topology().unwrap_or_default();
    let within = [Level::L3, Level::Numa].iter().find_map(|&l| machine.transfer(l).value).map_or(0, picos);
    let mut out = Vec::with_capacity(cores.len() * nodes);
    for core in cores {
        for node in 0..nodes {
            let there = topology.cpus.iter().find(|c| c.numa == node && c.numa != core.numa);
            let transfer = there.and_then(|cpu| machine.transfer_between(core, cpu)).map(picos);
            out.push(memory + transfer.map_or(0, |t| t.saturating_sub(within)));
        }
    }
    out
}

/// A line's share of the bandwidth of a node: a package's, divided among its nodes.
fn memory_line(machine: &Machine, line_bytes: usize) -> Option<u64> {
    let rate = &machine.rates.memory_bytes_per_ns;
    let package = rate.value.filter(|_| rate.status != Status::Unknown)?;
    let topology = machine.topology()?;
    let mut nodes: Vec<(usize, usize)> = topology.cpus.iter().map(|c| (c.package, c.numa)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let packages = 1 + nodes.last()?.0;
    let share = package * packages as f64 / nodes.len() as f64;
    Some(picos(line_bytes as f64 / share))
}

/// The cores of a shape, each with its index, and the index of each rank's.
pub(super) fn cores(shape: &Shape) -> (Vec<Cpu>, Vec<u32>) {
    let mut cores: Vec<Cpu> = Vec::new();
    let mut of_rank = Vec::with_capacity(shape.ranks());
    for rank in 0..shape.ranks() {
        let cpu = shape.cpu(rank.into());
        let found = cores.iter().position(|c| c.core == cpu.core);
        of_rank.push(found.unwrap_or(cores.len()) as u32);
        if found.is_none() {
            cores.push(cpu.clone());
        }
    }
    (cores, of_rank)
}
