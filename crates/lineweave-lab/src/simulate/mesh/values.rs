//! The constants of a mesh in picoseconds, all known.

use crate::route::Grid;
use crate::simulate::{known, SimulateError};
use lineweave_core::machine::{Arbiter, Controllers, Machine, Mesh, Network, Value};

fn count(machine: &Machine, key: &str, v: &Value) -> Result<u32, SimulateError> {
    known(machine, key, v).map(|n| n as u32)
}

fn ps(machine: &Machine, key: &str, v: &Value) -> Result<u64, SimulateError> {
    known(machine, key, v).map(|ns| (ns * 1e3).round() as u64)
}

/// Tiles and what keeps their links and ports busy; times in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct Paths {
    pub grid: Grid,
    pub cores_per_tile: u32,
    pub port: u64,
    /// Time of a link for a packet without and with a line, and for a flit.
    pub short: u64,
    pub long: u64,
    pub flit: u64,
}

impl Paths {
    /// Returns the paths of `machine`, which are described by `network`.
    pub fn of(machine: &Machine, network: &Network) -> Result<Paths, SimulateError> {
        let count = |key: &str, v: &Value| count(machine, key, v);
        let line = known(machine, "line_bytes", &machine.line_bytes)? as u32;
        let flit = 1e6 / known(machine, "mesh_mhz", &network.mesh_mhz)?;
        let data = line.div_ceil(count("link_bytes", &network.link_bytes)?);
        let header = count("header_flits", &network.header_flits)?;
        let flits = |n: u32| (f64::from(n) * flit).round() as u64;
        Ok(Paths {
            grid: Grid {
                columns: count("columns", &network.columns)?,
                rows: count("rows", &network.rows)?,
                routing: known(machine, "routing", &network.routing)?,
            },
            cores_per_tile: count("cores_per_tile", &network.cores_per_tile)?,
            port: ps(machine, "port_ns", &network.port_ns)?,
            short: flits(header),
            long: flits(header + data),
            flit: flits(1),
        })
    }
}

/// Constants; times in picoseconds.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub grid: Grid,
    pub cores_per_tile: u32,
    pub line: usize,
    pub box_lines: usize,
    pub hop: u64,
    pub in_flight: u32,
    pub issue: u64,
    pub port: u64,
    pub arbiter: Arbiter,
    pub on_box: u64,
    pub memory_read: u64,
    pub memory_write: u64,
    pub put_box: u64,
    pub put_memory: u64,
    pub get_box: u64,
    pub get_memory: u64,
    pub controllers: Vec<(u32, u32)>,
    pub controller: u64,
    pub cache_lines: u32,
    /// Time of a link for a packet without and with a line.
    pub short: u64,
    pub long: u64,
    /// Time of a link for a flit, and flits that a router's buffer holds.
    pub flit: u64,
    pub buffer: u32,
    /// Time of a fold for a byte of its result, in femtoseconds; `None` when unknown.
    pub fold_fs: Option<u64>,
}

impl Values {
    /// Returns the values of `machine`, whose `[mesh]` is `mesh`, with other accesses in flight where they are given.
    pub fn of(machine: &Machine, mesh: &Mesh, in_flight: Option<u32>) -> Result<Values, SimulateError> {
        let ps = |key: &str, v: &Value| ps(machine, key, v);
        let count = |key: &str, v: &Value| count(machine, key, v);
        let line = known(machine, "line_bytes", &machine.line_bytes)? as usize;
        let Paths { grid, cores_per_tile, port, short, long, flit } = Paths::of(machine, &mesh.network)?;
        let in_flight = match in_flight {
            Some(n) => n.max(1),
            None => count("in_flight", &mesh.in_flight)?,
        };
        let Controllers(controllers) = known(machine, "controllers", &mesh.controllers)?;
        if let Some(outside) = controllers.iter().find(|c| c.0 >= grid.columns || c.1 >= grid.rows) {
            return Err(SimulateError::Unknown {
                machine: machine.name.clone(),
                key: "controllers".to_owned(),
                why: format!("tile {},{} is not on the mesh", outside.0, outside.1),
            });
        }
        Ok(Values {
            grid,
            cores_per_tile,
            line,
            box_lines: count("box_lines", &mesh.box_lines)? as usize,
            hop: ps("hop_ns", &mesh.hop_ns)?,
            in_flight,
            issue: if in_flight == 1 { 0 } else { ps("issue_ns", &mesh.issue_ns)? },
            port,
            arbiter: known(machine, "arbiter", &mesh.arbiter)?,
            on_box: ps("box_ns", &mesh.box_ns)?,
            memory_read: ps("memory_read_ns", &mesh.memory_read_ns)?,
            memory_write: ps("memory_write_ns", &mesh.memory_write_ns)?,
            put_box: ps("put_box_ns", &mesh.put_box_ns)?,
            put_memory: ps("put_memory_ns", &mesh.put_memory_ns)?,
            get_box: ps("get_box_ns", &mesh.get_box_ns)?,
            get_memory: ps("get_memory_ns", &mesh.get_memory_ns)?,
            controllers,
            controller: ps("controller_ns", &mesh.controller_ns)?,
            cache_lines: (known(machine, "cache_bytes", &mesh.cache_bytes)? as usize / line) as u32,
            short,
            long,
            flit,
            buffer: count("buffer_flits", &mesh.buffer_flits)?,
            fold_fs: machine.rates.fold_bytes_per_ns.value.map(|rate| (1e6 / rate).round() as u64),
        })
    }
}
