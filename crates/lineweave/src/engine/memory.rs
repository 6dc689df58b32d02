//! Reservation of a communicator's shared memory: the parts that are backed by pages.
//!
//! The ranks of a team of up to 64 reserve their whole areas when they join; those of a larger one, and of one that somebody else has placed, all but
//! the large banks ([`LargeBanks`]). What is left, and all of a communicator that is made from another one but for what one before it left
//! (`segment/free_extents.rs`), is reserved when plans first run in a bank:
//!
//! 1. A rank that is about to enter a bank with more than was used of it so far reserves that much of the bank in its own
//!    area, from the CPU it runs on. Of small banks it reserves as many as were used before, whole; and both large ones, whole, in a team of up to 64
//!    (a thread that chose a plan for them has done so by then).
//! 2. It raises its count, and does so again in each round of a dissemination barrier: in round k it waits for the rank 2^k before it to have come
//!    as far. All ranks run the same plans in the same banks, so their n-th reservations, and with them their counts, are the same.
//! 3. After the last round every other rank is known to have reserved as much, and it enters. Each waits for log2 P others, not for all of them.
//!
//! So nobody touches a page that is not there, which lack of memory would answer with a signal, and pages lie near the rank
//! whose area they are in.

use super::run::{Mode, Stop};
use super::state::Engine;
use crate::compile::PlanId;
use crate::error::{Error, Loss};
use crate::segment::{BankClass, Geometry, LargeBanks, Mapped};
use lineweave_core::units::ceil_log2;

/// Areas of which a plan may touch little each. Among 512 ranks 26 pages of flags lie before a bank's slots, and a rank that writes to all others
/// touches one or two of them in each area; with all that lies between them mapped, to take the mappings back took each process 4 ms, and on 2 CPUs
/// the last of 512 heard of a lost rank when most others had done so.
const MANY: usize = 64;

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
        if self.banks.reserved.shared == self.banks.reserved.count {
            self.reserve_own(class, bank, extent, counts)?;
            self.enter_round();
        }
        // One rank alone has a round in which it waits for itself.
        let rounds = u64::from(ceil_log2(ranks)).max(1);
        loop {
            let count = self.banks.reserved.count;
            let round = (count - 1) % rounds;
            let before = (rank + ranks - (1 << round) % ranks) % ranks;
            self.await_word(|s| s.reserved(before), before, count, mode)?;
            if round + 1 == rounds {
                break;
            }
            self.enter_round();
        }
        self.banks.reserved.shared = self.banks.reserved.count;
        Ok(())
    }

    fn enter_round(&mut self) {
        let rank = self.rank;
        self.banks.reserved.count += 1;
        self.raise_word(|s| s.reserved(rank), rank, self.banks.reserved.count);
    }

    /// Maps what a run of a plan touches in a bank up to `end`, and more for the next ones. Of [`MANY`] areas only the rank's own, which it reads in
    /// full: in the others a page is mapped when it is touched.
    #[cold]
    pub(super) fn map_ahead(&mut self, id: PlanId, bank: u64, end: usize) {
        let plan = &mut self.plans[id];
        let class = plan.need.class;
        plan.need.mapped = Mapped::ALL;
        let many = plan.need.areas.len() > MANY;
        for &area in plan.need.areas.iter().filter(|&&area| !many || area as usize == self.rank) {
            let mapped = &mut self.banks.mapped[area as usize];
            if !mapped.covers(class, bank, end) {
                let backed = |bank| self.banks.reserved.banks[class.index()][bank as usize];
                let part = mapped.grow(self.segment.geometry(), class, bank, end, backed);
                self.segment.map_part(area as usize, part);
            }
            plan.need.mapped = plan.need.mapped.and(mapped);
        }
    }

    fn reserve_own(&mut self, class: BankClass, bank: u64, extent: usize, counts: bool) -> Result<(), Error> {
        let geometry = *self.segment.geometry();
        let bank = bank as usize;
        let had = self.banks.reserved.banks[class.index()][bank];
        let (mut claimed, mut all, mut bytes) = (Ok(()), bank..bank, extent);
        if extent > had {
            // As many small banks again as were used before, so that the first round of their ring has few of these barriers.
            let more = if class == BankClass::Small && had == 0 { bank.saturating_sub(1) } else { 0 };
            let whole = class == BankClass::Large && geometry.large_banks() == LargeBanks::WhenPlanned;
            all = match whole {
                true => 0..Geometry::banks(class),
                false => bank..(bank + 1 + more).min(Geometry::banks(class)),
            };
            if all.len() > 1 {
                bytes = geometry.zones(class).total();
            }
            claimed = if whole {
                self.segment.claim_large_banks(self.rank)
            } else {
                let part = geometry.bank(class, bank) + had..geometry.bank(class, all.end - 1) + bytes;
                self.segment.claim_part(self.rank, part)
            };
        }
        if counts && !self.banks.reserved.counters {
            claimed = claimed.and(self.segment.claim_part(self.rank, geometry.counters()));
        }
        if let Err(error) = claimed {
            self.segment.set_failed(self.rank, Loss::Failed);
            self.health.failed = Some(error.to_string());
            return Err(error);
        }
        for backed in &mut self.banks.reserved.banks[class.index()][all] {
            *backed = bytes.max(*backed);
        }
        self.banks.reserved.counters |= counts;
        Ok(())
    }
}
