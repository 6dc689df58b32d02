//! The heaps that a communicator knows: what addresses in them are called between processes.

use super::{Heap, RankHeap};
use crate::signature::is_plain;
use std::sync::Arc;

/// The communicator's own first, if it has one, and those of the communicators that it was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeapRegistry(Vec<Arc<RankHeap>>);

/// Marks words that name a place; others are addresses, of which user space has none so high.
const PLACE: u64 = 1 << 63;

impl HeapRegistry {
    /// Adds a communicator's own.
    pub fn adopt(&mut self, heap: Arc<Heap>) {
        self.0.insert(0, Arc::new(RankHeap::new(heap)));
    }

    /// The first.
    pub fn first(&self) -> Option<&Arc<RankHeap>> {
        self.0.first()
    }

    /// Returns whether so many bytes lie in a heap: one comparison for each heap that is known, which is one in most programs. No bytes lie
    /// everywhere.
    #[inline]
    pub fn hold(&self, start: *const u8, bytes: usize) -> bool {
        let ends =
            |heap: &Heap| heap.place(start).is_some() && heap.place(start.wrapping_add(bytes - 1)).is_some();
        bytes == 0 || self.0.iter().any(|heap| ends(heap.heap()))
    }

    /// The word by which other processes know an address: a place, or for one outside of heaps itself.
    #[inline]
    pub fn place(&self, address: *const u8) -> u64 {
        let place = self.0.iter().find_map(|heap| heap.heap().place(address));
        place.map_or(address as u64, |place| place | PLACE)
    }

    /// The address in this process of the `bytes` bytes that such a word of another rank names. What is private to another process has the mark of
    /// [`far`]; ranks of this process (`near`) have their addresses in common with this one. Nothing for what is neither a place in a
    /// heap nor an address: another call's mark makes such of both.
    #[inline]
    pub fn at_place(&self, word: u64, near: bool, bytes: usize) -> Option<*mut u8> {
        match (word & PLACE != 0, near) {
            (true, _) => {
                let start = self.0.iter().find_map(|heap| heap.heap().at_place(word ^ PLACE))?;
                self.hold(start, bytes).then_some(start)
            }
            (false, _) if !is_plain(word) => None,
            (false, true) => Some(std::ptr::with_exposed_provenance_mut(word as usize)),
            (false, false) => Some(std::ptr::without_provenance_mut((word | PLACE) as usize)),
        }
    }
}

/// The address in its own process of what is private to another one.
#[inline(always)]
pub(crate) fn far(address: *const u8) -> Option<usize> {
    (address as u64 & PLACE != 0).then_some((address as u64 ^ PLACE) as usize)
}
