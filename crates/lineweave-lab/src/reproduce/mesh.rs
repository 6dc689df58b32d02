//! Probes of a described mesh: puts and gets by length and distance, from which Table 1 of Petrovic et al. 2012 follows.
//!
//! Core 0 puts and gets, its memory controller at its own router, as on the SCC. Of `m` lines an access over `d` routers takes a
//! part for the call and `m` times a part for the line, and a router is passed twice for a line (Eqs. 2 to 12).

use super::{Point, MEASURED};
use crate::simulate::measuring::Recovered;
use crate::simulate::{moves, simulate, slot, Options, SimulateError};
use lineweave_core::machine::Machine;
use lineweave_core::plan::Space;
use lineweave_core::profile::Stats;

/// Lines of a put or get.
const LINES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A put or get of core 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    GetBox,
    GetMemory,
    PutBox,
    PutMemory,
}

/// Returns the parameters of a mesh as its puts and gets give them back, and the points that these are: none where the machine is no
/// mesh or does not know all of Table 1.
///
/// # Errors
/// A [`SimulateError`] where the description does not say enough to be played.
pub fn put_get(machine: &Machine) -> Result<(Vec<Recovered>, Vec<Point>), SimulateError> {
    let Some(mesh) = &machine.mesh else { return Ok((Vec::new(), Vec::new())) };
    let network = &mesh.network;
    let [columns, rows, a_tile] =
        [&network.columns, &network.rows, &network.cores_per_tile].map(|v| v.value.unwrap_or(1.0) as usize);
    let (cores, line) = (columns * rows * a_tile, machine.line_bytes.value.map_or(32, |l| l as usize));
    // The far corner.
    let far = columns + rows - 1;
    let time = |access: Access, lines: usize, d: usize| {
        let peer = if d == 1 { a_tile.min(2) - 1 } else { cores - 1 };
        let (src, dst) = match access {
            Access::GetBox => (slot(peer, 1), slot(0, 0)),
            Access::GetMemory => (slot(peer, 1), Space::Out),
            Access::PutBox => (slot(0, 0), slot(peer, 1)),
            Access::PutMemory => (Space::In, slot(peer, 1)),
        };
        let plan = moves(cores, lines * line, 2, [(0, src, dst)]);
        Ok::<f64, SimulateError>(simulate(machine, &plan, &Options::default())?.first.nanos())
    };
    // Time of a line, and of a call.
    let line_of = |access: Access, d: usize| -> Result<(f64, f64), SimulateError> {
        let (one, many) = (time(access, 1, d)?, time(access, 65, d)?);
        Ok(((many - one) / 64.0, one - (many - one) / 64.0))
    };
    let (get, get_box) = line_of(Access::GetBox, 1)?;
    let hop = (line_of(Access::GetBox, far)?.0 - get) / (2.0 * (far as f64 - 1.0));
    let on_box = get / 2.0 - 2.0 * hop;
    let (write, get_memory) = line_of(Access::GetMemory, 1)?;
    let (read, put_memory) = line_of(Access::PutMemory, 1)?;
    let put_box = line_of(Access::PutBox, 1)?.1;
    let found = [
        ("L^hop", &mesh.hop_ns, hop),
        ("o^mpb", &mesh.box_ns, on_box),
        ("o_w^mem", &mesh.memory_write_ns, write - on_box - 4.0 * hop),
        ("o_r^mem", &mesh.memory_read_ns, read - on_box - 4.0 * hop),
        ("o_put^mpb", &mesh.put_box_ns, put_box),
        ("o_get^mpb", &mesh.get_box_ns, get_box),
        ("o_put^mem", &mesh.put_memory_ns, put_memory),
        ("o_get^mem", &mesh.get_memory_ns, get_memory),
    ];
    let recovered = found.into_iter().filter_map(|(name, described, found)| {
        Some(Recovered { name: name.to_owned(), described: described.value?, found })
    });
    let mut points = Vec::new();
    for lines in LINES {
        for (picture, series, access, d) in [
            ("copies", "put", Access::PutMemory, 1),
            ("copies", "get", Access::GetMemory, 1),
            ("hops", "1 router", Access::GetBox, 1),
            ("hops", "the far corner", Access::GetBox, far),
        ] {
            let x = if picture == "hops" { lines } else { lines * line } as f64;
            let stats = Stats::of(&[time(access, lines, d)?], 0);
            let at = (picture.to_owned(), series.to_owned(), x);
            points.extend(stats.map(|stats| Point::at(at, None, MEASURED, &stats)));
        }
    }
    Ok((recovered.collect(), points))
}
