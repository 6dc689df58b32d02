//! The three set-ups of section 5 that measure L(S, tau), played on copies, and Figures 4 and 21.

use super::equations::S;
use super::simulated::{bears, Bench};
use crate::paper::limit::{ALMOST, NUMBER};
use crate::paper::{claim, Finding};
use crate::simulate::{moves, slot};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Builder, Layout, Params, Plan, Region, Space};
use lineweave_core::units::Rank;

/// A set-up, of tau ranks each of which has one transfer under way.
#[derive(Clone, Copy)]
pub(super) enum Setup {
    /// Fig. 18: rank 0 copies segments into its box, the others copy them out of it.
    Bcast,
    /// Fig. 19: pairs, of which one copies segments into its box and the other copies them out of it.
    Ping,
    /// Fig. 20: each rank copies segments into its box and out of a box in turn.
    Ring,
}

impl Setup {
    /// Segments of a message.
    fn segments(self) -> usize {
        match self {
            Setup::Ring => 4,
            Setup::Bcast | Setup::Ping => 32,
        }
    }

    /// Stages in which all ranks have a transfer under way.
    pub(super) fn stages(self) -> usize {
        match self {
            Setup::Ring => 2 * self.segments(),
            Setup::Bcast | Setup::Ping => self.segments(),
        }
    }

    pub(super) fn plan(self, ranks: usize) -> Plan {
        let mut b = Builder::new(Collective::Bcast, "set-up", &Params::new(), ranks, 0, S as usize, 1);
        let slots = [b.slot(S as usize), b.slot(S as usize)];
        let whole = 0..S as usize;
        let [given, taken] = [Space::In, Space::Out].map(|space| Region::new(space, whole.clone()));
        let own = |rank: usize, i: usize| Region::new(slot(rank, slots[i % 2]), whole.clone());
        if let Setup::Ring = self {
            for rank in 0..ranks {
                for _ in 0..self.segments() {
                    b.mov(rank, given, own(rank, 0));
                    b.mov(rank, own(rank, 0), taken);
                }
            }
            return b.finish();
        }
        let (ready, done) = (b.flags("ready", Layout::Alone, 1), b.flags("done", Layout::Alone, ranks));
        // The one that a rank takes from.
        let giver = |rank: usize| match self {
            Setup::Ping => rank / 2 * 2,
            Setup::Bcast | Setup::Ring => 0,
        };
        for rank in 0..ranks {
            for (i, value) in (0..self.segments()).zip(1..) {
                if giver(rank) != rank {
                    b.wait(rank, ready.at(giver(rank), 0), value);
                    b.mov(rank, own(giver(rank), i), taken);
                    b.set(rank, done.at(giver(rank), rank), value);
                    continue;
                }
                for taker in (0..ranks).filter(|&r| r != rank && giver(r) == rank && i >= 2) {
                    b.wait(rank, done.at(rank, taker), value - 2);
                }
                b.mov(rank, given, own(rank, i));
                b.set(rank, ready.at(rank, 0), value);
            }
        }
        b.finish()
    }
}

/// Ranks of the set-ups.
pub(super) const TAUS: [usize; 8] = [2, 4, 6, 8, 16, 32, 64, 128];

/// All ranks copy rank 0's buffer at once.
fn same_source(bench: &Bench, ranks: usize) -> f64 {
    let source = |rank: usize| if rank == 0 { Space::In } else { Space::PeerIn(Rank(0)) };
    bench.time(&moves(ranks, S as usize, 0, (0..ranks).map(|rank| (rank, source(rank), Space::Out))))
}

pub(super) fn claims() -> [Finding; 4] {
    let bears = bears()[1];
    let bench = Bench::lusitania(bears);
    let all = TAUS;
    let l = |setup: Setup| all.map(|tau| bench.by(setup, tau));
    let [bcast, ping, ring] = [Setup::Bcast, Setup::Ping, Setup::Ring].map(l);
    let shown =
        |times: &[f64]| times.iter().map(|t| format!("{:.2}", t / 1e3)).collect::<Vec<_>>().join(", ");
    let copies = [8, 128].map(|ranks| same_source(&bench, ranks));
    let unit = "in reads of a segment alone";
    let bounded = (0..all.len()).filter(|&i| bcast[i] >= ring[i] && bcast[i] >= ping[i]).count();
    let apart = ping.iter().zip(&ring).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    let cell = bcast[3] / bcast[0];
    [
        claim(
            "fig 4",
            "the time of copying one buffer at once grows linearly with the cores",
            format!(
                "{} with 8 cores, {} with 128, {unit}: a copy uses the memory that it writes, and each cell has its own",
                shown(&copies[..1]),
                shown(&copies[1..])
            ),
            NUMBER.beside(copies[1] / copies[0], 16.0),
        ),
        claim(
            "section 5, one cell",
            "L(8 KiB, tau) by -bcast grows linearly: its copies exhaust the memory of one cell",
            format!(
                "tau = 2, 4, 6, 8, which are in one cell: {}, {unit}; with 8 it is {cell:.2} times that with 2, where 4 would be linear. The {bears} copies \
                 that a cell bears by Fig. 17 contradict this",
                shown(&bcast[..4])
            ),
            NUMBER.beside(cell, 4.0),
        ),
        claim(
            "fig 21, -bcast",
            "-bcast is an upper bound of L(8 KiB, tau)",
            format!("so it is for {bounded} of tau = {all:?}: {}; -ring {}", shown(&bcast), shown(&ring)),
            bounded == all.len(),
        ),
        claim(
            "fig 21, -ping",
            "-ping behaves like -ring",
            format!("-ping {}: at most {:.0} % from -ring", shown(&ping), 100.0 * apart),
            ALMOST.of(apart),
        ),
    ]
}
