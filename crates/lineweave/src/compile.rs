//! Turning one rank's part of a plan into steps with resolved addresses.
//!
//! # Two generations on a line
//!
//! A plan that synchronises and takes a bank a run needs only two banks: when a rank enters run `r + 2`, it has
//! seen every rank enter run `r + 1`, and so leave run `r`. If its flags are paired and carry at most 8 bytes, both
//! banks fit the same lines: flag and payload of even runs in the first words of each half line, those of odd
//! runs behind them. Then the plan stays where it is, and consecutive runs ride on one line's transfers: a
//! two-rank allreduce of 8 bytes then took about half as long in an empty loop (see docs/findings.md).

use crate::segment::{BankClass, Segment, Zones, COUNTER_BYTES};
use crate::sync::AtomicU64;
use lineweave_core::plan::{
    Carry, FlagArray, FlagKind, FlagRef, Layout, Op, Plan, Region, Reuse, Space, Take,
};
use lineweave_core::units::{Rank, LINE};
use lineweave_core::verify::Proof;

/// An address relative to one of the bases of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addr {
    /// Index into the bases: [`IN`], [`OUT`], [`ACC`], [`BANK`], then one for each peer buffer used.
    pub base: u32,
    /// Bytes from there.
    pub offset: usize,
}

/// The count of sleepers at a flag's home, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home(*const AtomicU64);

impl Home {
    /// The home of rank `rank`'s flags in a segment that outlives every use of this value.
    pub fn of(segment: &Segment, rank: usize) -> Home {
        Home(segment.sleepers(rank))
    }

    /// The count.
    #[inline(always)]
    pub fn sleepers<'a>(self) -> &'a AtomicU64 {
        // SAFETY: the communicator that compiled the step keeps its segment mapped for as long as it runs it.
        unsafe { &*self.0 }
    }
}

/// Base of the input buffer.
pub const IN: u32 = 0;
/// Base of the output buffer.
pub const OUT: u32 = 1;
/// Base of the scratch memory.
pub const ACC: u32 = 2;
/// Base of the bank: rank 0's part of it.
pub const BANK: u32 = 3;
/// First base of peers' buffers.
pub const PEERS: u32 = 4;
/// Bytes that are combined at a time where operands are copied first: they stay in a first-level cache.
const PIECE: usize = 8192;

/// One step. `at` is a flag's offset from the bank's base (for counters: from the counters' base), `home`
/// counts who sleeps on flags there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Copy bytes.
    Move { src: Addr, dst: Addr, len: usize },
    /// Copy bytes from or to a buffer that may be another process's.
    MoveReach { src: Addr, dst: Addr, len: usize },
    /// Combine elements, some of which may be in another process.
    FoldReach { a: Addr, b: Addr, dst: Addr, elements: usize },
    /// Combine elements: `dst = a (op) b`.
    Fold { a: Addr, b: Addr, dst: Addr, elements: usize },
    /// Raise a flag.
    Set { at: usize, home: Home, value: u32 },
    /// Store a payload beside a flag and raise it.
    SetBytes { at: usize, home: Home, value: u32, src: Addr, len: u32 },
    /// Store the address of a buffer beside a flag and raise it.
    SetAddress { at: usize, home: Home, value: u32, base: u32 },
    /// Store where a buffer is in shared memory beside a flag and raise it.
    SetPlace { at: usize, home: Home, value: u32, base: u32 },
    /// Wait for a value of this run.
    Wait { at: usize, home: Home, value: u32 },
    /// Wait for what the run `lag` runs ago set (`below` less than this run's base), if there was one.
    WaitEarlier { at: usize, home: Home, below: u32, lag: u32 },
    /// Wait and copy the payload.
    WaitBytes { at: usize, home: Home, value: u32, dst: Addr, len: u32 },
    /// Wait and take the address of a peer's buffer.
    WaitAddress { at: usize, home: Home, value: u32, base: u32 },
    /// Wait and take where a peer's buffer is in shared memory.
    WaitPlace { at: usize, home: Home, value: u32, base: u32, near: bool },
    /// Add one to a counter.
    Add { at: usize, home: Home },
    /// Wait for a counter: `each` adds a run, `value` of this one.
    WaitCount { at: usize, home: Home, each: u32, value: u32 },
}

/// A plan as one rank runs it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The steps, in order.
    pub steps: Box<[Step]>,
    /// How many bases the steps use.
    pub bases: usize,
    /// Runs follow each other in one bank.
    pub stays: bool,
    /// Bytes between the two generations of flags that successive runs alternate between, or 0.
    pub generations: usize,
    /// Which ring.
    pub class: BankClass,
    /// Distance between runs on every flag.
    pub span: u64,
    /// Every rank's end follows every rank's start.
    pub synchronizing: bool,
    /// `in` and `out` may be one buffer.
    pub in_place: bool,
    /// Bytes of a bank that it uses, from the bank's start.
    pub extent: usize,
    /// It has counters.
    pub counts: bool,
    /// Scratch bytes.
    pub acc: usize,
    /// Bytes that are combined at a time where operands come from other processes, if any do.
    pub piece: usize,
    /// Bytes of an element.
    pub grain: usize,
    /// Ranks and processes whose buffers the bases from [`PEERS`] on are.
    pub peers: Box<[(u32, u32)]>,
    /// Runs so far, which the counters' bases follow from.
    pub runs: u64,
}

impl Compiled {
    /// The process of whose memory an address is.
    pub fn pid(&self, addr: Addr) -> u32 {
        self.peers[(addr.base - PEERS) as usize].1
    }

    /// The exchange of payloads, when all that this rank does is to carry `in`, take the peer's, and fold both
    /// into `out`.
    pub fn swap(&self) -> Option<Swap> {
        let [Step::SetBytes { at, home, value, src, len }, Step::WaitBytes { at: other, home: theirs, value: wanted, dst, len: taken }, Step::Fold { a, b, dst: out, .. }] =
            *self.steps
        else {
            return None;
        };
        let whole = |addr: Addr, base: u32| addr == Addr { base, offset: 0 };
        let left = whole(a, IN) && b == dst;
        let right = a == dst && whole(b, IN);
        let fits = whole(src, IN) && whole(out, OUT) && len == taken && self.generations > 0;
        let swap = Swap { at, home, value, other, theirs, wanted, bytes: len as usize, left };
        (fits && (left || right)).then_some(swap)
    }

    /// The flag to raise and the flag to wait for, when that is all this rank does.
    pub fn exchange(&self) -> Option<Exchange> {
        match *self.steps {
            [Step::Set { at, home, value }, Step::Wait { at: other, home: theirs, value: wanted }] => {
                Some(Exchange { at, home, value, other, theirs, wanted })
            }
            _ => None,
        }
    }
}

/// A plan that swaps one payload and folds it: the small allreduce of two ranks.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    /// The flag to raise.
    pub at: usize,
    /// Its home.
    pub home: Home,
    /// To this, in this run.
    pub value: u32,
    /// The flag to wait for.
    pub other: usize,
    /// Its home.
    pub theirs: Home,
    /// Until it is this, in this run.
    pub wanted: u32,
    /// Payload in bytes: the whole message.
    pub bytes: usize,
    /// Whether this rank's contribution is the left operand.
    pub left: bool,
}

/// A plan that only raises one flag and waits for another: the two-rank barrier.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The flag to raise.
    pub at: usize,
    /// Its home.
    pub home: Home,
    /// To this, in this run.
    pub value: u32,
    /// The flag to wait for.
    pub other: usize,
    /// Its home.
    pub theirs: Home,
    /// Until it is this, in this run.
    pub wanted: u32,
}

/// Why a proven plan cannot be compiled for a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Slots need more than a bank holds.
    Slots { need: usize, have: usize },
    /// Flags of a layout need more than a bank holds.
    Flags { layout: Layout, need: usize, have: usize },
    /// Counters need more than is left of their page.
    Counters { need: usize, have: usize },
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Slots { need, have } => {
                write!(f, "its slots need {need} bytes at each rank and a bank holds {have}; raise LINEWEAVE_BOX_BYTES")
            }
            Unfit::Flags { layout, need, have } => {
                write!(f, "its {layout} flags need {need} bytes at each rank and a bank holds {have}")
            }
            Unfit::Counters { need, have } => {
                write!(f, "it needs {need} bytes of counters and {have} are left on this communicator")
            }
        }
    }
}

/// Resolves `rank`'s program. Ranks that have no addresses in common tell each other `places`. `counters` is how far the counters' page is used, and grows.
pub fn compile(
    plan: &Plan,
    proof: &Proof,
    rank: usize,
    segment: &Segment,
    places: bool,
    counters: &mut usize,
) -> Result<Compiled, Unfit> {
    let geometry = segment.geometry();
    let zones = [BankClass::Small, BankClass::Large].map(|c| geometry.zones(c));
    let twin = proof.synchronizing && can_twin(plan) && Placement::of(plan, &zones[0], true).is_ok();
    let (class, placement) = match Placement::of(plan, &zones[0], twin) {
        Ok(placement) => (BankClass::Small, placement),
        Err(_) => (BankClass::Large, Placement::of(plan, &zones[1], false)?),
    };
    let extent = placement.end;
    let mut compiler = Compiler {
        plan,
        segment,
        places,
        rank,
        placement,
        counters: counter_offsets(plan, counters)?,
        peers: Vec::new(),
        span: plan.span(),
    };
    let steps: Box<[Step]> = plan.programs[rank].iter().map(|op| compiler.step(op)).collect();
    Ok(Compiled {
        bases: PEERS as usize + compiler.peers.len(),
        piece: if steps.iter().any(|s| matches!(s, Step::FoldReach { .. })) {
            PIECE.max(plan.grain)
        } else {
            0
        },
        grain: plan.grain.max(1),
        peers: compiler.peers.iter().map(|&space| compiler.owner(space)).collect(),
        stays: plan.reuse == Reuse::Same || twin,
        generations: if twin { GENERATION } else { 0 },
        class,
        span: plan.span() as u64,
        synchronizing: proof.synchronizing,
        in_place: proof.in_place,
        extent,
        counts: plan.flags.iter().any(|array| array.kind == FlagKind::Counter),
        acc: plan.acc,
        runs: 0,
        steps,
    })
}

/// Bytes between the generations: a flag and a payload of one word.
const GENERATION: usize = 16;

/// Whether a plan's flags and payloads leave room for a second generation on their lines.
fn can_twin(plan: &Plan) -> bool {
    let paired = |a: &FlagArray| a.layout == Layout::Paired && a.kind == FlagKind::Signal;
    let small = |op: &Op| match op {
        Op::Set { carry: Some(Carry::Bytes(region)), .. } => region.len <= GENERATION - 8,
        Op::Set { .. } | Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } | Op::Add { .. } => true,
    };
    plan.reuse == Reuse::Ring
        && plan.slots.iter().all(|&size| size == 0)
        && plan.flags.iter().all(paired)
        && plan.ops().all(|(_, op)| small(op))
}

/// Where a plan's flag arrays and slots start within a bank.
struct Placement {
    arrays: Vec<usize>,
    slots: Vec<usize>,
    /// Where the last of them ends.
    end: usize,
}

impl Placement {
    fn of(plan: &Plan, zones: &Zones, twin: bool) -> Result<Placement, Unfit> {
        // Bytes used of the zones for packed, paired, and lone flags.
        let mut used = [0usize; 3];
        let mut arrays = Vec::with_capacity(plan.flags.len());
        let mut end = 0;
        for array in &plan.flags {
            let (start, have) = if twin { zones.twin_flags() } else { zones.flags(array.layout) };
            let zone = match array.layout {
                Layout::Packed => 0,
                Layout::Paired => 1,
                Layout::Alone | Layout::Spread(_) => 2,
            };
            arrays.push(start + used[zone]);
            if array.kind == FlagKind::Signal {
                used[zone] += array.layout.lines(array.count, LINE) * LINE;
                end = end.max(start + used[zone]);
            }
            if used[zone] > have {
                return Err(Unfit::Flags { layout: array.layout, need: used[zone], have });
            }
        }
        let mut at = 0;
        let mut slots = Vec::with_capacity(plan.slots.len());
        for size in &plan.slots {
            slots.push(zones.slots_start() + at);
            at += size.next_multiple_of(LINE);
        }
        if at > zones.slots {
            return Err(Unfit::Slots { need: at, have: zones.slots });
        }
        if at > 0 {
            end = zones.slots_start() + at;
        }
        Ok(Placement { arrays, slots, end })
    }
}

/// Start of each counter array within the counters' page; signal arrays have none.
fn counter_offsets(plan: &Plan, used: &mut usize) -> Result<Vec<Option<usize>>, Unfit> {
    let mut at = *used;
    let mut offsets = Vec::with_capacity(plan.flags.len());
    for array in &plan.flags {
        match array.kind {
            FlagKind::Signal => offsets.push(None),
            FlagKind::Counter => {
                offsets.push(Some(at));
                at += array.layout.lines(array.count, LINE) * LINE;
            }
        }
    }
    if at > COUNTER_BYTES {
        return Err(Unfit::Counters { need: at - *used, have: COUNTER_BYTES - *used });
    }
    *used = at;
    Ok(offsets)
}

struct Compiler<'a> {
    plan: &'a Plan,
    segment: &'a Segment,
    places: bool,
    rank: usize,
    placement: Placement,
    counters: Vec<Option<usize>>,
    /// Peer buffers in the order in which they got bases.
    peers: Vec<Space>,
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

    /// Whether one of these may be in another process's memory.
    fn reaches(&self, regions: [Region; 3]) -> bool {
        let peer = |r: &Region| matches!(r.space, Space::PeerIn(_) | Space::PeerOut(_));
        self.places && regions.iter().any(|r| peer(r) && !self.near(r.space))
    }

    /// Whether a peer's buffers are in this process.
    fn near(&self, space: Space) -> bool {
        let (owner, _) = self.owner(space);
        self.segment.process(owner as usize) == self.segment.process(self.rank)
    }

    /// Whose buffer it is: rank and process.
    fn owner(&self, space: Space) -> (u32, u32) {
        let owner = match space {
            Space::PeerIn(Rank(q)) | Space::PeerOut(Rank(q)) => q,
            Space::In | Space::Out | Space::Acc | Space::Slot { .. } => self.rank as u32,
        };
        (owner, self.segment.pid(owner as usize))
    }

    fn wait(&mut self, flag: FlagRef, value: i32, take: Option<Take>) -> Step {
        let (at, home) = (self.flag(flag), self.home(flag));
        if self.plan.flags[flag.array as usize].kind == FlagKind::Counter {
            let each =
                self.plan.ops().filter(|(_, op)| matches!(op, Op::Add { flag: f } if *f == flag)).count();
            return Step::WaitCount { at, home, each: each as u32, value: value as u32 };
        }
        if value <= 0 {
            let lag = (-value / self.span + 1) as u32;
            return Step::WaitEarlier { at, home, below: value.unsigned_abs(), lag };
        }
        let value = value as u32;
        match take {
            None => Step::Wait { at, home, value },
            Some(Take::Bytes(region)) => {
                Step::WaitBytes { at, home, value, dst: self.addr(region), len: region.len as u32 }
            }
            Some(Take::Address(space)) => match (self.base(space), self.places) {
                (base, false) => Step::WaitAddress { at, home, value, base },
                (base, true) => Step::WaitPlace { at, home, value, base, near: self.near(space) },
            },
        }
    }

    /// Offset of a flag from the bank's base, or of a counter from the counters' base.
    fn flag(&self, flag: FlagRef) -> usize {
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
