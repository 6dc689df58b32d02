//! Messages that were on one link at once.

use super::route::Grid;
use lineweave_core::machine::{Machine, Mesh};
use lineweave_core::plan::{Op, Plan, Region, Space};
use lineweave_core::trace::{Picos, Trace};
use std::collections::BTreeMap;

/// Messages of one run, and how often two were on one link at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overlaps {
    /// Messages that went from tile to tile.
    pub messages: usize,
    /// Pairs of messages that were on one link in one direction at once, counted for each link.
    pub pairs: usize,
    /// Most messages that were on one link at once.
    pub most: usize,
}

/// Counts the messages of `trace`, of one run of `plan` on `machine`, and those that were on one link at once. A message is on all
/// links of its data's way from the beginning of its op to the end. Messages are moves from or to another tile's buffer; where a plan moves
/// no data, flags that are set on another tile. `None` when the machine is no mesh whose dimensions and routing are known.
pub fn overlaps(machine: &Machine, plan: &Plan, trace: &Trace) -> Option<Overlaps> {
    let mesh: &Mesh = machine.mesh.as_ref()?;
    let grid = Grid {
        columns: mesh.columns.value? as u32,
        rows: mesh.rows.value? as u32,
        routing: mesh.routing.value?,
    };
    let cores = mesh.cores_per_tile.value? as u32;
    let tile = |rank: u32| rank / cores;
    let home = |region: &Region, rank: u32| match region.space {
        Space::Slot { rank: owner, .. } => owner.0,
        _ => rank,
    };
    let mut links: BTreeMap<usize, Vec<(Picos, Picos)>> = BTreeMap::new();
    let mut found = Overlaps::default();
    for event in &trace.events {
        let rank = event.rank.0;
        let way = match &plan.programs[event.rank.index()][event.op as usize] {
            Op::Move { src, dst } => Some((tile(home(src, rank)), tile(home(dst, rank)))),
            Op::Set { flag, .. } if !plan.collective.moves_data() => Some((tile(rank), tile(flag.home.0))),
            Op::Set { .. } | Op::Fold { .. } | Op::Wait { .. } | Op::Add { .. } => None,
        };
        let Some((from, to)) = way.filter(|(from, to)| from != to) else { continue };
        found.messages += 1;
        grid.walk(from, to, |link| links.entry(link).or_default().push((event.start, event.end)));
    }
    for spans in links.values_mut() {
        spans.sort_unstable();
        let mut under_way: Vec<Picos> = Vec::new();
        for &(start, end) in spans.iter() {
            under_way.retain(|&until| until > start);
            found.pairs += under_way.len();
            under_way.push(end);
            found.most = found.most.max(under_way.len());
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{simulate, Options};
    use lineweave_core::collective::Collective;
    use lineweave_core::machine::shipped;
    use lineweave_core::plan::{Builder, Params};
    use lineweave_core::units::Rank;

    /// Two tiles get over one link at once; a third gets the other way.
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
        assert_eq!(overlaps(machine, &plan, &trace), Some(Overlaps { messages: 3, pairs: 1, most: 2 }));
    }
}
