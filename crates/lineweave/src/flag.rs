//! Flags: the one way in which ranks wait for each other.
//!
//! Protocol, for a flag `f` with one writer and a threshold `v`:
//!
//! 1. The writer finishes its reads and writes of shared memory, and stores the payload beside `f`, if any.
//! 2. The writer stores `v` to `f` with release.
//! 3. A reader that loads at least `v` from `f` with acquire sees everything of step 1.
//! 4. The writer wakes sleepers at the flag's home, if the home's count of sleepers is not zero.
//!
//! A *counter* has several writers: they add to it in step 2, in one of two words by turns, and a reader waits for exactly what
//! the adds of its call come to. Each adds its call's mark, an odd number of 64 bits, so `n` adds of the mark `m` come to `n * m`,
//! fewer come to something else, and adds of other marks come to the same by a chance of one in 2^59 or less (among 64 ranks). The checker proves that
//! nobody adds to a word again before all have read it (`lineweave_core::verify`).
//!
//! A reader sleeps only after it has raised the home's count and seen the flag below `v` once more. Between
//! its raise and its look, and between the writer's steps 2 and 4, stands a full fence, so one of them
//! sees the other. Where the kernel offers it, the sleeper pays for both sides with `membarrier`, and the
//! writer's fence is only for the compiler: then setting a flag costs one store and one load.

use crate::signature::COUNT_BITS;
use crate::sync::{fence, AtomicU64, Ordering};

/// Raises a flag (step 2).
#[inline(always)]
pub fn raise(flag: &AtomicU64, value: u64) {
    // SYNC: flag
    flag.store(value, Ordering::Release);
}

/// Adds `mark` to a word of a counter; several ranks may do so at once.
#[inline(always)]
pub fn add(flag: &AtomicU64, mark: u64) {
    // SYNC: flag
    flag.fetch_add(mark, Ordering::AcqRel);
}

/// Returns whether a flag has reached a threshold (step 3).
#[inline(always)]
pub fn reached(flag: &AtomicU64, value: u64) -> bool {
    // SYNC: flag
    flag.load(Ordering::Acquire) >= value
}

/// Goal of a wait: the range of flag values at which the wait ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Goal {
    from: u64,
    /// Most that a flag's value may be above `from`.
    more: u64,
}

impl Goal {
    /// Returns the goal of this value or any above it.
    #[inline(always)]
    pub fn at_least(value: u64) -> Goal {
        Goal { from: value, more: u64::MAX - value }
    }

    /// Returns the goal of this value of a plan's flag, with its call's key in the highest bits, or of a later value of the same call.
    #[inline(always)]
    pub fn of_call(value: u64) -> Goal {
        Goal { from: value, more: (1 << (COUNT_BITS - 1)) - 1 }
    }

    /// Returns the goal of exactly this value of a counter: the sum of all adds of a call, each of which adds the call's mark.
    #[inline(always)]
    pub fn exactly(value: u64) -> Goal {
        Goal { from: value, more: 0 }
    }

    /// Returns whether a flag of this value is at it.
    #[inline(always)]
    pub fn is_met(self, seen: u64) -> bool {
        seen.wrapping_sub(self.from) <= self.more
    }

    /// Returns whether a flag is at it (step 3).
    #[inline(always)]
    pub fn is_reached(self, flag: &AtomicU64) -> bool {
        // SYNC: flag
        self.is_met(flag.load(Ordering::Acquire))
    }
}

/// A flag's value, for a decision to sleep; nothing may be read because of it.
#[inline]
pub fn peek(flag: &AtomicU64) -> u64 {
    // Relaxed: whoever goes on does so by [`reached`].
    flag.load(Ordering::Relaxed)
}

/// Order between the writer's store to a flag and its look at the count of sleepers (step 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeFence {
    /// A fence on every set.
    Full,
    /// Only the compiler's order; sleepers run `membarrier` on every process of the team.
    Membarrier,
}

/// Returns whether anybody may be asleep on a flag at this home (step 4); to be called after [`raise`].
#[inline(always)]
pub fn has_sleepers(sleepers: &AtomicU64, order: WakeFence) -> bool {
    match order {
        // SYNC: sleepers
        WakeFence::Full => fence(Ordering::SeqCst),
        WakeFence::Membarrier => crate::sync::compiler_fence(),
    }
    // Relaxed: ordered after the store by the fence above, or by the sleeper's membarrier.
    sleepers.load(Ordering::Relaxed) != 0
}

/// Announces a sleeper; the caller then looks at the flag again, and sleeps only if it is still low.
#[inline]
pub fn announce_sleeper(sleepers: &AtomicU64, order: WakeFence) {
    // Relaxed: the fence below orders it before the second look at the flag.
    sleepers.fetch_add(1, Ordering::Relaxed);
    // SYNC: sleepers
    fence(Ordering::SeqCst);
    if order == WakeFence::Membarrier {
        crate::sync::membarrier();
    }
}

/// Takes the announcement back.
#[inline]
pub fn retire_sleeper(sleepers: &AtomicU64) {
    // Relaxed: a stale count only costs its reader a needless wake.
    sleepers.fetch_sub(1, Ordering::Relaxed);
}
