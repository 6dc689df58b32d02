//! Banks: pieces of every rank's area in which plans run, used in turn.
//!
//! Two plans never share flags or slots at the same time, so a plan needs no final acknowledgement and no
//! knowledge of its neighbours. Protocol, for a ring of `k` banks:
//!
//! 1. A plan's use number `u` of the ring takes bank `u mod k`. All ranks run the same plans in the same
//!    order, so they agree on `u`.
//! 2. Before its first op a rank waits until every rank has left use `u - k`, the bank's previous use.
//! 3. A rank that has finished use `u` publishes `left = u + 1`, after its last access to the bank. Of a ring of many banks it
//!    publishes every eighth part of a round only: whoever runs ahead reads that line, and each time takes it from its owner.
//!    A rank that waits in step 2 asks for a use that every rank comes to without it, so somebody always goes on.
//!
//! Proof sketch: the access of any rank in use `u - k` precedes its store of step 3, which precedes (by
//! release and acquire) the end of step 2 of any rank in use `u`. So flags there are at rest and below every
//! threshold to come, and slots are free. When a plan synchronises (each rank's end follows each rank's
//! start, which the checker finds out), all ranks have left everything before it: step 2 then holds
//! without a look at memory. Otherwise a rank looks once every `k - 1` uses.

use crate::sync::{AtomicU64, Ordering};

/// Number of times in a round of the ring that a rank publishes the uses it has left, where there are as many banks.
const PARTS: u64 = 8;

/// One rank's view of a ring of banks.
#[derive(Clone, Debug)]
pub struct Ring {
    banks: u64,
    uses: u64,
    /// Every rank is known to have left all uses below this one.
    known: u64,
}

impl Ring {
    /// A ring of `banks` banks, a power of two and at least 2 (a division on the way into every small call
    /// would cost as much as the rest of it).
    pub fn new(banks: u64) -> Ring {
        debug_assert!(banks >= 2 && banks.is_power_of_two());
        Ring { banks, uses: 0, known: 0 }
    }

    /// Number of uses so far.
    #[inline(always)]
    pub fn uses(&self) -> u64 {
        self.uses
    }

    /// The lowest `left` of all ranks that the next use needs, if that is not known to hold.
    #[inline(always)]
    pub fn needs(&self) -> Option<u64> {
        let need = (self.uses + 1).saturating_sub(self.banks);
        (need > self.known).then_some(need)
    }

    /// By how much more than [`Ring::needs`] a rank may ask for without waiting for itself: half of the banks.
    ///
    /// Progress: within this bound the rank furthest behind never waits for a bank, so some rank can always advance.
    pub fn half(&self) -> u64 {
        self.banks / 2
    }

    /// Notes what a look at all ranks' `left` showed.
    #[inline(always)]
    pub fn learn(&mut self, everybody_left: u64) {
        self.known = self.known.max(everybody_left);
    }

    /// The bank that the next use takes.
    #[inline(always)]
    pub fn next(&self) -> u64 {
        self.uses & (self.banks - 1)
    }

    /// Returns whether what was left so far is to be published (step 3).
    #[inline(always)]
    pub fn publishes(&self) -> bool {
        self.uses & (self.banks / PARTS).saturating_sub(1) == 0
    }

    /// Takes the next bank (step 1) and returns its number; [`Ring::needs`] must have been met.
    #[inline(always)]
    pub fn enter(&mut self) -> u64 {
        debug_assert!(self.needs().is_none());
        let bank = self.next();
        self.uses += 1;
        bank
    }
}

/// Publishes that this rank has left all uses below `uses` (step 3).
#[inline(always)]
pub fn leave(left: &AtomicU64, uses: u64) {
    // SYNC: left
    left.store(uses, Ordering::Release);
}

/// Loads the `left` of a rank: the rank has left all uses below it (step 2).
#[inline(always)]
pub fn left(left: &AtomicU64) -> u64 {
    // SYNC: left
    left.load(Ordering::Acquire)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_bank_is_taken_again_only_after_everybody_left_it() {
        let mut ring = Ring::new(2);
        assert_eq!((ring.needs(), ring.enter()), (None, 0));
        assert_eq!((ring.needs(), ring.enter()), (None, 1));
        assert_eq!(ring.needs(), Some(1));
        ring.learn(1);
        assert_eq!((ring.needs(), ring.enter()), (None, 0));
        assert_eq!(ring.needs(), Some(2));
    }

    #[test]
    fn ranks_go_on_for_ever_with_what_is_published_now_and_then() {
        for banks in [2, 4, 8, 16, 64] {
            let (mut rings, mut published) = ([Ring::new(banks), Ring::new(banks)], [0, 0]);
            let mut ahead = 0;
            // The first always runs as far ahead as it may; the second makes a step only when it cannot.
            while rings[1].uses() < 5 * banks {
                let who = usize::from(rings[0].needs().is_some_and(|need| published[1] < need));
                if let Some(need) = rings[who].needs() {
                    assert!(published[1 - who] >= need, "{banks} banks: nobody goes on at {rings:?}");
                    rings[who].learn(published[1 - who]);
                }
                rings[who].enter();
                if rings[who].publishes() {
                    published[who] = rings[who].uses();
                }
                ahead = ahead.max(rings[0].uses() - rings[1].uses());
                assert!(rings[0].uses() <= rings[1].uses() + banks, "a bank is used twice at once");
            }
            assert_eq!(ahead, banks, "{banks} banks are not all used");
        }
    }
}
