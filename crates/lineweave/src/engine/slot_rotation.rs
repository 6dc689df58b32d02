//! Rotation of slots through a large bank.
//!
//! The slots of successive runs lie behind each other, to the end of a stretch and from its start again. A run has its bank for
//! itself, so they may lie anywhere in it; all ranks make the same runs, so they know where. The stretch is as long as the slots of the first run, and
//! twice as long whenever its end is reached, up to the whole bank: communicators that make few calls take little memory.
//!
//! Where it pays: a line that both ranks' own caches hold has to be taken away from one of them before it is written, and that
//! is the slowest thing two cores can do with it. Out of a bank that is larger than these caches it has gone by itself
//! (docs/explanation/findings.md, "Streams through a ring").

use crate::segment::Geometry;
use lineweave_core::select::LARGE_BANKS;

/// The position of the next run's slots in each large bank.
#[derive(Debug)]
pub(super) struct SlotRotation {
    /// The most bytes of a bank that the slots rotate through.
    pub bytes: usize,
    /// Bytes of the stretch, and where in it the next ones begin, by bank.
    stretch: [usize; LARGE_BANKS],
    next: [usize; LARGE_BANKS],
}

impl SlotRotation {
    pub fn new(geometry: &Geometry) -> SlotRotation {
        SlotRotation { bytes: geometry.walk(), stretch: [0; LARGE_BANKS], next: [0; LARGE_BANKS] }
    }

    /// Returns the length in bytes of the stretch of this bank when the next run's `slots` bytes of slots lie in it.
    pub fn stretch(&self, bank: u64, slots: usize) -> usize {
        let (had, next) = (self.stretch[bank as usize], self.next[bank as usize]);
        if next + slots <= had {
            return had;
        }
        (2 * had).max(next + slots).min(self.bytes).max(slots)
    }

    /// Places `slots` bytes of slots for the next run in this bank; returns their offset from the start of the bank's slots.
    pub fn step(&mut self, bank: u64, slots: usize) -> usize {
        let stretch = self.stretch(bank, slots);
        self.stretch[bank as usize] = stretch;
        let next = &mut self.next[bank as usize];
        let here = if *next + slots <= stretch { *next } else { 0 };
        *next = here + slots;
        here
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_walk_through_the_whole_bank_and_never_out_of_it() {
        let geometry = Geometry::new(2, 1 << 20, 0);
        let all = geometry.zones(crate::segment::BankClass::Large).slots;
        for slots in [64, 8192, 65536, 3 << 16, all / 2, all / 2 + 64, all] {
            let mut walk = SlotRotation::new(&geometry);
            let mut seen = Vec::new();
            for _ in 0..2 * (all / slots) {
                let at = walk.step(1, slots);
                assert!(at + slots <= all, "{slots} bytes at {at}");
                seen.push(at);
            }
            let (first, second) = seen.split_at(all / slots);
            assert_eq!(first, second, "{slots}: the same places in the same order");
            assert!(first.windows(2).all(|w| w[1] == w[0] + slots), "{slots}: behind each other");
            assert_eq!(walk.step(0, slots), 0, "banks are apart");
        }
    }

    #[test]
    fn slots_of_different_lengths_follow_each_other() {
        let geometry = Geometry::new(2, 1 << 20, 0);
        let mut walk = SlotRotation::new(&geometry);
        assert_eq!(
            [100 << 10, 8 << 10, 900 << 10, 1 << 20, 4 << 10].map(|n| walk.step(0, n)),
            [0, 100 << 10, 108 << 10, 0, 0]
        );
    }
}
