//! The text form of a plan: printed by `Display`, read by `FromStr` (in [`super::parse`]).
//!
//! One line a thing, so that a diff shows what changed:
//!
//! ```text
//! plan bcast/binomial layout=alone p=2 root=0 bytes=8192 grain=1 acc=0 reuse=ring direct=no slots=8192
//! flags ready alone 1
//! rank 0:
//!   put in[0..8192] -> box@0[0]
//!   set ready@1[0]=1
//! rank 1:
//!   wait ready@1[0]>=1
//!   get box@0[0] -> out[0..8192]
//! end
//! ```
//!
//! - The header names the algorithm, its parameters, then eight fields in this order. `slots=8192x2,64` is two
//!   slots of 8192 bytes and one of 64; `slots=none` is a plan without a box. Where blocks do not simply follow
//!   each other, `pitch=65536` (bytes from the start of one to the next) or `counts=8,0,24` (their lengths) comes
//!   after them, and `lens=8,0,16` where a window covers less of them.
//! - `flags` and `counters` lines: name, layout, flags at each home. Ops name the arrays.
//! - Regions: `in[0..8]`, `out[0..8]`, `acc[0..8]`, `box@3[1][0..8]` (rank 3's slot 1; `box@3[1]` is the
//!   whole slot), and directly `in@3[0..8]`, `out@3[0..8]`.
//! - Ops: `put`, `get`, `copy` (see [`Op::Move`]); `fold a + b -> dst`, where `+` stands for the reduction
//!   operator; `set ready@1[0]=1`, with `carrying in[0..8]` or `carrying &in` (the address);
//!   `wait ready@1[0]>=1`, with `taking out[0..8]` or `taking &in@0`; `add arrivals@0[0]`.
//!   A wait on a counter names how many adds of it a run has.
//! - `;` separates ops on one line, `#` starts a comment, and words that are not plain are quoted as in Rust.
//! - `end` closes the plan, so that a truncated text is not taken for a shorter plan.

use super::{Blocks, Carry, FlagKind, FlagRef, Op, Plan, Region, Reuse, Space, Take};
use std::fmt;

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct PlanTextError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Input that was expected.
    pub expected: String,
    /// Input that was found.
    pub found: String,
}

/// Returns whether a character may stand in an unquoted word of the header.
pub(super) fn plain(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '"' | '#' | ';' | '=' | '\\')
}

/// Returns whether a character may stand in an unquoted name of a flag array.
pub(super) fn plain_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// `text`, quoted when it is empty or has a character that is not plain.
fn word(text: &str, plain: fn(char) -> bool) -> String {
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("\"{}\"", text.escape_default())
    }
}

/// Returns the verb of a transfer: by whether it writes or only reads memory that is not the rank's own.
pub fn move_verb(src: Space, dst: Space) -> &'static str {
    if !dst.is_private() {
        "put"
    } else if !src.is_private() {
        "get"
    } else {
        "copy"
    }
}

impl Plan {
    /// One op as the text form shows it.
    pub fn op_text(&self, op: &Op) -> String {
        let region = |r: &Region| self.region_text(r);
        let flag = |f: FlagRef| self.flag_text(f);
        match op {
            Op::Move { src, dst } => {
                format!("{} {} -> {}", move_verb(src.space, dst.space), region(src), region(dst))
            }
            Op::Fold { a, b, dst } => format!("fold {} + {} -> {}", region(a), region(b), region(dst)),
            Op::Set { flag: f, value, carry } => {
                let carried = match carry {
                    None => String::new(),
                    Some(Carry::Bytes(r)) => format!(" carrying {}", region(r)),
                    Some(Carry::Address(space)) => format!(" carrying &{}", space_text(*space)),
                };
                format!("set {}={value}{carried}", flag(*f))
            }
            Op::Wait { flag: f, value, take } => {
                let taken = match take {
                    None => String::new(),
                    Some(Take::Bytes(r)) => format!(" taking {}", region(r)),
                    Some(Take::Address(space)) => format!(" taking &{}", space_text(*space)),
                };
                format!("wait {}>={value}{taken}", flag(*f))
            }
            Op::Add { flag: f } => format!("add {}", flag(*f)),
        }
    }

    /// A flag as the text form names it; `?n` stands for an array that the plan does not have.
    pub fn flag_text(&self, flag: FlagRef) -> String {
        let name = match self.flags.get(usize::from(flag.array)) {
            Some(array) => word(&array.name, plain_name),
            None => format!("?{}", flag.array),
        };
        format!("{name}@{}[{}]", flag.home, flag.index)
    }

    fn region_text(&self, r: &Region) -> String {
        let space = space_text(r.space);
        match r.space {
            Space::Slot { slot, .. }
                if r.offset == 0 && self.slots.get(usize::from(slot)) == Some(&r.len) =>
            {
                space
            }
            _ => format!("{space}[{}..{}]", r.offset, r.offset.saturating_add(r.len)),
        }
    }
}

/// Returns the place as ops name it.
pub(crate) fn space_text(space: Space) -> String {
    match space {
        Space::In => "in".to_owned(),
        Space::Out => "out".to_owned(),
        Space::Acc => "acc".to_owned(),
        Space::Slot { rank, slot } => format!("box@{rank}[{slot}]"),
        Space::PeerIn(rank) => format!("in@{rank}"),
        Space::PeerOut(rank) => format!("out@{rank}"),
    }
}

/// Slot sizes with runs of equal ones folded: `8192x2,64`.
fn slots_text(slots: &[usize]) -> String {
    if slots.is_empty() {
        return "none".to_owned();
    }
    let runs = slots.chunk_by(|a, b| a == b).map(|run| match run {
        [size] => size.to_string(),
        _ => format!("{}x{}", run[0], run.len()),
    });
    runs.collect::<Vec<_>>().join(",")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}/{}", self.collective, word(&self.algorithm, plain))?;
        for (key, value) in &self.params.0 {
            write!(f, " {}={}", word(key, plain), word(value, plain))?;
        }
        let reuse = match self.reuse {
            Reuse::Same => "same",
            Reuse::Ring => "ring",
        };
        write!(
            f,
            " p={} root={} bytes={} grain={} acc={} reuse={reuse} direct={} slots={}",
            self.ranks,
            self.root,
            self.bytes,
            self.grain,
            self.acc,
            if self.direct { "yes" } else { "no" },
            slots_text(&self.slots)
        )?;
        let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        match &self.blocks {
            Blocks::Dense => {}
            Blocks::Apart(pitch) => write!(f, " pitch={pitch}")?,
            Blocks::Uneven(u) => {
                write!(f, " counts={}", list(u.counts()))?;
                if u.lens() != u.counts() {
                    write!(f, " lens={}", list(u.lens()))?;
                }
            }
        }
        writeln!(f)?;
        for array in &self.flags {
            let kind = match array.kind {
                FlagKind::Signal => "flags",
                FlagKind::Counter => "counters",
            };
            writeln!(f, "{kind} {} {} {}", word(&array.name, plain_name), array.layout, array.count)?;
        }
        for (rank, ops) in self.programs.iter().enumerate() {
            writeln!(f, "rank {rank}:")?;
            for op in ops {
                writeln!(f, "  {}", self.op_text(op))?;
            }
        }
        writeln!(f, "end")
    }
}
