//! Calls with blocks of different lengths on raw buffers.

use crate::call::{expect_counts, CallSpec, Places};
use crate::communicator::Communicator;
use crate::error::Error;

impl Communicator {
    /// Any collective with blocks of different lengths on raw buffers. `call.count` is ignored in favour of
    /// `counts`, one number for each rank, or for an alltoall the whole matrix ([`Communicator::counts_of_pairs`]).
    ///
    /// # Errors
    /// The errors of the typed calls, and [`Error::Overlap`] when the buffers overlap by part.
    ///
    /// # Safety
    /// `input` and `output` must be valid, for reads and for reads and writes, for what [`Communicator::places`] says, aligned for the
    /// element type, and nobody else may use them during the call.
    pub unsafe fn call_uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        self.places(call, Some(counts))?;
        // SAFETY: passed on.
        unsafe { self.engine().run_uneven(call, counts, input, output) }
    }

    /// [`CallSpec::places`] of this rank.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Counts`].
    pub fn places(&self, call: &CallSpec, counts: Option<&[usize]>) -> Result<Places, Error> {
        call.places(counts, self.rank(), self.ranks())
    }

    /// Returns the counts that every rank gives to every other, row by row, by an allgather: each rank knows only what it gives and takes.
    /// `element` is the size of an element in bytes, for messages.
    ///
    /// # Errors
    /// [`Error::Counts`]; [`Error::Length`] when a rank gives another length than this one takes; those of
    /// [`Communicator::barrier`].
    pub fn counts_of_pairs(
        &mut self,
        given: &[usize],
        taken: &[usize],
        element: usize,
    ) -> Result<Vec<usize>, Error> {
        let ranks = self.ranks();
        expect_counts(given, taken, ranks)?;
        let mine: Vec<u64> = given.iter().map(|&n| n as u64).collect();
        let mut all = vec![0u64; ranks * ranks];
        self.tell_all(&mine, &mut all)?;
        let counts: Vec<usize> = all.into_iter().map(|n| n as usize).collect();
        self.engine().expect_taken(&counts, taken, element)?;
        Ok(counts)
    }
}
