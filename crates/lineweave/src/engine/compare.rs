//! Finding mismatched calls before data moves (`LINEWEAVE_CHECK=1`, and builds with debug assertions).
//!
//! 1. Each rank stores what it calls in the check line of its control page for this call's parity, and then
//!    the call's number in the line's first word.
//! 2. Each rank waits for every other rank's number, and compares.
//!
//! A line is stored again two calls later. By then its owner has passed step 2 of the next call, so every
//! other rank has stored that call's line, and so has finished comparing this one.

use super::nonblocking::Comparison;
use super::run::{Mode, Stop};
use super::state::Engine;
use crate::call::{fingerprint, CallSpec, OPERATOR, REPRODUCIBLE, WORDS};
use crate::error::Error;
use crate::sync::Ordering;

impl Engine {
    /// Compares this rank's call with every other rank's, with the lengths of its blocks where they differ.
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming both ranks and calls; also what a wait can end with.
    pub(super) fn compare(&mut self, call: &CallSpec, lengths: &[usize]) -> Result<(), Error> {
        let mut comparison = self.announce(call, lengths);
        self.compare_on(&mut comparison, Mode::Block).map_err(Stop::into_error)
    }

    /// Announces this rank's call (step 1).
    pub(super) fn announce(&self, call: &CallSpec, lengths: &[usize]) -> Comparison {
        let (rank, sequence) = (self.rank, self.calls.sequence);
        let mut mine = call.words(fingerprint(lengths));
        if self.selector.reproducible && call.operator.is_some() {
            mine[OPERATOR] |= REPRODUCIBLE;
        }
        for (word, value) in self.segment.check(rank, sequence)[1..].iter().zip(mine) {
            // Relaxed: published by the raise of the first word.
            word.store(value, Ordering::Relaxed);
        }
        self.raise_word(|s| s.check(rank, sequence)[0], rank, sequence);
        Comparison { mine, next: 0 }
    }

    /// Compares with the other ranks (step 2): with all, or with those that have announced theirs.
    pub(super) fn compare_on(&mut self, comparison: &mut Comparison, mode: Mode) -> Result<(), Stop> {
        let (rank, sequence) = (self.rank, self.calls.sequence);
        while comparison.next < self.ranks() {
            let other = comparison.next;
            if other != rank {
                let announced = |engine: &mut Engine, mode| {
                    engine.await_word(|s| s.check(other, sequence)[0], other, sequence, mode)
                };
                let waited = announced(self, mode);
                // Since this rank looked last, the other one may have announced its call, compared it with this one's, and failed.
                if waited.is_ok() || announced(self, Mode::Poll).is_ok() {
                    self.compare_with(&comparison.mine, other)?;
                }
                waited?;
            }
            comparison.next += 1;
        }
        Ok(())
    }

    fn compare_with(&mut self, mine: &[u64; WORDS], other: usize) -> Result<(), Error> {
        let (rank, sequence) = (self.rank, self.calls.sequence);
        let words = self.segment.check(other, sequence);
        // Relaxed: ordered by the wait before.
        let theirs: [u64; WORDS] = std::array::from_fn(|i| words[i + 1].load(Ordering::Relaxed));
        if theirs == *mine {
            return Ok(());
        }
        let (call, other_call) = (CallSpec::describe(*mine), CallSpec::describe(theirs));
        let error = Error::Mismatch { sequence, rank, call, other, other_call };
        self.poison(&error);
        Err(error)
    }
}
