//! Meshes of tiles: their links and ports, and what the message-passing family reads besides.

use super::read::{number, value};
use super::tree::{Entry, Table};
use super::{Coherent, Machine, MachineError, Value};
use crate::names::{named, read_back};
use crate::topology::Cpu;
use std::fmt;
use std::str::FromStr;

/// Routing of packets. Deterministic: a pair of tiles always uses the same links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Routing {
    /// Along the row, then along the column.
    Xy,
    /// Along the column, then along the row.
    Yx,
    /// As [`Routing::Xy`], with rows and columns closed to rings; the shorter way round, eastwards and
    /// southwards where both are equal.
    TorusXy,
}

/// Rule by which a buffer's port chooses among requests that wait for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Arbiter {
    /// First come, first served.
    Fifo,
    /// The router's inputs in turn, and so at every router whose buffers are full: many requests that come
    /// through one input share what a single one gets that comes through another.
    Inputs,
}

named!(Routing, Xy = "xy", Yx = "yx", TorusXy = "torus-xy");
read_back!(Routing, String, |name| format!("unknown routing `{name}`: expected xy, yx, torus-xy"));
named!(Arbiter, Fifo = "fifo", Inputs = "inputs");
read_back!(Arbiter, String, |name| format!("unknown arbiter `{name}`: expected fifo, inputs"));

/// Tiles of the mesh at which memory controllers sit: `0,0 5,0`.
#[derive(Clone, PartialEq, PartialOrd, Debug)]
pub struct Controllers(pub Vec<(u32, u32)>);

/// Tiles with their links and ports, whether cores pass messages over them or caches that agree pass lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// Tiles in a row.
    pub columns: Value,
    /// Rows of tiles.
    pub rows: Value,
    /// Cores of a tile, which share its port.
    pub cores_per_tile: Value,
    /// Routing of packets.
    pub routing: Value<Routing>,
    /// Clock of the mesh; a link moves a flit a cycle.
    pub mesh_mhz: Value,
    /// Bytes of a flit.
    pub link_bytes: Value,
    /// Flits of a packet beside its data; 0 where packets without data have links of their own.
    pub header_flits: Value,
    /// Time for which a tile's port is busy with one line.
    pub port_ns: Value,
}

/// Cores that pass messages through buffers on a mesh of tiles. d is the number of routers on a packet's way:
/// 1 within a tile.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// Tiles, links and ports.
    pub network: Network,
    /// L^hop: a packet through one router.
    pub hop_ns: Value,
    /// Memory accesses that a core has under way.
    pub in_flight: Value,
    /// Between two accesses that a core issues; of use only where several are under way.
    pub issue_ns: Value,
    /// Lines of a core's message buffer, flags included.
    pub box_lines: Value,
    /// Flits that a router's buffer for the requests of one side holds.
    pub buffer_flits: Value,
    /// Rule by which the port chooses.
    pub arbiter: Value<Arbiter>,
    /// o^mpb: a line from or to a message buffer, without the way.
    pub box_ns: Value,
    /// o_r^mem: a line from memory, without the way.
    pub memory_read_ns: Value,
    /// o_w^mem: a line to memory, without the way.
    pub memory_write_ns: Value,
    /// o_put^mpb: a put from the own buffer.
    pub put_box_ns: Value,
    /// o_put^mem: a put from memory.
    pub put_memory_ns: Value,
    /// o_get^mpb: a get to the own buffer.
    pub get_box_ns: Value,
    /// o_get^mem: a get to memory.
    pub get_memory_ns: Value,
    /// Positions of the memory controllers; a core uses the nearest, the first of equals.
    pub controllers: Value<Controllers>,
    /// Time for which a controller is busy with one line.
    pub controller_ns: Value,
    /// Private memory that a core has in its cache, where lines cost nothing.
    pub cache_bytes: Value,
}

/// The keys of a network.
const NETWORK: [&str; 8] =
    ["columns", "rows", "cores_per_tile", "routing", "mesh_mhz", "link_bytes", "header_flits", "port_ns"];

/// The other keys of `[mesh]`.
const BUFFERS: [&str; 16] = [
    "hop_ns",
    "in_flight",
    "issue_ns",
    "box_lines",
    "buffer_flits",
    "arbiter",
    "box_ns",
    "memory_read_ns",
    "memory_write_ns",
    "put_box_ns",
    "put_memory_ns",
    "get_box_ns",
    "get_memory_ns",
    "controllers",
    "controller_ns",
    "cache_bytes",
];

/// The most that a dimension may be.
const MOST: f64 = 65_536.0;

fn count(table: &Table<'_>, key: &str, least: f64) -> Result<Value, MachineError> {
    value(table.get(key)?, |e| {
        let n = e.number(true)?;
        match n.fract() == 0.0 && (least..=MOST).contains(&n) {
            true => Ok(n),
            false => Err(e.bad(format!("a whole number from {least} to 65536"))),
        }
    })
}

/// A table `[coherent.mesh]`.
pub(super) fn network(table: Table<'_>) -> Result<Network, MachineError> {
    table.only(&NETWORK)?;
    links(&table)
}

fn links(table: &Table<'_>) -> Result<Network, MachineError> {
    Ok(Network {
        columns: count(table, "columns", 1.0)?,
        rows: count(table, "rows", 1.0)?,
        cores_per_tile: count(table, "cores_per_tile", 1.0)?,
        routing: value(table.get("routing")?, by_name)?,
        mesh_mhz: number(table, "mesh_mhz")?,
        link_bytes: count(table, "link_bytes", 1.0)?,
        header_flits: count(table, "header_flits", 0.0)?,
        port_ns: number(table, "port_ns")?,
    })
}

pub(super) fn read(table: Table<'_>) -> Result<Mesh, MachineError> {
    table.only(&[&NETWORK[..], &BUFFERS[..]].concat())?;
    let count = |key: &str| count(&table, key, 1.0);
    let number = |key: &str| number(&table, key);
    Ok(Mesh {
        network: links(&table)?,
        hop_ns: number("hop_ns")?,
        in_flight: count("in_flight")?,
        issue_ns: number("issue_ns")?,
        box_lines: count("box_lines")?,
        buffer_flits: count("buffer_flits")?,
        arbiter: value(table.get("arbiter")?, by_name)?,
        box_ns: number("box_ns")?,
        memory_read_ns: number("memory_read_ns")?,
        memory_write_ns: number("memory_write_ns")?,
        put_box_ns: number("put_box_ns")?,
        put_memory_ns: number("put_memory_ns")?,
        get_box_ns: number("get_box_ns")?,
        get_memory_ns: number("get_memory_ns")?,
        controllers: value(table.get("controllers")?, controllers)?,
        controller_ns: number("controller_ns")?,
        cache_bytes: number("cache_bytes")?,
    })
}

fn by_name<T: FromStr<Err = String>>(entry: &Entry<'_>) -> Result<T, MachineError> {
    entry.text()?.parse().map_err(|e: String| entry.bad(e))
}

fn controllers(entry: &Entry<'_>) -> Result<Controllers, MachineError> {
    let tile = |text: &str| {
        let (x, y) = text.split_once(',')?;
        Some((x.parse().ok()?, y.parse().ok()?))
    };
    let tiles: Option<Vec<(u32, u32)>> = entry.text()?.split_whitespace().map(tile).collect();
    tiles
        .filter(|t| !t.is_empty())
        .map(Controllers)
        .ok_or_else(|| entry.bad("tiles as column,row with blanks between them: \"0,0 5,0\""))
}

/// Columns, rows and cores a tile of a mesh: `160x64`, or `100x51x2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dimensions {
    /// Tiles in a row.
    pub columns: u32,
    /// Rows of tiles.
    pub rows: u32,
    /// Cores of a tile.
    pub cores_per_tile: u32,
}

impl Dimensions {
    /// The cores of the mesh.
    pub fn cores(self) -> usize {
        self.columns as usize * self.rows as usize * self.cores_per_tile as usize
    }
}

impl FromStr for Dimensions {
    type Err = String;

    fn from_str(text: &str) -> Result<Dimensions, String> {
        let error = || format!("expected COLUMNSxROWS or COLUMNSxROWSxCORES, such as 160x64, found `{text}`");
        let number = |part: &str| part.parse::<u32>().ok().filter(|n| (1..=MOST as u32).contains(n));
        let parts: Option<Vec<u32>> = text.split('x').map(number).collect();
        let dimensions = match parts.as_deref() {
            Some([columns, rows]) => Dimensions { columns: *columns, rows: *rows, cores_per_tile: 1 },
            Some([columns, rows, cores]) => {
                Dimensions { columns: *columns, rows: *rows, cores_per_tile: *cores }
            }
            _ => return Err(error()),
        };
        match dimensions.cores() <= 1 << 20 {
            true => Ok(dimensions),
            false => Err(format!("expected at most 1048576 cores, found `{text}`")),
        }
    }
}

impl fmt::Display for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}x{}", self.columns, self.rows, self.cores_per_tile))
    }
}

impl Machine {
    /// Its tiles with their links and ports, if it is described as a mesh: of message buffers, or of caches that agree.
    pub fn network(&self) -> Option<&Network> {
        let caches = || self.coherent.as_ref()?.network.as_ref();
        self.mesh.as_ref().map(|mesh| &mesh.network).or_else(caches)
    }

    /// A machine with this one's constants and other dimensions, for studies of scale; `None` when this one is
    /// no mesh. `controllers` memory controllers, or as many a core as this machine has, sit at both ends of rows that are
    /// evenly spread, and evenly over all tiles where there are more than such ends. Where caches agree, all tiles are of one package,
    /// and as many cores as before share a last-level cache.
    pub fn with_dimensions(&self, dimensions: Dimensions, controllers: Option<u32>) -> Option<Machine> {
        let Dimensions { columns, rows, cores_per_tile } = dimensions;
        let source = format!("{} with other dimensions", self.name);
        let made = |n: u32| Value { value: Some(f64::from(n)), ..inferred(&source) };
        let network = self.network()?;
        let network = Network {
            columns: made(columns),
            rows: made(rows),
            cores_per_tile: made(cores_per_tile),
            ..network.clone()
        };
        let mesh = self.mesh.as_ref().map(|mesh| {
            let scaled = || {
                let before = &mesh.network;
                let cores = before.columns.value? * before.rows.value? * before.cores_per_tile.value?;
                let each = mesh.controllers.value.as_ref()?.0.len() as f64 / cores.max(1.0);
                Some((dimensions.cores() as f64 * each).round() as u32)
            };
            let most = columns.saturating_mul(rows);
            let at = spread(columns, rows, controllers.or_else(scaled).unwrap_or(1).clamp(1, most));
            let controllers = Value { value: Some(Controllers(at)), ..inferred(&source) };
            Mesh { network: network.clone(), controllers, ..mesh.clone() }
        });
        let caches = |caches: &Coherent| Coherent { network: Some(network.clone()), ..caches.clone() };
        let cores = dimensions.cores();
        let topology = match mesh {
            Some(_) => format!("pack:1 numa:1 core:{cores}"),
            None => {
                let now = self.topology()?;
                let groups = |id: fn(&Cpu) -> usize| 1 + now.cpus.iter().map(id).max().unwrap_or(0);
                let (caches, packages) = (groups(|cpu| cpu.l3), groups(|cpu| cpu.package));
                let most = if caches == packages { cores } else { now.cores() / caches };
                let shared = (1..=most.max(1)).rev().find(|n| cores % n == 0).unwrap_or(1);
                format!("pack:1 numa:1 l3:{} core:{shared}", cores / shared)
            }
        };
        Some(Machine {
            name: format!("{}:{dimensions}", self.name),
            title: format!("{}, as a mesh of {dimensions}", self.title),
            topology: Value { value: Some(topology), ..inferred(&source) },
            coherent: if mesh.is_some() { self.coherent.clone() } else { self.coherent.as_ref().map(caches) },
            mesh,
            measured: None,
            ..self.clone()
        })
    }
}

/// Tiles of `n` controllers, at most one a tile.
fn spread(columns: u32, rows: u32, n: u32) -> Vec<(u32, u32)> {
    let wide = |part: u32, of: u32, length: u32| (u64::from(part) * u64::from(length) / u64::from(of)) as u32;
    let ends = n.div_ceil(2);
    if ends <= rows && columns > 1 {
        let both = (0..ends).flat_map(|i| [(0, wide(i, ends, rows)), (columns - 1, wide(i, ends, rows))]);
        return both.take(n as usize).collect();
    }
    (0..n).map(|i| wide(i, n, columns * rows)).map(|tile| (tile % columns, tile / columns)).collect()
}

fn inferred<T>(source: &str) -> Value<T> {
    Value { value: None, low: None, high: None, status: super::Status::Inferred, source: source.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many cores a controller as the SCC has, 12, and at the same places on its own mesh.
    #[test]
    fn controllers_grow_with_the_mesh() {
        let scc = super::super::shipped().iter().find(|m| m.name == "intel-scc").unwrap();
        let at = |mesh: &str, n: Option<u32>| {
            let made = scc.with_dimensions(mesh.parse().unwrap(), n).unwrap();
            made.mesh.unwrap().controllers.value.unwrap().0
        };
        assert_eq!(at("6x4x2", None), [(0, 0), (5, 0), (0, 2), (5, 2)]);
        assert_eq!((at("12x8x2", None).len(), at("160x64", None).len()), (16, 853));
        assert_eq!(at("12x8x2", None)[2..4], [(0, 1), (11, 1)]);
        assert_eq!((at("160x64", Some(4)).len(), at("1x1", None)), (4, vec![(0, 0)]));
        for (mesh, n) in [("160x64", None), ("1x7", Some(3)), ("3x2", Some(100))] {
            let all = at(mesh, n);
            let mut once = all.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), all.len(), "{mesh}: at most one a tile");
        }
    }

    #[test]
    fn dimensions_are_read() {
        assert_eq!("160x64".parse::<Dimensions>().unwrap().cores(), 10_240);
        assert_eq!("100x51x2".parse::<Dimensions>().unwrap().to_string(), "100x51x2");
        for bad in ["", "5", "0x4", "3x", "2x3x4x5", "-1x2", "70000x1", "60000x60000"] {
            assert!(bad.parse::<Dimensions>().is_err(), "{bad}");
        }
    }
}
