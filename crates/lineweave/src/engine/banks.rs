//! An engine's position in the banks of its team: which it has entered and left, and how much of them is backed by memory.

use super::slot_rotation::SlotRotation;
use crate::compile::{PlanId, SleeperCounter};
use crate::ring::Ring;
use crate::segment::{BankClass, Geometry, Mapped, ReusableState, Segment};
use crate::signature::CallKey;
use crate::sync::AtomicU64;
use crate::wait::Waiter;
use std::ops::Range;

/// One rank's ends of the banks.
pub(super) struct Banks {
    /// Part of the banks that is backed by memory.
    pub reserved: Reserved,
    /// Part of each rank's banks that is mapped in this process.
    pub mapped: Vec<Mapped>,
    pub rings: [Ring; 2],
    /// Rank 0's part of every bank, by class.
    pub starts: [Vec<*mut u8>; 2],
    pub counters: *mut u8,
    /// This rank's `left` of each class, and the home that waits for it.
    left: [*const AtomicU64; 2],
    home: SleeperCounter,
    pub residency: Option<BankResidency>,
    /// Position of the next runs' slots in large banks.
    pub walk: SlotRotation,
}

impl Banks {
    pub fn new(segment: &Segment, rank: usize, reserved: Reserved) -> Banks {
        let classes = [BankClass::Small, BankClass::Large];
        Banks {
            reserved,
            mapped: segment.mapped(),
            rings: classes.map(|c| Ring::new(Geometry::banks(c) as u64)),
            starts: classes.map(|c| (0..Geometry::banks(c)).map(|b| segment.bank(c, b)).collect()),
            counters: segment.counters(),
            left: classes.map(|c| std::ptr::from_ref(segment.left(rank, c))),
            home: SleeperCounter::of(segment, rank),
            residency: None,
            walk: SlotRotation::new(segment.geometry()),
        }
    }

    /// Returns this plan's place in the current bank and the number of earlier runs there, if it can stay; otherwise `None`.
    /// `generation` is the distance in bytes between the flags of two consecutive runs.
    #[inline(always)]
    pub fn resume_in_bank(
        &mut self,
        plan: PlanId,
        key: CallKey,
        generation: usize,
    ) -> Option<(BankPlace, u64)> {
        let residency = self.residency.as_mut().filter(|residency| residency.is_for(plan, key))?;
        let earlier = residency.runs;
        residency.runs += 1;
        Some((BankPlace::fixed(residency.bank.wrapping_add((earlier % 2) as usize * generation)), earlier))
    }

    /// Records that every rank has entered this rank's newest run in a bank of `class`, and so has left all earlier banks.
    #[inline(always)]
    pub fn observe_all_entered(&mut self, class: BankClass) {
        for other in [BankClass::Small, BankClass::Large] {
            let ring = &mut self.rings[other.index()];
            ring.learn(ring.uses().saturating_sub(u64::from(other == class)));
        }
    }

    /// Leaves the newest bank of `class`.
    #[inline(always)]
    pub fn leave(&self, class: BankClass, waiter: &Waiter) {
        let ring = &self.rings[class.index()];
        if ring.publishes() {
            self.publish(class, ring.uses(), waiter);
        }
    }

    /// Leaves the bank of the resident plan, if there is one.
    #[inline(always)]
    pub fn end_residency(&mut self, waiter: &Waiter) {
        if let Some(residency) = self.residency.take() {
            self.publish(residency.class, residency.uses, waiter);
        }
    }

    #[inline(always)]
    fn publish(&self, class: BankClass, uses: u64, waiter: &Waiter) {
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        let left = unsafe { &*self.left[class.index()] };
        // The waking form of `ring::leave`: peers may sleep until this rank has left.
        waiter.raise(left, uses, self.home.sleepers());
    }
}

/// Residency of a plan: the bank that it ran in last, while it may run there again.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankResidency {
    pub plan: PlanId,
    pub class: BankClass,
    /// Uses of the ring up to and including this one.
    pub uses: u64,
    pub bank: *mut u8,
    /// Runs in this bank so far.
    pub runs: u64,
    /// Key of the call that runs in the bank, where ranks may be in several runs at once.
    pub key: Option<CallKey>,
}

impl BankResidency {
    /// Returns whether a run of a call with this key goes on in the bank. A plan whose ranks may be some runs apart waits for flags of
    /// several runs, which must have one key.
    #[inline(always)]
    fn is_for(&self, plan: PlanId, key: CallKey) -> bool {
        self.plan == plan && self.key.is_none_or(|of| of == key)
    }
}

/// The memory that this rank has reserved, and every other rank with it.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// Bytes of each bank from its start, by class.
    pub banks: [Vec<usize>; 2],
    pub counters: bool,
    /// The whole area was reserved at once.
    whole: bool,
    /// Number of rounds of reservations that this rank has entered.
    pub count: u64,
    /// Number of rounds after which every other rank was known to have reserved as much.
    pub shared: u64,
}

impl Reserved {
    /// Returns the reservation of an area of which as much is reserved as another communicator left, beside the control page.
    pub fn of_rest(rest: ReusableState) -> Reserved {
        Reserved { banks: rest.backed, counters: rest.counters, whole: false, count: 0, shared: 0 }
    }

    /// Returns the state that a successor can reuse, with flags up to `base`.
    pub fn rest(&self, base: u64) -> ReusableState {
        ReusableState { base, backed: self.banks.clone(), counters: self.counters }
    }

    /// Returns the reservation of an area that a rank of a team has joined.
    pub fn at_join(geometry: &Geometry) -> Reserved {
        let had = geometry.at_join();
        let total = |class| geometry.zones(class).total();
        let bytes = |class| if had.contains(&geometry.bank(class, 0)) { total(class) } else { 0 };
        let banks =
            [BankClass::Small, BankClass::Large].map(|class| vec![bytes(class); Geometry::banks(class)]);
        Reserved { banks, counters: true, whole: had.len() == geometry.area(), count: 0, shared: 0 }
    }

    /// Returns whether a bank can be entered by a plan that uses so much of it.
    #[inline(always)]
    pub fn covers(&self, class: BankClass, bank: u64, extent: usize, counts: bool) -> bool {
        self.banks[class.index()][bank as usize] >= extent
            && self.counters >= counts
            && self.shared == self.count
    }

    /// Bytes of all ranks together, in whole pages.
    pub fn bytes(&self, geometry: &Geometry) -> usize {
        if self.whole {
            return geometry.reserved();
        }
        let page = |at: usize| at / geometry.page();
        let mut parts = vec![geometry.control()];
        parts.extend(self.counters.then(|| geometry.counters()));
        for class in [BankClass::Small, BankClass::Large] {
            let used = self.banks[class.index()].iter().enumerate().filter(|(_, &bytes)| bytes > 0);
            parts.extend(used.map(|(bank, &bytes)| {
                let start = geometry.bank(class, bank);
                start..start + bytes
            }));
        }
        // They ascend; neighbours may share a page.
        let (mut pages, mut next) = (0, 0);
        for Range { start, end } in parts {
            let (first, last) = (page(start).max(next), page(end - 1));
            pages += (last + 1).saturating_sub(first);
            next = next.max(last + 1);
        }
        geometry.areas_start() + geometry.ranks() * pages * geometry.page()
    }
}

/// Place of a run's flags and slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct BankPlace {
    pub bank: *mut u8,
    /// The bank as slots are counted from.
    pub slots: *mut u8,
    /// The bank of the next run, where runs take turns.
    pub next: *mut u8,
}

impl BankPlace {
    fn fixed(bank: *mut u8) -> BankPlace {
        BankPlace { bank, slots: bank, next: bank }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_at_joining_is_covered_and_nothing_else() {
        for (ranks, late) in [(2, false), (2, true), (64, false), (64, true), (65, false), (512, false)] {
            let geometry = Geometry::new(ranks, 1 << 20, 0).with_late_banks(late);
            let backed = [BankClass::Small, BankClass::Large].map(|class| vec![0; Geometry::banks(class)]);
            let nothing = Reserved::of_rest(ReusableState { base: 0, backed, counters: false });
            let joined = Reserved::at_join(&geometry);
            for class in [BankClass::Small, BankClass::Large] {
                let (had, total) = (geometry.at_join(), geometry.zones(class).total());
                for bank in 0..Geometry::banks(class) {
                    let inside = geometry.bank(class, bank) + total <= had.end;
                    assert_eq!(
                        joined.covers(class, bank as u64, total, true),
                        inside,
                        "{class:?} {bank} of {ranks}"
                    );
                    assert_eq!(
                        joined.covers(class, bank as u64, 1, true),
                        inside,
                        "{class:?} {bank} of {ranks}"
                    );
                    assert!(!nothing.covers(class, bank as u64, 1, false));
                }
            }
            let each = joined.bytes(&geometry) - geometry.areas_start();
            assert!(each <= ranks * geometry.at_join().len() && each > ranks * geometry.at_join().len() / 2);
        }
    }
}
