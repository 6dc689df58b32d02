//! The part of a description that the message-passing mesh family reads: tiles, message buffers, links.

use super::read::{number, value};
use super::tree::{Entry, Table};
use super::{Machine, MachineError, Value};
use crate::names::{named, read_back};
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

/// Cores that pass messages through buffers on a mesh of tiles. d is the number of routers on a packet's way:
/// 1 within a tile.
#[derive(Clone, PartialEq, Debug)]
pub struct Mesh {
    /// Tiles in a row.
    pub columns: Value,
    /// Rows of tiles.
    pub rows: Value,
    /// Cores of a tile, which share the port of its buffers.
    pub cores_per_tile: Value,
    /// Routing of packets.
    pub routing: Value<Routing>,
    /// L^hop: a packet through one router.
    pub hop_ns: Value,
    /// Clock of the mesh; a link moves a flit a cycle.
    pub mesh_mhz: Value,
    /// Bytes of a flit.
    pub link_bytes: Value,
    /// Flits of a packet beside its data.
    pub header_flits: Value,
    /// Memory accesses that a core has under way.
    pub in_flight: Value,
    /// Between two accesses that a core issues; of use only where several are under way.
    pub issue_ns: Value,
    /// Lines of a core's message buffer, flags included.
    pub box_lines: Value,
    /// Time for which a buffer's port is busy with one line.
    pub port_ns: Value,
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

/// The numbers among the keys of `[mesh]`, and whether they count something.
const KEYS: [&str; 24] = [
    "columns",
    "rows",
    "cores_per_tile",
    "routing",
    "hop_ns",
    "mesh_mhz",
    "link_bytes",
    "header_flits",
    "in_flight",
    "issue_ns",
    "box_lines",
    "port_ns",
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

pub(super) fn read(table: Table<'_>) -> Result<Mesh, MachineError> {
    table.only(&KEYS)?;
    let count = |key: &str| {
        value(table.get(key)?, |e| {
            let n = e.number(false)?;
            match n.fract() == 0.0 && n <= MOST {
                true => Ok(n),
                false => Err(e.bad("a whole number from 1 to 65536")),
            }
        })
    };
    let number = |key: &str| number(&table, key);
    Ok(Mesh {
        columns: count("columns")?,
        rows: count("rows")?,
        cores_per_tile: count("cores_per_tile")?,
        routing: value(table.get("routing")?, by_name)?,
        hop_ns: number("hop_ns")?,
        mesh_mhz: number("mesh_mhz")?,
        link_bytes: count("link_bytes")?,
        header_flits: count("header_flits")?,
        in_flight: count("in_flight")?,
        issue_ns: number("issue_ns")?,
        box_lines: count("box_lines")?,
        port_ns: number("port_ns")?,
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
    /// A machine with this one's constants and other dimensions, for studies of scale; `None` when this one is
    /// no mesh. `controllers` memory controllers, or as many a core as this machine has, sit at both ends of rows that are
    /// evenly spread, and evenly over all tiles where there are more than such ends.
    pub fn with_dimensions(&self, dimensions: Dimensions, controllers: Option<u32>) -> Option<Machine> {
        let mesh = self.mesh.as_ref()?;
        let Dimensions { columns, rows, cores_per_tile } = dimensions;
        let source = format!("{} with other dimensions", self.name);
        let made = |n: u32| Value { value: Some(f64::from(n)), ..inferred(&source) };
        let scaled = || {
            let cores = mesh.columns.value? * mesh.rows.value? * mesh.cores_per_tile.value?;
            let each = mesh.controllers.value.as_ref()?.0.len() as f64 / cores.max(1.0);
            Some((dimensions.cores() as f64 * each).round() as u32)
        };
        let most = columns.saturating_mul(rows);
        let at = spread(columns, rows, controllers.or_else(scaled).unwrap_or(1).clamp(1, most));
        let mesh = Mesh {
            columns: made(columns),
            rows: made(rows),
            cores_per_tile: made(cores_per_tile),
            controllers: Value { value: Some(Controllers(at)), ..inferred(&source) },
            ..mesh.clone()
        };
        let topology = format!("pack:1 numa:1 core:{}", dimensions.cores());
        Some(Machine {
            name: format!("{}:{dimensions}", self.name),
            title: format!("{}, as a mesh of {dimensions}", self.title),
            topology: Value { value: Some(topology), ..inferred(&source) },
            mesh: Some(mesh),
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
