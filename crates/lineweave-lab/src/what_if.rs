//! Limiting resource of the traffic on a mesh, ports or links, as cores and accesses in flight grow.
//!
//! Petrovic et al. 2012, section 3.3, find that the SCC's links show no contention and its ports do; Patil 2014 builds on
//! links being what limits. [`limit`] plays the same traffic on a mesh of any size, with any number of accesses in
//! flight, and says which of the two is busier and by how much they slow the traffic down.

use crate::chance::mix;
use crate::simulate::mesh::{self, Load};
use crate::simulate::{coherent, simulate, Options, SimulateError};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{Dimensions, Machine};
use lineweave_core::names::{named, read_back};
use lineweave_core::plan::{Builder, Params, Plan, Region, Space};
use lineweave_core::trace::Picos;
use lineweave_core::units::Rank;

/// Choice of the core whose buffer each core reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Any core's, each as often, in an order that looks like chance.
    Uniform,
    /// That of the core opposite in its row: half of all packets cross the middle of the mesh.
    Opposite,
    /// That of the first core of its row.
    Row,
}

impl Pattern {
    /// Returns the core whose buffer a core reads in its n-th turn.
    fn target(self, core: usize, turn: usize, mesh: Dimensions) -> usize {
        let (columns, cores) = (mesh.columns as usize, mesh.cores_per_tile as usize);
        let (tile, within) = (core / cores, core % cores);
        let row = tile / columns * columns;
        match self {
            Pattern::Uniform => (mix((turn * mesh.cores() + core) as u64) % mesh.cores() as u64) as usize,
            Pattern::Opposite => (row + columns - 1 - tile % columns) * cores + within,
            Pattern::Row => row * cores,
        }
    }
}

named!(Pattern, Uniform = "uniform", Opposite = "opposite", Row = "row");
read_back!(Pattern, String, |name| {
    format!("unknown pattern `{name}`: expected uniform, opposite or row")
});

/// Traffic on a mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Pattern of readers and of the cores they read from.
    pub pattern: Pattern,
    /// Gets of each core.
    pub gets: usize,
    /// Lines of a get.
    pub lines: usize,
}

/// Resource that limits the traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Neither a port nor a link: traffic takes at most 5 % longer than on a machine where nothing waits.
    Neither,
    /// A port is the busiest resource.
    Port,
    /// A link is the busiest resource.
    Link,
}

named!(Limit, Neither = "neither", Port = "port", Link = "link");

/// Traffic as it was played.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// Until the last core has read everything.
    pub time: Picos,
    /// Time of the same traffic where nothing waits for a resource.
    pub ideal: Picos,
    /// The busiest port's share of the time.
    pub port: f64,
    /// The busiest link's share of the time.
    pub link: f64,
    /// Resource that limits the traffic.
    pub limit: Limit,
    /// Events handled, of both simulations.
    pub events: u64,
}

/// Less than this slower is not limited: 5 %.
const NOTICEABLE: f64 = 1.05;

/// Plays `traffic` on a mesh with the constants of `machine`, each core having `in_flight` accesses under way.
///
/// # Errors
/// A [`SimulateError`] when `machine` is no mesh, does not say enough, or a get does not fit a message buffer.
pub fn limit(
    machine: &Machine,
    mesh: Dimensions,
    in_flight: u32,
    traffic: Traffic,
) -> Result<Found, SimulateError> {
    let lacks = "ports and links are those of [mesh] or [coherent.mesh], which it has not";
    let grown = machine.with_dimensions(mesh, None);
    let machine = grown.ok_or_else(|| SimulateError::lacks(machine, lacks))?;
    if mesh.cores() < 2 {
        return Err(SimulateError::OneCore { machine: machine.name });
    }
    let line = machine.line_bytes.value.map_or(32, |l| l as usize);
    let plan = plan(mesh, traffic, line, machine.mesh.is_none());
    let play = |ideal: bool| {
        let mesh = mesh::Settings { in_flight: Some(in_flight), ideal, ..mesh::Settings::default() };
        let accesses_in_flight = Some(in_flight as usize);
        let coherent = coherent::Settings { accesses_in_flight, ideal, ..coherent::Settings::default() };
        simulate(&machine, &plan, &Options { mesh, coherent, ..Options::default() })
    };
    let (real, ideal) = (play(false)?, play(true)?);
    let share = |of: fn(&Load) -> f64| real.load.as_ref().map_or(0.0, of);
    let (port, link) = (share(Load::busiest_port), share(Load::busiest_link));
    let slower = real.first.0 as f64 / ideal.first.0.max(1) as f64;
    let limit = match (slower < NOTICEABLE, link > port) {
        (true, _) => Limit::Neither,
        (false, false) => Limit::Port,
        (false, true) => Limit::Link,
    };
    let events = real.events + ideal.events;
    Ok(Found { time: real.first, ideal: ideal.first, port, link, limit, events })
}

/// Gets between message buffers, or reads of lines in others' caches.
fn plan(mesh: Dimensions, traffic: Traffic, line: usize, cached: bool) -> Plan {
    let (cores, bytes) = (mesh.cores(), traffic.lines.max(1) * line);
    let turns = if cached { traffic.gets.max(1) } else { 1 };
    let mut b = Builder::new(Collective::Bcast, "traffic", &Params::new(), cores, 0, bytes * turns, 1);
    let (given, got) = (b.slot(bytes), b.slot(bytes));
    for core in 0..cores {
        for turn in 0..traffic.gets {
            let from = Rank::from(traffic.pattern.target(core, turn, mesh));
            let to = Rank::from(core);
            let (from, to, at) = match cached {
                true => (Space::PeerIn(from), Space::Out, bytes * turn),
                false => (Space::Slot { rank: from, slot: given }, Space::Slot { rank: to, slot: got }, 0),
            };
            b.mov(core, Region::new(from, at..at + bytes), Region::new(to, at..at + bytes));
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::shipped;

    fn on(columns: u32, rows: u32, in_flight: u32, pattern: Pattern) -> Found {
        let scc = shipped().iter().find(|m| m.name == "intel-scc").unwrap();
        let mesh = Dimensions { columns, rows, cores_per_tile: 2 };
        limit(scc, mesh, in_flight, Traffic { pattern, gets: 6, lines: 8 }).unwrap()
    }

    /// The papers' dispute: on the chip as it was built neither limits spread traffic, and links never do before ports.
    #[test]
    fn links_limit_only_with_more_cores_and_accesses() {
        let chip = on(6, 4, 1, Pattern::Uniform);
        assert_eq!(chip.limit, Limit::Neither, "{chip:?}");
        assert!(chip.port > chip.link, "{chip:?}");
        let busy = on(6, 4, 32, Pattern::Uniform);
        assert_eq!(busy.limit, Limit::Port, "{busy:?}");
        let large = on(32, 24, 32, Pattern::Uniform);
        assert_eq!(large.limit, Limit::Link, "{large:?}");
    }

    /// Meshes of coherent caches: as they were built neither limits spread traffic, and four times as wide and high their links do. A
    /// line keeps two ports busy, and in the middle of a row of C tiles a link carries the lines of C / 2 tiles.
    #[test]
    fn links_of_coherent_meshes_limit_when_they_grow() {
        for machine in shipped().iter().filter(|m| m.mesh.is_none() && m.network().is_some()) {
            let network = machine.network().unwrap();
            let [columns, rows, cores_per_tile] =
                [&network.columns, &network.rows, &network.cores_per_tile].map(|v| v.value.unwrap() as u32);
            let on = |n: u32, in_flight: u32, pattern: Pattern| {
                let mesh = Dimensions { columns: n * columns, rows: n * rows, cores_per_tile };
                limit(machine, mesh, in_flight, Traffic { pattern, gets: 2, lines: 8 }).unwrap()
            };
            let chip = on(1, 1, Pattern::Uniform);
            assert_eq!(chip.limit, Limit::Neither, "{}: {chip:?}", machine.name);
            let large = on(4, 16, Pattern::Opposite);
            assert_eq!(large.limit, Limit::Link, "{}: {large:?}", machine.name);
            let flits = (64.0 / network.link_bytes.value.unwrap()).ceil();
            let line = flits * 1e3 / network.mesh_mhz.value.unwrap();
            let more = f64::from(2 * columns) * line / (2.0 * network.port_ns.value.unwrap());
            // Ports have the requests of homes that chance put closer together, too.
            assert!((0.5..1.1).contains(&(large.link / large.port / more)), "{more}: {large:?}");
        }
        let phi = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
        let mesh = Dimensions { columns: 2, rows: 2, cores_per_tile: 1 };
        let traffic = Traffic { pattern: Pattern::Row, gets: 1, lines: 1 };
        assert!(limit(phi, mesh, 1, traffic).unwrap_err().to_string().contains("[coherent.mesh]"));
    }

    #[test]
    fn opposite_cores_cross_the_middle() {
        let mesh = Dimensions { columns: 6, rows: 4, cores_per_tile: 2 };
        for core in 0..48 {
            let other = Pattern::Opposite.target(core, 0, mesh);
            assert_eq!(core / 12, other / 12);
            assert_eq!(core / 2 % 6 + other / 2 % 6, 5);
            assert_eq!(Pattern::Opposite.target(other, 3, mesh), core);
            assert!(Pattern::Uniform.target(core, 7, mesh) < 48);
        }
    }
}
