//! Binomial tree: in round `i` every virtual rank below `2^i` informs the one `2^i` above it.
//!
//! Known from every MPI; Rico-Gallego & Diaz-Martin Eq. 11 models it. Applies to any P and root. A payload
//! that fits the flag's line travels in it; a longer one goes through the sender's own slot, written once.

use super::super::{Algorithm, ParamSpec, Problem, Scope};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region, Space};
use crate::units::Rank;

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "binomial",
    about: "each informed rank informs one more, round by round",
    source: "Rico-Gallego & Diaz-Martin 2015, Eq. 11",
    params: &[ParamSpec { name: "layout", default: "alone", about: "lines of the ready flags" }],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    vec![Params::new()]
}

fn emit(b: &mut Builder, _: &Problem, s: &Scope, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let p = s.len();
    let carried = s.bytes <= layout.payload();
    let ready = b.flags("ready", layout, 1);
    let slot = b.slot(if carried { 0 } else { s.bytes });
    b.ring();
    for v in 0..p {
        let rank = s.rank_of_virtual(v);
        let here = if v == 0 { s.from[s.root] } else { s.to };
        // 1. Receive from the parent: v without its highest bit.
        if v > 0 {
            let parent = s.rank_of_virtual(v - (1 << v.ilog2()));
            if carried {
                b.wait_taking(rank, ready.at(rank, 0), 1, here.at(0..s.bytes));
            } else {
                b.wait(rank, ready.at(rank, 0), 1);
                b.mov(rank, box_of(parent, slot, s.bytes), here.at(0..s.bytes));
            }
        }
        // 2. Inform the children: v + 2^i for every 2^i > v, nearest round first.
        let children: Vec<usize> = (0..)
            .map(|i| 1usize << i)
            .skip_while(|&bit| bit <= v)
            .map(|bit| v + bit)
            .take_while(|&child| child < p)
            .collect();
        if !carried && !children.is_empty() {
            b.mov(rank, here.at(0..s.bytes), box_of(rank, slot, s.bytes));
        }
        for child in children {
            let child = s.rank_of_virtual(child);
            if carried {
                b.set_carrying(rank, ready.at(child, 0), 1, here.at(0..s.bytes));
            } else {
                b.set(rank, ready.at(child, 0), 1);
            }
        }
    }
    Ok(())
}

fn box_of(rank: usize, slot: u16, bytes: usize) -> Region {
    Region::new(Space::Slot { rank: Rank::from(rank), slot }, 0..bytes)
}
