//! Plans of moves alone, with which machines are probed.

use lineweave_core::collective::Collective;
use lineweave_core::plan::{Builder, Params, Plan, Region, Space};
use lineweave_core::units::Rank;

/// Returns a slot of a rank's box.
pub fn slot(rank: usize, slot: u16) -> Space {
    Space::Slot { rank: Rank::from(rank), slot }
}

/// Returns the plan in which ranks make these moves (rank, source, destination) of `bytes` bytes, each its own one after the other. Boxes have
/// `slots` slots of that length.
pub fn moves(
    ranks: usize,
    bytes: usize,
    slots: usize,
    all: impl IntoIterator<Item = (usize, Space, Space)>,
) -> Plan {
    let mut b = Builder::new(Collective::Bcast, "moves", &Params::new(), ranks, 0, bytes, 1);
    for _ in 0..slots {
        b.slot(bytes);
    }
    for (rank, src, dst) in all {
        b.mov(rank, Region::new(src, 0..bytes), Region::new(dst, 0..bytes));
    }
    b.finish()
}
