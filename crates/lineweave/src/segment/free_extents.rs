//! Memory of communicators that were freed, kept for those that are made next.
//!
//! A new stretch of the team's memory costs a mapping in every process, and for every page a fault and zeros. So one that all ranks have left stays as
//! it is for a while:
//!
//! 1. A rank that leaves says what it leaves behind (`ReusableState`): up to where its flags have counted, and what of the banks is backed. All must say the same.
//!    One that failed, or leaves within a call, spoils the stretch.
//! 2. The last one to leave writes that into the header and enters the stretch in a table on the first page of the pool. One that is spoilt is given back.
//! 3. Who makes a communicator looks there for a stretch of as many ranks on the same NUMA nodes. One word a place decides among several who look. It
//!    clears the header and all ranks' states (`renew`), and tells where the stretch begins, as that of a new one.
//! 4. Each member clears its own control page and counters (`admit`), before it counts itself in; nobody looks there before all have.
//! 5. Flags stay. A new communicator continues its predecessor's flag counters, so any stale value is smaller than every value that
//!    will be waited for, as after an earlier plan in the same bank (`ring.rs`).
//!
//! Nobody touches a stretch after it has counted itself out, so between steps 2 and 3 nobody does. A rank that dies never counts itself out, and one
//! that dies in step 3 leaves a place of the table that is not used again.
//!
//! The table has few places, and what lies in them has a limit: others are given back for what comes. When memory is short all are.

use super::header_words as header;
use super::map::PAGE;
use super::TeamMemory;
use crate::sync::{AtomicU64, Ordering};

/// Stretches that can be kept.
pub const PLACES: usize = 64;
/// Words of each.
const WORDS: usize = 4;
/// The most bytes that are kept, for each rank of the team: about what a rank of a team takes.
const BYTES_A_RANK: u64 = 4 << 20;

const _: () = assert!(header::IDLE + PLACES * WORDS <= PAGE / 8, "the table fits the page");

/// A stretch that nobody uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeExtent {
    /// Offset of the stretch in the team's memory; never 0 or 1.
    pub at: u64,
    /// A number for how many ranks it is, and where they run.
    pub mark: u64,
    /// Bytes of memory that it takes.
    pub bytes: u64,
    /// Bytes of addresses.
    pub span: u64,
}

/// A place of the table: where the stretch in it begins, and the rest of [`FreeExtent`].
#[derive(Clone, Copy, Debug)]
pub struct FreeListSlot<'a>(pub [&'a AtomicU64; WORDS]);

const EMPTY: u64 = 0;
/// Somebody fills or empties it.
const BUSY: u64 = 1;

impl FreeListSlot<'_> {
    /// Enters a stretch, if the place is empty.
    pub fn put(self, idle: FreeExtent) -> bool {
        let [at, rest @ ..] = self.0;
        // Relaxed on failure: nothing is read.
        // SYNC: idle
        if at.compare_exchange(EMPTY, BUSY, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        for (word, value) in rest.into_iter().zip([idle.mark, idle.bytes, idle.span]) {
            // Relaxed: published by the store below.
            word.store(value, Ordering::Relaxed);
        }
        // SYNC: idle
        at.store(idle.at, Ordering::Release);
        true
    }

    fn read(self, at: u64) -> FreeExtent {
        let [_, rest @ ..] = self.0;
        // Relaxed: ordered by the acquire of the first word; what is read before the place is taken is looked at again.
        let [mark, bytes, span] = rest.map(|word| word.load(Ordering::Relaxed));
        FreeExtent { at, mark, bytes, span }
    }

    /// Takes the stretch that is in it, if it is one that is `wanted`.
    pub fn take(self, wanted: impl Fn(&FreeExtent) -> bool) -> Option<FreeExtent> {
        let first = self.0[0];
        // SYNC: idle
        let at = first.load(Ordering::Acquire);
        if at <= BUSY || !wanted(&self.read(at)) {
            return None;
        }
        // SYNC: idle; relaxed on failure, after which nothing is read.
        first.compare_exchange(at, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // Meanwhile it may have been taken and entered again.
        let found = self.read(at);
        let taken = wanted(&found);
        // SYNC: idle
        first.store(if taken { EMPTY } else { at }, Ordering::Release);
        taken.then_some(found)
    }
}

impl TeamMemory {
    fn places(&self) -> impl Iterator<Item = FreeListSlot<'_>> + Clone {
        let word = move |place: usize| move |i: usize| self.word(header::IDLE + place * WORDS + i);
        (0..PLACES).map(move |place| FreeListSlot(std::array::from_fn(word(place))))
    }

    fn idle_word(&self) -> &AtomicU64 {
        self.word(header::IDLE_BYTES)
    }

    /// The most bytes that are kept.
    fn most_idle(&self) -> u64 {
        // Relaxed: written before the segment was published, never again.
        BYTES_A_RANK * self.word(header::RANKS).load(Ordering::Relaxed)
    }

    /// Bytes of memory that are kept for communicators to come.
    pub fn idle_bytes(&self) -> u64 {
        // Relaxed: the word is the whole message, here and below.
        self.idle_word().load(Ordering::Relaxed)
    }

    /// Keeps a stretch that all ranks have left (step 2), giving others back for it. Whether it is kept.
    pub(super) fn keep(&self, idle: FreeExtent) -> bool {
        let most = self.most_idle();
        if idle.bytes > most {
            return false;
        }
        loop {
            // Relaxed: as above.
            let before = self.idle_word().fetch_add(idle.bytes, Ordering::Relaxed);
            if before + idle.bytes <= most && self.places().any(|place| place.put(idle)) {
                return true;
            }
            // Relaxed: as above.
            self.idle_word().fetch_sub(idle.bytes, Ordering::Relaxed);
            if !self.release_one() {
                return false;
            }
        }
    }

    /// A stretch with this mark and so many addresses (step 3): it is the caller's alone.
    pub(super) fn take_kept(&self, mark: u64, span: usize) -> Option<u64> {
        let wanted = |idle: &FreeExtent| idle.mark == mark && idle.span == span as u64;
        let found = self.places().find_map(|place| place.take(wanted))?;
        // Relaxed: as above.
        self.idle_word().fetch_sub(found.bytes, Ordering::Relaxed);
        Some(found.at)
    }

    /// Gives a stretch back. They have their turns, so that each was kept for a while. Whether there was one.
    fn release_one(&self) -> bool {
        // Relaxed: any start will do.
        let turn = self.word(header::IDLE_TURN).fetch_add(1, Ordering::Relaxed) as usize % PLACES;
        let Some(found) =
            self.places().cycle().skip(turn).take(PLACES).find_map(|place| place.take(|_| true))
        else {
            return false;
        };
        self.release(found.at, found.span as usize);
        // Relaxed: as above.
        self.idle_word().fetch_sub(found.bytes, Ordering::Relaxed);
        true
    }

    /// Gives all stretches back, because memory is short. Whether there was any.
    pub(crate) fn release_kept(&self) -> bool {
        (0..PLACES).take_while(|_| self.release_one()).count() > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Segment;
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit_and_the_oldest_make_room() {
        let team = Segment::create(2, 4096, b"").unwrap();
        let pool = team.pool();
        let most = 2 * BYTES_A_RANK;
        let stretch = |i: u64, bytes| FreeExtent { at: (1 << 40) + (i << 20), mark: 7, bytes, span: 1 << 20 };
        assert!(!pool.keep(stretch(0, most + 1)) && !pool.release_kept());
        for i in 0..=PLACES as u64 {
            assert!(pool.keep(stretch(i, 4096)));
        }
        assert_eq!(pool.idle_bytes(), PLACES as u64 * 4096, "one had to go");
        assert_eq!((pool.take_kept(8, 1 << 20), pool.take_kept(7, 2 << 20)), (None, None));
        assert!(pool.take_kept(7, 1 << 20).is_some());
        assert_eq!(pool.idle_bytes(), (PLACES as u64 - 1) * 4096);
        assert!(pool.keep(stretch(99, most)), "all others make room");
        assert_eq!((pool.idle_bytes(), pool.take_kept(7, 1 << 20)), (most, Some((1 << 40) + (99 << 20))));
        assert!(pool.keep(stretch(1, 4096)) && pool.release_kept());
        assert_eq!((pool.idle_bytes(), pool.take_kept(7, 1 << 20)), (0, None));
    }
}
