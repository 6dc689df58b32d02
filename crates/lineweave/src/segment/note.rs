//! Notes of a rank for whoever looks at the team from outside. When the rank has waited for some milliseconds: in which call, and since
//! when. Written where waiting looks around anyway, so that calls which do not wait pay nothing. And after plans were made, what they have
//! cost.

use super::words::control;
use super::Segment;
use crate::sync::Ordering;
use std::time::Duration;

/// Words of a note behind `control::NOTE`.
const SINCE: usize = 0;
const SEQUENCE: usize = 1;
const AWAITED: usize = 2;
const OPERATION: usize = 3;
/// Words of a note in all.
pub(super) const WORDS: usize = 6;
/// Words behind `control::SETUP`.
pub(super) const SETUP_WORDS: usize = 4;
/// Bytes of an operation's name that are kept.
const NAME_BYTES: usize = 8 * (WORDS - OPERATION);

/// For whom a rank waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Awaited {
    /// For ranks within a call of all.
    #[default]
    Call,
    /// For one rank: the other end of a message.
    Rank(usize),
    /// For a flag that any rank may set.
    Flag,
}

impl Awaited {
    fn word(self) -> u64 {
        match self {
            Awaited::Call => 0,
            Awaited::Flag => u64::MAX,
            Awaited::Rank(rank) => rank as u64 + 1,
        }
    }

    fn of(word: u64) -> Awaited {
        match word {
            0 => Awaited::Call,
            u64::MAX => Awaited::Flag,
            rank => Awaited::Rank(rank as usize - 1),
        }
    }
}

/// A wait that lasts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitNote {
    /// Start of the wait in ns, by `CLOCK_MONOTONIC`.
    pub since_ns: u64,
    /// The number of the call.
    pub sequence: u64,
    /// For whom.
    pub awaited: Awaited,
    /// The call.
    pub operation: String,
}

/// Cost of the plans of a communicator's calls to a rank so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// Plans that it holds. Those of calls that were not made for long are given up.
    pub plans: usize,
    /// Bytes of memory that they take.
    pub plan_bytes: usize,
    /// Time for which the rank has chosen, proved and compiled plans, or waited for a rank that did.
    pub took: Duration,
    /// Calls that this held up for 100 us or longer.
    pub held_up: usize,
}

impl Segment {
    /// Says that `rank` has been waiting since `since_ns` in call number `sequence`.
    pub(crate) fn note_wait(
        &self,
        rank: usize,
        since_ns: u64,
        sequence: u64,
        awaited: Awaited,
        operation: &str,
    ) {
        let mut name = [0; NAME_BYTES];
        for (to, from) in name.iter_mut().zip(operation.bytes()) {
            *to = from;
        }
        let word = |i: usize| self.control(rank, control::NOTE + i);
        // Relaxed: published by the store below.
        word(SEQUENCE).store(sequence, Ordering::Relaxed);
        // Relaxed: as above.
        word(AWAITED).store(awaited.word(), Ordering::Relaxed);
        for (i, bytes) in name.chunks_exact(8).enumerate() {
            let value = bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b));
            // Relaxed: as above.
            word(OPERATION + i).store(value, Ordering::Relaxed);
        }
        // Relaxed: who reads it from outside does so by a system call, and shows what is there.
        word(SINCE).store(since_ns.max(1), Ordering::Relaxed);
    }

    /// Returns whether `rank` has said that it waits.
    pub(crate) fn is_noted(&self, rank: usize) -> bool {
        // Relaxed: read for a message.
        self.control(rank, control::NOTE + SINCE).load(Ordering::Relaxed) != 0
    }

    /// Says that `rank` waits no longer.
    pub(crate) fn clear_wait(&self, rank: usize) {
        // Relaxed: as above.
        self.control(rank, control::NOTE + SINCE).store(0, Ordering::Relaxed);
    }
}

impl Segment {
    /// Says what plans have cost `rank` so far.
    pub(crate) fn note_setup(&self, rank: usize, setup: &Setup) {
        let took_ns = setup.took.as_nanos() as u64;
        let words: [u64; SETUP_WORDS] =
            [setup.plans as u64, setup.plan_bytes as u64, took_ns, setup.held_up as u64];
        for (i, word) in words.into_iter().enumerate() {
            // Relaxed: as above.
            self.control(rank, control::SETUP + i).store(word, Ordering::Relaxed);
        }
    }
}

/// Returns the cost of plans that a control page reports.
pub(super) fn setup(page: &[u64]) -> Setup {
    let [plans, bytes, ns, held_up] = [0, 1, 2, 3].map(|i| page[control::SETUP + i]);
    let took = Duration::from_nanos(ns);
    Setup { plans: plans as usize, plan_bytes: bytes as usize, took, held_up: held_up as usize }
}

impl WaitNote {
    /// From the words of a control page's note.
    pub(super) fn of(words: &[u64; WORDS]) -> Option<WaitNote> {
        let name: Vec<u8> =
            words[OPERATION..].iter().flat_map(|w| w.to_le_bytes()).take_while(|&b| b != 0).collect();
        (words[SINCE] != 0).then(|| WaitNote {
            since_ns: words[SINCE],
            sequence: words[SEQUENCE],
            awaited: Awaited::of(words[AWAITED]),
            operation: String::from_utf8_lossy(&name).into_owned(),
        })
    }
}
