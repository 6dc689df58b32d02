//! Collectives that exchange blocks of different lengths: the `v` forms.
//!
//! Every rank gives the lengths of all blocks, in elements and in the order of ranks, and gives the same: a plan needs them
//! all. An exception is [`Communicator::alltoallv`], where a rank knows only its own; there the lengths are exchanged
//! first, by an allgather. Blocks lie one after the other, without gaps. A set of lengths that comes again finds
//! its plans ready; a new one is chosen for and proven, which takes milliseconds.

use super::expect_length;
use crate::check::CallSpec;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::{Collective, Extent};

/// What a call of this kind is about, besides its buffers.
#[derive(Clone, Copy)]
pub(crate) struct Uneven<'a> {
    pub collective: Collective,
    pub operator: Option<Operator>,
    pub root: usize,
    /// Elements: one number for each rank, or for each pair of them.
    pub counts: &'a [usize],
}

/// Start and length of input, of output, and of the one buffer of a call in place, in bytes.
type Places = [Option<(usize, usize)>; 3];

/// A stretch of a buffer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// From the start of the one buffer that a call in place has.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
}

impl Communicator {
    /// [`Communicator::gather`] of `counts[r]` elements from rank `r`.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Length`], [`Error::Counts`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let gathered = lineweave::team::threads(3, |mut comm| {
    ///     let mut all = [0u32; 3];
    ///     let mine = vec![comm.rank() as u32; comm.rank()];
    ///     comm.gatherv(&mine, &mut all, &[0, 1, 2], 0)?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(gathered[0], [1, 2, 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn gatherv<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        root: usize,
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Gather, operator: None, root, counts };
        self.exchange_uneven(call, input, output)
    }

    /// [`Communicator::gatherv`] where the root's own block already lies in its place in `buffer`; at other ranks
    /// `buffer` is the contribution.
    ///
    /// # Errors
    /// Those of [`Communicator::gatherv`].
    pub fn gatherv_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
        root: usize,
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Gather, operator: None, root, counts };
        self.exchange_uneven_in_place(call, buffer)
    }

    /// [`Communicator::scatter`] of `counts[r]` elements to rank `r`.
    ///
    /// # Errors
    /// Those of [`Communicator::gatherv`].
    pub fn scatterv<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        root: usize,
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Scatter, operator: None, root, counts };
        self.exchange_uneven(call, input, output)
    }

    /// [`Communicator::scatterv`] where the root's own block stays in its place in `buffer`; at other ranks `buffer`
    /// is what they get.
    ///
    /// # Errors
    /// Those of [`Communicator::gatherv`].
    pub fn scatterv_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
        root: usize,
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Scatter, operator: None, root, counts };
        self.exchange_uneven_in_place(call, buffer)
    }

    /// [`Communicator::allgather`] of `counts[r]` elements from rank `r`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Counts`]; those of [`Communicator::barrier`].
    pub fn allgatherv<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Allgather, operator: None, root: 0, counts };
        self.exchange_uneven(call, input, output)
    }

    /// [`Communicator::allgatherv`] where each rank's own block already lies in its place in `buffer`.
    ///
    /// # Errors
    /// Those of [`Communicator::allgatherv`].
    pub fn allgatherv_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        let call = Uneven { collective: Collective::Allgather, operator: None, root: 0, counts };
        self.exchange_uneven_in_place(call, buffer)
    }

    /// [`Communicator::reduce_scatter_block`] with `counts[r]` elements of the result for rank `r`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Counts`], [`Error::Operator`]; those of [`Communicator::barrier`].
    pub fn reduce_scatter<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        operator: Operator,
    ) -> Result<(), Error> {
        let operator = Some(operator);
        let call = Uneven { collective: Collective::ReduceScatter, operator, root: 0, counts };
        self.exchange_uneven(call, input, output)
    }

    /// [`Communicator::reduce_scatter`] with the result at the start of the input. What is behind it may be changed or
    /// not.
    ///
    /// # Errors
    /// Those of [`Communicator::reduce_scatter`].
    pub fn reduce_scatter_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
        operator: Operator,
    ) -> Result<(), Error> {
        let operator = Some(operator);
        let call = Uneven { collective: Collective::ReduceScatter, operator, root: 0, counts };
        self.exchange_uneven_in_place(call, buffer)
    }

    /// [`Communicator::alltoall`] of `given[j]` elements to rank `j`, and `taken[i]` elements from rank `i`, which is what
    /// that one gives to this one. Ranks first exchange what they give.
    ///
    /// # Errors
    /// [`Error::Length`], also when a rank gives another length than this one takes; [`Error::Counts`]; those of
    /// [`Communicator::barrier`].
    ///
    /// ```
    /// let taken = lineweave::team::threads(2, |mut comm| {
    ///     let mut taken = vec![0; [1, 3][comm.rank()]];
    ///     match comm.rank() {
    ///         0 => comm.alltoallv(&[1, 2], &[0, 2], &mut taken, &[0, 1])?,
    ///         _ => comm.alltoallv(&[3, 4], &[1, 1], &mut taken, &[2, 1])?,
    ///     }
    ///     Ok(taken)
    /// })?;
    /// assert_eq!(taken, [vec![3], vec![1, 2, 4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn alltoallv<T: Element>(
        &mut self,
        input: &[T],
        given: &[usize],
        output: &mut [T],
        taken: &[usize],
    ) -> Result<(), Error> {
        let counts = self.counts_of_pairs(given, taken, size_of::<T>())?;
        let call = Uneven { collective: Collective::Alltoall, operator: None, root: 0, counts: &counts };
        self.exchange_uneven(call, input, output)
    }

    /// [`Communicator::alltoallv`] with what arrives in place of what was given: from each rank as much as it gets.
    ///
    /// # Errors
    /// Those of [`Communicator::alltoallv`].
    pub fn alltoallv_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        let counts = self.counts_of_pairs(counts, counts, size_of::<T>())?;
        let call = Uneven { collective: Collective::Alltoall, operator: None, root: 0, counts: &counts };
        self.exchange_uneven_in_place(call, buffer)
    }

    /// Any collective with blocks of different lengths on raw buffers. `call.count` is ignored in favour of
    /// `counts`, one number for each rank, or for an alltoall the whole matrix ([`Communicator::counts_of_pairs`]).
    ///
    /// # Errors
    /// Those of the typed calls, and [`Error::Overlap`] when the buffers overlap by part.
    ///
    /// # Safety
    /// `input` and `output` must be valid, for reads and for reads and writes, for what [`Communicator::uneven_places`]
    /// says, aligned for the element type, and nobody else may use them during the call.
    pub unsafe fn call_uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let CallSpec { collective, element, operator, root, .. } = *call;
        let uneven = Uneven { collective, operator, root, counts };
        uneven.places(self.rank(), self.ranks(), element.size())?;
        // SAFETY: passed on.
        unsafe { self.engine().run_uneven(&uneven, element, input, output) }
    }

    /// Input and output of this rank in such a call, `None` where it has none, and where they lie when the call is in place.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Counts`].
    pub fn uneven_places(&self, call: &CallSpec, counts: &[usize]) -> Result<[Option<Place>; 2], Error> {
        let CallSpec { collective, element, operator, root, .. } = *call;
        let [given, taken, _] = Uneven { collective, operator, root, counts }.places(
            self.rank(),
            self.ranks(),
            element.size(),
        )?;
        Ok([given, taken].map(|place| place.map(|(offset, bytes)| Place { offset, bytes })))
    }

    /// What every rank gives to every other, row by row, by an allgather: each rank knows only what it gives and takes.
    /// `element` is the size of one in bytes, for messages.
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
        self.allgather(&mine, &mut all)?;
        let counts: Vec<usize> = all.into_iter().map(|n| n as usize).collect();
        self.engine().expect_taken(&counts, taken, element)?;
        Ok(counts)
    }

    fn exchange_uneven<T: Element>(
        &mut self,
        call: Uneven<'_>,
        input: &[T],
        output: &mut [T],
    ) -> Result<(), Error> {
        let [given, taken, _] = call.places(self.rank(), self.ranks(), size_of::<T>())?;
        if let Some(given) = given {
            expect_length(call.collective, "input", given.1, size_of_val(input))?;
        }
        if let Some(taken) = taken {
            expect_length(call.collective, "output", taken.1, size_of_val(output))?;
        }
        // SAFETY: both slices are borrowed for the call and as long as it says where it uses them.
        unsafe { self.engine().run_uneven(&call, T::TYPE, input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    fn exchange_uneven_in_place<T: Element>(
        &mut self,
        call: Uneven<'_>,
        buffer: &mut [T],
    ) -> Result<(), Error> {
        let [given, taken, whole] = call.places(self.rank(), self.ranks(), size_of::<T>())?;
        let whole = whole.map_or(0, |(_, bytes)| bytes);
        expect_length(call.collective, "buffer", whole, size_of_val(buffer))?;
        let start = buffer.as_mut_ptr().cast::<u8>();
        let at = |place: Option<(usize, usize)>| start.wrapping_add(place.map_or(0, |(at, _)| at));
        // SAFETY: the slice is exclusively borrowed for the call, and both buffers lie within it.
        unsafe { self.engine().run_uneven(&call, T::TYPE, at(given), at(taken)) }
    }
}

impl Uneven<'_> {
    /// Where input and output of this rank would lie in one buffer, and how long they are; and that buffer. `None` where
    /// the collective gives it no such buffer.
    pub fn places(&self, rank: usize, ranks: usize, element: usize) -> Result<Places, Error> {
        let Uneven { collective, root, counts, .. } = *self;
        if root >= ranks {
            return Err(Error::Root { collective, root, ranks });
        }
        let expected = if collective == Collective::Alltoall { ranks * ranks } else { ranks };
        let total = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n.checked_mul(element)?));
        if counts.len() != expected || total.is_none_or(|total| total > isize::MAX as usize) {
            return Err(Error::Counts { collective, expected, found: counts.len() });
        }
        let sum = |range: &mut dyn Iterator<Item = usize>| range.map(|i| counts[i]).sum::<usize>() * element;
        let (before, own) = (sum(&mut (0..rank)), sum(&mut (rank..rank + 1)));
        let all = match collective {
            Collective::Alltoall => [0; 2],
            _ => [sum(&mut (0..ranks)); 2],
        };
        let [all_given, all_taken] = match collective {
            Collective::Alltoall => {
                [sum(&mut (rank * ranks..(rank + 1) * ranks)), sum(&mut (0..ranks).map(|i| i * ranks + rank))]
            }
            _ => all,
        };
        let (input, output) = (collective.input(rank, root), collective.output(rank, root));
        let place = |mine: Extent, other: Extent, all: usize| match mine {
            Extent::Nothing => None,
            Extent::Blocks => Some((0, all)),
            Extent::Message if other == Extent::Blocks && !collective.folds() => Some((before, own)),
            Extent::Message => Some((0, own)),
        };
        let (given, taken) = (place(input, output, all_given), place(output, input, all_taken));
        let end = |place: Option<(usize, usize)>| place.map_or(0, |(at, len)| at + len);
        Ok([given, taken, Some((0, end(given).max(end(taken))))])
    }
}

/// Whether there is a number for each rank.
pub(crate) fn expect_counts(given: &[usize], taken: &[usize], ranks: usize) -> Result<(), Error> {
    let collective = Collective::Alltoall;
    let wrong = [given, taken].into_iter().find(|counts| counts.len() != ranks);
    wrong.map_or(Ok(()), |c| Err(Error::Counts { collective, expected: ranks, found: c.len() }))
}
