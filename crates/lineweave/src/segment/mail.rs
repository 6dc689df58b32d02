//! Rings for messages between two ranks, and windows for one-sided access: they have their places behind the areas, and take
//! pages when they are first used. Whoever does that counts them, so that it is known what they take.

use super::header_words as header;
use super::{Geometry, Segment, PAGE};
use crate::error::Error;
use crate::sync::{AtomicU64, Ordering};
use lineweave_core::units::LINE;

/// The ring for messages from one rank to another: where its counts and cells lie in a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct P2pRing {
    start: *mut u8,
    cell_bytes: usize,
}

impl P2pRing {
    /// Cells sent.
    pub fn sent<'a>(self) -> &'a AtomicU64 {
        // SAFETY: a word of the segment, which whoever holds this keeps mapped, only ever used as an atomic.
        unsafe { &*self.start.cast::<AtomicU64>() }
    }

    /// Cells taken.
    pub fn taken<'a>(self) -> &'a AtomicU64 {
        // SAFETY: as above, on the next line.
        unsafe { &*self.start.add(LINE).cast::<AtomicU64>() }
    }

    /// Returns whether its pages are counted.
    fn counted<'a>(self) -> &'a AtomicU64 {
        // SAFETY: as above, the word behind the first.
        unsafe { &*self.start.cast::<AtomicU64>().add(1) }
    }

    /// The start of a cell.
    pub fn cell(self, index: usize) -> *mut u8 {
        debug_assert!(index < Geometry::MAIL_CELLS);
        // SAFETY: within the ring.
        unsafe { self.start.add(2 * LINE + index * self.cell_bytes) }
    }

    /// Bytes of a cell.
    pub fn cell_bytes(self) -> usize {
        self.cell_bytes
    }
}

impl Segment {
    /// Reserves the ring for messages from one rank to another, which may be reserved already.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_mail(&self, from: usize, to: usize) -> Result<P2pRing, Error> {
        let (offset, len) = (self.geometry.mail(from, to), self.geometry.mail_bytes());
        self.reserve(offset, len)?;
        // SAFETY: within the mapping by construction of the geometry.
        let start = unsafe { self.base().add(offset) };
        let mail = P2pRing { start, cell_bytes: self.geometry.mail_cell() };
        // Relaxed: nothing is read because of it. Both sides come here.
        if mail.counted().swap(1, Ordering::Relaxed) == 0 {
            self.count(len);
        }
        Ok(mail)
    }

    /// Reserves what a rank's window of `bytes` bytes needs beyond `had`, and its flags.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_window(&self, rank: usize, had: usize, bytes: usize) -> Result<(), Error> {
        let had = if had > 0 { Geometry::window_pages(had) } else { 0 };
        let more = Geometry::window_pages(bytes).saturating_sub(had);
        if more > 0 {
            self.reserve(self.geometry.window(rank) + had, more)?;
            self.count(more);
        }
        Ok(())
    }

    fn count(&self, bytes: usize) {
        // Relaxed: the word is the whole message.
        self.header(header::EXTRA).fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of all rings and windows that were reserved so far.
    pub fn extra_bytes(&self) -> usize {
        // Relaxed: as above.
        self.header(header::EXTRA).load(Ordering::Relaxed) as usize
    }

    /// A flag of a rank's window.
    pub(crate) fn window_flag(&self, rank: usize, flag: usize) -> &AtomicU64 {
        debug_assert!(rank < self.ranks() && flag < Geometry::WINDOW_FLAGS);
        // SAFETY: within the mapping by construction of the geometry, only ever used as an atomic.
        unsafe { &*self.base().add(self.geometry.window(rank) + flag * LINE).cast::<AtomicU64>() }
    }

    /// The bytes of a rank's window.
    pub(crate) fn window(&self, rank: usize) -> *mut u8 {
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base().add(self.geometry.window(rank) + PAGE) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn rings_and_windows_take_pages_when_used_and_are_counted_once() {
        let team = Segment::create(3, 4096, b"").unwrap();
        let child = team.found(2, 0).unwrap();
        for segment in [&team, &*child] {
            let before = team.pool().occupied_bytes().unwrap();
            let (one, same) = (segment.claim_mail(0, 1).unwrap(), segment.claim_mail(0, 1).unwrap());
            assert_eq!(one.cell(7), same.cell(7));
            segment.claim_window(1, 0, 5000).unwrap();
            segment.claim_window(1, 5000, 10_000).unwrap();
            segment.claim_window(1, 10_000, 100).unwrap();
            let expected = segment.geometry().mail_bytes() + PAGE + 3 * PAGE;
            assert_eq!(segment.extra_bytes(), expected);
            assert_eq!(team.pool().occupied_bytes().unwrap() - before, expected as u64);
            // The last byte of the last window is mapped.
            segment.claim_window(segment.ranks() - 1, 0, Geometry::WINDOW_BYTES).unwrap();
            let last = segment.window(segment.ranks() - 1).wrapping_add(Geometry::WINDOW_BYTES - 1);
            // SAFETY: just reserved, and nobody else's.
            assert_eq!(unsafe { last.replace(1) }, 0);
        }
    }
}
