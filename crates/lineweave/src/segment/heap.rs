//! The heap: memory for buffers that every rank of a communicator reaches where they lie.
//!
//! 1. The first allocation makes the heap: one contiguous mapping in each process, with far more addresses than there is memory.
//!    A range check tests membership; base + offset translates addresses between processes ([`Heap::place`], [`Heap::at_place`]).
//! 2. The communicator's first rank decides where in it an allocation lies, and tells the others. It alone keeps the list
//!    ([`Ledger`]), so nothing is locked.
//! 3. An allocation is a head and a part for each rank. A rank reserves the pages of its own part, from the CPU it runs on,
//!    before anybody uses them.
//! 4. A rank that drops its part gives the pages back, and then counts itself in the head. When all have, the first rank uses
//!    the addresses again.
//! 5. The last rank that lets go of the heap gives back what is left of it.

use super::map::{map_bytes, unmap, PAGE};
use super::TeamMemory;
use crate::error::Error;
use crate::memory::available_memory;
use crate::near;
use crate::sync::{AtomicU64, Ordering};
use crate::sysfile::Root;
use rustix::mm::Advice;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;

/// Ratio of a heap's addresses to the machine's memory, so large that what is dropped in any order leaves gaps that are long enough.
const ROOM: u64 = 8;
/// The fewest addresses of a heap whose machine does not tell how much memory it has.
const LEAST: u64 = 1 << 36;

/// Words of a heap's first page.
mod first {
    /// Ranks that have let go of it.
    pub const GONE: usize = 0;
    /// Bytes that all parts occupy.
    pub const BYTES: usize = 8;
}

/// One process's view of a heap.
#[derive(Debug)]
pub(crate) struct Heap {
    base: NonNull<u8>,
    /// Offset of the heap in the pool, and the number of its addresses.
    at: u64,
    span: usize,
    ranks: usize,
    pool: Arc<TeamMemory>,
}

// SAFETY: the mapping lives as long as the value. Words are atomics; all other bytes belong to parts, and a part to its owner,
// whose peers touch it in the order that plans give.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Heap {
    /// Addresses for a heap of `ranks` ranks in which `least` bytes have room: where it begins, and how many.
    ///
    /// # Errors
    /// [`Error::System`] when not even those can be mapped.
    pub fn found(pool: &Arc<TeamMemory>, ranks: usize, least: u64) -> Result<Arc<Heap>, Error> {
        let total = available_memory(&Root::live()).total_bytes.unwrap_or(0);
        let least = least.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
        let mut span = total.saturating_mul(ROOM).max(LEAST).max(least).checked_next_power_of_two();
        loop {
            let wanted = span.unwrap_or(1 << 63);
            // A limit on addresses or on files may allow fewer.
            match pool.take(wanted as usize).and_then(|at| Heap::open(pool, at, wanted as usize, ranks)) {
                Ok(heap) => {
                    // Where that is refused, parts lie where the program's own policy puts them.
                    near::keep(heap.base.as_ptr(), heap.span);
                    pool.reserve(heap.at, PAGE, PAGE)?;
                    return Ok(heap);
                }
                Err(_) if wanted / 2 >= least => span = Some(wanted / 2),
                Err(error) => return Err(error),
            }
        }
    }

    /// Maps what [`Heap::found`] made, once a process.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn open(pool: &Arc<TeamMemory>, at: u64, span: usize, ranks: usize) -> Result<Arc<Heap>, Error> {
        let mut heaps = pool.heaps();
        if let Some(heap) = heaps.get(&at).and_then(std::sync::Weak::upgrade) {
            return Ok(heap);
        }
        pool.expect_within(at, span)?;
        let base = map_bytes(pool.fd(), at, span)?;
        let heap = Arc::new(Heap { base, at, span, ranks, pool: Arc::clone(pool) });
        heaps.retain(|_, heap| heap.strong_count() > 0);
        heaps.insert(at, Arc::downgrade(&heap));
        Ok(heap)
    }

    /// Returns the offset of the heap in the pool, and the number of its addresses.
    pub fn extent(&self) -> (u64, usize) {
        (self.at, self.span)
    }

    /// Returns the place in the pool of an address of this process, if the address lies in the heap.
    #[inline(always)]
    pub fn place(&self, address: *const u8) -> Option<u64> {
        let offset = (address as usize).wrapping_sub(self.base.as_ptr() as usize);
        (offset < self.span).then(|| self.at + offset as u64)
    }

    /// The address in this process of a place in the pool, if that lies in the heap.
    #[inline(always)]
    pub fn at_place(&self, place: u64) -> Option<*mut u8> {
        let offset = place.wrapping_sub(self.at);
        // SAFETY: within the mapping, as just seen.
        (offset < self.span as u64).then(|| unsafe { self.base.as_ptr().add(offset as usize) })
    }

    /// Bytes that all parts occupy.
    pub fn bytes(&self) -> usize {
        // Relaxed: the word is the whole message.
        self.word(0, first::BYTES).load(Ordering::Relaxed) as usize
    }

    fn word(&self, offset: usize, word: usize) -> &AtomicU64 {
        debug_assert!(offset % PAGE == 0 && offset < self.span);
        // SAFETY: a word of the first page, or of a head; they are within the mapping, reserved, and only ever used as atomics.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>().add(word) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value; parts and ranks hold it by reference count.
        unsafe { unmap(self.base, self.span) };
    }
}

/// One rank's hold on a heap.
#[derive(Debug)]
pub(crate) struct RankHeap(Arc<Heap>);

impl RankHeap {
    /// To be made once by each of the heap's ranks.
    pub fn new(heap: Arc<Heap>) -> RankHeap {
        RankHeap(heap)
    }

    /// The heap.
    #[inline(always)]
    pub fn heap(&self) -> &Heap {
        &self.0
    }

    /// Takes the part of this rank in the allocation whose head is at `head`; `offset` is where it begins.
    ///
    /// # Errors
    /// [`Error::Heap`] when its pages cannot be had.
    pub fn claim(self: &Arc<Self>, head: usize, offset: usize, bytes: usize) -> Result<Part, Error> {
        let heap = &self.0;
        let pages = pages(bytes);
        // What another rank says of the heap is checked before anything is touched there.
        let end = offset.checked_add(pages).filter(|&end| end <= heap.span);
        if end.is_none() || head % PAGE != 0 || head < PAGE || offset < head + PAGE {
            return Err(Error::system(
                "the shared heap",
                format!("no part lies at {head}"),
                "; make a new communicator",
            ));
        }
        let part = Part { heap: Arc::clone(self), head, offset, pages };
        // Relaxed: the word is the whole message.
        heap.word(0, first::BYTES).fetch_add(pages as u64, Ordering::Relaxed);
        if pages > 0 {
            heap.pool.reserve(heap.at + offset as u64, pages, pages).map_err(of_heap)?;
            // SAFETY: within the mapping, and nobody's but this rank's. A kernel that cannot do it leaves the faults to whoever
            // touches the pages first.
            let _ = unsafe { rustix::mm::madvise(part.start().cast(), pages, Advice::LinuxPopulateWrite) };
        }
        Ok(part)
    }
}

impl Drop for RankHeap {
    fn drop(&mut self) {
        let heap = &self.0;
        if heap.pool.is_inherited() {
            return;
        }
        // SYNC: heap-gone
        let gone = heap.word(0, first::GONE).fetch_add(1, Ordering::AcqRel) + 1;
        if gone as usize == heap.ranks {
            heap.pool.release(heap.at, heap.span);
        }
    }
}

/// A rank's part of an allocation.
#[derive(Debug)]
pub(crate) struct Part {
    heap: Arc<RankHeap>,
    head: usize,
    offset: usize,
    /// Bytes, in whole pages.
    pages: usize,
}

impl Part {
    /// The first byte.
    pub fn start(&self) -> *mut u8 {
        self.peer(self.offset)
    }

    /// The first byte of another rank's part of the allocation, in this process; `offset` is where that begins in the heap.
    pub fn peer(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.heap.0.span, "a part of the shared heap begins at {offset}, behind its end");
        // SAFETY: within the mapping, as just seen.
        unsafe { self.heap.0.base.as_ptr().add(offset) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let heap = &self.heap.0;
        if heap.pool.is_inherited() {
            return;
        }
        if self.pages > 0 {
            heap.pool.release(heap.at + self.offset as u64, self.pages);
        }
        // Relaxed: the word is the whole message.
        heap.word(0, first::BYTES).fetch_sub(self.pages as u64, Ordering::Relaxed);
        // SYNC: heap-head
        heap.word(self.head, 0).fetch_add(1, Ordering::AcqRel);
    }
}

/// Bytes in whole pages.
fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE)
}

/// Returns the start of each rank's part behind the head, and the bytes of head and parts together; nothing when there are not so many
/// addresses.
pub(crate) fn parts(bytes: &[u64]) -> Option<(Vec<usize>, usize)> {
    let mut at = PAGE;
    let mut starts = Vec::with_capacity(bytes.len());
    for &bytes in bytes {
        starts.push(at);
        let pages = usize::try_from(bytes).ok()?.checked_next_multiple_of(PAGE)?;
        at = at.checked_add(pages).filter(|&end| end <= isize::MAX as usize / 4)?;
    }
    Some((starts, at))
}

/// The refusal of what does not fit into memory, in this rank's words.
pub(crate) fn too_large(need: u64) -> Error {
    let memory = available_memory(&Root::live());
    Error::Heap { need, available: memory.available_bytes.unwrap_or(0), source_of_limit: memory.to_string() }
}

/// The system's refusal of pages, beside what memory there is.
fn of_heap(refused: Error) -> Error {
    let Error::Memory { need, source_of_limit: said, .. } = refused else { return refused };
    let memory = available_memory(&Root::live());
    let available = memory.available_bytes.unwrap_or(0);
    Error::Heap { need, available, source_of_limit: format!("{said}; {memory}") }
}

/// Refuses what does not fit into memory, also when what is kept for communicators to come is given back.
///
/// # Errors
/// [`Error::Heap`].
pub(crate) fn expect_memory(pool: &TeamMemory, need: u64) -> Result<(), Error> {
    let lacks = || available_memory(&Root::live()).available_bytes.is_some_and(|available| available < need);
    if lacks() {
        pool.release_kept();
        if lacks() {
            return Err(too_large(need));
        }
    }
    Ok(())
}

/// The allocations of a heap, as its first rank knows them: where their heads are, and how long they are.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<usize, usize>);

impl Ledger {
    /// Finds room for an allocation of `bytes` bytes, its head included (step 2), and reserves the head.
    ///
    /// # Errors
    /// [`Error::System`] when no gap is long enough, [`Error::Memory`].
    pub fn place(&mut self, heap: &Heap, bytes: usize) -> Result<usize, Error> {
        self.0.retain(|&head, _| {
            // SYNC: heap-head
            let dropped = heap.word(head, 0).load(Ordering::Acquire) as usize == heap.ranks;
            if dropped {
                heap.pool.release(heap.at + head as u64, PAGE);
            }
            !dropped
        });
        let mut head = PAGE;
        for (&at, &len) in &self.0 {
            if at - head >= bytes {
                break;
            }
            head = at + len;
        }
        if heap.span - head < bytes {
            let why = format!("{bytes} bytes in a row are not free of its {} addresses", heap.span);
            return Err(Error::system("the shared heap", why, "; drop buffers that are not needed"));
        }
        heap.pool.reserve(heap.at + head as u64, PAGE, PAGE)?;
        self.0.insert(head, bytes);
        Ok(head)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Segment;
    use super::*;

    #[test]
    fn parts_are_given_back_and_addresses_used_again() {
        let team = Segment::create(2, 4096, b"").unwrap();
        let before = team.pool().occupied_bytes().unwrap();
        let heap = Heap::found(&team.pool, 2, 1 << 20).unwrap();
        let (at, span) = heap.extent();
        let elsewhere = Segment::attach(rustix::io::dup(team.fd()).unwrap()).unwrap();
        let other = Heap::open(&elsewhere.pool, at, span, 2).unwrap();
        let ranks = [heap, other].map(|heap| Arc::new(RankHeap::new(heap)));
        let mut ledger = Ledger::default();
        let (starts, bytes) = parts(&[5000, 1]).unwrap();
        assert_eq!((starts.as_slice(), bytes), ([PAGE, 3 * PAGE].as_slice(), 4 * PAGE));
        let mut heads = Vec::new();
        for _ in 0..3 {
            let head = ledger.place(ranks[0].heap(), bytes).unwrap();
            let one = ranks[0].claim(head, head + starts[0], 5000).unwrap();
            let two = ranks[1].claim(head, head + starts[1], 1).unwrap();
            assert_eq!(ranks[1].heap().bytes(), 3 * PAGE);
            // SAFETY: reserved, and nobody else's.
            unsafe { two.start().write(7) };
            let place = ranks[1].heap().place(two.start()).unwrap();
            let seen = ranks[0].heap().at_place(place).unwrap();
            // SAFETY: the same byte by the other mapping.
            assert_eq!(unsafe { seen.read() }, 7);
            assert_eq!(ranks[0].heap().place(one.start().wrapping_sub(head + PAGE + 1)), None);
            heads.push(head);
            drop((one, two));
        }
        assert_eq!(heads, [PAGE; 3], "addresses are used again");
        assert_eq!(ranks[0].heap().bytes(), 0);
        drop(ranks);
        assert_eq!(team.pool().occupied_bytes().unwrap(), before, "nothing is left");
    }

    #[test]
    fn what_another_rank_says_of_a_heap_is_checked() {
        let team = Segment::create(2, 4096, b"").unwrap();
        let heap = Heap::found(&team.pool, 2, 1 << 20).unwrap();
        let (at, span) = heap.extent();
        let own = Arc::new(RankHeap::new(heap));
        let lies =
            [(PAGE + 8, 2 * PAGE, 8), (0, PAGE, 8), (PAGE, PAGE, 8), (PAGE, span, 8), (PAGE, 2 * PAGE, span)];
        for (head, offset, bytes) in lies {
            let error = own.claim(head, offset, bytes).expect_err("no such part").to_string();
            assert!(error.contains("no part lies at"), "{head} {offset} {bytes}: {error}");
        }
        for at in [at + 8, 1 << 60, u64::MAX - 4095] {
            let error = Heap::open(&team.pool, at, span, 2).expect_err("not in the memory").to_string();
            assert!(error.contains("are not in its"), "{error}");
        }
        let mut known = super::super::HeapRegistry::default();
        known.adopt(Arc::clone(&own.0));
        let place = known.place(own.heap().base.as_ptr());
        assert!(known.at_place(place, false, span).is_some() && known.at_place(place, true, span).is_some());
        for (word, bytes) in [(place, span + 1), (place + 1, span), (place + span as u64, 1), (1 << 50, 1)] {
            assert_eq!(known.at_place(word, false, bytes), None, "{word:x}, {bytes} bytes");
            assert_eq!(known.at_place(word, true, bytes), None, "{word:x}, {bytes} bytes");
        }
    }

    #[test]
    fn what_is_longer_than_addresses_is_refused() {
        assert!(parts(&[u64::MAX]).is_none());
        assert!(parts(&[1 << 61, 1]).is_none());
        let team = Segment::create(1, 4096, b"").unwrap();
        assert!(
            matches!(expect_memory(team.pool(), 1 << 60), Err(Error::Heap { need, .. }) if need == 1 << 60)
        );
    }
}
