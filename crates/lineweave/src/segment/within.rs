//! Segments of communicators, further on in a team's memory: making one, and opening it.

use super::{say_failed, Geometry, Mapped, Segment, TeamMemory};
use crate::error::Error;
use std::sync::Arc;

impl Segment {
    /// Makes a segment for a communicator of `ranks` of this one's ranks, which others open by where it begins: in memory that one with the same `mark`
    /// left behind, if there is any.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::System`].
    pub(crate) fn found(&self, ranks: usize, mark: u64) -> Result<Arc<Segment>, Error> {
        let geometry = Geometry::new(ranks, self.geometry.box_bytes, 0);
        if let Some(at) = self.pool.take_kept(mark, geometry.total()) {
            let opened = TeamMemory::open(&self.pool, at, geometry, true);
            return opened.inspect_err(|_| self.pool.release(at, geometry.total()));
        }
        let at = self.pool.take(geometry.total())?;
        let segment = self.open(at, ranks)?;
        segment.keep_near();
        segment.reserve(0, geometry.areas_start())?;
        segment.set_mark(mark);
        segment.describe();
        Ok(segment)
    }

    /// Maps what [`Segment::found`] made.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be mapped.
    pub(crate) fn open(&self, at: u64, ranks: usize) -> Result<Arc<Segment>, Error> {
        TeamMemory::open(&self.pool, at, Geometry::new(ranks, self.geometry.box_bytes, 0), false)
    }

    /// [`Segment::open`] as `rank` of those that will use it. They find it failed when this rank cannot map it.
    ///
    /// # Errors
    /// The errors of [`Segment::open`].
    pub(crate) fn open_as(&self, rank: usize, at: u64, ranks: usize) -> Result<Arc<Segment>, Error> {
        self.open(at, ranks).inspect_err(|_| say_failed(self.fd(), at, rank))
    }

    /// Returns the parts of the ranks' banks that this process has mapped, as a communicator there left them; see [`Segment::set_mapped`].
    pub(crate) fn mapped(&self) -> Vec<Mapped> {
        self.mapping.mapped(self.ranks())
    }

    /// Notes the mapped parts of the ranks' banks, for the communicator that takes the memory next.
    pub(crate) fn set_mapped(&self, mapped: Vec<Mapped>) {
        self.mapping.set_mapped(mapped);
    }
}
