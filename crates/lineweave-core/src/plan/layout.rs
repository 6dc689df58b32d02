//! Where a plan's flags and slots lie within a rank's box memory.

use super::{FlagRef, Layout, Plan};
use crate::units::Rank;

/// Offsets of every flag array and slot within the memory that a plan needs at each rank: flags first, each
/// array starting on a line, then the slots, each starting on a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    line: usize,
    arrays: Vec<(usize, Layout)>,
    slots: Vec<usize>,
    flag_bytes: usize,
    total: usize,
}

impl Footprint {
    /// The footprint of `plan` on lines of `line` bytes.
    pub fn of(plan: &Plan, line: usize) -> Footprint {
        let mut at = 0;
        let mut arrays = Vec::with_capacity(plan.flags.len());
        for array in &plan.flags {
            arrays.push((at, array.layout));
            at += array.layout.lines(array.count, line) * line;
        }
        let flag_bytes = at;
        let mut slots = Vec::with_capacity(plan.slots.len());
        for &size in &plan.slots {
            slots.push(at);
            at += size.div_ceil(line) * line;
        }
        Footprint { line, arrays, slots, flag_bytes, total: at }
    }

    /// Byte offset of a flag within its home's memory.
    pub fn flag(&self, flag: FlagRef) -> usize {
        let (start, layout) = self.arrays[flag.array as usize];
        let index = flag.index as usize;
        start + layout.offset(index, self.line)
    }

    /// The line a flag lies on: its home and the line's number there.
    pub fn flag_line(&self, flag: FlagRef) -> (Rank, usize) {
        (flag.home, self.flag(flag) / self.line)
    }

    /// Byte offset of a slot within its owner's memory.
    pub fn slot(&self, slot: u16) -> usize {
        self.slots[slot as usize]
    }

    /// Bytes of flags at each rank.
    pub fn flag_bytes(&self) -> usize {
        self.flag_bytes
    }

    /// Bytes of flags and slots at each rank.
    pub fn total(&self) -> usize {
        self.total
    }
}

impl Layout {
    /// Byte offset of flag `index` within its array, on lines of `line` bytes.
    pub fn offset(self, index: usize, line: usize) -> usize {
        match self {
            Layout::Packed => index * 8,
            Layout::Paired => index / 2 * line + index % 2 * (line / 2),
            Layout::Alone => index * line,
            Layout::Spread(n) => index * n as usize * line,
        }
    }

    /// How many lines of `line` bytes an array of `count` flags takes.
    pub fn lines(self, count: usize, line: usize) -> usize {
        match self {
            Layout::Packed => (count * 8).div_ceil(line),
            Layout::Paired => count.div_ceil(2),
            Layout::Alone => count,
            Layout::Spread(n) => count * n as usize,
        }
    }
}
