//! Room in heaps for buffers that ranks share.

use super::heaps::Allotted;
use super::state::Engine;
use crate::error::Error;
use crate::segment::{expect_memory, Heap, Part};

impl Engine {
    /// Finds room for an allocation of all ranks; for the first one.
    pub(crate) fn allot(&mut self, bytes: usize) -> Result<Allotted, Error> {
        expect_memory(self.segment.pool(), bytes as u64)?;
        let (pool, ranks) = (self.segment.pool(), self.segment.ranks());
        let heap = self.heaps.own_or(|| Heap::found(pool, ranks, bytes as u64))?;
        let head = self.heaps.ledger.place(heap.heap(), bytes)?;
        Ok(Allotted { heap: heap.heap().extent(), head })
    }

    /// Takes this rank's part of an allocation: `bytes` bytes, `offset` behind the head.
    pub(crate) fn claim_part(
        &mut self,
        allotted: Allotted,
        offset: usize,
        bytes: usize,
    ) -> Result<Part, Error> {
        let ((at, span), pool, ranks) = (allotted.heap, self.segment.pool(), self.segment.ranks());
        let heap = self.heaps.own_or(|| Heap::open(pool, at, span, ranks))?;
        heap.claim(allotted.head, allotted.head + offset, bytes)
    }

    /// Makes calls ask whether all buffers are shared, or stops that; returns whether calls asked before.
    pub(crate) fn ask_for_shared(&mut self, on: bool) -> bool {
        self.cool();
        self.selector.cache.forget_last();
        std::mem::replace(&mut self.heaps.asks, on)
    }
}
