//! The memory that a team and all communicators made from it share: one memfd, of which each takes a stretch.
//!
//! 1. The team's own segment begins at 0. A word of its first page says where the last stretch so far ends.
//! 2. Who makes a communicator adds its size to that word; its stretch begins where the word stood. Nothing is searched and
//!    no lock is held, so a rank that dies here leaves nothing but addresses.
//! 3. Addresses cost nothing. Pages are reserved by those who use them, before they do.
//! 4. When the last rank has left, the stretch is kept for another communicator (`free_extents.rs`), or its pages are given back. Then its addresses
//!    are not used again. Most of them are for windows and rings of messages; 2^63 are enough for a thousand such communicators a second, of a hundred
//!    ranks each, for six weeks.
//!
//! So communicators need no descriptors of their own, which a process could only hand to another one by a socket or with the
//! right to trace it; and they outlive the team that they were made from.

use super::header_words as header;
use super::map::PAGE;
use super::mapping::{Mapping, Mappings};
use super::{Geometry, Heap, RecordTable, Segment};
use crate::error::Error;
use crate::memory::available_memory;
use crate::process;
use crate::sync::{AtomicU64, Ordering};
use crate::sysfile::Root;
use crate::throttle;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::mm::Advice;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// One process's view of the memory.
#[derive(Debug)]
pub struct TeamMemory {
    fd: OwnedFd,
    /// The first page, which outlives the team's own mapping.
    first: NonNull<u8>,
    mapped: Mutex<Mappings>,
    heaps: Mutex<HashMap<u64, Weak<Heap>>>,
    /// See [`crate::process::forks`].
    forks: u64,
    /// Mapped when it is first asked for; nothing where it cannot be.
    board: OnceLock<Option<RecordTable>>,
}

// SAFETY: the page stays mapped until the value is dropped and is only used as atomics.
unsafe impl Send for TeamMemory {}
// SAFETY: as above.
unsafe impl Sync for TeamMemory {}

impl TeamMemory {
    /// Of a descriptor that has a first page.
    pub(super) fn new(fd: OwnedFd) -> Result<TeamMemory, Error> {
        let first = super::map_bytes(fd.as_fd(), 0, PAGE)?;
        process::count_forks();
        Ok(TeamMemory {
            fd,
            first,
            mapped: Mutex::default(),
            heaps: Mutex::default(),
            forks: process::forks(),
            board: OnceLock::new(),
        })
    }

    /// Returns whether this process has it from the one it was forked from, to which it belongs.
    #[inline(always)]
    pub fn is_inherited(&self) -> bool {
        process::forks() != self.forks
    }

    /// The descriptor.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) fn word(&self, word: usize) -> &AtomicU64 {
        // SAFETY: a word of the first page, mapped as long as this value lives and only used as atomics.
        unsafe { &*self.first.as_ptr().cast::<AtomicU64>().add(word) }
    }

    /// Returns the word with the end of the last stretch (step 1).
    pub(super) fn end(&self) -> &AtomicU64 {
        self.word(header::END)
    }

    /// The records that processes of the team keep for each other.
    pub(super) fn board(&self) -> Option<&RecordTable> {
        // Relaxed: written before the segment was published, never again.
        let at = || self.word(header::BOARD).load(Ordering::Relaxed);
        self.board.get_or_init(|| RecordTable::map(self.fd(), at()).ok()).as_ref()
    }

    /// Bytes that all communicators of the team really occupy now.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn occupied_bytes(&self) -> Result<u64, Error> {
        let stat = rustix::fs::fstat(&self.fd)
            .map_err(|e| Error::system("asking for memory in use (fstat)", e, ""))?;
        Ok(stat.st_blocks as u64 * 512)
    }

    /// Addresses for so many bytes (step 2), without pages.
    ///
    /// # Errors
    /// [`Error::System`] when a limit on the size of files stands in the way.
    pub(super) fn take(&self, bytes: usize) -> Result<u64, Error> {
        // Relaxed: the word is the whole message.
        let at = self.end().fetch_add(bytes as u64, Ordering::Relaxed);
        let end = at.saturating_add(bytes as u64);
        expect_room_in_files(end, "memory for a communicator")?;
        loop {
            let size = rustix::fs::fstat(&self.fd).map(|s| s.st_size as u64);
            if size.is_ok_and(|size| size >= end) {
                return Ok(at);
            }
            match rustix::fs::ftruncate(&self.fd, end) {
                // Another one has made it longer meanwhile, and nobody can make it shorter.
                Ok(()) | Err(Errno::PERM | Errno::INTR) => {}
                Err(e) => {
                    return Err(Error::system(format!("{bytes} bytes for a communicator (ftruncate)"), e, ""))
                }
            }
        }
    }

    /// Reserves pages (step 3), so that touching them cannot fail later. `need` is for the message.
    pub(super) fn reserve(&self, at: u64, len: usize, need: usize) -> Result<(), Error> {
        let reserve = || rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), at, len as u64);
        throttle::pause();
        // What is kept for others makes room.
        match reserve().or_else(|e| if self.release_kept() { reserve() } else { Err(e) }) {
            Ok(()) => Ok(()),
            Err(e @ (Errno::NOSPC | Errno::NOMEM)) => {
                let available = available_memory(&Root::live()).available_bytes.unwrap_or(0);
                let source_of_limit = format!("fallocate: {e}");
                Err(Error::Memory { need: need as u64, available, source_of_limit })
            }
            // A sandbox that lacks the call, or refuses it.
            Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS) => self.touch(at, len, need),
            Err(e) => {
                Err(Error::system(format!("reserving {len} bytes of shared memory (fallocate)"), e, ""))
            }
        }
    }

    /// Has the pages there by touching them, which changes nothing in them.
    fn touch(&self, at: u64, len: usize, need: usize) -> Result<(), Error> {
        // Where there is no room the system might end the process instead of saying so.
        let memory = available_memory(&Root::live());
        if let Some(available) = memory.available_bytes.filter(|&available| available < len as u64) {
            return Err(Error::Memory { need: need as u64, available, source_of_limit: memory.to_string() });
        }
        let from = at - at % PAGE as u64;
        let bytes = (at + len as u64 - from) as usize;
        let base = super::map_bytes(self.fd.as_fd(), from, bytes)?;
        // SAFETY: just mapped, so many bytes; to populate it changes no content.
        if unsafe { rustix::mm::madvise(base.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) }.is_err() {
            for page in (0..bytes).step_by(PAGE) {
                // SAFETY: a word at the beginning of a page of the mapping. Whoever uses it meanwhile does so atomically, or not before this
                // returns.
                let word = unsafe { &*base.as_ptr().add(page).cast::<AtomicU64>() };
                // Relaxed: it writes what is there.
                word.fetch_or(0, Ordering::Relaxed);
            }
        }
        // SAFETY: nobody else knows this mapping.
        unsafe { super::unmap(base, bytes) };
        Ok(())
    }

    /// Gives pages back (step 4).
    pub(super) fn release(&self, at: u64, len: usize) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A kernel that cannot keeps the pages until the last process closes the descriptor.
        let _ = rustix::fs::fallocate(&self.fd, hole, at, len as u64);
    }

    fn mappings(&self) -> MutexGuard<'_, Mappings> {
        // A thread that panicked here left it as it was.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment that begins at `at`, mapped once a process. `renew` where the caller took memory that was kept, and makes it new.
    pub(super) fn open(
        pool: &Arc<TeamMemory>,
        at: u64,
        geometry: Geometry,
        renew: bool,
    ) -> Result<Arc<Segment>, Error> {
        let mut mappings = pool.mappings();
        let mapping = match mappings.mapping(at, geometry.total()) {
            Some(mapping) => mapping,
            None => {
                pool.expect_within(at, geometry.total())?;
                Arc::new(Mapping::new(pool.fd(), at, geometry.total())?)
            }
        };
        // One that nobody uses any more may still be held.
        let found = if renew { None } else { mappings.segment(at, mapping.generation()) };
        Ok(found.unwrap_or_else(|| {
            let segment = Arc::new(Segment::of(pool, at, geometry, Arc::clone(&mapping)));
            if renew {
                segment.renew();
            }
            mappings.enter(at, &segment, &mapping);
            segment
        }))
    }

    /// Returns whether a stretch that another rank speaks of lies in the memory: nobody makes that shorter.
    ///
    /// # Errors
    /// [`Error::System`].
    pub(super) fn expect_within(&self, at: u64, bytes: usize) -> Result<(), Error> {
        let size = rustix::fs::fstat(&self.fd).map(|s| s.st_size as u64);
        let size =
            size.map_err(|e| Error::system("asking for the length of the team's memory (fstat)", e, ""))?;
        match at.checked_add(bytes as u64).filter(|&end| end <= size && at % PAGE as u64 == 0) {
            Some(_) => Ok(()),
            None => {
                let why = format!("{bytes} bytes from {at} on are not in its {size}");
                Err(Error::system("the team's memory", why, "; make a new communicator"))
            }
        }
    }

    /// The heaps that are mapped, by where they begin.
    pub(super) fn heaps(&self) -> MutexGuard<'_, HashMap<u64, Weak<Heap>>> {
        // As above.
        self.heaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of a segment that is gone.
    pub(super) fn close(&self, at: u64, mapping: &Arc<Mapping>) {
        self.mappings().close(at, mapping);
    }
}

/// Refuses what the limit on the size of files does not allow: going beyond would be a signal.
pub(super) fn expect_room_in_files(end: u64, what: &str) -> Result<(), Error> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current.unwrap_or(u64::MAX);
    let limit = limit.min(i64::MAX as u64);
    if end > limit {
        let why = format!("it would end at byte {end} and files are limited to {limit} bytes");
        return Err(Error::system(what, why, "; raise `ulimit -f`"));
    }
    Ok(())
}

impl Drop for TeamMemory {
    fn drop(&mut self) {
        // SAFETY: the page is owned by this value.
        unsafe { super::unmap(self.first, PAGE) };
    }
}
