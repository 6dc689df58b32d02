//! Meshes of tiles: their links and ports, and what the message-passing family reads besides.

use super::{read, Coherent, Machine, Value};
use crate::names::{named, read_back};
use crate::topology::Cpu;
use serde::Deserialize;
use std::fmt;
use std::str::FromStr;

/// Routing of packets. Deterministic: a pair of tiles always uses the same links.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbiter {
    /// First come, first served.
    Fifo,
    /// The router's inputs in turn, and so at every router whose buffers are full: many requests that come
    /// through one input share what a single one gets that comes through another.
    Inputs,
}

named!(Routing, Xy = "xy", Yx = "yx", TorusXy = "torus-xy");
named!(Arbiter, Fifo = "fifo", Inputs = "inputs");
read_back!(Arbiter, String, |name| format!("unknown arbiter `{name}`: expected fifo, inputs"));

/// Tiles of the mesh at which memory controllers sit: `0,0 5,0`.
#[derive(Clone, PartialEq, PartialOrd, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Controllers(pub Vec<(u32, u32)>);

/// Tiles with their links and ports, whether cores pass messages over them or caches that agree pass lines.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Tiles in a row.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub columns: Value,
    /// Rows of tiles.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub rows: Value,
    /// Cores of a tile, which share its port.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub cores_per_tile: Value,
    /// Routing of packets.
    pub routing: Value<Routing>,
    /// Clock of the mesh; a link moves a flit a cycle.
    pub mesh_mhz: Value,
    /// Bytes of a flit.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub link_bytes: Value,
    /// Flits of a packet beside its data; 0 where packets without data have links of their own.
    #[serde(deserialize_with = "read::whole::<0, MOST, _>")]
    pub header_flits: Value,
    /// Time for which a tile's port is busy with one line.
    pub port_ns: Value,
}

/// Cores that pass messages through buffers on a mesh of tiles. d is the number of routers on a packet's way:
/// 1 within a tile.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// Tiles, links and ports.
    #[serde(flatten)]
    pub network: Network,
    /// L^hop: a packet through one router.
    pub hop_ns: Value,
    /// Memory accesses that a core has under way.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub in_flight: Value,
    /// Between two accesses that a core issues; of use only where several are under way.
    pub issue_ns: Value,
    /// Lines of a core's message buffer, flags included.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
    pub box_lines: Value,
    /// Flits that a router's buffer for the requests of one side holds.
    #[serde(deserialize_with = "read::whole::<1, MOST, _>")]
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

/// The most that a dimension may be.
const MOST: u32 = 65_536;

impl TryFrom<String> for Controllers {
    type Error = String;

    fn try_from(text: String) -> Result<Controllers, String> {
        let tile = |text: &str| {
            let (x, y) = text.split_once(',')?;
            Some((x.parse().ok()?, y.parse().ok()?))
        };
        let tiles: Option<Vec<(u32, u32)>> = text.split_whitespace().map(tile).collect();
        tiles.filter(|tiles| !tiles.is_empty()).map(Controllers).ok_or_else(|| {
            format!("expected tiles as column,row with blanks between them: \"0,0 5,0\", found {text:?}")
        })
    }
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
        let number = |part: &str| part.parse::<u32>().ok().filter(|n| (1..=MOST).contains(n));
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
