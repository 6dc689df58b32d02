//! A plan: what each rank does, as data.
//!
//! The engine, the checker, the cost evaluator, the simulator and the drawing all read this one type, so
//! nothing about an algorithm is written twice. A plan is a flat list of ops per rank without control flow.
//!
//! # Runs, flags and thresholds
//!
//! A communicator runs plans one after the other, and one plan many times: successive windows of a large
//! message are successive runs. Flags are monotone counters that are never reset. The values in a plan are
//! relative to the run: with `span` the largest value that the plan sets, run `j` sets `base + j*span + n`
//! where the op says `n` (1 ..= span). A wait may name `n <= 0`: it then waits for what the *previous* run of
//! this plan set as `n + span` (and for the run before that below `1 - span`), and is satisfied at once
//! when there was no such run. That is how an acknowledgement is deferred until its slot is needed again.

mod blocks;
mod error;
mod params;
mod flags;
mod home;
mod cut;
mod rename;
mod builder;
mod layout;
mod text;
mod cursor;
mod digest;
mod parse;
mod part;

pub use blocks::{Blocks, Grid, Uneven};
pub use builder::{Builder, FlagArrayId, MAX_OPS};
pub use digest::Digest;
pub use error::PlanError;
pub(crate) use flags::FlagIndex;
pub use flags::{FlagArray, FlagKind, FlagRef, Layout};
pub use home::Home;
pub use layout::Footprint;
pub use params::Params;
pub use part::{follows, Part};
pub(crate) use text::space_text;
pub use text::{move_verb, PlanTextError};

use crate::collective::Collective;
use crate::units::Rank;
use std::ops::Range;

/// A place where bytes live, as the rank that runs the op names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// This rank's input buffer, private.
    In,
    /// This rank's output buffer, private.
    Out,
    /// This rank's scratch memory, private.
    Acc,
    /// A slot of a rank's box, which every rank may read and write.
    Slot {
        /// Rank whose box it is.
        rank: Rank,
        /// Number of the slot in the box.
        slot: u16,
    },
    /// Another rank's input buffer, read directly (`direct` plans, after its address was taken).
    PeerIn(Rank),
    /// Another rank's output buffer, read or written directly (`direct` plans, after its address was taken).
    PeerOut(Rank),
}

impl Space {
    /// Returns whether only the running rank touches it (unless it publishes the address).
    pub fn is_private(self) -> bool {
        matches!(self, Space::In | Space::Out | Space::Acc)
    }
}

/// A run of bytes in one space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Region {
    /// Where.
    pub space: Space,
    /// First byte.
    pub offset: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Region {
    /// The bytes `range` of `space`.
    pub fn new(space: Space, range: Range<usize>) -> Region {
        Region { space, offset: range.start, len: range.end.saturating_sub(range.start) }
    }

    /// One past the last byte.
    pub fn end(&self) -> usize {
        self.offset + self.len
    }

    /// Returns whether two regions have a byte in common.
    pub fn overlaps(&self, other: &Region) -> bool {
        self.space == other.space && self.offset < other.end() && other.offset < self.end()
    }
}

/// Payload that travels in the line of a flag when it is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carry {
    /// A few bytes, copied next to the flag.
    Bytes(Region),
    /// The address of this rank's `in` or `out` buffer (`direct` plans).
    Address(Space),
}

/// Payload that a waiting rank takes out of the line of the flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Take {
    /// A few bytes, copied to here.
    Bytes(Region),
    /// The address of a peer's buffer: [`Space::PeerIn`] or [`Space::PeerOut`], usable from here on.
    Address(Space),
}

/// One step of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Copy `src` to `dst`, of equal length. Printed as `put` when `dst` is in a box or a peer's buffer,
    /// `get` when `src` is another rank's, `copy` when both are private.
    Move {
        /// Read from here.
        src: Region,
        /// Written to here.
        dst: Region,
    },
    /// Combine elementwise: `dst = a (op) b`, with `a` the left operand. `dst` may be `a` or `b` itself.
    Fold {
        /// Left operand.
        a: Region,
        /// Right operand.
        b: Region,
        /// Result.
        dst: Region,
    },
    /// Raise a flag to `value` (1 ..= span), after everything this rank did before is visible.
    Set {
        /// The flag, of kind [`FlagKind::Signal`].
        flag: FlagRef,
        /// Relative to the run.
        value: i32,
        /// Shares the flag's line.
        carry: Option<Carry>,
    },
    /// Wait until a flag has reached `value` (see the module for values below 1).
    Wait {
        /// The flag.
        flag: FlagRef,
        /// Relative to the run.
        value: i32,
        /// Taken from the flag's line.
        take: Option<Take>,
    },
    /// Add to a flag of kind [`FlagKind::Counter`], on which a wait is for all adds of a run.
    Add {
        /// The flag.
        flag: FlagRef,
    },
}

impl Op {
    /// The bytes that the op reads and writes: operands in their order, then the result.
    pub fn regions(mut self) -> impl Iterator<Item = Region> {
        self.places().map(|place| place.copied()).into_iter().flatten()
    }

    /// [`Op::regions`], to be changed.
    pub fn regions_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Region> {
        self.places().into_iter().flatten()
    }

    fn places(&mut self) -> [Option<&mut Region>; 3] {
        match self {
            Op::Move { src, dst } => [Some(src), Some(dst), None],
            Op::Fold { a, b, dst } => [Some(a), Some(b), Some(dst)],
            Op::Set { carry: Some(Carry::Bytes(r)), .. } | Op::Wait { take: Some(Take::Bytes(r)), .. } => {
                [Some(r), None, None]
            }
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => [None, None, None],
        }
    }
}

/// Rule that makes it safe to run another plan, or this one again, without waiting for everybody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reuse {
    /// The plan itself orders each write of a slot or payload after the last run's reads: runs follow each
    /// other in the same memory.
    Same,
    /// Each run takes the next bank of a ring; the engine enters a bank only when every rank has left it.
    Ring,
}

/// Ops of each rank for one window of one collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Collective that the plan implements.
    pub collective: Collective,
    /// Name of the algorithm, without the collective's.
    pub algorithm: String,
    /// The parameters it was made with.
    pub params: Params,
    /// Number of ranks.
    pub ranks: usize,
    /// The root of a rooted collective, rank 0 otherwise.
    pub root: Rank,
    /// Length of the message (of the window, when a message is longer); of the longest block, where ranks exchange
    /// blocks.
    pub bytes: usize,
    /// Lengths of the blocks, and their places in buffers that hold one for each rank.
    pub blocks: Blocks,
    /// Size of an element: region boundaries of folds are multiples of it.
    pub grain: usize,
    /// Sizes of the slots in every rank's box.
    pub slots: Vec<usize>,
    /// Flag arrays at every rank.
    pub flags: Vec<FlagArray>,
    /// Bytes of scratch every rank needs.
    pub acc: usize,
    /// Rule by which runs follow each other.
    pub reuse: Reuse,
    /// True if ranks read or write each other's private buffers.
    pub direct: bool,
    /// The ops of each rank.
    pub programs: Vec<Vec<Op>>,
}

/// Bytes between two generations of flags on a line: a flag and a payload of one word.
pub const GENERATION: usize = 16;

impl Plan {
    /// The largest value that any op sets; at least 1. Runs are this far apart on every flag.
    pub fn span(&self) -> i32 {
        self.ops().map(|(_, op)| if let Op::Set { value, .. } = op { *value } else { 1 }).max().unwrap_or(1)
    }

    /// Returns whether another plan of the same problem has the same ops on the same memory, whatever made it and however its arrays are called.
    pub fn runs_as(&self, other: &Plan) -> bool {
        let alike =
            |(a, b): (&FlagArray, &FlagArray)| (a.kind, a.layout, a.count) == (b.kind, b.layout, b.count);
        (self.acc, self.reuse, self.direct) == (other.acc, other.reuse, other.direct)
            && self.slots == other.slots
            && self.flags.len() == other.flags.len()
            && self.flags.iter().zip(&other.flags).all(alike)
            && self.programs == other.programs
    }

    /// Returns whether a flag is a counter.
    pub fn is_counter(&self, flag: FlagRef) -> bool {
        self.flags[flag.array as usize].kind == FlagKind::Counter
    }

    /// Returns whether flags and payloads leave room on their lines for a second generation of them, so that consecutive runs ride on the same
    /// transfers. The engine lays them out so where the plan synchronises.
    pub fn leaves_room_for_a_generation(&self) -> bool {
        let carried = |(_, op): (Rank, &Op)| match op {
            Op::Set { carry: Some(Carry::Bytes(region)), .. } => region.len,
            Op::Set { .. } | Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } | Op::Add { .. } => 0,
        };
        self.leaves_room_beside(self.ops().map(carried).max().unwrap_or(0))
    }

    /// As [`Plan::leaves_room_for_a_generation`], for a plan whose flags carry at most `carried` bytes.
    fn leaves_room_beside(&self, carried: usize) -> bool {
        let paired = |a: &FlagArray| a.layout == Layout::Paired && a.kind == FlagKind::Signal;
        self.reuse == Reuse::Ring
            && self.slots.iter().all(|&size| size == 0)
            && self.flags.iter().all(paired)
            && carried <= GENERATION - 8
    }

    /// Every op with the rank that runs it.
    pub fn ops(&self) -> impl Iterator<Item = (Rank, &Op)> {
        self.programs.iter().enumerate().flat_map(|(r, ops)| ops.iter().map(move |op| (Rank::from(r), op)))
    }

    /// Returns the grid of the buffers, which gives the place of each block.
    pub fn grid(&self) -> Grid<'_> {
        Grid {
            collective: self.collective,
            ranks: self.ranks,
            root: self.root.index(),
            bytes: self.bytes,
            blocks: &self.blocks,
        }
    }

    /// `collective/algorithm`, as listings and records name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.collective, self.algorithm)
    }
}
