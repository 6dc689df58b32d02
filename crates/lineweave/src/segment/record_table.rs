//! Table of the records that processes of a team keep for each other (`records.rs`): cells, each with a word and a record.

use super::map::{map_bytes, unmap, PAGE};
use crate::error::Error;
use crate::flag;
use crate::process;
use crate::sync::{fence, AtomicU64, Ordering};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Cells: a record is of use until every process has taken it.
pub(super) const CELLS: usize = 512;
/// The most words of a record, with its name and its length: a choice may be a tree of all ranks, which takes some 10 bytes a rank. Addresses alone:
/// a record has pages for what it takes.
pub(super) const WORDS: usize = 8192;
pub(super) const HEAD: usize = 3;
/// Index of the word that counts sleepers. From `FIRST` on lie a cell's word and the process that makes its record, up to byte `INDEX`.
pub(super) const SLEEPERS: usize = 0;
const FIRST: usize = 8;
pub(super) const INDEX: usize = ((FIRST + 2 * CELLS) * 8).next_multiple_of(PAGE);

/// Name of a record.
pub(crate) type RecordId = [u64; 2];

/// One process's view of the records.
#[derive(Debug)]
pub(super) struct RecordTable {
    base: NonNull<u8>,
    pub(super) at: u64,
}

pub(super) fn mark(name: RecordId) -> u64 {
    name[0] >> 32 & 0xffff_fffe | 2
}

pub(super) fn is_being_made(word: u64) -> bool {
    word & 1 == 1
}

impl RecordTable {
    /// Bytes of addresses that it takes.
    pub const BYTES: usize = (INDEX + CELLS * WORDS * 8).next_multiple_of(PAGE);
    /// Bytes of them that have pages from the beginning.
    pub const INDEX: usize = INDEX;

    pub(super) fn map(fd: BorrowedFd<'_>, at: u64) -> Result<RecordTable, Error> {
        Ok(RecordTable { base: map_bytes(fd, at, RecordTable::BYTES)?, at })
    }

    pub(super) fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at < RecordTable::BYTES / 8);
        // SAFETY: a word of the mapping, which lives as long as this value and is only used as atomics.
        unsafe { &*self.base.as_ptr().cast::<AtomicU64>().add(at) }
    }

    pub(super) fn state(&self, cell: usize) -> &AtomicU64 {
        self.word(FIRST + 2 * cell)
    }

    pub(super) fn maker(&self, cell: usize) -> &AtomicU64 {
        self.word(FIRST + 2 * cell + 1)
    }

    pub(super) fn record(&self, cell: usize, word: usize) -> &AtomicU64 {
        self.word(INDEX / 8 + cell * WORDS + word)
    }

    /// Copies the record, if it has this name (step 1).
    pub(super) fn read(&self, cell: usize, word: u64, name: RecordId) -> Option<Vec<u64>> {
        // Relaxed, here and below: ordered by the acquire of the word, and used only if that is still the same.
        let load = |at: usize| self.record(cell, at).load(Ordering::Relaxed);
        let length = load(2) as usize;
        if [load(0), load(1)] != name || length > WORDS - HEAD {
            return None;
        }
        let found: Vec<u64> = (HEAD..HEAD + length).map(load).collect();
        // SYNC: board
        fence(Ordering::Acquire);
        (flag::peek(self.state(cell)) == word).then_some(found)
    }

    /// Returns whether the process that makes a record is there to do so.
    pub(super) fn is_made(&self, cell: usize) -> bool {
        // Relaxed: a hint; who goes by it wrongly does what it would have done alone.
        let maker = self.maker(cell).load(Ordering::Relaxed) as u32;
        !matches!(process::state(maker), None | Some('T' | 'Z' | 'X'))
    }
}

impl Drop for RecordTable {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value.
        unsafe { unmap(self.base, RecordTable::BYTES) };
    }
}
