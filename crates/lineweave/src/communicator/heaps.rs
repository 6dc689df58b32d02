//! The heaps that a communicator knows, and who reaches buffers in them.

use super::Engine;
use crate::error::Error;
use crate::segment::{expect_memory, Heap, KnownHeaps, Ledger, Part, RankHeap};
use std::sync::Arc;

/// Where an allocation is, as its first rank tells the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allotted {
    /// Where the heap begins in the pool, and its addresses.
    pub heap: (u64, usize),
    /// Where the head lies in it.
    pub head: usize,
}

/// What one rank knows of heaps.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    pub known: KnownHeaps,
    /// The first of them is the communicator's own.
    own: bool,
    /// Of the own heap, at its first rank.
    ledger: Ledger,
    /// Whether calls ask for shared buffers.
    pub asks: bool,
}

impl Heaps {
    /// For a communicator made from the one that has these.
    pub fn inherited(&self) -> Heaps {
        Heaps { known: self.known.clone(), asks: self.asks, ..Heaps::default() }
    }

    fn own(&self) -> Option<&Arc<RankHeap>> {
        self.known.first().filter(|_| self.own)
    }

    /// Bytes that the parts of all ranks in the own heap occupy.
    pub fn bytes(&self) -> usize {
        self.own().map_or(0, |heap| heap.heap().bytes())
    }

    /// The own heap, which `open` finds when there is none yet.
    fn own_or(&mut self, open: impl FnOnce() -> Result<Arc<Heap>, Error>) -> Result<Arc<RankHeap>, Error> {
        if !self.own {
            self.known.adopt(open()?);
            self.own = true;
        }
        let heap = self.own().map(Arc::clone);
        heap.ok_or_else(|| Error::Failed("a heap that was made is not there".into()))
    }
}

impl Engine {
    /// Finds room for an allocation of all ranks; for the first one.
    pub(crate) fn allot(&mut self, bytes: usize) -> Result<Allotted, Error> {
        expect_memory(bytes as u64)?;
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

    /// Has calls ask whether all buffers are shared, or no longer; whether they did.
    pub(crate) fn ask_for_shared(&mut self, on: bool) -> bool {
        self.cool();
        self.book_mut().forget_last();
        std::mem::replace(&mut self.heaps.asks, on)
    }
}
