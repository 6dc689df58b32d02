//! The collectives as a Rust program calls them. Those that exchange blocks are in [`blocks`], and in [`uneven`] with
//! blocks of different lengths.

/// Calls that exchange blocks, and scans, with an input and an output: `name(arguments) = collective, operator, root, counts`.
macro_rules! two_buffers {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $collective:ident, $($how:expr),+;)+) => {
        impl Communicator {$(
            $(#[$doc])*
            pub fn $name<T: Element>(
                &mut self,
                input: &[T],
                output: &mut [T]
                $(, $argument: $type)*
            ) -> Result<(), Error> {
                self.exchange(Collective::$collective, $($how),+, Memory::two(input, output))
            }
        )+}
    };
}

/// As `two_buffers`, for calls with one buffer.
macro_rules! in_place {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $collective:ident, $($how:expr),+;)+) => {
        impl Communicator {$(
            $(#[$doc])*
            pub fn $name<T: Element>(&mut self, buffer: &mut [T] $(, $argument: $type)*) -> Result<(), Error> {
                self.exchange(Collective::$collective, $($how),+, Memory::one(buffer))
            }
        )+}
    };
}

mod fast_path;
mod blocks;
mod messages;
mod shared;
mod window;
mod places;
mod uneven;

pub use shared::SharedBuffer;

use crate::call::{expect_equal, CallSpec};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;

impl Communicator {
    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`] when a peer does not come.
    ///
    /// ```
    /// lineweave::team::threads(2, |mut comm| {
    ///     comm.barrier()?; // Nobody comes here before everybody was there.
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    #[inline(always)] // a call, with registers saved for the general path, is longer than what it does
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.engine().barrier()
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
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let mut sum = [0];
    ///     comm.reduce(&[comm.rank() as i32], &mut sum, Operator::Sum, 1)?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums[1], 3);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
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
    /// The errors of [`Communicator::allreduce`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(4, |mut comm| {
    ///     let mut sum = [comm.rank() as f64];
    ///     comm.allreduce_in_place(&mut sum, Operator::Sum)?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [6.0; 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
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
    /// The errors of the typed calls, and [`Error::Overlap`] when the buffers overlap by part.
    ///
    /// # Safety
    /// `input` must be valid for reads of [`CallSpec::input_bytes`] and `output` for reads and writes of
    /// [`CallSpec::output_bytes`] (for a broadcast the root reads `input` and the others write `output`), both aligned
    /// for the element type, and nobody else may use them during the call.
    ///
    /// ```
    /// use lineweave::{CallSpec, Collective, ElementType, Operator};
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let (element, operator) = (ElementType::U64, Some(Operator::Sum));
    ///     let call = CallSpec { collective: Collective::Allreduce, element, count: 2, operator, root: 0 };
    ///     let mut words = [comm.rank() as u64, 1];
    ///     let start = words.as_mut_ptr().cast();
    ///     // SAFETY: `words` has two elements of this type, and nobody else uses it.
    ///     unsafe { comm.call(&call, start, start)? };
    ///     Ok(words)
    /// })?;
    /// assert_eq!(sums, [[3, 3]; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    #[inline(always)]
    pub unsafe fn call(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Result<(), Error> {
        // SAFETY: passed on.
        unsafe { self.engine().call(call, input, output) }
    }
}
