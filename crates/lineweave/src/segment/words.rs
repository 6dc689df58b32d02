//! The words by which ranks tell each other how they are: in the header, and on a control page a rank.

use super::geometry::BankClass;
use super::header_words as header;
use super::map::PAGE;
use super::{announce, Segment};
use crate::error::Loss;
use crate::signature::{self, CallSignature};
use crate::sync::{AtomicU64, Ordering};

/// Words of a rank's control page; each group on a line of its own.
pub(super) mod control {
    pub const LEFT: usize = 0;
    pub const SLEEPERS: usize = 8;
    pub const PID: usize = 16;
    pub const STATE: usize = 17;
    pub const THREAD: usize = 18;
    /// The rank's number in the team plus 1; 0 where it is the same.
    pub const IN_TEAM: usize = 19;
    pub const SEQUENCE: usize = 24;
    pub const CHECK: usize = 32;
    pub const RESERVED: usize = 48;
    pub const PROCESS: usize = 49;
    pub const ANNOUNCE: usize = 56;
    /// See `note.rs`.
    pub const NOTE: usize = 64;
    /// Cost of plans: their number, their bytes, nanoseconds, and calls that were held up.
    pub const SETUP: usize = 72;
    /// Two words.
    pub const AGREEMENT: usize = 128;
    /// Address, in the rank's process, of a word with the process's number.
    pub const PUBLISHED: usize = 136;
    /// See `visit.rs`.
    pub const VISITING: usize = 144;
    /// See `signature.rs`: two words for each call that is kept.
    pub const CALLED: usize = 192;
    /// All words up to here may be used.
    pub const WORDS: usize = CALLED + 2 * crate::signature::SLOTS as usize;
}

/// State of a rank as its peers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RankState {
    /// Not yet joined.
    Absent,
    /// Joined.
    Active,
    /// Left between calls.
    Left,
    /// Dropped its communicator within a call, or panicked.
    Failed,
}

/// Returns the rank and the kind of loss that the header's word on a loss says.
pub(super) fn loss(word: u64) -> Option<(usize, Loss)> {
    let rank = ((word & u64::from(u32::MAX)) as usize).checked_sub(1)?;
    let how = match word >> 32 {
        0 => Loss::Died,
        1 => Loss::Left,
        3 => Loss::Stopped,
        _ => Loss::Failed,
    };
    Some((rank, how))
}

impl RankState {
    pub(super) fn of(word: u64) -> RankState {
        match word {
            0 => RankState::Absent,
            1 => RankState::Active,
            2 => RankState::Left,
            _ => RankState::Failed,
        }
    }
}

/// The word that says which rank is lost, and how.
pub(super) fn failure(rank: usize, how: Loss) -> u64 {
    (how as u64) << 32 | (rank as u64 + 1)
}

impl Segment {
    pub(super) fn header(&self, word: usize) -> &AtomicU64 {
        self.mapping.word(word)
    }

    pub(super) fn control(&self, rank: usize, word: usize) -> &AtomicU64 {
        debug_assert!(rank < self.ranks() && word < PAGE / 8);
        let offset = self.geometry.areas_start() + rank * self.geometry.area();
        // SAFETY: the control page of a rank within the mapping, only ever used as atomics.
        unsafe { &*self.base().add(offset).cast::<AtomicU64>().add(word) }
    }

    /// Sleepers on flags whose home is `rank`.
    #[inline(always)]
    pub(crate) fn sleepers(&self, rank: usize) -> &AtomicU64 {
        self.control(rank, control::SLEEPERS)
    }

    /// Returns the word with the number of uses of a ring that `rank` has left.
    #[inline(always)]
    pub(crate) fn left(&self, rank: usize, class: BankClass) -> &AtomicU64 {
        self.control(rank, control::LEFT + class.index())
    }

    /// The sequence number of the call that `rank` entered last.
    #[inline(always)]
    pub(crate) fn sequence(&self, rank: usize) -> &AtomicU64 {
        self.control(rank, control::SEQUENCE)
    }

    /// Words where `rank` announces its call number `sequence` for the checks; the first is the flag.
    pub(crate) fn check(&self, rank: usize, sequence: u64) -> [&AtomicU64; 8] {
        let line = control::CHECK + 8 * (sequence % 2) as usize;
        std::array::from_fn(|i| self.control(rank, line + i))
    }

    /// Returns the word with the number of times that `rank` has reserved memory for plans. All ranks do so for the same plans.
    pub(crate) fn reserved(&self, rank: usize) -> &AtomicU64 {
        self.control(rank, control::RESERVED)
    }

    /// Returns the slot in which `rank` keeps the words of its call number `number`.
    #[inline(always)]
    pub(crate) fn signature_words(&self, rank: usize, number: u64) -> [&AtomicU64; 2] {
        let slot = control::CALLED + 2 * (number % signature::SLOTS) as usize;
        [self.control(rank, slot), self.control(rank, slot + 1)]
    }

    /// Returns the signature of `rank`'s call number `number`, if `rank` has come to it and to fewer than `signature::SLOTS` calls since.
    pub(crate) fn signature(&self, rank: usize, number: u64) -> Option<CallSignature> {
        let [what, bytes] = self.signature_words(rank, number);
        // SYNC: called
        let words = [what.load(Ordering::Acquire), bytes.load(Ordering::Acquire)];
        // Relaxed: who began to write the words of a later call has stored its number before them.
        let last = self.sequence(rank).load(Ordering::Relaxed);
        let kept = number > 0 && last >= number && last - number < signature::SLOTS;
        CallSignature::of_words(words, number).filter(|_| kept)
    }

    /// Returns the word in which `rank` says how its buffers are, for the question number `turn`.
    pub(crate) fn agreement(&self, rank: usize, turn: u64) -> &AtomicU64 {
        self.control(rank, control::AGREEMENT + (turn % 2) as usize)
    }

    /// Words where `rank` announces (see [`super::announce`]).
    pub(crate) fn announcements(&self, rank: usize) -> [&AtomicU64; announce::WORDS] {
        std::array::from_fn(|i| self.control(rank, control::ANNOUNCE + i))
    }

    /// Sleepers on words of the header.
    pub(crate) fn header_sleepers(&self) -> &AtomicU64 {
        self.header(header::SLEEPERS)
    }

    /// Returns the word with the number of ranks that have joined, to be waited for.
    pub(crate) fn joined_word(&self) -> &AtomicU64 {
        self.header(header::JOINED)
    }

    /// A number of the process of a rank that, unlike the kernel's, no two processes of a team have.
    pub(crate) fn process(&self, rank: usize) -> u64 {
        // Relaxed: only used after the join, which orders it.
        self.control(rank, control::PROCESS).load(Ordering::Relaxed)
    }

    /// The process of a rank, 0 before it joined.
    pub(crate) fn pid(&self, rank: usize) -> u32 {
        // Relaxed: only used after the join, which orders it.
        self.control(rank, control::PID).load(Ordering::Relaxed) as u32
    }

    /// Says which rank of the team this one is.
    pub(crate) fn set_in_team(&self, rank: usize, in_team: usize) {
        // Relaxed: published by the count of those who have joined.
        self.control(rank, control::IN_TEAM).store(in_team as u64 + 1, Ordering::Relaxed);
    }

    /// Returns the number in the team of a rank of this segment.
    pub(crate) fn in_team(&self, rank: usize) -> usize {
        // Relaxed: read for a message.
        match self.control(rank, control::IN_TEAM).load(Ordering::Relaxed) {
            0 => rank,
            number => number as usize - 1,
        }
    }

    /// Has a rank be in another process.
    #[cfg(test)]
    pub(crate) fn set_pid(&self, rank: usize, pid: u32) {
        // Relaxed: a test's own.
        self.control(rank, control::PID).store(u64::from(pid), Ordering::Relaxed);
    }

    /// The state of a rank.
    pub(crate) fn state(&self, rank: usize) -> RankState {
        // SYNC: rank-state
        RankState::of(self.control(rank, control::STATE).load(Ordering::Acquire))
    }

    /// Publishes the state of a rank.
    pub(crate) fn set_state(&self, rank: usize, state: RankState) {
        // SYNC: rank-state
        self.control(rank, control::STATE).store(state as u64, Ordering::Release);
    }

    /// Says which process `rank` is in; [`Segment::process`] has the number `process`. To be followed by a count in
    /// [`Segment::joined_word`].
    pub(crate) fn sign(&self, rank: usize, process: u64) {
        // Relaxed: published by the count.
        self.control(rank, control::PROCESS).store(process, Ordering::Relaxed);
        // Relaxed: as above.
        self.control(rank, control::PID).store(u64::from(std::process::id()), Ordering::Relaxed);
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        // Relaxed: as above.
        self.control(rank, control::THREAD).store(thread, Ordering::Relaxed);
        self.set_state(rank, RankState::Active);
    }

    /// Returns whether `rank` has said so. Asked by a system call, because there may be no memory for the page, and nothing could be touched there.
    pub(crate) fn has_signed(&self, rank: usize) -> bool {
        let area = self.geometry.areas_start() + rank * self.geometry.area();
        let mut state = [0; 8];
        let read = rustix::io::pread(self.fd(), &mut state, self.at + (area + 8 * control::STATE) as u64);
        // What cannot be read proves nothing.
        read != Ok(8) || u64::from_ne_bytes(state) != 0
    }

    /// Says where in this process a word holds its number. To be followed by [`Segment::join`].
    pub(crate) fn publish_word(&self, rank: usize, address: u64) {
        // Relaxed: published by the count of those that joined.
        self.control(rank, control::PUBLISHED).store(address, Ordering::Relaxed);
    }

    /// Returns the address, in its process, of the word that `rank` published.
    pub(crate) fn published_word(&self, rank: usize) -> u64 {
        // Relaxed: only used after the join, which orders it.
        self.control(rank, control::PUBLISHED).load(Ordering::Relaxed)
    }

    /// Says that a rank has tried to reach the memory of the others, and whether it could.
    pub(crate) fn tried_attach(&self, able: bool) {
        // Relaxed: published by the next line.
        self.header(header::SHUT).fetch_add(u64::from(!able), Ordering::Relaxed);
        // SYNC: tried
        self.header(header::TRIED).fetch_add(1, Ordering::Release);
    }

    /// Returns the word with the number of ranks that have tried to reach the memory of the others, to be waited for.
    pub(crate) fn tried_word(&self) -> &AtomicU64 {
        self.header(header::TRIED)
    }

    /// Returns the number of ranks that have tried to reach the memory of the others.
    pub(crate) fn tried(&self) -> usize {
        // SYNC: tried
        self.header(header::TRIED).load(Ordering::Acquire) as usize
    }

    /// Returns whether all ranks reach the memory of all others; of use once all have tried.
    pub(crate) fn none_shut(&self) -> bool {
        // Relaxed: read after everybody's try was seen.
        self.header(header::SHUT).load(Ordering::Relaxed) == 0
    }

    /// Announces that `rank` has joined from this process; `able` is whether it can use `membarrier`.
    pub(crate) fn join(&self, rank: usize, process: u64, able: bool) {
        self.sign(rank, process);
        // SYNC: join
        self.header(header::UNABLE).fetch_add(u64::from(!able), Ordering::AcqRel);
        // SYNC: join
        self.header(header::JOINED).fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the number of ranks that have joined.
    pub(crate) fn joined(&self) -> usize {
        // SYNC: join
        self.header(header::JOINED).load(Ordering::Acquire) as usize
    }

    /// Returns whether every rank that joined can use `membarrier`.
    pub(crate) fn all_able(&self) -> bool {
        // Relaxed: read after everybody's join was seen.
        self.header(header::UNABLE).load(Ordering::Relaxed) == 0
    }

    /// The rank whose loss ended this team, and how it was lost.
    pub(crate) fn failed(&self) -> Option<(usize, Loss)> {
        // Relaxed: the word is the whole message.
        loss(self.header(header::FAILED).load(Ordering::Relaxed))
    }

    /// Records that `rank` is lost; the first record stays.
    pub(crate) fn set_failed(&self, rank: usize, how: Loss) {
        // Relaxed: the word is the whole message, here and on failure.
        let _ = self.header(header::FAILED).compare_exchange(
            0,
            failure(rank, how),
            Ordering::Relaxed, // Relaxed: as above.
            Ordering::Relaxed, // Relaxed: as above.
        );
    }
}
