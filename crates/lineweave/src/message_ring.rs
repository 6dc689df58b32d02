//! The ring of cells that one rank's messages to another go through.
//!
//! Protocol, for a ring of `k` cells with one sender and one receiver:
//!
//! 1. The sender fills cell `n mod k` as its cell number `n` when it has seen `taken` at `n + 1 - k` or above.
//! 2. It raises `sent` to `n + 1`.
//! 3. The receiver that has seen `sent` at `n + 1` reads the cell, and what the cell says about the sender's memory.
//! 4. It raises `taken` to `n + 1`.
//!
//! Proof sketch: a cell is filled again, as number `n + k`, only after `taken` was seen at `n + 1`, which follows its
//! being read; and what is read was published by step 2. Both counts grow alone and are flags like any other, so both
//! sides can sleep on them. A sender that gave the address of its buffer may change the buffer when `taken` has passed
//! the cell that did.

use crate::flag;
use crate::sync::AtomicU64;

/// The sender's end.
#[derive(Clone, Debug)]
pub struct SendEnd {
    cells: u64,
    sent: u64,
}

/// The receiver's end.
#[derive(Clone, Debug)]
pub struct RecvEnd {
    cells: u64,
    taken: u64,
}

impl SendEnd {
    /// Makes the end of a ring of `cells` cells, at least one.
    pub fn new(cells: u64) -> SendEnd {
        SendEnd { cells, sent: 0 }
    }

    /// Returns the value that `taken` must have reached before the next cell may be filled (step 1).
    pub fn needs(&self) -> u64 {
        (self.sent + 1).saturating_sub(self.cells)
    }

    /// Returns the value that `taken` must have reached before the next `cells` cells may be filled.
    pub fn needs_for(&self, cells: u64) -> u64 {
        (self.sent + cells).saturating_sub(self.cells)
    }

    /// The cell that was sent last.
    pub fn last(&self) -> usize {
        (self.sent.saturating_sub(1) % self.cells) as usize
    }

    /// Returns whether the next cell may be filled.
    pub fn is_free(&self, taken: &AtomicU64) -> bool {
        flag::reached(taken, self.needs())
    }

    /// The next cell.
    pub fn cell(&self) -> usize {
        (self.sent % self.cells) as usize
    }

    /// Counts the cell as sent and returns what to raise `sent` to (step 2), which is also what `taken` is when the
    /// receiver is done with it.
    pub fn advance(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }
}

impl RecvEnd {
    /// Makes the end of a ring of `cells` cells, at least one.
    pub fn new(cells: u64) -> RecvEnd {
        RecvEnd { cells, taken: 0 }
    }

    /// Returns the value that `sent` must have reached before the next cell may be read (step 3).
    pub fn needs(&self) -> u64 {
        self.taken + 1
    }

    /// Returns whether the next cell may be read.
    pub fn is_there(&self, sent: &AtomicU64) -> bool {
        flag::reached(sent, self.needs())
    }

    /// The next cell.
    pub fn cell(&self) -> usize {
        (self.taken % self.cells) as usize
    }

    /// Counts the cell as taken and returns what to raise `taken` to (step 4).
    pub fn advance(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }
}
