//! The collectives as a Rust program calls them.

use crate::check::{self, CallSpec};
use crate::choose::{Ready, Sequence};
use crate::communicator::{Buffers, Communicator};
use crate::error::Error;
use crate::kernel::{Element, ElementType, Operator};
use lineweave_core::collective::Collective;
use std::num::NonZeroU32;

impl Communicator {
    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`] when a peer does not come.
    #[inline]
    pub fn barrier(&mut self) -> Result<(), Error> {
        if let Some(done) = self.repeat_barrier() {
            return done;
        }
        let call = CallSpec {
            collective: Collective::Barrier,
            element: ElementType::U8,
            count: 0,
            operator: None,
            root: 0,
        };
        // SAFETY: a barrier touches no buffer.
        unsafe { self.call(&call, std::ptr::null(), std::ptr::null_mut()) }?;
        if !self.book().check {
            self.keep_exchange(true);
        }
        Ok(())
    }

    /// Copies the root's `buffer` into every other rank's.
    ///
    /// # Errors
    /// [`Error::Root`] when there is no such rank; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let sums = lineweave::team::threads(4, |mut comm| {
    ///     let mut word = [if comm.rank() == 1 { 42u64 } else { 0 }];
    ///     comm.bcast(&mut word, 1)?;
    ///     Ok(word[0])
    /// })?;
    /// assert_eq!(sums, [42; 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    #[inline]
    pub fn bcast<T: Element>(&mut self, buffer: &mut [T], root: usize) -> Result<(), Error> {
        let call = CallSpec {
            collective: Collective::Bcast,
            element: T::TYPE,
            count: buffer.len(),
            operator: None,
            root,
        };
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the slice is exclusively borrowed for the call and as long as the call says.
        unsafe { self.call(&call, start, start) }
    }

    /// Combines every rank's `input` elementwise; the result arrives in the root's `output`, which must be as
    /// long as `input` there. Other ranks may give an empty `output`.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Length`], [`Error::Operator`] when the type has no such operator; those of
    /// [`Communicator::barrier`].
    #[inline]
    pub fn reduce<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        operator: Operator,
        root: usize,
    ) -> Result<(), Error> {
        let call = CallSpec {
            collective: Collective::Reduce,
            element: T::TYPE,
            count: input.len(),
            operator: Some(operator),
            root,
        };
        if self.rank() == root {
            expect_length(Collective::Reduce, input, output)?;
        }
        // SAFETY: both slices are borrowed for the call; `output` is as long as `input` where it is used.
        unsafe { self.call(&call, input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    /// Combines every rank's `input` elementwise; the result arrives in every rank's `output`, with the same
    /// bits everywhere.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Operator`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let maxima = lineweave::team::threads(3, |mut comm| {
    ///     let mut out = [0.0];
    ///     comm.allreduce(&[comm.rank() as f64], &mut out, Operator::Max)?;
    ///     Ok(out[0])
    /// })?;
    /// assert_eq!(maxima, [2.0; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    #[inline]
    pub fn allreduce<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        operator: Operator,
    ) -> Result<(), Error> {
        expect_length(Collective::Allreduce, input, output)?;
        let call = CallSpec {
            collective: Collective::Allreduce,
            element: T::TYPE,
            count: input.len(),
            operator: Some(operator),
            root: 0,
        };
        // SAFETY: both slices are borrowed for the call and equally long.
        unsafe { self.call(&call, input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    /// [`Communicator::allreduce`] with the result in place of the input.
    ///
    /// # Errors
    /// Those of [`Communicator::allreduce`].
    #[inline]
    pub fn allreduce_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        operator: Operator,
    ) -> Result<(), Error> {
        let call = CallSpec {
            collective: Collective::Allreduce,
            element: T::TYPE,
            count: buffer.len(),
            operator: Some(operator),
            root: 0,
        };
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the slice is exclusively borrowed for the call.
        unsafe { self.call(&call, start, start) }
    }

    /// Any collective on raw buffers.
    ///
    /// # Errors
    /// Those of the typed calls, and [`Error::Overlap`] when the buffers overlap by part.
    ///
    /// # Safety
    /// `input` must be valid for reads and `output` for reads and writes of `call.bytes()` bytes wherever the
    /// collective gives this rank such a buffer (for a broadcast the root reads `input` and the others write
    /// `output`), both aligned for the element type, and nobody else may use them during the call.
    #[inline]
    pub unsafe fn call(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Result<(), Error> {
        let collective = call.collective;
        // SAFETY: passed on.
        if let Some(done) = unsafe { self.repeat_swap(call, input, output) } {
            return done;
        }
        if call.root >= self.ranks() {
            return Err(Error::Root { collective, root: call.root, ranks: self.ranks() });
        }
        if call.count == 0 && collective.moves_data() {
            return self.nothing_to_do(call);
        }
        let Ready { ref sequence, fold, scale, simple, .. } = *self.ready(call)?;
        let (plan, sequence) = (sequence.plan, if simple { None } else { Some(*sequence) });
        let bytes = call.bytes();
        let has_output = match collective {
            Collective::Reduce => self.rank() == call.root,
            Collective::Barrier | Collective::Bcast | Collective::Allreduce => true,
        };
        let aliased = collective.folds() && std::ptr::eq(input, output);
        if collective.folds() && has_output && !aliased && overlap(input, output, bytes) {
            return Err(Error::Overlap { collective });
        }
        self.begin(collective.name())?;
        if self.book().check {
            check::compare(self, call)?;
        }
        let buffers = Buffers { input, output, fold };
        match sequence {
            // SAFETY: passed on.
            None => unsafe { self.run_window(plan, buffers) }?,
            // SAFETY: passed on.
            Some(sequence) => unsafe { self.run_windows(&sequence, bytes, buffers, aliased && has_output) }?,
        }
        if let (Some(scale), true) = (scale, has_output) {
            let ranks = NonZeroU32::new(self.ranks() as u32).unwrap_or(NonZeroU32::MIN);
            // SAFETY: the output holds `count` elements of this type.
            unsafe { scale(output, call.count, ranks) };
        }
        self.end();
        if collective == Collective::Allreduce && sequence.is_none() && scale.is_none() && !self.book().check
        {
            self.keep_swap(call, plan);
        }
        Ok(())
    }

    /// A call without elements: checked and counted like any other.
    fn nothing_to_do(&mut self, call: &CallSpec) -> Result<(), Error> {
        self.begin(call.collective.name())?;
        if self.book().check {
            check::compare(self, call)?;
        }
        self.end();
        Ok(())
    }

    /// Runs the plans of a call, window by window.
    ///
    /// # Safety
    /// As for [`Communicator::call`].
    unsafe fn run_windows(
        &mut self,
        sequence: &Sequence,
        bytes: usize,
        buffers: Buffers,
        aliased: bool,
    ) -> Result<(), Error> {
        let mut at = 0;
        // A message without bytes is one window all the same: a barrier.
        while at < bytes.max(1) {
            let (plan, window) = match sequence.tail {
                Some(tail) if bytes - at < sequence.window => (tail, bytes - at),
                _ => (sequence.plan, sequence.window.max(1)),
            };
            // SAFETY: `at` and `window` stay within the buffers, which the caller vouches for; a null buffer
            // is one that the plan does not touch.
            unsafe {
                let mut input = buffers.input.wrapping_add(at);
                if aliased && !self.runs_in_place(plan) {
                    input = self.shadow_copy(input, window);
                }
                let output = buffers.output.wrapping_add(at);
                self.run_window(plan, Buffers { input, output, fold: buffers.fold })?;
            }
            at += window;
        }
        Ok(())
    }
}

fn expect_length<T>(collective: Collective, input: &[T], output: &[T]) -> Result<(), Error> {
    if input.len() == output.len() {
        return Ok(());
    }
    Err(Error::Length {
        collective,
        what: "output",
        expected: std::mem::size_of_val(input),
        found: std::mem::size_of_val(output),
    })
}

fn overlap(a: *const u8, b: *const u8, bytes: usize) -> bool {
    (a as usize) < b as usize + bytes && (b as usize) < a as usize + bytes
}
