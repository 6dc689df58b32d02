//! State that the ranks of a communicator leave behind for one that takes its memory, and taking it (`free_extents.rs` has the protocol).

use super::free_extents::FreeExtent;
use super::geometry::{BankClass, Geometry};
use super::header_words as header;
use super::words::control;
use super::{Segment, PAGE};
use crate::error::Error;
use crate::signature::mix;
use crate::sync::Ordering;
use lineweave_core::select::{LARGE_BANKS, SMALL_BANKS};

const _: () =
    assert!(header::BACKED + SMALL_BANKS + LARGE_BANKS <= header::IDLE_BYTES, "a word for each bank");

/// State of a communicator's memory that a rank leaves behind, equal on all ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ReusableState {
    /// Every flag was at most this, its key apart.
    pub base: u64,
    /// Bytes of each bank that are backed, from its start, by class.
    pub backed: [Vec<usize>; 2],
    /// True if counters are.
    pub counters: bool,
}

impl ReusableState {
    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let banks = self.backed.iter().flatten().map(|&bytes| bytes as u64);
        [self.base, u64::from(self.counters)].into_iter().chain(banks)
    }

    /// A number that differs for what differs, and is never 0.
    fn mark(&self) -> u64 {
        self.words().fold(1, |mark, word| mix(mark ^ word)).max(1)
    }
}

impl Segment {
    /// Says for what communicators its memory may be taken again.
    pub(super) fn set_mark(&self, mark: u64) {
        // Relaxed: published with where it begins, as all that its maker stores.
        self.header(header::MARK).store(mark, Ordering::Relaxed);
    }

    /// Makes memory that was kept a communicator's that nobody has joined (step 3).
    pub(super) fn renew(&self) {
        let cleared = [
            header::JOINED,
            header::UNABLE,
            header::TRIED,
            header::SHUT,
            header::FAILED,
            header::CLOSED,
            header::GONE,
            header::SLEEPERS,
            header::EXTRA,
            header::RESTS,
            header::SPOILT,
        ];
        for word in cleared {
            // Relaxed: as above, here and below.
            self.header(word).store(0, Ordering::Relaxed);
        }
        // Relaxed: as above.
        self.header(header::GENERATION).store(self.mapping.generation() + 1, Ordering::Relaxed);
        for rank in 0..self.ranks() {
            // Relaxed: as above.
            self.control(rank, control::STATE).store(0, Ordering::Relaxed);
        }
    }

    /// Has `rank` find its control page and its counters as they have to be when it says who it is (step 4).
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn admit(&self, rank: usize) -> Result<(), Error> {
        if self.mapping.generation() == 0 {
            return self.claim_part(rank, self.geometry.control());
        }
        for word in 0..control::WORDS {
            // Relaxed: published by the count of those that joined.
            self.control(rank, word).store(0, Ordering::Relaxed);
        }
        // Relaxed: as above; of the header, as in `Mapping::generation`.
        if self.header(header::COUNTERS).load(Ordering::Relaxed) != 0 {
            let counters = self.counters().wrapping_add(rank * self.area_stride());
            // SAFETY: the rank's own page of counters, which is backed, and which no other rank looks at before this one has joined.
            unsafe { counters.write_bytes(0, PAGE) };
        }
        Ok(())
    }

    /// Returns the state that the ranks before left behind; of new memory nothing is backed.
    pub(crate) fn rest(&self) -> ReusableState {
        // Relaxed: as in `Mapping::generation`.
        let word = |word: usize| self.header(word).load(Ordering::Relaxed);
        let banks = |first: usize, class| {
            (0..Geometry::banks(class)).map(|bank| word(header::BACKED + first + bank) as usize).collect()
        };
        ReusableState {
            base: word(header::BASE),
            backed: [banks(0, BankClass::Small), banks(SMALL_BANKS, BankClass::Large)],
            counters: word(header::COUNTERS) != 0,
        }
    }

    /// Counts a rank that will not touch the segment again, and leaves this behind; nothing, where it has failed (step 1). `bytes` is what all ranks
    /// take. The last one keeps the memory or gives it back (step 2).
    pub(crate) fn depart(&self, rest: Option<&ReusableState>, bytes: usize) {
        let alike = rest.is_some_and(|rest| {
            // Relaxed, here and below: ordered by the count.
            let first = self.header(header::RESTS).compare_exchange(
                0,
                rest.mark(),
                Ordering::Relaxed, // Relaxed: as above.
                Ordering::Relaxed, // Relaxed: as above.
            );
            first.is_ok() || first == Err(rest.mark())
        });
        if !alike {
            // Relaxed: as above.
            self.header(header::SPOILT).store(1, Ordering::Relaxed);
        }
        // SYNC: depart
        let gone = self.header(header::GONE).fetch_add(1, Ordering::AcqRel) + 1;
        if gone as usize == self.ranks() && !rest.is_some_and(|rest| self.keep(rest, bytes)) {
            self.give_back();
        }
    }

    /// Keeps the memory for another communicator, if it is fit for that.
    fn keep(&self, rest: &ReusableState, bytes: usize) -> bool {
        // Relaxed, here and below: ordered by the count of those that are gone; who takes it comes after the entry in the table.
        let word = |word: usize| self.header(word).load(Ordering::Relaxed);
        if self.at == 0 || word(header::SPOILT) != 0 || self.failed().is_some() {
            return false;
        }
        if word(header::EXTRA) > 0 {
            let areas = self.geometry.reserved();
            self.pool.release(self.at + areas as u64, self.geometry.total() - areas);
        }
        let [base, counters] = [rest.base, u64::from(rest.counters)];
        let backed = rest.backed.iter().flatten().map(|&bytes| bytes as u64);
        let words = [(header::BASE, base), (header::COUNTERS, counters)];
        for (at, value) in words.into_iter().chain((header::BACKED..).zip(backed)) {
            // Relaxed: as above.
            self.header(at).store(value, Ordering::Relaxed);
        }
        let span = self.geometry.total() as u64;
        self.pool.keep(FreeExtent { at: self.at, mark: word(header::MARK), bytes: bytes as u64, span })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Loss;
    use crate::segment::RankState;
    use std::sync::Arc;

    fn rest(base: u64) -> ReusableState {
        let mut backed = [vec![0; SMALL_BANKS], vec![0; LARGE_BANKS]];
        backed[0][0] = 640;
        backed[1][1] = 70_000;
        ReusableState { base, backed, counters: true }
    }

    /// A communicator of two ranks that have joined, and have used a page of counters each.
    fn made(team: &Segment) -> Arc<Segment> {
        let made = team.found(2, 9).unwrap();
        for rank in 0..2 {
            made.admit(rank).unwrap();
            made.claim_part(rank, made.geometry().counters()).unwrap();
            made.sign(rank, 77);
        }
        made
    }

    #[test]
    fn what_all_leave_alike_is_taken_again() {
        let team = Segment::create(3, 4096, b"").unwrap();
        let one = made(&team);
        let (at, counters) = (one.at(), one.counters());
        one.left(1, BankClass::Small).store(5, Ordering::Relaxed);
        one.signature_words(1, 63)[1].store(5, Ordering::Relaxed);
        // SAFETY: the first rank's page of counters, which it has claimed.
        unsafe { counters.write_bytes(1, PAGE) };
        one.claim_mail(0, 1).unwrap();
        (0..2).for_each(|_| one.depart(Some(&rest(1000)), 3 * PAGE));
        assert_eq!(team.pool().idle_bytes(), 3 * PAGE as u64);
        let other = team.found(2, 8).unwrap();
        assert_ne!(other.at(), at, "it is to be elsewhere");
        let next = team.found(2, 9).unwrap();
        assert_eq!((next.at(), team.pool().idle_bytes()), (at, 0));
        assert!(!Arc::ptr_eq(&one, &next) && Arc::ptr_eq(&next, &team.open(at, 2).unwrap()));
        assert_eq!((next.rest(), next.extra_bytes(), next.joined()), (rest(1000), 0, 0));
        assert!(!next.has_signed(1) && next.state(1) == RankState::Absent);
        (0..2).for_each(|rank| next.admit(rank).unwrap());
        for word in [next.left(1, BankClass::Small), next.signature_words(1, 63)[1]] {
            assert_eq!(word.load(Ordering::Relaxed), 0);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { counters.add(PAGE - 1).read() }, 0);
        assert_eq!(next.claim_mail(0, 1).unwrap().sent().load(Ordering::Relaxed), 0);
        // And again, when the first one's mapping is gone.
        drop(one);
        (0..2).for_each(|_| next.depart(Some(&rest(2000)), 3 * PAGE));
        drop(next);
        let last = team.found(2, 9).unwrap();
        assert_eq!((last.at(), last.rest().base), (at, 2000));
    }

    #[test]
    fn what_is_spoilt_is_given_back() {
        let team = Segment::create(3, 4096, b"").unwrap();
        let before = team.pool().occupied_bytes().unwrap();
        let leaves: [[Option<u64>; 2]; 4] =
            [[Some(5), Some(6)], [None, Some(5)], [Some(5), None], [Some(5), Some(5)]];
        for (lost, leave) in [false, false, false, true].into_iter().zip(leaves) {
            let made = made(&team);
            if lost {
                made.set_failed(1, Loss::Died);
            }
            for base in leave {
                made.depart(base.map(rest).as_ref(), PAGE);
            }
            assert_eq!(team.pool().idle_bytes(), 0, "{leave:?}");
            assert_eq!(team.pool().occupied_bytes().unwrap(), before, "{leave:?}");
        }
        // One never leaves.
        let made = made(&team);
        made.depart(Some(&rest(5)), PAGE);
        assert_eq!(team.pool().idle_bytes(), 0);
    }

    #[test]
    fn what_is_kept_makes_room() {
        let team = Segment::create(3, 4096, b"").unwrap();
        let before = team.pool().occupied_bytes().unwrap();
        let made = made(&team);
        (0..2).for_each(|_| made.depart(Some(&rest(5)), PAGE));
        assert!(team.pool().idle_bytes() > 0);
        assert!(team.pool().reserve(0, usize::MAX, 0).is_err(), "more than a file can have");
        assert_eq!((team.pool().idle_bytes(), team.pool().occupied_bytes().unwrap()), (0, before));
    }
}
