//! Mappings of a team's memory in this process, and those that stay mapped for communicators to come.

use super::header_words as header;
use super::map::{map_bytes, unmap, PAGE};
use super::{Mapped, Segment};
use crate::error::Error;
use crate::sync::{AtomicU64, Ordering};
use crate::throttle;
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A stretch that is mapped.
#[derive(Debug)]
pub(super) struct Mapping {
    pub base: NonNull<u8>,
    pub bytes: usize,
    /// Mapped parts of each rank's banks, as the last communicator there knew.
    mapped: Mutex<Vec<Mapped>>,
}

// SAFETY: whoever has it keeps it mapped; what is done with the bytes is up to them.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn new(fd: BorrowedFd<'_>, at: u64, bytes: usize) -> Result<Mapping, Error> {
        let base = map_bytes(fd, at, bytes)?;
        throttle::pause();
        Ok(Mapping { base, bytes, mapped: Mutex::default() })
    }

    /// A word of the header that it begins with.
    pub fn word(&self, word: usize) -> &AtomicU64 {
        debug_assert!(word < PAGE / 8);
        // SAFETY: within the mapping, and only ever used as an atomic.
        unsafe { &*self.base.as_ptr().cast::<AtomicU64>().add(word) }
    }

    /// Returns the number of times that this memory was taken again.
    pub fn generation(&self) -> u64 {
        // Relaxed: told by whoever took it, with where it begins.
        self.word(header::GENERATION).load(Ordering::Relaxed)
    }

    /// Returns the mapped parts of the banks of so many ranks.
    pub fn mapped(&self, ranks: usize) -> Vec<Mapped> {
        // Nothing that panics is done under the lock, here and below.
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner).clone();
        mapped.resize(ranks, Mapped::NONE);
        mapped
    }

    pub fn set_mapped(&self, mapped: Vec<Mapped>) {
        *self.mapped.lock().unwrap_or_else(PoisonError::into_inner) = mapped;
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value, and segments hold it by reference count.
        unsafe { unmap(self.base, self.bytes) };
    }
}

/// Mappings that stay when nobody uses them, since their memory may be taken again.
const KEPT: usize = super::free_extents::PLACES;

/// Mappings of this process by their offset in the team's memory. Ranks of one process share them.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    /// Mappings in use, each with the generation of its communicator, as memory may be taken again.
    open: HashMap<u64, (u64, Weak<Segment>, Weak<Mapping>)>,
    kept: VecDeque<(u64, Arc<Mapping>)>,
}

impl Mappings {
    /// The mapping at `at` with so many bytes.
    pub fn mapping(&self, at: u64, bytes: usize) -> Option<Arc<Mapping>> {
        let used = || self.open.get(&at).and_then(|(_, _, mapping)| mapping.upgrade());
        let kept =
            || self.kept.iter().find(|(place, _)| *place == at).map(|(_, mapping)| Arc::clone(mapping));
        used().or_else(kept).filter(|mapping| mapping.bytes == bytes)
    }

    /// The segment of this generation at `at`.
    pub fn segment(&self, at: u64, generation: u64) -> Option<Arc<Segment>> {
        let (_, segment, _) = self.open.get(&at).filter(|(of, ..)| *of == generation)?;
        segment.upgrade()
    }

    pub fn enter(&mut self, at: u64, segment: &Arc<Segment>, mapping: &Arc<Mapping>) {
        self.open.insert(at, (mapping.generation(), Arc::downgrade(segment), Arc::downgrade(mapping)));
    }

    /// Forgets a segment that is gone, and keeps its mapping for the next one.
    pub fn close(&mut self, at: u64, mapping: &Arc<Mapping>) {
        if self.open.get(&at).is_some_and(|(_, segment, _)| segment.strong_count() == 0) {
            self.open.remove(&at);
        }
        self.kept.retain(|(place, _)| *place != at);
        self.kept.push_back((at, Arc::clone(mapping)));
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }
}
