//! Buffers in pieces that no access cuts, so that the bytes of one have one history.

use super::numbers::{number, Numbers};
use crate::plan::Region;
use crate::units::Rank;
use std::ops::Range;

/// Bytes of a buffer, as some of the pieces that no access cuts, of all buffers of a bank.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Access {
    /// The first of them.
    pub first: u32,
    /// Number of pieces.
    pub count: u32,
}

impl Access {
    /// As indices, where the pieces of its bank begin at `bank`.
    pub fn range(&self, bank: usize) -> Range<usize> {
        let first = bank + self.first as usize;
        first..first + self.count as usize
    }
}

/// A buffer of a rank.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Its length.
    pub size: usize,
    /// The rank in whose memory it lies.
    pub home: Rank,
}

/// Buffers cut wherever an access begins or ends.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// For each piece of all buffers, the number of its buffer.
    pub of: Vec<u32>,
    /// And how long it is.
    lens: Vec<usize>,
}

impl Pieces {
    /// Each piece: its buffer, and how long it is.
    pub fn iter(&self) -> impl Iterator<Item = (&Buffer, usize)> {
        self.of.iter().zip(&self.lens).map(|(&buffer, &len)| (&self.buffers[buffer as usize], len))
    }

    /// Returns the number of pieces.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// The rank in whose memory an access goes.
    pub fn home(&self, access: Access) -> Rank {
        self.buffers[self.of[access.first as usize] as usize].home
    }
}

/// Buffers of ranks, numbered.
#[derive(Default)]
pub struct Buffers {
    numbers: Numbers<(Rank, u32)>,
    /// Buffers known so far, and their pieces once these are resolved.
    pub cut: Pieces,
    /// For each buffer, the offsets at which its pieces end, not yet in order.
    ends: Vec<Vec<usize>>,
    /// The buffer of all accesses so far, their first byte and the one behind the last.
    asked: Vec<(u32, usize, usize)>,
}

impl Buffers {
    /// An access to bytes of a buffer, whose pieces are not known before [`Buffers::resolve`]: till then its first is the access's number.
    pub fn access(&mut self, rank: Rank, which: u32, size: usize, region: Region) -> Access {
        let buffer = number(&mut self.numbers, (rank, which));
        if buffer as usize == self.ends.len() {
            self.cut.buffers.push(Buffer { size, home: rank });
            self.ends.push(vec![size]);
        }
        self.ends[buffer as usize].extend([region.offset, region.end()]);
        self.asked.push((buffer, region.offset, region.end()));
        Access { first: self.asked.len() as u32 - 1, count: 0 }
    }

    /// Puts the pieces of all buffers in order, once all accesses are known: for each access which they are.
    pub fn resolve(&mut self) -> Vec<Access> {
        let mut before = Vec::with_capacity(self.ends.len());
        for (buffer, ends) in self.ends.iter_mut().enumerate() {
            ends.sort_unstable();
            ends.dedup();
            // Nothing ends where the buffer begins.
            if ends.first() == Some(&0) {
                ends.remove(0);
            }
            before.push(self.cut.of.len());
            self.cut.of.extend(std::iter::repeat_n(buffer as u32, ends.len()));
            let starts = std::iter::once(&0).chain(ends.iter());
            self.cut.lens.extend(starts.zip(ends.iter()).map(|(start, end)| end - start));
        }
        let pieces = |&(buffer, start, end): &(u32, usize, usize)| {
            let ends = &self.ends[buffer as usize];
            let [first, behind] = [start, end].map(|at| ends.partition_point(|&end| end <= at));
            Access { first: (before[buffer as usize] + first) as u32, count: (behind - first) as u32 }
        };
        self.asked.iter().map(pieces).collect()
    }
}
