//! Which parts of a communicator's shared memory are backed by pages.
//!
//! A team's ranks reserve their whole areas when they join. A communicator that is made from another one reserves what its
//! plans need, when they first run in a bank:
//!
//! 1. A rank that is about to enter a bank with more than was used of it so far reserves that much of the bank in its own
//!    area, from the CPU it runs on.
//! 2. It raises its count, and does so again in each round of a dissemination barrier: in round k it waits for the rank 2^k before it to have come
//!    as far. All ranks run the same plans in the same banks, so their n-th reservations, and with them their counts, are the same.
//! 3. After the last round every other rank is known to have reserved as much, and it enters. Each waits for log2 P others, not for all of them.
//!
//! So nobody touches a page that is not there, which lack of memory would answer with a signal, and pages lie near the rank
//! whose area they are in.

use super::{Engine, Mode, PlanId, Stop};
use crate::error::{Error, Loss};
use crate::segment::{BankClass, Geometry, Mapped};
use lineweave_core::units::ceil_log2;
use std::ops::Range;

/// What a communicator takes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that are reserved of the memory that its ranks share, by all of them together.
    pub shared_bytes: usize,
    /// Bytes of addresses for it, in each process. They cost nothing before they are used.
    pub address_bytes: usize,
    /// Bytes of this rank alone: compiled plans, and scratch for them.
    pub private_bytes: usize,
}

/// What one rank has reserved, and with it every other.
#[derive(Debug)]
pub(super) struct Reserved {
    /// Bytes of each bank from its start, by class.
    banks: [Vec<usize>; 2],
    counters: bool,
    /// The whole area was reserved at once.
    whole: bool,
    /// How many rounds of reservations this rank has entered.
    count: u64,
    /// After how many of them every other rank was known to have reserved as much.
    shared: u64,
}

impl Reserved {
    /// For an area that is reserved already, or for one of which nothing is but the control page.
    pub fn new(whole: bool) -> Reserved {
        let bytes = if whole { usize::MAX } else { 0 };
        let banks = [BankClass::Small, BankClass::Large].map(|class| vec![bytes; Geometry::banks(class)]);
        Reserved { banks, counters: whole, whole, count: 0, shared: 0 }
    }

    /// Whether a bank can be entered by a plan that uses so much of it.
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

impl Engine {
    /// Reserves what a plan needs of a bank (step 1), says so (2), and waits for all others to have done it (3).
    #[cold]
    pub(super) fn reserve(
        &mut self,
        class: BankClass,
        bank: u64,
        extent: usize,
        counts: bool,
        mode: Mode,
    ) -> Result<(), Stop> {
        let (rank, ranks) = (self.rank, self.ranks());
        // When it is tried again, only to wait is left.
        if self.reserved.shared == self.reserved.count {
            self.reserve_own(class, bank, extent, counts)?;
            self.enter_round();
        }
        // One rank alone has a round in which it waits for itself.
        let rounds = u64::from(ceil_log2(ranks)).max(1);
        loop {
            let count = self.reserved.count;
            let round = (count - 1) % rounds;
            let before = (rank + ranks - (1 << round) % ranks) % ranks;
            self.await_word(|s| s.reserved(before), before, count, mode)?;
            if round + 1 == rounds {
                break;
            }
            self.enter_round();
        }
        self.reserved.shared = self.reserved.count;
        Ok(())
    }

    fn enter_round(&mut self) {
        let rank = self.rank;
        self.reserved.count += 1;
        self.raise_word(|s| s.reserved(rank), rank, self.reserved.count);
    }

    /// Maps what a run of a plan touches in a bank up to `end`, and more for the next ones.
    #[cold]
    pub(super) fn map_ahead(&mut self, id: PlanId, bank: u64, end: usize) {
        let plan = &mut self.plans[id.0 as usize];
        let class = plan.class;
        plan.mapped = Mapped::ALL;
        for &area in &plan.areas {
            let mapped = &mut self.mapped[area as usize];
            if !mapped.covers(class, bank, end) {
                let backed = |bank| self.reserved.banks[class.index()][bank as usize];
                let part = mapped.grow(self.segment.geometry(), class, bank, end, backed);
                self.segment.map_part(area as usize, part);
            }
            plan.mapped = plan.mapped.and(mapped);
        }
    }

    fn reserve_own(&mut self, class: BankClass, bank: u64, extent: usize, counts: bool) -> Result<(), Error> {
        let geometry = *self.segment.geometry();
        let had = self.reserved.banks[class.index()][bank as usize];
        let start = geometry.bank(class, bank as usize);
        let mut claimed = Ok(());
        if extent > had {
            claimed = self.segment.claim_part(self.rank, start + had..start + extent);
        }
        if counts && !self.reserved.counters {
            claimed = claimed.and(self.segment.claim_part(self.rank, geometry.counters()));
        }
        if let Err(error) = claimed {
            self.segment.set_failed(self.rank, Loss::Failed);
            self.failed = Some(error.to_string());
            return Err(error);
        }
        self.reserved.banks[class.index()][bank as usize] = had.max(extent);
        self.reserved.counters |= counts;
        Ok(())
    }
}
