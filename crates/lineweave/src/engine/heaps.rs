//! The heaps that a communicator knows, and who reaches buffers in them.

use crate::error::Error;
use crate::segment::{Heap, HeapRegistry, Ledger, RankHeap};
use std::sync::Arc;

/// Place of an allocation, as the first rank of the communicator tells it to the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Allotted {
    /// Start of the heap in the pool, and the span of its addresses.
    pub heap: (u64, usize),
    /// Place of the head in the heap.
    pub head: usize,
}

/// One rank's knowledge of heaps.
#[derive(Debug, Default)]
pub(crate) struct Heaps {
    pub known: HeapRegistry,
    /// The first of them is the communicator's own.
    own: bool,
    /// The allocations of the own heap, at its first rank.
    pub ledger: Ledger,
    /// True if calls ask for shared buffers.
    pub asks: bool,
    /// Number of times that ranks asked each other for shared buffers.
    pub questions: u64,
}

impl Heaps {
    /// Returns the heaps of a communicator that is made from the one with these heaps.
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
    pub fn own_or(
        &mut self,
        open: impl FnOnce() -> Result<Arc<Heap>, Error>,
    ) -> Result<Arc<RankHeap>, Error> {
        if !self.own {
            self.known.adopt(open()?);
            self.own = true;
        }
        let heap = self.own().map(Arc::clone);
        heap.ok_or_else(|| Error::Failed("a heap that was made is not there".into()))
    }
}
