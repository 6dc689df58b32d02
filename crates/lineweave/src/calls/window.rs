//! One-sided access: each rank has a window that all ranks of the team put into and get from, and flags to say so.
//!
//! As RCCE's put, get and flags, and NoC_Msg's. Nothing orders accesses to a window but flags: [`Communicator::flag_set`]
//! publishes what its rank put before it to who has seen the flag by [`Communicator::flag_wait`].

use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{copy, Element};
use crate::segment::Geometry;

impl Communicator {
    /// Gives every rank a window of `bytes` bytes, 16 MiB at most, and 64 flags. All ranks call it with the same length,
    /// and may call it again for a longer one. What is there is zero at first.
    ///
    /// # Errors
    /// [`Error::Window`], [`Error::Memory`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let got = lineweave::team::threads(2, |mut comm| {
    ///     comm.window_create(4096)?;
    ///     let (peer, mut word) = (1 - comm.rank(), [0u64]);
    ///     // SAFETY: each rank puts into its peer's window, and reads its own when the flag says so.
    ///     unsafe { comm.put(peer, 64, &[40 + comm.rank() as u64])? };
    ///     comm.flag_set(peer, 0, 1)?;
    ///     comm.flag_wait(0, 1)?;
    ///     // SAFETY: as above.
    ///     unsafe { comm.get(comm.rank(), 64, &mut word)? };
    ///     Ok(word[0])
    /// })?;
    /// assert_eq!(got, [41, 40]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn window_create(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > Geometry::WINDOW_BYTES {
            return Err(Error::Window {
                what: "window_create",
                from: 0,
                to: bytes,
                have: Geometry::WINDOW_BYTES,
            });
        }
        self.segment().claim_window(self.rank(), bytes)?;
        let most = (*self.window_bytes()).max(bytes);
        *self.window_bytes() = most;
        self.barrier()
    }

    /// Copies `data` into the window of `rank`, from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    ///
    /// # Safety
    /// Accesses of ranks to the same bytes, one of which is a put, must be ordered by flags or by calls that synchronise.
    pub unsafe fn put<T: Element>(&mut self, rank: usize, offset: usize, data: &[T]) -> Result<(), Error> {
        let to = self.in_window("put", rank, offset, size_of_val(data))?;
        // SAFETY: within the window, which is shared memory; the order of accesses is the caller's.
        unsafe { copy(data.as_ptr().cast(), to, size_of_val(data)) };
        Ok(())
    }

    /// Copies from the window of `rank`, from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    ///
    /// # Safety
    /// As for [`Communicator::put`].
    pub unsafe fn get<T: Element>(
        &mut self,
        rank: usize,
        offset: usize,
        data: &mut [T],
    ) -> Result<(), Error> {
        let from = self.in_window("get", rank, offset, size_of_val(data))?;
        // SAFETY: within the window, which is shared memory; the order of accesses is the caller's.
        unsafe { copy(from, data.as_mut_ptr().cast(), size_of_val(data)) };
        Ok(())
    }

    /// Raises a flag of `rank`, of which there are 64, to a value: what this rank did before is seen by who sees it. Flags
    /// only grow, and one rank at a time sets one.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    pub fn flag_set(&mut self, rank: usize, flag: usize, value: u64) -> Result<(), Error> {
        self.is_flag("flag_set", rank, flag)?;
        self.raise_word(|segment| segment.window_flag(rank, flag), rank, value);
        Ok(())
    }

    /// Waits until a flag of this rank has reached a value.
    ///
    /// # Errors
    /// [`Error::Window`]; [`Error::PeerLost`] when a rank has died or failed, and [`Error::Timeout`].
    pub fn flag_wait(&mut self, flag: usize, value: u64) -> Result<(), Error> {
        let rank = self.rank();
        self.is_flag("flag_wait", rank, flag)?;
        self.begin_message("flag_wait")?;
        let outcome = self.await_flag(|segment| segment.window_flag(rank, flag), value);
        self.end_message(outcome)
    }

    fn is_flag(&mut self, what: &'static str, rank: usize, flag: usize) -> Result<(), Error> {
        let made = *self.window_bytes() > 0;
        let have = if made { Geometry::WINDOW_FLAGS } else { 0 };
        match (rank < self.ranks(), flag < have) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::NoRank { what, rank, ranks: self.ranks() }),
            (true, false) => Err(Error::Window { what, from: flag, to: flag + 1, have }),
        }
    }

    fn in_window(
        &mut self,
        what: &'static str,
        rank: usize,
        from: usize,
        bytes: usize,
    ) -> Result<*mut u8, Error> {
        let have = *self.window_bytes();
        if rank >= self.ranks() {
            return Err(Error::NoRank { what, rank, ranks: self.ranks() });
        }
        match from.checked_add(bytes).filter(|&end| end <= have) {
            Some(_) => Ok(self.segment().window(rank).wrapping_add(from)),
            None => Err(Error::Window { what, from, to: from.saturating_add(bytes), have }),
        }
    }
}
