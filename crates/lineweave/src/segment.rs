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

use crate::error::{Error, Loss};
use crate::memory::available_memory;
use crate::ring;
use crate::sync::{AtomicU64, Ordering};
use crate::sysfile::Root;
use lineweave_core::plan::Layout;
use lineweave_core::select::{LARGE_BANKS, SMALL_BANKS, SMALL_SLOTS};
use lineweave_core::units::LINE;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// The most ranks of a team: what one node can be expected to run.
pub const MAX_RANKS: usize = 4096;

const PAGE: usize = 4096;
/// "lineweav", little-endian; the version follows in a word of its own.
const MAGIC: u64 = u64::from_le_bytes(*b"lineweav");

/// Words of the header.
mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const RANKS: usize = 2;
    pub const BOX_BYTES: usize = 3;
    pub const BLOB_BYTES: usize = 4;
    pub const JOINED: usize = 8;
    pub const UNABLE: usize = 9;
    pub const FAILED: usize = 16;
}

/// Words of a rank's control page; each group on a line of its own.
mod control {
    pub const LEFT: usize = 0;
    pub const SLEEPERS: usize = 8;
    pub const PID: usize = 16;
    pub const STATE: usize = 17;
    pub const SEQUENCE: usize = 24;
    pub const CHECK: usize = 32;
}

/// An odd number of lines between banks, so that equal offsets in them fall into different cache sets.
const STAGGER: usize = LINE * 3;
/// Counters (fetch-and-add flags) live outside the banks, because their start must be known.
pub const COUNTER_BYTES: usize = PAGE;

/// Which ring of banks a plan uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BankClass {
    /// Flags of a flat plan over some 64 ranks, and a few short messages.
    Small,
    /// Up to the team's box size, and flags.
    Large,
}

impl BankClass {
    /// Index into per-class tables.
    pub fn index(self) -> usize {
        match self {
            BankClass::Small => 0,
            BankClass::Large => 1,
        }
    }
}

/// Where a plan's memory lies in a bank, at each rank. Flags, the payloads beside them, and slots have zones
/// of their own: a word that is a flag of one plan is never payload or slot of another, so a flag's word
/// only ever holds earlier flag values, which are below every threshold to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zones {
    /// Bytes for packed flags.
    pub packed: usize,
    /// Bytes for paired flags and their payloads.
    pub paired: usize,
    /// Bytes for paired flags in two generations (see `compile`), with payloads of up to 8 bytes.
    pub twin: usize,
    /// Bytes for flags alone on a line or spread, and their payloads.
    pub alone: usize,
    /// Bytes for slots.
    pub slots: usize,
}

impl Zones {
    /// Start and size of the zone for flags of a layout.
    pub fn flags(&self, layout: Layout) -> (usize, usize) {
        match layout {
            Layout::Packed => (0, self.packed),
            Layout::Paired => (self.packed, self.paired),
            Layout::Alone | Layout::Spread(_) => (self.packed + self.paired + self.twin, self.alone),
        }
    }

    /// Start and size of the zone for paired flags in two generations.
    pub fn twin_flags(&self) -> (usize, usize) {
        (self.packed + self.paired, self.twin)
    }

    /// Start of the slots.
    pub fn slots_start(&self) -> usize {
        self.packed + self.paired + self.twin + self.alone
    }

    /// Bytes of a bank.
    pub fn total(&self) -> usize {
        self.slots_start() + self.slots
    }
}

/// State of a rank as its peers see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RankState {
    /// Not yet joined.
    Absent,
    /// Joined.
    Active,
    /// Left between calls.
    Left,
    /// Dropped its communicator within a call, or panicked.
    Failed,
}

/// Sizes and offsets of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    ranks: usize,
    box_bytes: usize,
    blob_bytes: usize,
}

fn pages(bytes: usize) -> usize {
    bytes.div_ceil(PAGE) * PAGE
}

impl Geometry {
    /// For `ranks` ranks, boxes of `box_bytes` and a blob of `blob_bytes`.
    pub fn new(ranks: usize, box_bytes: usize, blob_bytes: usize) -> Geometry {
        Geometry { ranks, box_bytes: pages(box_bytes), blob_bytes }
    }

    /// What a plan may use in a bank of this class, at each rank.
    pub fn zones(&self, class: BankClass) -> Zones {
        match class {
            BankClass::Small => {
                Zones { packed: 512, paired: 1024, twin: 1024, alone: 4096, slots: SMALL_SLOTS }
            }
            // Flags of flat plans grow with the ranks: two lines for each.
            BankClass::Large => Zones {
                packed: PAGE.max(self.ranks * 8).next_multiple_of(LINE),
                paired: (2 * PAGE).max(self.ranks * LINE),
                twin: PAGE,
                alone: (8 * PAGE).max(self.ranks * 2 * LINE),
                slots: self.box_bytes,
            },
        }
    }

    /// Banks of a class.
    pub fn banks(class: BankClass) -> usize {
        match class {
            BankClass::Small => SMALL_BANKS,
            BankClass::Large => LARGE_BANKS,
        }
    }

    /// Offset of a bank within an area.
    fn bank(&self, class: BankClass, bank: usize) -> usize {
        let stride = |class| self.zones(class).total() + STAGGER;
        let start = match class {
            BankClass::Small => 2 * PAGE,
            BankClass::Large => 2 * PAGE + pages(SMALL_BANKS * stride(BankClass::Small)),
        };
        start + bank * stride(class)
    }

    fn area(&self) -> usize {
        pages(self.bank(BankClass::Large, LARGE_BANKS))
    }

    fn areas_start(&self) -> usize {
        PAGE + pages(self.blob_bytes)
    }

    /// Bytes of the whole segment.
    pub fn total(&self) -> usize {
        self.areas_start() + self.ranks * self.area()
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
        let total = geometry.total();
        let memory = available_memory(&Root::live());
        if let Some(available) = memory.available_bytes.filter(|&a| a < total as u64) {
            return Err(Error::Memory { need: total as u64, available, source_of_limit: memory.to_string() });
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
                need: self.geometry.total() as u64,
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

    fn header(&self, word: usize) -> &AtomicU64 {
        // SAFETY: the header is one page of words at the start of the mapping, only ever used as atomics.
        unsafe { &*self.base.as_ptr().cast::<AtomicU64>().add(word) }
    }

    fn control(&self, rank: usize, word: usize) -> &AtomicU64 {
        debug_assert!(rank < self.ranks() && word < PAGE / 8);
        let offset = self.geometry.areas_start() + rank * self.geometry.area();
        // SAFETY: the control page of a rank within the mapping, only ever used as atomics.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>().add(word) }
    }

    /// Sleepers on flags whose home is `rank`.
    #[inline(always)]
    pub fn sleepers(&self, rank: usize) -> &AtomicU64 {
        self.control(rank, control::SLEEPERS)
    }

    /// How many uses of a ring `rank` has left.
    #[inline(always)]
    pub fn left(&self, rank: usize, class: BankClass) -> &AtomicU64 {
        self.control(rank, control::LEFT + class.index())
    }

    /// The sequence number of the call that `rank` entered last.
    #[inline(always)]
    pub fn sequence(&self, rank: usize) -> &AtomicU64 {
        self.control(rank, control::SEQUENCE)
    }

    /// Words where `rank` announces its call number `sequence` for the checks; the first is the flag.
    pub fn check(&self, rank: usize, sequence: u64) -> [&AtomicU64; 8] {
        let line = control::CHECK + 8 * (sequence % 2) as usize;
        std::array::from_fn(|i| self.control(rank, line + i))
    }

    /// The process of a rank, 0 before it joined.
    pub fn pid(&self, rank: usize) -> u32 {
        // Relaxed: only used after the join, which orders it.
        self.control(rank, control::PID).load(Ordering::Relaxed) as u32
    }

    /// The state of a rank.
    pub fn state(&self, rank: usize) -> RankState {
        // SYNC: rank-state
        match self.control(rank, control::STATE).load(Ordering::Acquire) {
            0 => RankState::Absent,
            1 => RankState::Active,
            2 => RankState::Left,
            _ => RankState::Failed,
        }
    }

    /// Publishes the state of a rank.
    pub fn set_state(&self, rank: usize, state: RankState) {
        let word = match state {
            RankState::Absent => 0,
            RankState::Active => 1,
            RankState::Left => 2,
            RankState::Failed => 3,
        };
        // SYNC: rank-state
        self.control(rank, control::STATE).store(word, Ordering::Release);
    }

    /// Announces that `rank` has joined from this process; `able` is whether it can use `membarrier`.
    pub fn join(&self, rank: usize, able: bool) {
        // Relaxed: published by the increment below.
        self.control(rank, control::PID).store(u64::from(std::process::id()), Ordering::Relaxed);
        self.set_state(rank, RankState::Active);
        // SYNC: join
        self.header(header::UNABLE).fetch_add(u64::from(!able), Ordering::AcqRel);
        // SYNC: join
        self.header(header::JOINED).fetch_add(1, Ordering::AcqRel);
    }

    /// How many ranks have joined.
    pub fn joined(&self) -> usize {
        // SYNC: join
        self.header(header::JOINED).load(Ordering::Acquire) as usize
    }

    /// Whether every rank that joined can use `membarrier`.
    pub fn all_able(&self) -> bool {
        // Relaxed: read after everybody's join was seen.
        self.header(header::UNABLE).load(Ordering::Relaxed) == 0
    }

    /// The rank whose loss ended this team, and how it was lost.
    pub fn failed(&self) -> Option<(usize, Loss)> {
        // Relaxed: the word is the whole message.
        let word = self.header(header::FAILED).load(Ordering::Relaxed);
        let rank = ((word & u64::from(u32::MAX)) as usize).checked_sub(1)?;
        let how = match word >> 32 {
            0 => Loss::Died,
            1 => Loss::Left,
            _ => Loss::Failed,
        };
        Some((rank, how))
    }

    /// Records that `rank` is lost; the first record stays.
    pub fn set_failed(&self, rank: usize, how: Loss) {
        let how = match how {
            Loss::Died => 0,
            Loss::Left => 1,
            Loss::Failed => 2,
        };
        // Relaxed: the word is the whole message, here and on failure.
        let _ = self.header(header::FAILED).compare_exchange(
            0,
            how << 32 | (rank as u64 + 1),
            Ordering::Relaxed, // Relaxed: as above.
            Ordering::Relaxed, // Relaxed: as above.
        );
    }

    /// The lowest `left` of all ranks in a ring.
    pub fn least_left(&self, class: BankClass) -> u64 {
        (0..self.ranks()).map(|q| ring::left(self.left(q, class))).min().unwrap_or(0)
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

    #[test]
    fn banks_and_areas_do_not_overlap() {
        let geometry = Geometry::new(4, 65536, 10);
        let mut end = 0;
        for class in [BankClass::Small, BankClass::Large] {
            for bank in 0..Geometry::banks(class) {
                assert!(geometry.bank(class, bank) >= end);
                assert_eq!(geometry.bank(class, bank) % 64, 0);
                end = geometry.bank(class, bank) + geometry.zones(class).total();
            }
        }
        assert!(end <= geometry.area());
    }
}
