//! The memory that the ranks of a team share: a header, and for each rank an area with its flags and boxes.
//!
//! It is a memfd: it has no name that could stay behind, it is not limited by the size of /dev/shm, and its
//! pages are reserved before anybody uses them, so that lack of memory is an error and not a signal. Each rank
//! reserves its own area, from the CPU it runs on, so that the pages lie in its memory (`near.rs`).
//!
//! ```text
//! header | blob (what the creator tells all ranks) | area of rank 0 | area of rank 1 | ... | rings for messages | windows
//! area:   control page | counters page | small banks | large banks
//! bank:   packed flags | paired flags | paired in two generations | flags alone | slots
//! ```
//!
//! Behind it are the records that processes of the team keep for each other (`records.rs`). Buffers that ranks share lie further on in it too, in heaps (`heap.rs`).
//!
//! Communicators that are made from a team have segments of the same form, without a blob, further on in the same memfd
//! ([`TeamMemory`]). Their pages are reserved bank by bank, as plans need them. Rings for messages and windows take pages when they
//! are used, in every segment.

// For tests/loom.rs.
#[doc(hidden)]
pub mod announce;
mod record_table;
mod geometry;
mod heap;
// For tests/loom.rs.
#[doc(hidden)]
pub mod free_extents;
mod heap_registry;
mod mail;
mod map;
mod mapping;
mod mapped;
mod team_memory;
mod records;
mod reservation;
mod reusable;
mod words;
mod header;
mod header_words;
mod note;
mod observe;
mod visit;
mod within;

pub use geometry::{BankClass, Geometry, LargeBanks, Zones, COUNTER_BYTES};
pub(crate) use heap::{expect_memory, parts, too_large, Heap, Ledger, Part, RankHeap};
pub(crate) use heap_registry::{far, HeapRegistry};
pub(crate) use mail::P2pRing;
pub(crate) use mapped::Mapped;
pub use note::{Awaited, Setup, WaitNote};
pub use observe::{Observed, ObservedRank};
pub(crate) use record_table::RecordId;
use record_table::RecordTable;
pub(crate) use records::Seen;
pub(crate) use reusable::ReusableState;
pub use team_memory::TeamMemory;
pub(crate) use visit::Unwinding;
pub use words::RankState;

use map::{map_bytes, unmap, PAGE};
use mapping::Mapping;

use crate::error::{Error, Loss};
use crate::memory::available_memory;
use crate::near;
use crate::sync::{yield_now, AtomicBool, AtomicU64, Ordering};
use crate::sysfile::Root;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The most ranks of a team: what one node can be expected to run.
pub const MAX_RANKS: usize = 4096;

/// Name of the memfd in `/proc`.
pub const MEMFD_NAME: &str = "lineweave";

/// "lineweav", little-endian; the version follows in a word of its own.
const MAGIC: u64 = u64::from_le_bytes(*b"lineweav");

/// A mapping of a team's shared memory.
#[derive(Debug)]
pub struct Segment {
    mapping: Arc<Mapping>,
    geometry: Geometry,
    pool: Arc<TeamMemory>,
    /// Offset of the segment in the pool.
    at: u64,
    /// Ranks that are threads of this process. Kept here: what other processes can write proves nothing about addresses.
    here: Box<[AtomicBool]>,
    /// Ranks whose large banks this process has reserved after they joined.
    late_banks: Box<[AtomicBool]>,
}

impl Segment {
    /// [`Segment::of_geometry`] for ranks that reserve all when they join.
    ///
    /// # Errors
    /// The errors of [`Segment::of_geometry`].
    #[cfg(test)]
    pub(crate) fn create(ranks: usize, box_bytes: usize, blob: &[u8]) -> Result<Segment, Error> {
        Segment::of_geometry(Geometry::new(ranks, box_bytes, blob.len()), blob)
    }

    /// A new segment of this geometry, with `blob` to be read by every rank.
    ///
    /// # Errors
    /// [`Error::TeamSize`], [`Error::Memory`] when the header cannot be reserved or the whole cannot be had,
    /// [`Error::System`] when the kernel has no memfd.
    pub(crate) fn of_geometry(geometry: Geometry, blob: &[u8]) -> Result<Segment, Error> {
        let ranks = geometry.ranks;
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::TeamSize { ranks, most: MAX_RANKS });
        }
        let (need, total) = (geometry.reserved() as u64, geometry.total());
        let memory = available_memory(&Root::live());
        if let Some(available) = memory.available_bytes.filter(|&a| a < need) {
            return Err(Error::Memory { need, available, source_of_limit: memory.to_string() });
        }
        team_memory::expect_room_in_files((total + RecordTable::BYTES) as u64, "the team's memory")?;
        let fd = rustix::fs::memfd_create(MEMFD_NAME, MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC)
            .map_err(|e| Error::system("memfd_create for the team's memory", e, no_memfd(e)))?;
        let (board, end) = (total as u64, (total + RecordTable::BYTES) as u64);
        rustix::fs::ftruncate(&fd, end)
            .map_err(|e| Error::system(format!("ftruncate of the team's memory to {end} bytes"), e, ""))?;
        // Nobody can shrink it under a reader: that would be a SIGBUS. It grows with the communicators.
        let seals = SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&fd, seals)
            .map_err(|e| Error::system("sealing the team's memory (fcntl)", e, ""))?;
        let segment = Segment::map(TeamMemory::new(fd)?, geometry)?;
        segment.keep_near();
        segment.reserve(0, geometry.areas_start())?;
        segment.pool.reserve(board, RecordTable::INDEX, geometry.reserved())?;
        // Relaxed: published by the store of the magic below.
        segment.header(header_words::BOARD).store(board, Ordering::Relaxed);
        // Relaxed: as above.
        segment.pool.end().store(end, Ordering::Relaxed);
        // SAFETY: the blob lies behind the header page and before the areas, reserved above; no other rank
        // knows the segment yet.
        unsafe { std::ptr::copy_nonoverlapping(blob.as_ptr(), segment.base().add(PAGE), blob.len()) };
        segment.describe();
        Ok(segment)
    }

    /// Says in the header what it is; the magic comes last.
    fn describe(&self) {
        let words = header::words(&self.geometry);
        for (word, value) in words.into_iter().enumerate().skip(1) {
            // Relaxed: published by the store of the magic.
            self.header(word).store(value, Ordering::Relaxed);
        }
        // SYNC: segment
        self.header(header_words::MAGIC).store(words[header_words::MAGIC], Ordering::Release);
    }

    /// Returns the offset of the segment in the team's memory.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Has the other ranks of a team find it failed, without mapping it.
    pub(crate) fn give_up(fd: BorrowedFd<'_>, rank: usize) {
        let mut magic = [0; 8];
        if rustix::io::pread(fd, &mut magic, 0) == Ok(8) && u64::from_ne_bytes(magic) == MAGIC {
            say_failed(fd, 0, rank);
        }
    }

    /// Maps a segment that another rank created.
    ///
    /// # Errors
    /// [`Error::Foreign`] when the descriptor is not a segment of this version.
    pub(crate) fn attach(fd: OwnedFd) -> Result<Segment, Error> {
        let size = rustix::fs::fstat(&fd)
            .map_err(|e| {
                Error::system("reading the team's descriptor (fstat)", e, "; was it inherited or closed?")
            })?
            .st_size as usize;
        if size < PAGE {
            return Err(header::foreign(format!("a file of {size} bytes")));
        }
        let seals = rustix::fs::fcntl_get_seals(&fd).map_err(|e| match e {
            Errno::INVAL => header::foreign("a file that is not a memfd"),
            e => Error::system("asking for the seals of the team's memory (fcntl)", e, ""),
        })?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(header::foreign("a memfd that may shrink"));
        }
        let probe = map_bytes(fd.as_fd(), 0, PAGE)?;
        // SAFETY: the page just mapped is as large as the header and page-aligned.
        let word = |i: usize| unsafe { &*probe.as_ptr().cast::<AtomicU64>().add(i) };
        // SYNC: segment
        let magic = word(header_words::MAGIC).load(Ordering::Acquire);
        // Relaxed: ordered by the load of the magic above.
        let mut words: [u64; header::WORDS] = std::array::from_fn(|i| word(i).load(Ordering::Relaxed));
        words[header_words::MAGIC] = magic;
        // SAFETY: mapped above and not used after this.
        unsafe { unmap(probe, PAGE) };
        let geometry = header::read(&words, size as u64)?;
        Segment::map(TeamMemory::new(fd)?, geometry)
    }

    fn map(pool: TeamMemory, geometry: Geometry) -> Result<Segment, Error> {
        let mapping = Arc::new(Mapping::new(pool.fd(), 0, geometry.total())?);
        Ok(Segment::of(&Arc::new(pool), 0, geometry, mapping))
    }

    fn of(pool: &Arc<TeamMemory>, at: u64, geometry: Geometry, mapping: Arc<Mapping>) -> Segment {
        let none = || (0..geometry.ranks).map(|_| AtomicBool::new(false)).collect();
        Segment { mapping, geometry, pool: Arc::clone(pool), at, here: none(), late_banks: none() }
    }

    fn base(&self) -> *mut u8 {
        self.mapping.base.as_ptr()
    }

    /// Has each rank's pages come from its own node, as far as the kernel can be asked to. Without, they mostly do.
    fn keep_near(&self) {
        near::keep(self.base(), self.geometry.total());
    }

    /// Gives the memory back, when no rank is left. What is behind the team's first pages tells where other segments are.
    fn give_back(&self) {
        let kept = if self.at == 0 { self.geometry.areas_start() } else { 0 };
        self.pool.release(self.at + kept as u64, self.geometry.total() - kept);
    }

    /// The descriptor, to be inherited or sent.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.pool.fd()
    }

    /// Says that `rank` is a thread of this process. To be followed by its join.
    pub(crate) fn settle_here(&self, rank: usize) {
        // Relaxed: published by the join.
        self.here[rank].store(true, Ordering::Relaxed);
    }

    /// Returns whether a rank is a thread of this process, so that its addresses are this one's.
    pub fn is_here(&self, rank: usize) -> bool {
        // Relaxed: only used after the join, which orders it.
        self.here[rank].load(Ordering::Relaxed)
    }

    /// Returns whether it belongs to the process that this one was forked from.
    #[inline(always)]
    pub fn is_inherited(&self) -> bool {
        self.pool.is_inherited()
    }

    /// The memory that this segment is a stretch of.
    pub fn pool(&self) -> &Arc<TeamMemory> {
        &self.pool
    }

    /// Sizes and offsets.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.geometry.ranks
    }

    /// Returns the bytes that the creator told every rank.
    pub fn blob(&self) -> &[u8] {
        // SAFETY: written before the segment was published, never again.
        unsafe { std::slice::from_raw_parts(self.base().add(PAGE), self.geometry.blob_bytes) }
    }

    /// The start of rank 0's part of a bank; rank `q`'s lies `q * self.area_stride()` further.
    pub(crate) fn bank(&self, class: BankClass, bank: usize) -> *mut u8 {
        let offset = self.geometry.areas_start() + self.geometry.bank(class, bank);
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base().add(offset) }
    }

    /// The start of rank 0's counters.
    pub(crate) fn counters(&self) -> *mut u8 {
        // SAFETY: within the mapping by construction of the geometry.
        unsafe { self.base().add(self.geometry.areas_start() + PAGE) }
    }

    /// Distance between the areas of consecutive ranks.
    pub(crate) fn area_stride(&self) -> usize {
        self.geometry.area()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.at > 0 {
            self.pool.close(self.at, &self.mapping);
        } else if self.failed().is_some() {
            // Ranks that share CPUs all wait to hear who is lost, and to unmap takes longer than to say so.
            yield_now();
        }
    }
}

/// Says in the header at `at` that a rank failed.
fn say_failed(fd: BorrowedFd<'_>, at: u64, rank: usize) {
    let word = words::failure(rank, Loss::Failed).to_ne_bytes();
    // The header is there: its maker reserved it. Should this fail as well, the others' time limit ends it.
    let _ = rustix::io::pwrite(fd, &word, at + 8 * header_words::FAILED as u64);
}

/// Returns advice about a memfd that cannot be had.
fn no_memfd(e: Errno) -> &'static str {
    match e {
        Errno::NOSYS => "; lineweave needs Linux 3.17 or later",
        Errno::MFILE | Errno::NFILE => "; close descriptors, or raise `ulimit -n`",
        Errno::PERM | Errno::ACCESS => "; allow memfd_create in the sandbox or its seccomp filter",
        _ => "",
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_team_that_memory_or_addresses_do_not_suffice_for_is_refused() {
        match Segment::create(MAX_RANKS, 1 << 40, &[]) {
            Err(Error::Memory { need, available, .. }) => assert!(need > 1 << 52 && available < need),
            other => panic!("{other:?}"),
        }
        let more = Segment::create(MAX_RANKS + 1, 1 << 20, &[]);
        assert!(matches!(more, Err(Error::TeamSize { most: MAX_RANKS, .. })), "{more:?}");
        // More addresses than a process has.
        let team = Segment::create(1, 1 << 12, &[]).unwrap();
        let error = map_bytes(team.fd(), 0, 1 << 60).expect_err("2^60 addresses").to_string();
        assert!(error.contains(&(1u64 << 60).to_string()) && error.contains("mapping"), "{error}");
    }

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
    fn segments_within_take_pages_when_reserved_and_give_them_back() {
        let team = Segment::create(4, 65536, b"").unwrap();
        let before = team.pool().occupied_bytes().unwrap();
        let at = team.found(3, 0).unwrap().at();
        let (one, same) = (team.open(at, 3).unwrap(), team.open(at, 3).unwrap());
        assert!(Arc::ptr_eq(&one, &same), "mapped once");
        let elsewhere = Segment::attach(rustix::io::dup(team.fd()).unwrap()).unwrap().open(at, 3).unwrap();
        one.claim_part(2, 0..PAGE).unwrap();
        one.sign(2, 77);
        assert_eq!(elsewhere.process(2), 77);
        assert_eq!(team.pool().occupied_bytes().unwrap() - before, 2 * PAGE as u64);
        for lie in [at + 1, 1 << 60, u64::MAX - 4095] {
            let error = team.open(lie, 3).expect_err("not in the memory").to_string();
            assert!(error.contains("are not in its"), "{error}");
        }
        let next = team.found(1, 0).unwrap().at();
        assert!(next >= at + one.geometry().total() as u64);
        drop(team);
        (0..3).for_each(|_| one.depart(None, 0));
        assert_eq!(
            one.pool().occupied_bytes().unwrap() - before,
            PAGE as u64,
            "the other one's header stays"
        );
    }

    #[test]
    fn a_memfd_that_is_refused_is_not_blamed_on_the_kernel() {
        assert!(no_memfd(Errno::NOSYS).contains("Linux"));
        for refused in [Errno::PERM, Errno::ACCESS] {
            assert!(no_memfd(refused).contains("sandbox") && !no_memfd(refused).contains("Linux"));
        }
        assert!(no_memfd(Errno::MFILE).contains("ulimit -n"));
    }

    #[test]
    fn another_file_is_refused() {
        let fd = rustix::fs::memfd_create("other", MemfdFlags::ALLOW_SEALING).unwrap();
        assert!(matches!(Segment::attach(fd), Err(Error::Foreign { .. })));
        assert!(matches!(Segment::create(0, 4096, b""), Err(Error::TeamSize { .. })));
    }
}
