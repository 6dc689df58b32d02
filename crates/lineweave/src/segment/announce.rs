//! Announcements: the first of a group of ranks tells the others where the group's memory is, while the rest of the team does something
//! else.
//!
//! Each rank has a line for announcements of its own: a count, a mark of the group, and a number. Protocol:
//!
//! 1. The announcer stores mark and number, and raises the count to an odd value: open.
//! 2. A member waits until the count is odd and beyond what it took last from this announcer, and the mark is that of its
//!    group. Others' announcements pass by.
//! 3. When all members have acted upon it, which they tell by other means, the announcer raises the count again: closed.
//!
//! A line is stored only while it is closed, and stays open until every member has taken what it says. So what a member
//! reads is either for it and whole, or the count has changed when it looks again.

use crate::flag;
use crate::sync::{fence, AtomicU64, Ordering};

/// Words of a line: count, mark, number.
pub const WORDS: usize = 3;

/// Stores what is announced (step 1) and returns the count to raise the first word to.
pub fn prepare(line: [&AtomicU64; WORDS], mark: u64, number: u64) -> u64 {
    let count = flag::peek(line[0]);
    debug_assert!(count % 2 == 0, "an announcement is still open");
    // SYNC: announce
    fence(Ordering::Release);
    // Relaxed: published by the raise of the count.
    line[1].store(mark, Ordering::Relaxed);
    line[2].store(number, Ordering::Relaxed); // Relaxed: as above.
    count + 1
}

/// Result of a member's look at an announcer's line (step 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Announcement for this rank.
    Taken {
        /// The count, to be remembered.
        count: u64,
        /// The number that was announced.
        number: u64,
    },
    /// Nothing for this rank before the count has reached this.
    Later(u64),
}

/// Looks for the announcement for `mark` after the one with count `last`.
pub fn look(line: [&AtomicU64; WORDS], mark: u64, last: u64) -> Found {
    let count = flag::peek(line[0]);
    if count <= last || count % 2 == 0 || !flag::reached(line[0], count) {
        return Found::Later(count.max(last) + 1);
    }
    // Relaxed: ordered by the acquire above, and used only if the count is still the same.
    let (found, number) = (line[1].load(Ordering::Relaxed), line[2].load(Ordering::Relaxed));
    // SYNC: announce
    fence(Ordering::Acquire);
    match found == mark && flag::peek(line[0]) == count {
        true => Found::Taken { count, number },
        false => Found::Later(count + 1),
    }
}
