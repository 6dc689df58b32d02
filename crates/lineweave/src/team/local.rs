//! The teams of several processes that this process has joined.
//!
//! Ranks that are threads of one process are found to be so by the team's descriptor, however each came to it. They share a
//! mapping, proofs, and the number of their process; communicators that are made of such ranks alone are those of threads.

use crate::engine::ProcessGroup;
use crate::error::Error;
use crate::segment::Segment;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A team: the file that its memory is, and what its ranks here share.
struct Joined {
    file: (u64, u64),
    segment: Weak<Segment>,
    group: Weak<ProcessGroup>,
}

static JOINED: Mutex<Vec<Joined>> = Mutex::new(Vec::new());

/// Returns the segment and the process group that the ranks in this process share, of the team of a descriptor.
///
/// # Errors
/// The errors of [`Segment::attach`].
pub(super) fn share(fd: OwnedFd) -> Result<(Arc<Segment>, Arc<ProcessGroup>), Error> {
    let stat = rustix::fs::fstat(&fd).map_err(|e| {
        Error::system("reading the team's descriptor (fstat)", e, "; was it inherited or closed?")
    })?;
    let file = (stat.st_dev as u64, stat.st_ino as u64);
    // A thread that panicked here left the list as it was.
    let mut joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    joined.retain(|team| team.segment.strong_count() > 0 && team.group.strong_count() > 0);
    let known = joined.iter().find(|team| team.file == file);
    if let Some(found) = known.and_then(|team| Some((team.segment.upgrade()?, team.group.upgrade()?))) {
        return Ok(found);
    }
    let (segment, group) = (Arc::new(Segment::attach(fd)?), Arc::new(ProcessGroup::default()));
    joined.push(Joined { file, segment: Arc::downgrade(&segment), group: Arc::downgrade(&group) });
    Ok((segment, group))
}
