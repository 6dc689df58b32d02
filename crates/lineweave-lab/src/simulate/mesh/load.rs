//! Load of ports and links.

use super::bucket::Bucket;
use super::port::Port;
use super::MeshFabric;
use crate::simulate::Played;
use lineweave_core::trace::Picos;

/// The port of one tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortLoad {
    /// Time spent serving lines and polls.
    pub busy: Picos,
    /// Most requests that waited at once; 0 where the arbiter keeps no queue.
    pub longest: usize,
}

/// Load of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// Tiles in a row.
    pub columns: u32,
    /// Rows of tiles.
    pub rows: u32,
    /// Time that everything took.
    pub time: Picos,
    /// Load of each tile's port, row by row.
    pub ports: Vec<PortLoad>,
    /// Time that each tile's links to the east, west, south and north were busy.
    pub links: Vec<[Picos; 4]>,
    /// Time that each memory controller was busy: less than the longest of these no plan takes that moves as
    /// many lines through it.
    pub controllers: Vec<Picos>,
}

impl Load {
    /// The load of a mesh while `played` was played: of its ports, and of its links, four a tile, row by row.
    pub(in crate::simulate) fn of(
        columns: u32,
        played: &Played,
        ports: Vec<PortLoad>,
        links: &[Bucket],
        controllers: &[Bucket],
    ) -> Load {
        Load {
            columns,
            rows: ports.len() as u32 / columns.max(1),
            time: played.ended.last().copied().unwrap_or_default(),
            ports,
            links: links
                .chunks(4)
                .map(|l| [Picos(l[0].busy), Picos(l[1].busy), Picos(l[2].busy), Picos(l[3].busy)])
                .collect(),
            controllers: controllers.iter().map(|c| Picos(c.busy)).collect(),
        }
    }

    /// The busiest port's share of the time.
    pub fn busiest_port(&self) -> f64 {
        busiest(self.ports.iter().map(|p| p.busy), self.time)
    }

    /// The busiest memory controller's share of the time.
    pub fn busiest_controller(&self) -> f64 {
        busiest(self.controllers.iter().copied(), self.time)
    }

    /// The busiest link's share of the time.
    pub fn busiest_link(&self) -> f64 {
        busiest(self.links.iter().map(|l| l.iter().copied().max().unwrap_or_default()), self.time)
    }
}

fn busiest(busy: impl Iterator<Item = Picos>, time: Picos) -> f64 {
    busy.max().unwrap_or_default().0 as f64 / time.0.max(1) as f64
}

impl MeshFabric {
    /// Returns the load of ports, links and controllers while `played` was played.
    pub(super) fn load(&self, played: &Played) -> Load {
        let busy = |(port, chunks): (&Port, &Bucket)| PortLoad {
            busy: Picos(port.busy + chunks.busy),
            longest: port.longest,
        };
        let ports = self.ports.iter().zip(&self.chunk_ports).map(busy).collect();
        Load::of(self.v.grid.columns, played, ports, &self.links, &self.controllers)
    }
}
