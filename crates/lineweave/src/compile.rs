//! Turning one rank's part of a plan into steps with resolved addresses.
//!
//! # Two generations on a line
//!
//! A plan that synchronises and takes a bank a run needs only two banks: when a rank enters run `r + 2`, it has
//! seen every rank enter run `r + 1`, and so leave run `r`. If its flags are paired and carry at most 8 bytes, both
//! banks fit the same lines: flag and payload of even runs in the first words of each half line, those of odd
//! runs behind them. Then the plan stays where it is, and consecutive runs ride on one line's transfers: a
//! two-rank allreduce of 8 bytes then took about half as long in an empty loop (see docs/explanation/findings.md).

mod prefetch;
mod chain;
mod compiled;
mod truncation;
mod merge;
mod placement;
mod step;
mod wait_order;

pub use compiled::{Compiled, Need, Peer, Steps};
pub use placement::Unfit;
pub use step::{Addr, Chain, Double, SleeperCounter, Step, ACC, BANK, IN, OUT, PEERS};
pub use truncation::MessageSpan;

use crate::segment::{BankClass, Geometry, Mapped, Segment};
use lineweave_core::model::Model;
use lineweave_core::plan::{
    Carry, FlagKind, FlagRef, Op, Part, Plan, Region, Reuse, Space, Take, GENERATION,
};
use lineweave_core::select::small_slots;
use lineweave_core::topology::Shape;
use lineweave_core::units::{Rank, LINE};
use lineweave_core::verify::Proof;
use merge::doubled;
use placement::{counter_offsets, Placement};
use std::collections::{BTreeSet, HashMap};
use wait_order::WaitOrder;

/// A plan that was proven and compiled on this communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlanId(pub(crate) u32);

/// Bytes that are combined at a time where operands are copied first: they stay in a first-level cache.
const PIECE: usize = 8192;

/// Bytes of an element that is rounded once where that can be.
const HALF: usize = 2;

/// The rank that is compiled for, and the team around it.
#[derive(Clone, Copy, Debug)]
pub struct RankPlacement<'a> {
    /// The rank's number.
    pub rank: usize,
    /// The memory that the team shares.
    pub segment: &'a Segment,
    /// The model that plans and their banks are chosen by.
    pub model: &'a Model,
    /// CPU of each rank.
    pub shape: &'a Shape,
    /// True if the rank stays on the CPU that the shape names.
    pub held: bool,
    /// True if ranks have no addresses in common, so that they exchange offsets in shared memory.
    pub places: bool,
    /// True if the rank prefetches lines of its next run for writing while it waits in this one, where that pays.
    pub ahead: bool,
    /// Sums of 16-bit floats may be rounded once, not after each addition: their bits need not be the same by all algorithms.
    pub rounds_once: bool,
}

/// Returns where a plan's flags and slots lie in a small bank, in two generations or one, if it runs in one.
fn in_small_bank(
    plan: &Plan,
    geometry: &Geometry,
    model: &Model,
    shape: &Shape,
    twin: bool,
) -> Option<Placement> {
    let near = plan.slots.iter().sum::<usize>() <= small_slots(model, shape);
    near.then(|| Placement::of(plan, &geometry.zones(BankClass::Small), twin).ok()).flatten()
}

/// Returns whether the runs of a plan take large banks.
pub(crate) fn takes_large_banks(plan: &Plan, geometry: &Geometry, model: &Model, shape: &Shape) -> bool {
    in_small_bank(plan, geometry, model, shape, false).is_none()
}

/// Resolves one rank's program of a plan for a message, or blocks, of `message` bytes. `counters` is how far the counters' page is used,
/// and grows.
pub fn compile(
    part: &Part,
    message: usize,
    proof: &Proof,
    seat: RankPlacement<'_>,
    counters: &mut usize,
) -> Result<Compiled, Unfit> {
    let plan = &part.plan;
    let RankPlacement { rank, segment, model, shape, held, places, ahead, rounds_once } = seat;
    let geometry = segment.geometry();
    let twin = proof.synchronizing
        && part.leaves_room_for_a_generation()
        && in_small_bank(plan, geometry, model, shape, true).is_some();
    let (class, placement) = match in_small_bank(plan, geometry, model, shape, twin) {
        Some(placement) => (BankClass::Small, placement),
        None => (BankClass::Large, Placement::of(plan, &geometry.zones(BankClass::Large), false)?),
    };
    let extent = placement.end;
    let stays = plan.reuse == Reuse::Same || twin;
    let slots = extent.saturating_sub(geometry.zones(class).slots_start());
    let mut compiler = Compiler {
        plan,
        segment,
        turns: if held { WaitOrder::of(part, shape, rank) } else { WaitOrder::default() },
        places,
        rank,
        placement,
        counters: counter_offsets(plan, counters)?,
        peers: Vec::new(),
        areas: BTreeSet::new(),
        chains: Vec::new(),
        adds: &part.adds,
        span: part.span,
    };
    let ops = compiler.turns.order(&plan.programs[rank]);
    let steps = compiler.steps(&ops, rounds_once && part.sums_whole && plan.grain == HALF);
    let (steps, doubles) = doubled(&steps, plan.grain.max(1));
    // Those that do not synchronise run ahead of their readers, which may be at the next bank's lines still.
    let turns = class == BankClass::Small && !stays && proof.synchronizing;
    let ahead = ahead && turns && shape.oversubscription() <= 1;
    let steps = if ahead { prefetch::insert(steps, &compiler.written()) } else { steps };
    let need = Need {
        stays,
        generations: if twin { GENERATION } else { 0 },
        class,
        extent,
        walks: if stays || class == BankClass::Small { 0 } else { slots },
        areas: compiler.areas.iter().copied().collect(),
        mapped: Mapped::NONE,
        counts: plan.flags.iter().any(|array| array.kind == FlagKind::Counter),
    };
    Ok(Compiled {
        need,
        bases: PEERS as usize + compiler.peers.len(),
        piece: if steps.iter().any(|s| matches!(s, Step::ReduceRemote { .. })) {
            PIECE.max(plan.grain)
        } else {
            0
        },
        grain: plan.grain.max(1),
        peers: compiler.peers.iter().map(|&space| compiler.peer(space)).collect(),
        span: part.span as u64,
        synchronizing: proof.synchronizing,
        in_place: proof.in_place,
        acc: plan.acc,
        digest: part.digest,
        counted: [0; 2],
        odd: false,
        message: if part.rereads { 0 } else { plan.half_of_all(message) },
        steps: Steps { all: steps, doubles, chains: compiler.chains.into(), cuts: None },
    })
}

struct Compiler<'a> {
    plan: &'a Plan,
    segment: &'a Segment,
    turns: WaitOrder,
    places: bool,
    rank: usize,
    placement: Placement,
    counters: Vec<Option<usize>>,
    /// Peer buffers in the order in which they got bases.
    peers: Vec<Space>,
    /// Ranks in whose areas the plan has flags or slots.
    areas: BTreeSet<u32>,
    /// Sums of all contributions so far.
    chains: Vec<Chain>,
    /// Number of adds to each counter in a run.
    adds: &'a HashMap<FlagRef, u32>,
    span: i32,
}

impl Compiler<'_> {
    fn step(&mut self, op: &Op) -> Step {
        match *op {
            Op::Move { src, dst } if self.reaches([src, dst, dst]) => {
                Step::CopyRemote { src: self.addr(src), dst: self.addr(dst), len: src.len }
            }
            Op::Fold { a, b, dst } if self.reaches([a, b, dst]) => Step::ReduceRemote {
                a: self.addr(a),
                b: self.addr(b),
                dst: self.addr(dst),
                elements: dst.len / self.plan.grain,
            },
            Op::Move { src, dst } => Step::Move { src: self.addr(src), dst: self.addr(dst), len: src.len },
            Op::Fold { a, b, dst } => Step::Fold {
                a: self.addr(a),
                b: self.addr(b),
                dst: self.addr(dst),
                elements: dst.len / self.plan.grain,
            },
            Op::Set { flag, value, carry } => {
                let (at, home, value) = (self.flag(flag), self.home(flag), value as u32);
                match carry {
                    None => Step::Set { at, home, value },
                    Some(Carry::Bytes(region)) => {
                        Step::SetBytes { at, home, value, src: self.addr(region), len: region.len as u32 }
                    }
                    Some(Carry::Address(space)) => match (self.base(space), self.places) {
                        (base, false) => Step::SetAddress { at, home, value, base },
                        (base, true) => Step::SetPlace { at, home, value, base },
                    },
                }
            }
            Op::Wait { flag, value, take } => self.wait(flag, value, take),
            Op::Add { flag } => Step::Add { at: self.flag(flag), home: self.home(flag) },
        }
    }

    /// Offsets in a bank, and lengths, of what this rank writes to slots.
    fn written(&mut self) -> Vec<(usize, usize)> {
        let plan = self.plan;
        let ops = plan.programs[self.rank].iter().filter_map(|op| match *op {
            Op::Move { dst, .. } | Op::Fold { dst, .. } => Some(dst),
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => None,
        });
        let slots = ops.filter(|dst| matches!(dst.space, Space::Slot { .. }) && dst.len > 0);
        slots.map(|dst| (self.addr(dst).offset, dst.len)).collect()
    }

    /// Returns whether one of these may be in another process's memory.
    fn reaches(&self, regions: [Region; 3]) -> bool {
        let peer = |r: &Region| matches!(r.space, Space::PeerIn(_) | Space::PeerOut(_));
        self.places && regions.iter().any(|r| peer(r) && !self.near(r.space))
    }

    /// Returns whether a peer's buffers are in this process.
    fn near(&self, space: Space) -> bool {
        self.segment.is_here(self.peer(space).rank as usize)
    }

    /// Bytes of a peer's buffer up to the last one that this rank reaches.
    fn reached(&self, space: Space) -> usize {
        let regions = self.plan.programs[self.rank].iter().flat_map(|op| match *op {
            Op::Move { src, dst } => [Some(src), Some(dst), None],
            Op::Fold { a, b, dst } => [Some(a), Some(b), Some(dst)],
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => [None; 3],
        });
        regions.flatten().filter(|r| r.space == space).map(|r| r.offset + r.len).max().unwrap_or(0)
    }

    /// Returns the peer whose buffer `space` is; for this rank's own spaces, this rank.
    fn peer(&self, space: Space) -> Peer {
        let rank = match space {
            Space::PeerIn(Rank(q)) | Space::PeerOut(Rank(q)) => q,
            Space::In | Space::Out | Space::Acc | Space::Slot { .. } => self.rank as u32,
        };
        Peer { space, rank, pid: self.segment.pid(rank as usize) }
    }

    fn wait(&mut self, flag: FlagRef, value: i32, take: Option<Take>) -> Step {
        let (at, home) = (self.flag(flag), self.home(flag));
        if self.plan.is_counter(flag) {
            let each = self.adds.get(&flag).copied().unwrap_or(0);
            return Step::WaitCount { at, home, each };
        }
        if value <= 0 {
            let lag = (-value / self.span + 1) as u32;
            return Step::WaitEarlier { at, home, below: value.unsigned_abs(), lag };
        }
        let apart = self.turns.apart(flag, value);
        let value = value as u32;
        match take {
            None => Step::Wait { at, home, value, apart },
            Some(Take::Bytes(region)) => {
                let (dst, len) = (self.addr(region), region.len as u32);
                Step::WaitBytes { at, home, value, dst, len, apart }
            }
            Some(Take::Address(space)) => match (self.base(space), self.places) {
                (base, false) => Step::WaitAddress { at, home, value, base },
                (base, true) => Step::WaitPlace {
                    at,
                    home,
                    value,
                    base,
                    near: self.near(space),
                    bytes: self.reached(space),
                },
            },
        }
    }

    /// Offset of a flag from the bank's base, or of a counter from the counters' base.
    fn flag(&mut self, flag: FlagRef) -> usize {
        self.areas.insert(flag.home.0);
        let array = flag.array as usize;
        let start = self.counters[array].unwrap_or(self.placement.arrays[array]);
        let within = self.plan.flags[array].offset(flag.index as usize, LINE);
        flag.home.index() * self.segment.area_stride() + start + within
    }

    fn home(&self, flag: FlagRef) -> SleeperCounter {
        SleeperCounter::of(self.segment, flag.home.index())
    }

    fn addr(&mut self, region: Region) -> Addr {
        let within = match region.space {
            Space::Slot { rank: Rank(rank), slot } => {
                self.areas.insert(rank);
                rank as usize * self.segment.area_stride() + self.placement.slots[slot as usize]
            }
            Space::In | Space::Out | Space::Acc | Space::PeerIn(_) | Space::PeerOut(_) => 0,
        };
        Addr { base: self.base(region.space), offset: within + region.offset }
    }

    fn base(&mut self, space: Space) -> u32 {
        match space {
            Space::In => IN,
            Space::Out => OUT,
            Space::Acc => ACC,
            Space::Slot { .. } => BANK,
            Space::PeerIn(_) | Space::PeerOut(_) => {
                let known = self.peers.iter().position(|&p| p == space);
                let index = known.unwrap_or_else(|| {
                    self.peers.push(space);
                    self.peers.len() - 1
                });
                PEERS + index as u32
            }
        }
    }
}
