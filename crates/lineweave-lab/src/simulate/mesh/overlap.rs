//! Messages that were on one link, in one tile or at one buffer at once.

use crate::route::Grid;
use lineweave_core::machine::{Machine, Mesh};
use lineweave_core::plan::{Op, Plan, Region, Space};
use lineweave_core::trace::{Picos, Trace};
use std::collections::BTreeMap;

/// Uses of places of one kind that went on at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Shared {
    /// Places that more used at once than may.
    pub places: usize,
    /// Pairs of uses of one place at once.
    pub pairs: usize,
    /// Most uses of one place at once.
    pub most: usize,
}

/// Messages of one run, and what they used at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overlaps {
    /// Messages that went from tile to tile.
    pub messages: usize,
    /// Messages on one link in one direction; one may.
    pub links: Shared,
    /// Cores of one tile that exchange messages with other tiles; one may.
    pub tiles: Shared,
    /// Other cores that read or write one core's buffer; two may.
    pub buffers: Shared,
}

/// Spans of use by place.
type Spans = BTreeMap<usize, Vec<(Picos, Picos)>>;

/// Returns what went on at once, where `may` uses of a place at once are permitted.
fn shared(spans: Spans, may: usize) -> Shared {
    let mut found = Shared::default();
    for mut spans in spans.into_values() {
        spans.sort_unstable();
        let (mut under_way, mut most) = (Vec::<Picos>::new(), 0);
        for (start, end) in spans {
            under_way.retain(|&until| until > start);
            found.pairs += under_way.len();
            under_way.push(end);
            most = most.max(under_way.len());
        }
        found.places += usize::from(most > may);
        found.most = found.most.max(most);
    }
    found
}

fn grid(mesh: &Mesh) -> Option<Grid> {
    let network = &mesh.network;
    let (columns, rows) = (network.columns.value? as u32, network.rows.value? as u32);
    Some(Grid { columns, rows, routing: network.routing.value? })
}

/// Counts the messages of `trace`, of one run of `plan` on `machine`, and what they used at once. A message is on all
/// links of its data's way from the beginning of its op to the end. Messages are moves from or to another core's buffer; where a plan moves
/// no data, flags that are set at another core. `None` when the machine is no mesh whose dimensions and routing are known.
pub fn overlaps(machine: &Machine, plan: &Plan, trace: &Trace) -> Option<Overlaps> {
    let mesh: &Mesh = machine.mesh.as_ref()?;
    let grid = grid(mesh)?;
    let cores = mesh.network.cores_per_tile.value? as u32;
    let home = |region: &Region, rank: u32| match region.space {
        Space::Slot { rank: owner, .. } => owner.0,
        _ => rank,
    };
    let [mut links, mut tiles, mut buffers] = [Spans::new(), Spans::new(), Spans::new()];
    let mut messages = 0;
    for event in &trace.events {
        let rank = event.rank.0;
        let (from, to) = match &plan.programs[event.rank.index()][event.op as usize] {
            Op::Move { src, dst } => (home(src, rank), home(dst, rank)),
            Op::Set { flag, .. } if !plan.collective.moves_data() => (rank, flag.home.0),
            Op::Set { .. } | Op::Fold { .. } | Op::Wait { .. } | Op::Add { .. } => continue,
        };
        let span = (event.start, event.end);
        let note = |spans: &mut Spans, place| spans.entry(place).or_default().push(span);
        for owner in [from, to].into_iter().filter(|&owner| owner != rank) {
            note(&mut buffers, owner as usize);
        }
        let (from, to) = (from / cores, to / cores);
        if from != to {
            messages += 1;
            note(&mut tiles, (rank / cores) as usize);
            grid.walk(from, to, |link| note(&mut links, link));
        }
    }
    Some(Overlaps { messages, links: shared(links, 1), tiles: shared(tiles, 1), buffers: shared(buffers, 2) })
}

/// Counts the ways over each tile's links to the east, west, south and north when each tile sends to each other one. `None` when
/// the machine is no mesh whose dimensions and routing are known.
pub fn all_pairs(machine: &Machine) -> Option<Vec<[usize; 4]>> {
    let grid = grid(machine.mesh.as_ref()?)?;
    let mut ways = vec![[0; 4]; grid.tiles()];
    let tiles = || 0..grid.tiles() as u32;
    for (from, to) in tiles().flat_map(|from| tiles().map(move |to| (from, to))) {
        grid.walk(from, to, |link| ways[link / 4][link % 4] += 1);
    }
    Some(ways)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{simulate, Options};
    use lineweave_core::collective::Collective;
    use lineweave_core::machine::shipped;
    use lineweave_core::plan::{Builder, Params};
    use lineweave_core::units::Rank;

    /// Two cores of a tile get over one link at once; a third gets the other way.
    #[test]
    fn messages_on_one_link_are_counted() {
        let machine = shipped().iter().find(|m| m.name == "intel-scc").unwrap();
        let mut b = Builder::new(Collective::Bcast, "links", &Params::new(), 48, 0, 64, 1);
        let (own, other) = (b.slot(64), b.slot(64));
        let slot = |rank: usize, slot| Region::new(Space::Slot { rank: Rank::from(rank), slot }, 0..64);
        // To tile (0,0) from (1,0) and (2,0): both on the link from (1,0); from (0,0) to (1,0): on the one back.
        for (taker, giver) in [(0, 2), (1, 4), (3, 0)] {
            b.mov(taker, slot(giver, own), slot(taker, other));
        }
        let plan = b.finish();
        let options = Options { trace: true, ..Options::default() };
        let trace = simulate(machine, &plan, &options).unwrap().trace.unwrap();
        let found = overlaps(machine, &plan, &trace).unwrap();
        let once = Shared { places: 0, pairs: 0, most: 1 };
        let twice = Shared { places: 1, pairs: 1, most: 2 };
        assert_eq!(found, Overlaps { messages: 3, links: twice, tiles: twice, buffers: once });
        // The busiest links of all pairs: 3 x 3 tiles of a row to any of 4 rows.
        assert_eq!(all_pairs(machine).unwrap().iter().map(|l| l[0]).max(), Some(36));
    }
}
