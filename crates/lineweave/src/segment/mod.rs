//! The memory that the ranks of a team share: a header, and for each rank an area with its flags and boxes.
//!
//! It is a memfd: it has no name that could stay behind, it is not limited by the size of /dev/shm, and its
//! pages are reserved before anybody uses them, so that lack of memory is an error and not a signal. Each rank
//! reserves its own area, from the CPU it runs on, so that the pages lie in its memory.
//!
//! ```text
//! header | blob (what the creator tells all ranks) | area of rank 0 | area of rank 1 | ...
//! area:   control page | counters page | small banks | large banks
//! bank:   packed flags | paired flags | paired in two generations | flags alone | slots
//! ```

mod geometry;
mod words;

pub use geometry::{BankClass, Geometry, Zones, COUNTER_BYTES};
pub use words::RankState;

use crate::error::Error;
use crate::memory::available_memory;
use crate::sync::{AtomicU64, Ordering};
use crate::sysfile::Root;
use lineweave_core::units::LINE;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use words::header;

/// The most ranks of a team: what one node can be expected to run.
pub const MAX_RANKS: usize = 4096;

const PAGE: usize = 4096;
/// "lineweav", little-endian; the version follows in a word of its own.
const MAGIC: u64 = u64::from_le_bytes(*b"lineweav");
/// The ring for messages from one rank to another: where its counts and cells lie in a mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mail {
    start: *mut u8,
    cell_bytes: usize,
}

impl Mail {
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

/// A mapping of a team's shared memory.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    geometry: Geometry,
    fd: OwnedFd,
}

// SAFETY: the mapping stays valid until the last owner drops it; all shared words are atomics, and other
// bytes are only accessed in the order that the plans' flags give them.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

/// What a segment's version word holds: a team may only consist of equal builds of the format.
fn version_word() -> u64 {
    env!("CARGO_PKG_VERSION").bytes().fold(1, |h, b| h.wrapping_mul(257) + u64::from(b))
}

impl Segment {
    /// A new segment, with `blob` to be read by every rank.
    ///
    /// # Errors
    /// [`Error::TeamSize`], [`Error::Memory`] when the header cannot be reserved or the whole cannot be had,
    /// [`Error::System`] when the kernel has no memfd.
    pub fn create(ranks: usize, box_bytes: usize, blob: &[u8]) -> Result<Segment, Error> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::TeamSize { ranks, most: MAX_RANKS });
        }
        let geometry = Geometry::new(ranks, box_bytes, blob.len());
        let (need, total) = (geometry.reserved() as u64, geometry.total());
        let memory = available_memory(&Root::live());
        if let Some(available) = memory.available_bytes.filter(|&a| a < need) {
            return Err(Error::Memory { need, available, source_of_limit: memory.to_string() });
        }
        let fd = rustix::fs::memfd_create("lineweave", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC)
            .map_err(|e| {
                Error::system(
                    "memfd_create for the team's memory",
                    e,
                    "; lineweave needs Linux 3.17 or later",
                )
            })?;
        rustix::fs::ftruncate(&fd, total as u64)
            .map_err(|e| Error::system(format!("sizing the team's memory to {total} bytes"), e, ""))?;
        // Nobody can shrink it under a reader: that would be a SIGBUS.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&fd, seals)
            .map_err(|e| Error::system("sealing the team's memory", e, ""))?;
        let segment = Segment::map(fd, geometry)?;
        segment.reserve(0, geometry.areas_start())?;
        for (word, value) in [
            (header::VERSION, version_word()),
            (header::RANKS, ranks as u64),
            (header::BOX_BYTES, geometry.box_bytes as u64),
            (header::BLOB_BYTES, blob.len() as u64),
        ] {
            // Relaxed: published by the store of the magic below.
            segment.header(word).store(value, Ordering::Relaxed);
        }
        // SAFETY: the blob lies behind the header page and before the areas, reserved above; no other rank
        // knows the segment yet.
        unsafe { std::ptr::copy_nonoverlapping(blob.as_ptr(), segment.base.as_ptr().add(PAGE), blob.len()) };
        // SYNC: segment
        segment.header(header::MAGIC).store(MAGIC, Ordering::Release);
        Ok(segment)
    }

    /// Maps a segment that another rank created.
    ///
    /// # Errors
    /// [`Error::Foreign`] when the descriptor is not a segment of this version.
    pub fn attach(fd: OwnedFd) -> Result<Segment, Error> {
        let size = rustix::fs::fstat(&fd)
            .map_err(|e| Error::system("reading the team's descriptor", e, "; was it inherited or closed?"))?
            .st_size as usize;
        let foreign = |found: String| Error::Foreign {
            expected: format!("a lineweave {} segment", env!("CARGO_PKG_VERSION")),
            found,
        };
        if size < PAGE {
            return Err(foreign(format!("a file of {size} bytes")));
        }
        let seals =
            rustix::fs::fcntl_get_seals(&fd).map_err(|_| foreign("a file that is not a memfd".into()))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(foreign("a memfd that may shrink".into()));
        }
        let probe = Segment::map_bytes(fd.as_fd(), PAGE)?;
        // SAFETY: the page just mapped is as large as the header and page-aligned.
        let word = |i: usize| unsafe { &*probe.as_ptr().cast::<AtomicU64>().add(i) };
        // SYNC: segment
        let magic = word(header::MAGIC).load(Ordering::Acquire);
        // Relaxed: ordered by the load of the magic above.
        let read = |i: usize| word(i).load(Ordering::Relaxed);
        let (version, ranks, box_bytes, blob) =
            (read(header::VERSION), read(header::RANKS), read(header::BOX_BYTES), read(header::BLOB_BYTES));
        // SAFETY: mapped above and not used after this.
        unsafe { unmap(probe, PAGE) };
        if magic != MAGIC {
            return Err(foreign("a file without lineweave's mark".into()));
        }
        if version != version_word() {
            return Err(foreign(format!("a segment of another version (mark {version:x})")));
        }
        let sane = ranks as usize <= MAX_RANKS && (box_bytes as usize) < size && (blob as usize) < size;
        let geometry = Geometry::new(ranks as usize, box_bytes as usize, blob as usize);
        if !sane || geometry.total() != size {
            return Err(foreign(format!("a segment whose header does not fit its {size} bytes")));
        }
        Segment::map(fd, geometry)
    }

    fn map(fd: OwnedFd, geometry: Geometry) -> Result<Segment, Error> {
        let base = Segment::map_bytes(fd.as_fd(), geometry.total())?;
        Ok(Segment { base, geometry, fd })
    }

    fn map_bytes(fd: BorrowedFd<'_>, bytes: usize) -> Result<NonNull<u8>, Error> {
        // SAFETY: a fresh shared mapping at an address of the kernel's choice aliases nothing of Rust's.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )
        }
        .map_err(|e| {
            Error::system(format!("mapping {bytes} bytes of the team's memory"), e, "; check `ulimit -v`")
        })?;
        NonNull::new(at.cast::<u8>()).ok_or_else(|| Error::system("mapping the team's memory", "null", ""))
    }

    /// Reserves pages, so that touching them cannot fail later.
    fn reserve(&self, offset: usize, len: usize) -> Result<(), Error> {
        rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), offset as u64, len as u64).map_err(|e| {
            Error::Memory {
                need: self.geometry.reserved() as u64,
                available: 0,
                source_of_limit: format!("fallocate: {e}"),
            }
        })
    }

    /// Reserves and touches the area of `rank`, from the rank's own CPU.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn claim(&self, rank: usize) -> Result<(), Error> {
        self.reserve(self.geometry.areas_start() + rank * self.geometry.area(), self.geometry.area())
    }

    /// Reserves the ring for messages from one rank to another, which may be reserved already.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_mail(&self, from: usize, to: usize) -> Result<Mail, Error> {
        let (offset, len) = (self.geometry.mail(from, to), self.geometry.mail_bytes());
        self.reserve(offset, len)?;
        // SAFETY: within the mapping by construction of the geometry.
        let start = unsafe { self.base.as_ptr().add(offset) };
        Ok(Mail { start, cell_bytes: self.geometry.mail_cell() })
    }

    /// Reserves `bytes` bytes of a rank's window, and its flags.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn claim_window(&self, rank: usize, bytes: usize) -> Result<(), Error> {
        self.reserve(self.geometry.window(rank), PAGE + bytes)
    }

    /// A flag of a rank's window.
    pub(crate) fn window_flag(&self, rank: usize, flag: usize) -> &AtomicU64 {
        debug_assert!(rank < self.ranks() && flag < Geometry::WINDOW_FLAGS);
        // SAFETY: within the mapping by construction of the geometry, only ever used as an atomic.
        unsafe { &*self.base.as_ptr().add(self.geometry.window(rank) + flag * LINE).cast::<AtomicU64>() }
    }

    /// The bytes of a rank's window.
    pub(crate) fn window(&self, rank: usize) -> *mut u8 {
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base.as_ptr().add(self.geometry.window(rank) + PAGE) }
    }

    /// The descriptor, to be inherited or sent.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sizes and offsets.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.geometry.ranks
    }

    /// What the creator told every rank.
    pub fn blob(&self) -> &[u8] {
        // SAFETY: written before the segment was published, never again.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(PAGE), self.geometry.blob_bytes) }
    }

    /// The start of rank 0's part of a bank; rank `q`'s lies `q * self.area_stride()` further.
    pub fn bank(&self, class: BankClass, bank: usize) -> *mut u8 {
        let offset = self.geometry.areas_start() + self.geometry.bank(class, bank);
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// The start of rank 0's counters.
    pub fn counters(&self) -> *mut u8 {
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base.as_ptr().add(self.geometry.areas_start() + PAGE) }
    }

    /// Distance between the areas of consecutive ranks.
    pub fn area_stride(&self) -> usize {
        self.geometry.area()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value, and communicators hold it by reference count.
        unsafe { unmap(self.base, self.geometry.total()) };
    }
}

/// # Safety
/// The range must be a mapping that nobody uses any more.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: upheld by the caller. A failure would only leave the mapping in place.
    let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Loss;

    #[test]
    fn a_segment_is_attached_by_descriptor_with_its_blob() {
        let made = Segment::create(3, 4096, b"model").unwrap();
        let other = Segment::attach(rustix::io::dup(made.fd()).unwrap()).unwrap();
        assert_eq!(other.ranks(), 3);
        assert_eq!(other.blob(), b"model");
        other.set_failed(2, Loss::Left);
        assert_eq!(made.failed(), Some((2, Loss::Left)));
    }

    #[test]
    fn another_file_is_refused() {
        let fd = rustix::fs::memfd_create("other", MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(matches!(Segment::attach(fd), Err(Error::Foreign { .. })));
        assert!(matches!(Segment::create(0, 4096, b""), Err(Error::TeamSize { .. })));
    }
}
