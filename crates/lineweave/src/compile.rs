//! Turning one rank's part of a plan into steps with resolved addresses.
//!
//! # Two generations on a line
//!
//! A plan that synchronises and takes a bank a run needs only two banks: when a rank enters run `r + 2`, it has
//! seen every rank enter run `r + 1`, and so leave run `r`. If its flags are paired and carry at most 8 bytes, both
//! banks fit the same lines: flag and payload of even runs in the first words of each half line, those of odd
//! runs behind them. Then the plan stays where it is, and consecutive runs ride on one line's transfers: a
//! two-rank allreduce of 8 bytes then took about half as long in an empty loop (see docs/findings.md).

mod ahead;
mod chain;
mod cut;
mod merge;
mod placement;
mod step;
mod turns;

pub use cut::Span;
pub use placement::Unfit;
pub use step::{Addr, Chain, Double, Exchange, Home, Step, Swap, ACC, BANK, IN, OUT, PEERS};

use crate::segment::{BankClass, Mapped, Segment};
use cut::Cuts;
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
use turns::Turns;

/// A plan that was proven and compiled on this communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlanId(pub(crate) u32);

/// Bytes that are combined at a time where operands are copied first: they stay in a first-level cache.
const PIECE: usize = 8192;

/// Bytes of an element that is rounded once where that can be.
const HALF: usize = 2;

/// What runs of a plan need of the banks where flags and slots are.
#[derive(Clone, Debug)]
pub struct Need {
    /// Runs follow each other in one bank.
    pub stays: bool,
    /// Bytes between the two generations of flags that successive runs alternate between, or 0.
    pub generations: usize,
    /// Which ring.
    pub class: BankClass,
    /// Bytes of a bank that it uses, from the bank's start.
    pub extent: usize,
    /// Bytes of slots, each run's of which may lie in another place of the bank; 0 where they have to stay.
    pub walks: usize,
    /// Ranks in whose areas it has flags or slots.
    pub areas: Box<[u32]>,
    /// What is mapped of all of these areas.
    pub mapped: Mapped,
    /// It has counters.
    pub counts: bool,
}

/// A rank's steps, and what they refer to.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// In order.
    pub all: Box<[Step]>,
    /// Of the steps that fold into two places.
    pub doubles: Box<[Double]>,
    /// Of the steps that combine all contributions.
    pub chains: Box<[Chain]>,
    /// How steps depend on the length, where the plan is run for shorter messages or blocks as well.
    cuts: Option<Cuts>,
}

impl Steps {
    /// What they take of memory, beyond the fields.
    fn bytes(&self) -> usize {
        let operands: usize = self.chains.iter().map(|chain| size_of_val(&*chain.operands)).sum();
        let lists = size_of_val(&*self.all) + size_of_val(&*self.doubles) + size_of_val(&*self.chains);
        lists + operands + self.cuts.as_ref().map_or(0, Cuts::bytes)
    }
}

/// A buffer of another rank.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Which.
    pub space: Space,
    /// Whose.
    pub rank: u32,
    /// In which process.
    pub pid: u32,
}

/// A plan as one rank runs it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What it does.
    pub steps: Steps,
    /// Half of what all ranks' buffers hold together, of the call of which this is a window: of a copy, its length. 0 where results are read
    /// again soon, and should stay in a cache.
    pub message: usize,
    /// How many bases the steps use.
    pub bases: usize,
    /// What its runs need of banks.
    pub need: Need,
    /// Distance between runs on every flag.
    pub span: u64,
    /// Every rank's end follows every rank's start.
    pub synchronizing: bool,
    /// `in` and `out` may be one buffer.
    pub in_place: bool,
    /// Scratch bytes.
    pub acc: usize,
    /// Bytes that are combined at a time where operands come from other processes, if any do.
    pub piece: usize,
    /// Bytes of an element.
    pub grain: usize,
    /// What the bases from [`PEERS`] on are.
    pub peers: Box<[Peer]>,
    /// Differs for plans that differ, and is equal on all ranks.
    pub digest: u64,
    /// Runs so far, which the counters' bases follow from.
    pub runs: u64,
}

impl Compiled {
    /// What it takes of memory.
    pub fn bytes(&self) -> usize {
        size_of::<Compiled>() + self.steps.bytes()
    }

    /// Whether it tells others where this rank's buffers are.
    pub fn lends(&self) -> bool {
        self.steps.all.iter().any(|step| matches!(step, Step::SetAddress { .. } | Step::SetPlace { .. }))
    }

    /// The process of whose memory an address is.
    pub fn pid(&self, addr: Addr) -> u32 {
        self.peers[(addr.base - PEERS) as usize].pid
    }

    /// The exchange of payloads, when all that this rank does is to carry `in`, take the peer's, and fold both
    /// into `out`.
    pub fn swap(&self) -> Option<Swap> {
        let [Step::SetBytes { at, home, value, src, len }, Step::WaitBytes { at: other, home: theirs, value: wanted, dst, len: taken, .. }, Step::Fold { a, b, dst: out, .. }] =
            *self.steps.all
        else {
            return None;
        };
        let whole = |addr: Addr, base: u32| addr == Addr { base, offset: 0 };
        let left = whole(a, IN) && b == dst;
        let right = a == dst && whole(b, IN);
        let fits = whole(src, IN) && whole(out, OUT) && len == taken && self.need.generations > 0;
        let swap = Swap { at, home, value, other, theirs, wanted, bytes: len as usize, left };
        (fits && (left || right)).then_some(swap)
    }

    /// The flag to raise and the flag to wait for, when that is all this rank does.
    pub fn exchange(&self) -> Option<Exchange> {
        match *self.steps.all {
            [Step::Set { at, home, value }, Step::Wait { at: other, home: theirs, value: wanted, .. }] => {
                Some(Exchange { at, home, value, other, theirs, wanted })
            }
            _ => None,
        }
    }
}

/// The rank that is compiled for, and the team around it.
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    /// Its number.
    pub rank: usize,
    /// The memory that the team shares.
    pub segment: &'a Segment,
    /// By what plans are chosen, and their banks.
    pub model: &'a Model,
    /// Where ranks sit.
    pub shape: &'a Shape,
    /// It stays on the CPU that the shape names.
    pub held: bool,
    /// Ranks have no addresses in common, so they tell each other places.
    pub places: bool,
    /// It takes the lines of its next run for writing while it waits in this one, where that pays.
    pub ahead: bool,
    /// Sums of 16-bit floats may be rounded once, not after each addition: their bits need not be the same by all algorithms.
    pub rounds_once: bool,
}

/// Resolves one rank's program of a plan for a message, or blocks, of `message` bytes. `counters` is how far the counters' page is used,
/// and grows.
pub fn compile(
    part: &Part,
    message: usize,
    proof: &Proof,
    seat: Seat<'_>,
    counters: &mut usize,
) -> Result<Compiled, Unfit> {
    let plan = &part.plan;
    let Seat { rank, segment, model, shape, held, places, ahead, rounds_once } = seat;
    let geometry = segment.geometry();
    let zones = [BankClass::Small, BankClass::Large].map(|c| geometry.zones(c));
    let near = plan.slots.iter().sum::<usize>() <= small_slots(model, shape);
    let small = |twin| Placement::of(plan, &zones[0], twin).ok().filter(|_| near);
    let twin = proof.synchronizing && part.leaves_room_for_a_generation() && small(true).is_some();
    let (class, placement) = match small(twin) {
        Some(placement) => (BankClass::Small, placement),
        None => (BankClass::Large, Placement::of(plan, &zones[1], false)?),
    };
    let extent = placement.end;
    let stays = plan.reuse == Reuse::Same || twin;
    let slots = extent.saturating_sub(zones[class.index()].slots_start());
    let mut compiler = Compiler {
        plan,
        segment,
        turns: if held { Turns::of(part, shape, rank) } else { Turns::default() },
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
    let steps = if ahead { ahead::insert(steps, &compiler.written()) } else { steps };
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
        piece: if steps.iter().any(|s| matches!(s, Step::FoldReach { .. })) {
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
        runs: 0,
        message: if part.rereads { 0 } else { plan.half_of_all(message) },
        steps: Steps { all: steps, doubles, chains: compiler.chains.into(), cuts: None },
    })
}

struct Compiler<'a> {
    plan: &'a Plan,
    segment: &'a Segment,
    turns: Turns,
    places: bool,
    rank: usize,
    placement: Placement,
    counters: Vec<Option<usize>>,
    /// Peer buffers in the order in which they got bases.
    peers: Vec<Space>,
    /// In whose areas there are flags or slots.
    areas: BTreeSet<u32>,
    /// Sums of all contributions so far.
    chains: Vec<Chain>,
    /// How often each counter is added to in a run.
    adds: &'a HashMap<FlagRef, u32>,
    span: i32,
}

impl Compiler<'_> {
    fn step(&mut self, op: &Op) -> Step {
        match *op {
            Op::Move { src, dst } if self.reaches([src, dst, dst]) => {
                Step::MoveReach { src: self.addr(src), dst: self.addr(dst), len: src.len }
            }
            Op::Fold { a, b, dst } if self.reaches([a, b, dst]) => Step::FoldReach {
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

    /// Whether one of these may be in another process's memory.
    fn reaches(&self, regions: [Region; 3]) -> bool {
        let peer = |r: &Region| matches!(r.space, Space::PeerIn(_) | Space::PeerOut(_));
        self.places && regions.iter().any(|r| peer(r) && !self.near(r.space))
    }

    /// Whether a peer's buffers are in this process.
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

    /// Whose buffer it is.
    fn peer(&self, space: Space) -> Peer {
        let rank = match space {
            Space::PeerIn(Rank(q)) | Space::PeerOut(Rank(q)) => q,
            Space::In | Space::Out | Space::Acc | Space::Slot { .. } => self.rank as u32,
        };
        Peer { space, rank, pid: self.segment.pid(rank as usize) }
    }

    fn wait(&mut self, flag: FlagRef, value: i32, take: Option<Take>) -> Step {
        let (at, home) = (self.flag(flag), self.home(flag));
        if self.plan.flags[flag.array as usize].kind == FlagKind::Counter {
            let each = self.adds.get(&flag).copied().unwrap_or(0);
            return Step::WaitCount { at, home, each, value: value as u32 };
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
        let within = self.plan.flags[array].layout.offset(flag.index as usize, LINE);
        flag.home.index() * self.segment.area_stride() + start + within
    }

    fn home(&self, flag: FlagRef) -> Home {
        Home::of(self.segment, flag.home.index())
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
