//! One-sided access: each rank has a window that all ranks of the team put into and get from, and flags to say so.
//!
//! As RCCE's put, get and flags, and NoC_Msg's. Nothing orders accesses to a window but flags: [`Communicator::flag_set`]
//! publishes what its rank put before it to who has seen the flag by [`Communicator::flag_wait`].

use crate::communicator::Communicator;
use crate::error::Error;
use crate::flag;
use crate::kernel::{copy, Element};
use crate::segment::Geometry;
use lineweave_core::collective::Collective;

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
        let claimed = self.segment().claim_window(self.rank(), self.window, bytes);
        if let Err(error) = claimed {
            // The others would wait for this rank.
            self.abandon(&error.to_string());
            return Err(error);
        }
        self.window = self.window.max(bytes);
        self.with_any_plan::<u8>(Collective::Barrier, 0, Communicator::barrier)
    }

    /// Copies `data` into the window of `rank`, from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    ///
    /// # Safety
    /// Accesses of ranks to the same bytes, one of which is a put, must be ordered by flags or by calls that synchronise.
    ///
    /// ```
    /// let seen = lineweave::team::threads(3, |mut comm| {
    ///     let (rank, ranks) = (comm.rank(), comm.ranks());
    ///     comm.window_create(8 * ranks)?;
    ///     for peer in 0..ranks {
    ///         // SAFETY: at this offset nobody else puts, and nobody reads before the barrier.
    ///         unsafe { comm.put(peer, 8 * rank, &[rank as u64])? };
    ///     }
    ///     comm.barrier()?;
    ///     let mut all = [0u64; 3];
    ///     // SAFETY: nobody puts any more.
    ///     unsafe { comm.get(rank, 0, &mut all)? };
    ///     Ok(all)
    /// })?;
    /// assert_eq!(seen, [[0, 1, 2]; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub unsafe fn put<T: Element>(&mut self, rank: usize, offset: usize, data: &[T]) -> Result<(), Error> {
        // SAFETY: the slice is borrowed for the call; the order of accesses is the caller's.
        unsafe { self.put_bytes(rank, offset, data.as_ptr().cast(), size_of_val(data)) }
    }

    /// [`Communicator::put`] of raw bytes.
    ///
    /// # Errors
    /// The errors of [`Communicator::put`].
    ///
    /// # Safety
    /// That of [`Communicator::put`], and `start` must be valid for reads of `bytes` bytes.
    pub unsafe fn put_bytes(
        &mut self,
        rank: usize,
        offset: usize,
        start: *const u8,
        bytes: usize,
    ) -> Result<(), Error> {
        let to = self.in_window("put", rank, offset, bytes)?;
        // SAFETY: within the window, which is shared memory; the rest is the caller's.
        unsafe { copy(start, to, bytes) };
        Ok(())
    }

    /// Copies from the window of `rank`, from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    ///
    /// # Safety
    /// The conditions of [`Communicator::put`].
    ///
    /// ```
    /// let got = lineweave::team::threads(3, |mut comm| {
    ///     comm.window_create(16)?;
    ///     if comm.rank() == 0 {
    ///         // SAFETY: the others read after the barrier.
    ///         unsafe { comm.put(0, 0, &[2.5f64, 7.0])? };
    ///     }
    ///     comm.barrier()?;
    ///     let mut second = [0.0f64];
    ///     // SAFETY: nobody puts any more.
    ///     unsafe { comm.get(0, 8, &mut second)? };
    ///     Ok(second[0])
    /// })?;
    /// assert_eq!(got, [7.0; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub unsafe fn get<T: Element>(
        &mut self,
        rank: usize,
        offset: usize,
        data: &mut [T],
    ) -> Result<(), Error> {
        // SAFETY: the slice is exclusively borrowed for the call; the order of accesses is the caller's.
        unsafe { self.get_bytes(rank, offset, data.as_mut_ptr().cast(), size_of_val(data)) }
    }

    /// [`Communicator::get`] of raw bytes.
    ///
    /// # Errors
    /// The errors of [`Communicator::get`].
    ///
    /// # Safety
    /// That of [`Communicator::get`], and `start` must be valid for writes of `bytes` bytes.
    pub unsafe fn get_bytes(
        &mut self,
        rank: usize,
        offset: usize,
        start: *mut u8,
        bytes: usize,
    ) -> Result<(), Error> {
        let from = self.in_window("get", rank, offset, bytes)?;
        // SAFETY: within the window, which is shared memory; the rest is the caller's.
        unsafe { copy(from, start, bytes) };
        Ok(())
    }

    /// Raises a flag of `rank`, of which there are 64, to a value: what this rank did before is seen by who sees it. Flags
    /// only grow, and one rank at a time sets one.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Window`].
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// let turn = AtomicUsize::new(0);
    /// lineweave::team::threads(3, |mut comm| {
    ///     let (rank, ranks) = (comm.rank(), comm.ranks());
    ///     comm.window_create(8)?;
    ///     if rank > 0 {
    ///         comm.flag_wait(0, 1)?;
    ///     }
    ///     // One rank after the other comes here.
    ///     assert_eq!(turn.fetch_add(1, Relaxed), rank);
    ///     if rank + 1 < ranks {
    ///         comm.flag_set(rank + 1, 0, 1)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn flag_set(&mut self, rank: usize, flag: usize, value: u64) -> Result<(), Error> {
        self.is_flag("flag_set", rank, flag)?;
        self.with_engine(|engine| engine.raise_word(|segment| segment.window_flag(rank, flag), rank, value));
        Ok(())
    }

    /// Waits until a flag of this rank has reached a value.
    ///
    /// # Errors
    /// [`Error::Window`]; [`Error::PeerLost`] when a rank has died or failed, or all others have left, and
    /// [`Error::Timeout`].
    ///
    /// ```
    /// let waited = lineweave::team::threads(2, |mut comm| {
    ///     comm.window_create(8)?;
    ///     if comm.rank() == 0 {
    ///         comm.flag_set(1, 63, 5)?;
    ///     } else {
    ///         comm.flag_wait(63, 4)?; // 5 is enough, too.
    ///     }
    ///     Ok(comm.rank())
    /// })?;
    /// assert_eq!(waited, [0, 1]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn flag_wait(&mut self, flag: usize, value: u64) -> Result<(), Error> {
        self.is_flag("flag_wait", self.rank(), flag)?;
        if !self.has_calls() {
            return self.engine().wait_flag(flag, value);
        }
        self.with_engine(|engine| engine.expect_usable())?;
        self.await_beside("flag_wait", None, |comm| {
            flag::reached(comm.segment().window_flag(comm.rank(), flag), value).then_some(Ok(()))
        })
    }

    fn expect_own(&self) -> Result<(), Error> {
        match self.segment().is_inherited() {
            true => Err(Error::Forked),
            false => Ok(()),
        }
    }

    fn is_flag(&self, what: &'static str, rank: usize, flag: usize) -> Result<(), Error> {
        self.expect_own()?;
        let made = self.window > 0;
        let have = if made { Geometry::WINDOW_FLAGS } else { 0 };
        match (rank < self.ranks(), flag < have) {
            (true, true) => Ok(()),
            (false, _) => Err(Error::NoRank { what, rank, ranks: self.ranks() }),
            (true, false) => Err(Error::Window { what, from: flag, to: flag + 1, have }),
        }
    }

    fn in_window(
        &self,
        what: &'static str,
        rank: usize,
        from: usize,
        bytes: usize,
    ) -> Result<*mut u8, Error> {
        self.expect_own()?;
        let have = self.window;
        if rank >= self.ranks() {
            return Err(Error::NoRank { what, rank, ranks: self.ranks() });
        }
        match from.checked_add(bytes).filter(|&end| end <= have) {
            Some(_) => Ok(self.segment().window(rank).wrapping_add(from)),
            None => Err(Error::Window { what, from, to: from.saturating_add(bytes), have }),
        }
    }
}
