//! Links and ports between caches that agree: what transfers of lines wait for on a mesh.
//!
//! 1. A core asks the tile that is home to a line, that one asks the cores that have it, and the first of them sends it to the core
//!    that asked. Each message keeps the links of its way busy, the home's port serves the request, and an owner's its own.
//! 2. Homes of a node's lines are spread over its tiles by what looks like chance, as hashed addresses are.
//! 3. All resources of a request are asked at the time at which its line serves it, and the longest wait counts, as for a packet
//!    on a mesh of message buffers. It does not wait for its own messages: what they cost is in the described price, which is
//!    therefore that of an idle mesh.
//! 4. Where a whole copy is played at once its lines wait only for more work than is done meanwhile.
//! 5. Nothing goes over the mesh between cores of a tile that share its cache.
//! 6. Each package has a mesh of its own; what lies between packages keeps nobody waiting here.

use super::super::mesh::bucket::Bucket;
use super::super::mesh::values::Paths;
use super::super::mesh::{Load, PortLoad};
use super::super::{Played, SimulateError};
use crate::chance::mix;
use lineweave_core::machine::{Machine, Network};
use lineweave_core::topology::Cpu;
use lineweave_core::trace::Picos;

/// A resource, and for how long a message keeps it busy.
type Use = (usize, u64);

/// The meshes of all packages at work. Tiles of one package follow those of the one before.
#[derive(Clone, Debug)]
pub(super) struct Links {
    paths: Paths,
    /// The tile and the last-level cache of each core.
    seats: Vec<(u32, usize)>,
    /// The tiles of each NUMA node that have cores, and the node of each tile.
    homes: Vec<Vec<u32>>,
    nodes: Vec<u32>,
    /// Four links a tile, then the ports of all tiles.
    resources: Vec<Bucket>,
    /// Resources that the request at hand uses.
    uses: Vec<Use>,
    /// Time at which the copy began that is played at once.
    pub(super) copying: Option<Picos>,
}

impl Links {
    /// The idle meshes of `machine`, described by `network`; `cores` is a CPU of each core that has ranks, and `nodes` the number of
    /// their NUMA nodes.
    pub(super) fn of(
        machine: &Machine,
        network: &Network,
        cores: &[Cpu],
        nodes: usize,
    ) -> Result<Links, SimulateError> {
        let paths = Paths::of(machine, network)?;
        let (tiles, a_tile) = (paths.grid.tiles(), paths.cores_per_tile as usize);
        let cpus = machine.topology().unwrap_or_default().cpus;
        let mut sorted: Vec<(usize, usize)> = cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let tile = |cpu: &Cpu| {
            let first = sorted.partition_point(|core| core.0 < cpu.package);
            let at = sorted.partition_point(|core| *core < (cpu.package, cpu.core)) - first;
            (at < tiles * a_tile).then_some((cpu.package * tiles + at / a_tile) as u32)
        };
        let packages = sorted.last().map_or(1, |core| core.0 + 1);
        let (mut homes, mut of_tile) = (vec![Vec::new(); nodes], vec![0; packages * tiles]);
        for cpu in &cpus {
            let at = tile(cpu).ok_or_else(|| {
                let cores = tiles * a_tile;
                let lacks =
                    format!("the tiles of [coherent.mesh] have {cores} cores, and a package has more");
                SimulateError::lacks(machine, lacks)
            })?;
            of_tile[at as usize] = cpu.numa as u32;
            if let Some(homes) = homes.get_mut(cpu.numa).filter(|homes| !homes.contains(&at)) {
                homes.push(at);
            }
        }
        Ok(Links {
            paths,
            seats: cores.iter().map(|cpu| (tile(cpu).unwrap_or(0), cpu.l3)).collect(),
            homes,
            nodes: of_tile,
            resources: vec![Bucket::default(); packages * tiles * 5],
            uses: Vec::new(),
            copying: None,
        })
    }

    /// Returns the home of a NUMA node's line: a tile.
    pub(super) fn home(&self, node: u32, line: usize) -> u32 {
        let homes = &self.homes[node as usize];
        homes[mix(line as u64) as usize % homes.len()]
    }

    /// Returns the NUMA node of a home.
    pub(super) fn node(&self, home: u32) -> u32 {
        self.nodes[home as usize]
    }

    /// A message of this length on its links goes from tile to tile.
    fn message(&mut self, from: u32, to: u32, busy: u64) {
        let tiles = self.paths.grid.tiles() as u32;
        if busy > 0 && from / tiles == to / tiles {
            let first = from / tiles * tiles;
            let uses = &mut self.uses;
            let link = |link: usize| uses.push((first as usize * 4 + link, busy));
            self.paths.grid.walk(from - first, to - first, link);
        }
    }

    fn port(&mut self, tile: u32) {
        self.uses.push((self.nodes.len() * 4 + tile as usize, self.paths.port));
    }

    /// Returns from when the request counts that is made at `now`: when all that it uses is free.
    fn wait(&mut self, now: Picos) -> Picos {
        let asked = self.copying.unwrap_or(now);
        let resources = &mut self.resources;
        let late = self.uses.iter().map(|&(at, _)| resources[at].add(asked, 0)).max().unwrap_or(0);
        for (at, busy) in self.uses.drain(..) {
            resources[at].add(asked, busy);
        }
        now.max(Picos(asked.0 + late))
    }

    /// `core` asks `home` for a line that the cores `others` have; the first sends it if it is fetched.
    pub(super) fn ask_caches(
        &mut self,
        now: Picos,
        core: u32,
        home: u32,
        others: impl Iterator<Item = u32>,
        mut fetched: bool,
    ) -> Picos {
        let seat = self.seats[core as usize];
        for other in others {
            let there = self.seats[other as usize];
            if there != seat {
                if self.uses.is_empty() {
                    self.request(seat.0, home);
                }
                self.message(home, there.0, self.paths.short);
                self.port(there.0);
                let length = if fetched { self.paths.long } else { self.paths.short };
                self.message(there.0, seat.0, length);
            }
            fetched = false;
        }
        self.wait(now)
    }

    /// `core` asks `home` for a line that no cache has.
    pub(super) fn ask_memory(&mut self, now: Picos, core: u32, home: u32) -> Picos {
        let (tile, _) = self.seats[core as usize];
        self.request(tile, home);
        self.message(home, tile, self.paths.long);
        self.wait(now)
    }

    fn request(&mut self, tile: u32, home: u32) {
        self.message(tile, home, self.paths.short);
        self.port(home);
    }

    /// Returns the load of all ports and links while `played` was played.
    pub(super) fn load(&self, played: &Played) -> Load {
        let (links, ports) = self.resources.split_at(self.nodes.len() * 4);
        let ports = ports.iter().map(|port| PortLoad { busy: Picos(port.busy), longest: 0 }).collect();
        Load::of(self.paths.grid.columns, played, ports, links, &[])
    }
}
