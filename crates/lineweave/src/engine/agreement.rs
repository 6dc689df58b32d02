//! The agreement of all ranks on what each knows of itself, so that all run the same plan.
//!
//! A rank sees of its own buffers whether they lie in a heap, and not of others'; nor whether other processes have the chosen plans
//! (`change_over.rs`). So a call for which it matters begins with a question, whose place is fixed by the order of calls:
//!
//! 1. For its n-th question each rank raises a word of its control page to 4n, plus what it has to say, two bits.
//! 2. It waits until every other rank's word has come to 4n, and reads what it says.
//!
//! Questions take two words in turn. A word is raised again two questions later; by then its owner has seen everybody raise theirs
//! for the question between, and so everybody has read this one.

use super::call_plan::Preface;
use super::nonblocking::{Agreed, Agreement};
use super::run::{Mode, Stop};
use super::state::Engine;
use crate::call::CallSpec;
use crate::sync::Ordering;

/// Part of a rank's answer in step 1: one of its buffers is private.
const PRIVATE: u64 = 1;
/// Part of a rank's answer in step 1: input and output are one buffer.
const IN_PLACE: u64 = 2;

impl Engine {
    /// Returns whether a call asks: when shared buffers were made, between processes, from the length on from which they can pay.
    #[inline]
    pub(crate) fn asks(&self, call: &CallSpec) -> bool {
        self.heaps.asks
            && !self.selector.direct()
            && call.bytes() >= self.selector.ask_from()
            && self.ranks() > 1
    }

    /// Says how this rank's buffers are (step 1).
    pub(crate) fn ask(&mut self, preface: &Preface, input: *const u8, output: *mut u8) -> Agreement {
        let given = self.heaps.known.hold(input, preface.given);
        let taken = self.heaps.known.hold(output, preface.taken);
        let in_place = preface.in_place;
        self.say(if given && taken { 0 } else { PRIVATE } | if in_place { IN_PLACE } else { 0 })
    }

    /// Says two bits to the other ranks (step 1).
    pub(super) fn say(&mut self, said: u64) -> Agreement {
        let rank = self.rank;
        self.heaps.questions += 1;
        let turn = self.heaps.questions;
        self.raise_word(|s| s.agreement(rank, turn), rank, 4 * turn + said);
        Agreement { turn, next: 0, said }
    }

    /// Hears the others (step 2): all, or those that have spoken. Returns the bits that any rank has said.
    pub(crate) fn hear(&mut self, agreement: &mut Agreement, mode: Mode) -> Result<u64, Stop> {
        let turn = agreement.turn;
        while agreement.next < self.ranks() {
            let other = agreement.next;
            if other != self.rank {
                self.await_word(|s| s.agreement(other, turn), other, 4 * turn, mode)?;
                // Relaxed: ordered by the wait, and not raised again before this rank's next question.
                agreement.said |= self.segment.agreement(other, turn).load(Ordering::Relaxed) & 3;
            }
            agreement.next += 1;
        }
        Ok(agreement.said)
    }

    /// Hears how the others' buffers are.
    pub(super) fn hear_buffers(&mut self, agreement: &mut Agreement, mode: Mode) -> Result<Agreed, Stop> {
        let said = self.hear(agreement, mode)?;
        Ok(Agreed { shared: said & PRIVATE == 0, in_place: said & IN_PLACE != 0 })
    }
}
