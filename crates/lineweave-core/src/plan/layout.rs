//! Places of a plan's flags and slots within a rank's box memory.

use super::{FlagRef, Layout, Plan};
use crate::units::Rank;

/// Offsets of every flag array and slot within the memory that a plan needs at each rank: flags first, each
/// array starting on a line, then the slots, each starting on a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    line: usize,
    arrays: Vec<(usize, Placed)>,
    slots: Vec<usize>,
    flag_bytes: usize,
    total: usize,
}

/// Placement of the flags of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Placed {
    /// As the plan says.
    Layout(Layout),
    /// So many on a line, whatever the plan says.
    PerLine(usize),
}

impl Footprint {
    /// The footprint of `plan` on lines of `line` bytes.
    pub fn of(plan: &Plan, line: usize) -> Footprint {
        Footprint::placed(plan, line, Placed::Layout)
    }

    /// Returns the footprint with `per_line` flags on a line in every array: 1 where a flag is a line that is written as a
    /// whole, 32 where flags are bytes of a line of 32, 256 where they are bits.
    pub fn per_line(plan: &Plan, line: usize, per_line: usize) -> Footprint {
        Footprint::placed(plan, line, |_| Placed::PerLine(per_line.max(1)))
    }

    fn placed(plan: &Plan, line: usize, place: impl Fn(Layout) -> Placed) -> Footprint {
        let mut at = 0;
        let mut arrays = Vec::with_capacity(plan.flags.len());
        for array in &plan.flags {
            let placed = place(array.layout);
            arrays.push((at, placed));
            let lines = match placed {
                Placed::Layout(layout) => layout.lines(array.count, line),
                Placed::PerLine(n) => array.count.div_ceil(n),
            };
            at += lines * line;
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
        let (start, placed) = self.arrays[flag.array as usize];
        let index = flag.index as usize;
        match placed {
            Placed::Layout(layout) => start + layout.offset(index, self.line),
            Placed::PerLine(n) => start + index / n * self.line + index % n * self.line / n,
        }
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

    /// Returns the number of lines of `line` bytes that an array of `count` flags takes.
    pub fn lines(self, count: usize, line: usize) -> usize {
        match self {
            Layout::Packed => (count * 8).div_ceil(line),
            Layout::Paired => count.div_ceil(2),
            Layout::Alone => count,
            Layout::Spread(n) => count * n as usize,
        }
    }
}
