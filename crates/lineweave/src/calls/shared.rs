//! Buffers in memory that all ranks share.

use crate::communicator::Communicator;
use crate::engine::Allotted;
use crate::error::Error;
use crate::kernel::Element;
use crate::segment::{parts, too_large, Part};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A rank's buffer in memory that all ranks of its communicator reach; made by [`Communicator::alloc`].
///
/// It is a slice like any other to its rank, and begins on a page. It may outlive the communicator. Its memory is given back when it is
/// dropped.
pub struct SharedBuffer<T> {
    part: Part,
    len: usize,
    /// The offset in the heap, and the bytes, of each rank's buffer.
    parts: Box<[(usize, usize)]>,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements as a vector does; ranks touch them within calls that borrow it.
unsafe impl<T: Send> Send for SharedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SharedBuffer<T> {}

impl<T> SharedBuffer<T> {
    fn start(&self) -> *mut T {
        match self.len {
            0 => NonNull::dangling().as_ptr(),
            _ => self.part.start().cast(),
        }
    }

    /// Returns the buffers that all ranks got by the same call of [`Communicator::alloc`], by rank, where they lie in this process. It is the
    /// memory itself: what a rank writes is seen here, also while it is written. A rank's pages are given back when it drops its buffer;
    /// what is read there from then on is zero.
    ///
    /// ```
    /// let read = lineweave::team::threads(2, |mut comm| {
    ///     let mut own = comm.alloc::<u32>(4)?;
    ///     own.fill(comm.rank() as u32 + 1);
    ///     comm.barrier()?;
    ///     // SAFETY: no rank writes between the two barriers.
    ///     let read: Vec<u32> = own.peers().map(|peer| unsafe { peer.as_ref()[3] }).collect();
    ///     comm.barrier()?;
    ///     Ok(read)
    /// })?;
    /// assert_eq!(read, [[1, 2], [1, 2]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn peers(&self) -> impl Iterator<Item = NonNull<[T]>> + '_ {
        self.parts.iter().map(|&(offset, bytes)| {
            let start =
                NonNull::new(self.part.peer(offset).cast()).expect("a mapping does not begin at address 0");
            NonNull::slice_from_raw_parts(start, bytes / size_of::<T>().max(1))
        })
    }
}

impl<T> Deref for SharedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: reserved for `len` elements, which are zero at first and may be any bytes; a page is aligned for every element.
        unsafe { std::slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T> DerefMut for SharedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed exclusively: peers touch it within calls of this rank only.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }
}

impl<T> AsRef<[T]> for SharedBuffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T> AsMut<[T]> for SharedBuffer<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Answers of the first rank about an allocation.
mod answer {
    pub const MADE: u64 = 0;
    pub const TOO_LARGE: u64 = 1;
    pub const NOT_MADE: u64 = 2;
}

impl Communicator {
    /// A buffer of `count` elements, zero at first, in memory that all ranks share. Every rank must call it, and each says how many
    /// elements it wants for itself. Calls on this communicator, and on those that are made from it later, find shared buffers
    /// among those they are given. Where every rank gives such, long messages are read, combined and written where they lie, also between
    /// processes; else they go as they do without.
    ///
    /// Pages are reserved here, so that lack of memory is this call's error and not a signal later.
    ///
    /// # Errors
    /// [`Error::Heap`] on all ranks when what they ask for together is more than can be had; [`Error::NotMade`] when another rank
    /// could not get its part; [`Error::System`]; those of [`Communicator::barrier`]. The communicator can be used on.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let mut field = comm.alloc::<f64>(100_000)?;
    ///     field.fill(comm.rank() as f64);
    ///     comm.allreduce_in_place(&mut field, Operator::Sum)?;
    ///     Ok(field[99_999])
    /// })?;
    /// assert_eq!(sums, [3.0; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn alloc<T: Element>(&mut self, count: usize) -> Result<SharedBuffer<T>, Error> {
        const WHAT: &str = "alloc";
        let (rank, ranks) = (self.rank(), self.ranks());
        let bytes = count.checked_mul(size_of::<T>());
        let mut asked = vec![0; ranks];
        self.tell_all(&[bytes.map_or(u64::MAX, |b| b as u64)], &mut asked).map_err(|e| e.during(WHAT))?;
        let all = asked.iter().fold(0u64, |sum, &bytes| sum.saturating_add(bytes));
        // Every rank sees the same, and so refuses the same.
        let (Some(bytes), Some((starts, total))) = (bytes, parts(&asked)) else { return Err(too_large(all)) };
        let allotted = match rank {
            0 => Some(self.engine().allot(total)),
            _ => None,
        };
        let mut told = match &allotted {
            Some(Ok(Allotted { heap: (at, span), head })) => {
                [answer::MADE, *at, *span as u64, *head as u64, 0]
            }
            Some(Err(Error::Heap { available, .. })) => [answer::TOO_LARGE, 0, 0, 0, *available],
            Some(Err(_)) | None => [answer::NOT_MADE, 0, 0, 0, 0],
        };
        self.tell_of_first(&mut told).map_err(|e| e.during(WHAT))?;
        let [answer, at, span, head, available] = told;
        let allotted = match (allotted, answer) {
            (Some(own), _) => own?,
            (None, answer::MADE) => Allotted { heap: (at, span as usize), head: head as usize },
            (None, answer::TOO_LARGE) => {
                let source_of_limit = "as rank 0 found".to_owned();
                return Err(Error::Heap { need: total as u64, available, source_of_limit });
            }
            (None, _) => return Err(Error::NotMade { what: WHAT, rank: 0 }),
        };
        let head = allotted.head;
        let part = self.engine().claim_part(allotted, starts[rank], bytes);
        let mut able = vec![0u8; ranks];
        self.tell_all(&[u8::from(part.is_ok())], &mut able).map_err(|e| e.during(WHAT))?;
        let part = part?;
        if let Some(rank) = able.iter().position(|&able| able == 0) {
            return Err(Error::NotMade { what: WHAT, rank });
        }
        self.engine().ask_for_shared(true);
        let parts = starts.iter().zip(&asked).map(|(start, &bytes)| (head + start, bytes as usize)).collect();
        Ok(SharedBuffer { part, len: count, parts, elements: PhantomData })
    }

    /// Makes long calls of this communicator find out whether all ranks give shared buffers, or stops that; returns whether they did
    /// before. All ranks must ask for the same between the same calls. [`Communicator::alloc`] turns it on, and communicators are made with
    /// what holds for the one they come from; it costs a call that asks about as much as a barrier does.
    pub fn set_shared_buffers(&mut self, on: bool) -> bool {
        self.engine().ask_for_shared(on)
    }
}
