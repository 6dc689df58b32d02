//! The heaps that a communicator knows, and who reaches buffers in them.

use super::Engine;
use crate::error::Error;
use crate::segment::{expect_memory, Heap, Ledger, Part, RankHeap, Segment};
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
    /// The communicator's own first, if it has one, and those of the communicators that it was made from.
    known: Vec<Arc<RankHeap>>,
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

    /// Where in the pool an address of this process is, if it lies in a heap: one comparison for each heap that is known, which is
    /// one in most programs.
    #[inline]
    pub fn place(&self, address: *const u8) -> Option<u64> {
        self.known.iter().find_map(|heap| heap.heap().place(address))
    }

    /// The address in this process of a place in the pool.
    #[inline]
    pub fn at_place(&self, place: u64) -> Option<*mut u8> {
        self.known.iter().find_map(|heap| heap.heap().at_place(place))
    }

    /// Bytes that the parts of all ranks in the own heap occupy.
    pub fn bytes(&self) -> usize {
        if self.own {
            self.known[0].heap().bytes()
        } else {
            0
        }
    }

    /// Finds room for an allocation of `bytes` bytes; the first rank does that for all.
    fn allot(&mut self, segment: &Segment, bytes: usize) -> Result<Allotted, Error> {
        expect_memory(bytes as u64)?;
        if !self.own {
            let heap = Heap::found(segment.pool(), segment.ranks(), bytes as u64)?;
            self.adopt(heap);
        }
        let heap = self.known[0].heap();
        let head = self.ledger.place(heap, bytes)?;
        Ok(Allotted { heap: heap.extent(), head })
    }

    fn adopt(&mut self, heap: Arc<Heap>) {
        self.known.insert(0, Arc::new(RankHeap::new(heap)));
        self.own = true;
    }
}

impl Engine {
    /// Finds room for an allocation of all ranks; for the first one.
    pub(crate) fn allot(&mut self, bytes: usize) -> Result<Allotted, Error> {
        let segment = Arc::clone(&self.segment);
        self.heaps.allot(&segment, bytes)
    }

    /// Takes this rank's part of an allocation: `bytes` bytes, `offset` behind the head.
    pub(crate) fn claim_part(
        &mut self,
        allotted: Allotted,
        offset: usize,
        bytes: usize,
    ) -> Result<Part, Error> {
        if !self.heaps.own {
            let (at, span) = allotted.heap;
            self.heaps.adopt(Heap::open(self.segment.pool(), at, span, self.ranks())?);
        }
        self.heaps.known[0].claim(allotted.head, allotted.head + offset, bytes)
    }

    /// Has calls ask whether all buffers are shared, or no longer; whether they did.
    pub(crate) fn ask_for_shared(&mut self, on: bool) -> bool {
        self.cool();
        self.book_mut().forget_last();
        std::mem::replace(&mut self.heaps.asks, on)
    }
}
