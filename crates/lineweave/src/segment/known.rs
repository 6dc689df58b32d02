//! The heaps that a communicator knows: what addresses in them are called between processes.

use super::{Heap, RankHeap};
use std::sync::Arc;

/// The communicator's own first, if it has one, and those of the communicators that it was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownHeaps(Vec<Arc<RankHeap>>);

/// Marks words that name a place; others are addresses, of which user space has none so high.
const PLACE: u64 = 1 << 63;

impl KnownHeaps {
    /// Adds a communicator's own.
    pub fn adopt(&mut self, heap: Arc<Heap>) {
        self.0.insert(0, Arc::new(RankHeap::new(heap)));
    }

    /// The first.
    pub fn first(&self) -> Option<&Arc<RankHeap>> {
        self.0.first()
    }

    /// Whether so many bytes lie in a heap: one comparison for each heap that is known, which is one in most programs. No bytes lie
    /// everywhere.
    #[inline]
    pub fn hold(&self, start: *const u8, bytes: usize) -> bool {
        let ends =
            |heap: &Heap| heap.place(start).is_some() && heap.place(start.wrapping_add(bytes - 1)).is_some();
        bytes == 0 || self.0.iter().any(|heap| ends(heap.heap()))
    }

    /// The word by which other processes know an address; 0 when they do not reach it.
    #[inline]
    pub fn place(&self, address: *const u8) -> u64 {
        self.0.iter().find_map(|heap| heap.heap().place(address)).map_or(0, |place| place | PLACE)
    }

    /// The address in this process of what such a word names; null when it names nothing here.
    #[inline]
    pub fn at_place(&self, word: u64) -> *mut u8 {
        let place = word ^ PLACE;
        self.0.iter().find_map(|heap| heap.heap().at_place(place)).unwrap_or(std::ptr::null_mut())
    }
}
