//! Reservation of pages for ranks' areas.

use super::Segment;
use crate::error::Error;
use crate::sync::Ordering;
use std::ops::Range;

impl Segment {
    /// Reserves pages, so that touching them cannot fail later.
    pub(super) fn reserve(&self, offset: usize, len: usize) -> Result<(), Error> {
        self.pool.reserve(self.at + offset as u64, len, self.geometry.reserved())
    }

    /// Reserves what `rank` needs of its area when it joins, from the rank's own CPU.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim(&self, rank: usize) -> Result<(), Error> {
        self.claim_part(rank, self.geometry.at_join())
    }

    /// Reserves a part of the area of `rank`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_part(&self, rank: usize, part: Range<usize>) -> Result<(), Error> {
        self.reserve(self.geometry.areas_start() + rank * self.geometry.area() + part.start, part.len())
    }

    /// Reserves the large banks of `rank` whole, unless that was done in this process. A thread beside the rank's may do so too.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_large_banks(&self, rank: usize) -> Result<(), Error> {
        // Relaxed: the kernel keeps the pages, and nothing else depends on it.
        if !self.late_banks[rank].load(Ordering::Relaxed) {
            self.claim_part(rank, self.geometry.at_join().end..self.geometry.area())?;
            // Relaxed: as above.
            self.late_banks[rank].store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
