//! Findings of one process of a team, which others would find out as well: records in memory that the team shares with all communicators
//! made from it.
//!
//! A record has a name, a number of 128 bits, which says in which cell it belongs. Each cell has a word: a count, a mark of the
//! name, and whether the record is being made. Protocol:
//!
//! 1. Who needs a record looks at the word. If the mark is the name's and the record is made, it copies the record, and looks at
//!    the word again: if that has changed, or the record has another name, it has found nothing.
//! 2. If the mark is the name's and the record is being made, it sleeps until the word changes (`await_record`), and looks again.
//! 3. If nothing is being made in the cell, it raises the count, with its mark: of several one succeeds, and makes the record.
//! 4. That one stores the record, raises the count again, and wakes who sleeps. If there is nothing to store, it takes its mark off.
//!
//! Nobody depends on a record: who finds none, finds the cell taken, or would wait for a process that has ended, finds out by itself. So a
//! rank that dies while others wait for its record costs them that time and nothing else.

use super::record_table::{is_being_made, mark, RecordId, RecordTable, CELLS, HEAD, INDEX, SLEEPERS, WORDS};
use super::TeamMemory;
use crate::flag::{self, WakeFence};
use crate::sync::{fence, Ordering};
use crate::wait;
use std::time::Duration;

/// The longest sleep before asking whether the process that makes a record is there, for each so many ranks that may wait: of more, each asks
/// less often. After the other time nobody waits.
const LOOK: Duration = Duration::from_millis(20);
const LOOKERS: usize = 32;
const PATIENCE: Duration = Duration::from_secs(60);

/// Outcome of the search for a record.
pub(crate) enum Seen<'a> {
    /// The record exists.
    Found(Vec<u64>),
    /// The caller is to make the record.
    Mine(Claim<'a>),
    /// The record cannot be had.
    Nothing,
}

/// The right to make a record, and the duty: others wait for it.
pub(crate) struct Claim<'a> {
    pool: &'a TeamMemory,
    board: &'a RecordTable,
    cell: usize,
    word: u64,
    name: RecordId,
    order: WakeFence,
}

/// The low half: a name's mark, which is never 0, and a bit for a record that is being made. Futexes compare this half.
impl TeamMemory {
    /// Looks for a record, waits for it with the others of so many `ranks` if somebody is making it, or has this process make it.
    pub(crate) fn await_record(&self, name: RecordId, order: WakeFence, ranks: usize) -> Seen<'_> {
        let Some(board) = self.board() else { return Seen::Nothing };
        let cell = name[1] as usize % CELLS;
        let state = board.state(cell);
        let look = LOOK * ranks.div_ceil(LOOKERS).max(1) as u32;
        for _ in 0..PATIENCE.as_millis() / look.as_millis() {
            let seen = flag::peek(state);
            let mine = seen & 0xffff_fffe == mark(name);
            if mine && is_being_made(seen) {
                // Step 2.
                wait::sleep_while(state, seen, board.word(SLEEPERS), order, look);
                if flag::peek(state) == seen && !board.is_made(cell) {
                    return Seen::Nothing;
                }
                continue;
            }
            if is_being_made(seen) {
                return Seen::Nothing;
            }
            if mine && flag::reached(state, seen) {
                if let Some(found) = board.read(cell, seen, name) {
                    return Seen::Found(found);
                }
            }
            // Step 3.
            let word = ((seen >> 32) + 1) << 32 | mark(name) | 1;
            // SYNC: board
            if state.compare_exchange(seen, word, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // Relaxed: a hint.
                board.maker(cell).store(u64::from(std::process::id()), Ordering::Relaxed);
                return Seen::Mine(Claim { pool: self, board, cell, word, name, order });
            }
        }
        Seen::Nothing
    }
}

impl Claim<'_> {
    /// Gives others the record (step 4). One that is too long or finds no memory is not given.
    pub fn give(mut self, record: &[u64]) {
        let at = self.board.at + (INDEX + self.cell * WORDS * 8) as u64;
        let bytes = 8 * (HEAD + record.len());
        if record.len() > WORDS - HEAD || self.pool.reserve(at, bytes, bytes).is_err() {
            return;
        }
        // SYNC: board
        fence(Ordering::Release);
        let words = self.name.iter().copied().chain([record.len() as u64]).chain(record.iter().copied());
        for (at, word) in words.enumerate() {
            // Relaxed: published by the raise of the word.
            self.board.record(self.cell, at).store(word, Ordering::Relaxed);
        }
        self.word &= !1;
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Without a record there is no mark either.
        let mark = if is_being_made(self.word) { 0 } else { self.word & 0xffff_ffff };
        let state = self.board.state(self.cell);
        flag::raise(state, ((self.word >> 32) + 1) << 32 | mark);
        wait::wake_sleepers(state, self.board.word(SLEEPERS), self.order);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Segment;
    use super::*;
    use std::sync::Arc;

    const ORDER: WakeFence = WakeFence::Full;

    /// Two processes' views of one team's memory.
    fn views() -> [Arc<TeamMemory>; 2] {
        let one = Segment::create(2, 4096, b"").unwrap();
        let other = Segment::attach(rustix::io::dup(one.fd()).unwrap()).unwrap();
        [one, other].map(|segment| Arc::clone(segment.pool()))
    }

    fn claim(pool: &TeamMemory, name: RecordId) -> Claim<'_> {
        match pool.await_record(name, ORDER, 2) {
            Seen::Mine(claim) => claim,
            Seen::Found(_) | Seen::Nothing => panic!("nobody has this record"),
        }
    }

    fn found(pool: &TeamMemory, name: RecordId) -> Option<Vec<u64>> {
        match pool.await_record(name, ORDER, 2) {
            Seen::Found(record) => Some(record),
            Seen::Mine(_) | Seen::Nothing => None,
        }
    }

    #[test]
    fn a_record_is_made_by_one_and_found_by_all() {
        let [one, other] = views();
        let name = [5 << 40, 77];
        let mine = claim(&one, name);
        let waiting = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| found(&other, name));
            std::thread::sleep(Duration::from_millis(5));
            mine.give(&[1, 2, 3]);
            waiting.join().unwrap()
        });
        assert_eq!(waiting, Some(vec![1, 2, 3]));
        assert_eq!(found(&one, name), Some(vec![1, 2, 3]));
        // Of two names for one cell the later has it, also if their marks are equal.
        for later in [[9 << 40, 77], [9 << 40 | 1, 77]] {
            claim(&other, later).give(&[4]);
            assert_eq!(found(&one, later), Some(vec![4]));
        }
        assert_eq!(found(&one, name), None);
    }

    #[test]
    fn what_is_not_given_is_for_the_next_and_nobody_waits_for_the_dead() {
        let [one, other] = views();
        let name = [5 << 40, 3];
        drop(claim(&one, name));
        let mine = claim(&other, name);
        // Another record for a cell in which one is being made.
        assert!(matches!(one.await_record([6 << 40, 3], ORDER, 2), Seen::Nothing));
        let board = other.board().unwrap();
        board.maker(3).store(i32::MAX as u64, Ordering::Relaxed);
        assert!(matches!(one.await_record(name, ORDER, 2), Seen::Nothing), "its maker has ended");
        mine.give(&[0; WORDS]);
        assert_eq!(found(&one, name), None, "a record that is too long");
        let limit = claim(&one, [7 << 40, 3]);
        limit.give(&[8; WORDS - HEAD]);
        assert_eq!(found(&other, [7 << 40, 3]), Some(vec![8; WORDS - HEAD]));
    }
}
