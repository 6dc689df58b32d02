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
mod builder;
mod layout;
mod text;
mod cursor;
mod parse;

pub use blocks::{Blocks, Grid, Uneven};
pub use builder::{Builder, FlagArrayId};
pub use layout::Footprint;
pub use text::{move_verb, PlanTextError};

use crate::collective::Collective;
use crate::units::Rank;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
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
        /// Whose box.
        rank: Rank,
        /// Which slot of it.
        slot: u16,
    },
    /// Another rank's input buffer, read directly (`direct` plans, after its address was taken).
    PeerIn(Rank),
    /// Another rank's output buffer, read or written directly (`direct` plans, after its address was taken).
    PeerOut(Rank),
}

impl Space {
    /// Whether only the running rank touches it (unless it publishes the address).
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

    /// Whether two regions have a byte in common.
    pub fn overlaps(&self, other: &Region) -> bool {
        self.space == other.space && self.offset < other.end() && other.offset < self.end()
    }
}

/// Which cache lines the flags of one array at one home occupy: a parameter, decided by measurement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Layout {
    /// Eight bytes apart: as many on a line as fit. No room for payloads.
    Packed,
    /// Flags 2i and 2i+1 share a line: the two flags of two ranks that exchange. Up to 24 bytes of payload each.
    Paired,
    /// One flag a line. Up to 56 bytes of payload.
    Alone,
    /// One flag every n lines (n >= 2), out of reach of adjacent-line prefetch. Up to 56 bytes of payload.
    Spread(u8),
}

impl Layout {
    /// The most bytes that may share a flag's line on 64-byte lines.
    pub fn payload(self) -> usize {
        match self {
            Layout::Packed => 0,
            Layout::Paired => 24,
            Layout::Alone | Layout::Spread(_) => 56,
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Packed => f.pad("packed"),
            Layout::Paired => f.pad("paired"),
            Layout::Alone => f.pad("alone"),
            Layout::Spread(n) => f.pad(&format!("spread{n}")),
        }
    }
}

impl std::str::FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "packed" => Ok(Layout::Packed),
            "paired" => Ok(Layout::Paired),
            "alone" => Ok(Layout::Alone),
            _ => text
                .strip_prefix("spread")
                .and_then(|n| n.parse::<u8>().ok())
                .filter(|&n| n >= 2)
                .map(Layout::Spread)
                .ok_or_else(|| {
                    format!("unknown flag layout `{text}`: expected packed, paired, alone or spread2 .. spread255")
                }),
        }
    }
}

/// How a flag array is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlagKind {
    /// One writer stores growing values.
    Signal,
    /// Any rank adds one atomically. Thresholds count the adds of this run.
    Counter,
}

/// An array of flags that every rank is home to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlagArray {
    /// Name in the text form.
    pub name: String,
    /// How it is written.
    pub kind: FlagKind,
    /// Which lines it occupies.
    pub layout: Layout,
    /// Flags at each home.
    pub count: usize,
}

/// One flag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlagRef {
    /// Index into [`Plan::flags`].
    pub array: u16,
    /// The rank in whose memory its line lives.
    pub home: Rank,
    /// Index in the array.
    pub index: u16,
}

/// What travels in the line of a flag when it is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carry {
    /// A few bytes, copied next to the flag.
    Bytes(Region),
    /// The address of this rank's `in` or `out` buffer (`direct` plans).
    Address(Space),
}

/// What a waiting rank takes out of the line of the flag.
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
    /// Add one to a flag of kind [`FlagKind::Counter`].
    Add {
        /// The flag.
        flag: FlagRef,
    },
}

/// What makes it safe to run another plan, or this one again, without waiting for everybody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reuse {
    /// The plan itself orders each write of a slot or payload after the last run's reads: runs follow each
    /// other in the same memory.
    Same,
    /// Each run takes the next bank of a ring; the engine enters a bank only when every rank has left it.
    Ring,
}

/// Parameters of an algorithm, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(pub BTreeMap<String, String>);

impl Params {
    /// No parameters: every default.
    pub fn new() -> Params {
        Params::default()
    }

    /// These parameters and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Params {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    /// The text of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter of any type that reads itself from text, or its default.
    pub fn read<T: std::str::FromStr>(&self, name: &'static str, default: T) -> Result<T, PlanError>
    where
        T::Err: fmt::Display,
    {
        match self.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|e: T::Err| PlanError::BadParameter {
                name: name.to_owned(),
                value: text.to_owned(),
                expected: e.to_string(),
            }),
        }
    }

    /// A whole number within `range`, or its default.
    pub fn int(&self, name: &'static str, default: usize, range: Range<usize>) -> Result<usize, PlanError> {
        let value = self.read(name, default)?;
        if range.contains(&value) {
            return Ok(value);
        }
        Err(PlanError::BadParameter {
            name: name.to_owned(),
            value: value.to_string(),
            expected: format!("a whole number from {} to {}", range.start, range.end - 1),
        })
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        f.pad(&parts.join(" "))
    }
}

/// What each rank does for one window of one collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What it implements.
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
    /// How long the blocks are and where they lie in buffers that hold one for each rank.
    pub blocks: Blocks,
    /// Size of an element: region boundaries of folds are multiples of it.
    pub grain: usize,
    /// Sizes of the slots in every rank's box.
    pub slots: Vec<usize>,
    /// Flag arrays at every rank.
    pub flags: Vec<FlagArray>,
    /// Bytes of scratch every rank needs.
    pub acc: usize,
    /// How runs follow each other.
    pub reuse: Reuse,
    /// Whether ranks read or write each other's private buffers.
    pub direct: bool,
    /// The ops of each rank.
    pub programs: Vec<Vec<Op>>,
}

impl Plan {
    /// The largest value that any op sets; at least 1. Runs are this far apart on every flag.
    pub fn span(&self) -> i32 {
        self.ops().map(|(_, op)| if let Op::Set { value, .. } = op { *value } else { 1 }).max().unwrap_or(1)
    }

    /// Every op with the rank that runs it.
    pub fn ops(&self) -> impl Iterator<Item = (Rank, &Op)> {
        self.programs.iter().enumerate().flat_map(|(r, ops)| ops.iter().map(move |op| (Rank::from(r), op)))
    }

    /// Whose block lies where.
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

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A communicator has at least one rank.
    #[error("a plan needs at least 1 rank, and 0 were asked for")]
    NoRanks,
    /// More ranks than a plan can name.
    #[error("{ranks} ranks: a plan takes at most {most}")]
    TooManyRanks {
        /// Asked for.
        ranks: usize,
        /// Limit.
        most: usize,
    },
    /// A root that is not a rank.
    #[error("root {root} is out of range: ranks are 0 to {}", ranks - 1)]
    RootOutOfRange {
        /// Asked for.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// A message that is not a whole number of elements.
    #[error("{bytes} bytes are not a whole number of {grain}-byte elements")]
    Ragged {
        /// Message length.
        bytes: usize,
        /// Element size.
        grain: usize,
    },
    /// Blocks that do not fit the collective or the message.
    #[error("{0}")]
    Blocks(String),
    /// A parameter with a value it cannot take.
    #[error("parameter {name}={value}: expected {expected}")]
    BadParameter {
        /// Name.
        name: String,
        /// Value found.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// A parameter the algorithm does not have.
    #[error("{algorithm} has no parameter `{name}`: it takes {known}")]
    UnknownParameter {
        /// `collective/algorithm`.
        algorithm: String,
        /// Name found.
        name: String,
        /// Names it has.
        known: String,
    },
    /// No such algorithm.
    #[error("no algorithm `{name}` for {collective}: there are {known}")]
    UnknownAlgorithm {
        /// For this collective.
        collective: Collective,
        /// Name found.
        name: String,
        /// Names there are.
        known: String,
    },
    /// The algorithm does not fit this problem.
    #[error("{algorithm} does not apply: {why}")]
    NotApplicable {
        /// `collective/algorithm`.
        algorithm: String,
        /// In words.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_name_what_was_expected() {
        let params = Params::new().with("k", 0);
        let error = params.int("k", 2, 1..64).unwrap_err();
        assert_eq!(error.to_string(), "parameter k=0: expected a whole number from 1 to 63");
        assert!(Params::new().with("k", "x").int("k", 2, 1..64).is_err());
    }

    #[test]
    fn layouts_round_trip() {
        for layout in [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(5)] {
            assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
        }
        assert!("spread1".parse::<Layout>().is_err());
    }
}
