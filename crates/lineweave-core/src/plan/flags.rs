//! Flags, and the lines that they occupy.

use super::{Op, Plan};
use crate::units::Rank;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Cache lines that the flags of one array at one home occupy: a parameter, decided by measurement.
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

/// Kind of writes to a flag array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FlagKind {
    /// One writer stores growing values.
    Signal,
    /// Any rank adds to it atomically, and waits are for all adds of this run. It has two words side by side, which runs use by
    /// turns: the adds of the next run never hide those of this one from a rank that looks late.
    Counter,
}

/// An array of flags that every rank is home to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlagArray {
    /// Name in the text form.
    pub name: String,
    /// Kind of writes to the array.
    pub kind: FlagKind,
    /// Lines that the array occupies.
    pub layout: Layout,
    /// Flags at each home.
    pub count: usize,
}

impl FlagArray {
    /// Returns how many places of its layout each flag takes: a counter's second word has no room beside the first where flags are packed.
    fn places(&self) -> usize {
        1 + usize::from(self.kind == FlagKind::Counter && self.layout == Layout::Packed)
    }

    /// Returns the byte offset of a flag from the start of the array, on lines of `line` bytes.
    pub fn offset(&self, index: usize, line: usize) -> usize {
        self.layout.offset(index * self.places(), line)
    }

    /// Returns how many bytes it takes at each home.
    pub fn bytes(&self, line: usize) -> usize {
        self.layout.lines(self.count * self.places(), line) * line
    }
}

/// One flag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlagRef {
    /// Index into [`Plan::flags`](super::Plan::flags).
    pub array: u16,
    /// The rank in whose memory its line lives.
    pub home: Rank,
    /// Index in the array.
    pub index: u16,
}

/// Dense numbers for the flags that a plan uses: `array base + home * used + index`.
pub(crate) struct FlagIndex {
    bases: Vec<usize>,
    used: Vec<usize>,
    pub(crate) total: usize,
}

impl FlagIndex {
    pub(crate) fn new(plan: &Plan) -> FlagIndex {
        // What is declared and never named takes no room, however much a file declares.
        let mut used = vec![0; plan.flags.len()];
        for (_, op) in plan.ops() {
            if let Op::Set { flag, .. } | Op::Wait { flag, .. } | Op::Add { flag } = op {
                if let Some(n) = used.get_mut(flag.array as usize) {
                    *n = (flag.index as usize + 1).max(*n);
                }
            }
        }
        let mut total = 0;
        let mut bases = Vec::with_capacity(used.len());
        for n in &used {
            bases.push(total);
            total += n * plan.ranks;
        }
        FlagIndex { bases, used, total }
    }

    pub(crate) fn of(&self, flag: FlagRef) -> usize {
        let array = flag.array as usize;
        self.bases[array] + flag.home.index() * self.used[array] + flag.index as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_round_trip() {
        for layout in [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(5)] {
            assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout));
        }
        assert!("spread1".parse::<Layout>().is_err());
    }

    #[test]
    fn words_of_counters_do_not_overlap() {
        for layout in [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)] {
            let array = FlagArray { name: "n".to_owned(), kind: FlagKind::Counter, layout, count: 20 };
            let offsets: Vec<usize> = (0..20).map(|i| array.offset(i, 64)).collect();
            assert!(offsets.windows(2).all(|pair| pair[1] - pair[0] >= 16), "{layout}: {offsets:?}");
            assert!(offsets[19] + 16 <= array.bytes(64), "{layout}");
        }
    }
}
