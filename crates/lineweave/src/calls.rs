//! The collectives as a Rust program calls them. Those that exchange blocks are in [`blocks`], and in [`uneven`] with
//! blocks of different lengths.

mod blocks;
mod messages;
mod window;
mod uneven;

pub use uneven::Place;

use crate::check::{self, CallSpec};
use crate::choose::{has_two_buffers, Ready, Sequence};
use crate::communicator::{Buffers, Communicator};
use crate::error::Error;
use crate::kernel::{Element, ElementType, Operator};
use lineweave_core::collective::{Collective, Extent};
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
            expect_equal(Collective::Reduce, input, output)?;
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
        expect_equal(Collective::Allreduce, input, output)?;
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
    /// `input` must be valid for reads of [`CallSpec::input_bytes`] and `output` for reads and writes of
    /// [`CallSpec::output_bytes`] (for a broadcast the root reads `input` and the others write `output`), both aligned
    /// for the element type, and nobody else may use them during the call.
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
        let (rank, ranks) = (self.rank(), self.ranks());
        let has_output = collective.output(rank, call.root) != Extent::Nothing;
        let two_buffers = has_two_buffers(collective) && has_output;
        let aliased = two_buffers && std::ptr::eq(input, call.input_in_place(rank, ranks, output));
        if two_buffers && !aliased {
            let (given, taken) = (call.input_bytes(rank, ranks), call.output_bytes(rank, ranks));
            if overlap(input, given, output, taken) {
                return Err(Error::Overlap { collective });
            }
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
            Some(sequence) => unsafe { self.run_windows(&sequence, call, buffers, aliased) }?,
        }
        if let (Some(scale), true) = (scale, has_output) {
            // SAFETY: the output holds `count` elements of this type.
            unsafe { scale(output, call.count, contributions(collective, rank, ranks)) };
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
        call: &CallSpec,
        mut buffers: Buffers,
        mut aliased: bool,
    ) -> Result<(), Error> {
        let (mut at, bytes) = (0, call.bytes());
        if aliased && call.collective.has_blocks() {
            // A window of one block may be where another block of the input lies.
            aliased = false;
            let in_place = |plan| self.runs_in_place(plan);
            if !in_place(sequence.plan) || sequence.tail.is_some_and(|tail| !in_place(tail)) {
                let given = call.input_bytes(self.rank(), self.ranks());
                self.reserve_shadow(given)?;
                // SAFETY: the caller vouches for the input.
                buffers.input = unsafe { self.shadow_copy(buffers.input, given) };
            }
        }
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

fn expect_equal<T>(collective: Collective, input: &[T], output: &[T]) -> Result<(), Error> {
    expect_length(collective, "output", size_of_val(input), size_of_val(output))
}

fn expect_length(
    collective: Collective,
    what: &'static str,
    expected: usize,
    found: usize,
) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Length { collective, what, expected, found })
}

/// Whether `n` bytes from `a` on and `m` bytes from `b` on have one in common.
fn overlap(a: *const u8, n: usize, b: *const u8, m: usize) -> bool {
    n > 0 && m > 0 && (a as usize) < b as usize + m && (b as usize) < a as usize + n
}

/// How many contributions the result of a rank combines.
fn contributions(collective: Collective, rank: usize, ranks: usize) -> NonZeroU32 {
    let n = match collective {
        Collective::Scan => rank + 1,
        Collective::Exscan => rank,
        Collective::Barrier
        | Collective::Bcast
        | Collective::Reduce
        | Collective::Allreduce
        | Collective::Gather
        | Collective::Scatter
        | Collective::Allgather
        | Collective::ReduceScatter
        | Collective::Alltoall => ranks,
    };
    NonZeroU32::new(n as u32).unwrap_or(NonZeroU32::MIN)
}
