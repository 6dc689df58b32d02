//! Collectives on a mesh of processors by contention, energy, distance and depth: Luczynski et al. 2024.
//!
//! Data travels in wavelets, one a cycle and link. A collective has
//!
//! - C, contention: most wavelets that one processor sends or receives;
//! - E, energy: hops of all wavelets together, over N links that are used;
//! - L, distance: hops of the longest chain of messages of which each needs the one before;
//! - D, depth: messages of such a chain;
//!
//! and takes T = max(C, E / N + L) + (2 T_R + 1) D cycles, T_R being the way between a processor and its router: all
//! messages overlap as they stream, so what limits is the busiest processor, or the links and the way. It stops being
//! valid where one link is used far more than the mean, and where messages are not cut into wavelets.
//!
//! [`Work::of_plan`] finds the four in a plan; the other functions are closed forms of them.

use crate::route::Grid;
use crate::steps::steps;
use lineweave_core::machine::Routing;
use lineweave_core::plan::{Carry, FlagRef, Op, Plan, Region, Space};
use std::collections::{BTreeSet, HashMap};

/// Parameters of a mesh in this model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Streaming {
    /// T_R, cycles from a processor to its router and back into the next: the cost of depth is 2 T_R + 1.
    pub ramp: u64,
}

/// Contention, energy, links, distance and depth of a collective; wavelets, hops and messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// C: most wavelets that one processor sends or receives.
    pub contention: u64,
    /// E: hops of all wavelets.
    pub energy: u64,
    /// N: links in one direction that carry any.
    pub links: u64,
    /// L: hops of the longest chain.
    pub distance: u64,
    /// D: messages of the longest chain.
    pub depth: u64,
}

impl Streaming {
    /// T, in cycles.
    pub fn cycles(self, work: &Work) -> f64 {
        let flow = work.energy as f64 / work.links.max(1) as f64 + work.distance as f64;
        flow.max(work.contention as f64) + ((2 * self.ramp + 1) * work.depth) as f64
    }

    /// A lower bound in cycles of a reduction or broadcast of `b` wavelets on `columns` x `rows` processors from or to a
    /// corner: it moves b wavelets in or out of each processor but one over at most all links, reaches the opposite
    /// corner, and is one message deep at least.
    pub fn corner_bound(self, columns: u64, rows: u64, b: u64) -> f64 {
        let (others, links) =
            (columns * rows - 1, 2 * (columns.saturating_sub(1) * rows + columns * rows.saturating_sub(1)));
        match others {
            0 => 0.0,
            _ => self.cycles(&Work {
                contention: b,
                energy: b * others,
                links,
                distance: columns + rows - 2,
                depth: 1,
            }),
        }
    }
}

/// Reduction of `b` wavelets along a row of `p` to its end: everybody sends to the root.
pub fn star(p: u64, b: u64) -> Work {
    let hops = p.saturating_sub(1);
    Work { contention: b * hops, energy: b * p * hops / 2, links: hops, distance: hops, depth: 1.min(hops) }
}

/// Each to its neighbour, which adds its own: T = b + (2 T_R + 2)(p - 1).
pub fn chain(p: u64, b: u64) -> Work {
    let hops = p.saturating_sub(1);
    Work { contention: b.min(b * hops), energy: b * hops, links: hops, distance: hops, depth: hops }
}

/// Halves: the first of each pair of blocks receives, log2 p times. `p` is a power of two.
pub fn binary(p: u64, b: u64) -> Work {
    let (hops, rounds) = (p.saturating_sub(1), u64::from(p.max(1).ilog2()));
    Work { contention: b * rounds, energy: b * p / 2 * rounds, links: hops, distance: hops, depth: rounds }
}

/// Chains in groups of `group`, and a chain of the groups' first; `group` divides `p`.
pub fn two_phase(p: u64, group: u64, b: u64) -> Work {
    let (hops, groups) = (p.saturating_sub(1), p / group.max(1));
    Work {
        contention: b * (u64::from(group > 1) + u64::from(groups > 1)),
        energy: b * (groups * (group - 1) + (groups - 1) * group),
        links: hops,
        distance: hops,
        depth: (group - 1) + (groups - 1),
    }
}

/// Processors in rows, one a rank, with packets that go along the row first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    /// Processors of a row.
    pub columns: usize,
    /// Bytes of a wavelet.
    pub wavelet: usize,
}

impl Work {
    /// The work of one run of a plan, rank r being processor r: every move between ranks is a message, and chains of them
    /// are those of flags that are raised and waited for. `None` when a rank waits for ever.
    pub fn of_plan(plan: &Plan, rows: Rows) -> Option<Work> {
        let (p, columns) = (plan.ranks, rows.columns.max(1));
        let grid = Grid { columns: columns as u32, rows: p.div_ceil(columns) as u32, routing: Routing::Xy };
        let (mut sent, mut received) = (vec![0u64; p], vec![0u64; p]);
        let (mut links, mut energy) = (BTreeSet::new(), 0);
        let mut carry = |from: usize, to: usize, bytes: usize| {
            if from != to && bytes > 0 {
                let wavelets = bytes.div_ceil(rows.wavelet.max(1)) as u64;
                sent[from] += wavelets;
                received[to] += wavelets;
                energy += wavelets * u64::from(grid.distance(from as u32, to as u32) - 1);
                grid.walk(from as u32, to as u32, |link| {
                    links.insert(link);
                });
            }
        };
        for (rank, op) in plan.ops() {
            let me = rank.index();
            let owner = |r: &Region| match r.space {
                Space::In | Space::Out | Space::Acc => me,
                Space::Slot { rank, .. } | Space::PeerIn(rank) | Space::PeerOut(rank) => rank.index(),
            };
            match op {
                Op::Move { dst, .. } | Op::Fold { dst, .. } => {
                    let operands = op.regions().count() - 1;
                    op.regions().take(operands).for_each(|from| carry(owner(&from), me, from.len));
                    carry(me, owner(dst), dst.len);
                }
                Op::Set { flag, carry: Some(Carry::Bytes(region)), .. } => {
                    carry(me, flag.home.index(), region.len);
                }
                Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => {}
            }
        }
        let (depth, distance) = chains(plan, grid)?;
        let contention = sent.into_iter().chain(received).max().unwrap_or(0);
        Some(Work { contention, energy, links: links.len() as u64, distance, depth })
    }
}

/// Messages and hops of the longest chains of flags that are raised and waited for; `None` when a rank waits for ever.
fn chains(plan: &Plan, grid: Grid) -> Option<(u64, u64)> {
    let steps = steps(plan);
    let longer = |a: (u64, u64), b: (u64, u64)| (a.0.max(b.0), a.1.max(b.1));
    let each = |rank: usize| steps.ranks[rank].iter().enumerate().map(move |(op, step)| (step.at, rank, op));
    let mut order: Vec<(usize, usize, usize)> = (0..plan.ranks).flat_map(each).collect();
    order.sort_unstable();
    // The longest chain that ends at each rank, up to each of its ops, and of all adds to each counter.
    let mut ends = vec![(0, 0); plan.ranks];
    let mut told: Vec<Vec<(u64, u64)>> = vec![Vec::new(); plan.ranks];
    let mut added: HashMap<FlagRef, (u64, u64)> = HashMap::new();
    for (_, rank, op) in order {
        if let Some((by, raised)) = steps.ranks[rank][op].cause {
            let (depth, distance) = told[by][raised];
            let heard = (
                depth + u64::from(by != rank),
                distance + u64::from(grid.distance(by as u32, rank as u32) - 1),
            );
            ends[rank] = longer(ends[rank], heard);
        }
        let all = match &plan.programs[rank][op] {
            Op::Add { flag } => added.entry(*flag).or_default(),
            _ => &mut (0, 0),
        };
        *all = longer(*all, ends[rank]);
        told[rank].push(*all);
    }
    let done = told.iter().zip(&plan.programs).all(|(told, ops)| told.len() == ops.len());
    done.then(|| ends.into_iter().fold((0, 0), longer))
}
