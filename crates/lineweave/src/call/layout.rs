//! Layout of a call's buffers: their places and lengths. Only this module resolves extents, counts, and the one buffer of a call in place.

use super::CallSpec;
use crate::error::Error;
use crate::kernel::{Element, ElementType};
use lineweave_core::collective::{Collective, Extent};
use std::marker::PhantomData;
use std::ops::Range;

/// Input and output of a rank, in bytes of the one buffer that a call in place has. `None` where the collective gives the rank no such
/// buffer.
pub type Places = [Option<Range<usize>>; 2];

impl CallSpec {
    /// Returns the places of input and output of `rank`, one of `ranks`, when the call is in place; their lengths hold in any case.
    /// `counts` are the elements of each rank's block, or for an alltoall of each pair's, where blocks differ; `count` is ignored then.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Counts`].
    pub fn places(&self, counts: Option<&[usize]>, rank: usize, ranks: usize) -> Result<Places, Error> {
        let CallSpec { collective, element, root, .. } = *self;
        if root >= ranks {
            return Err(Error::Root { collective, root, ranks });
        }
        let Some(counts) = counts else {
            return Ok(self.lay(rank, rank * self.bytes(), self.bytes(), [ranks * self.bytes(); 2]));
        };
        let pairs = collective == Collective::Alltoall;
        let expected = if pairs { ranks * ranks } else { ranks };
        if counts.len() != expected || total_bytes(counts, element).is_none() {
            return Err(Error::Counts { collective, expected, found: counts.len() });
        }
        let sum = |range: Range<usize>| counts[range].iter().sum::<usize>() * element.size();
        let all = match pairs {
            true => [
                sum(rank * ranks..(rank + 1) * ranks),
                counts[rank..].iter().step_by(ranks).sum::<usize>() * element.size(),
            ],
            false => [sum(0..ranks); 2],
        };
        Ok(self.lay(rank, sum(0..rank), sum(rank..rank + 1), all))
    }

    /// [`CallSpec::places`] of known lengths: of the blocks before this rank's, of its own, and of all that it gives and takes.
    #[inline(always)]
    fn lay(&self, rank: usize, before: usize, own: usize, [given, taken]: [usize; 2]) -> Places {
        let extents = [self.collective.input(rank, self.root), self.collective.output(rank, self.root)];
        let place = |mine: Extent, other: Extent, all: usize| match mine {
            Extent::Nothing => None,
            Extent::Blocks => Some(0..all),
            Extent::Message if other == Extent::Blocks && !self.collective.folds() => {
                Some(before..before + own)
            }
            Extent::Message => Some(0..own),
        };
        [place(extents[0], extents[1], given), place(extents[1], extents[0], taken)]
    }

    /// Returns the start of the input of `rank` when the call is in place: in the output, or for a scatter's root around it.
    #[inline(always)]
    pub(crate) fn input_in_place(&self, rank: usize, ranks: usize, output: *mut u8) -> *const u8 {
        debug_assert!(rank < ranks);
        let bytes = self.bytes();
        let [given, taken] = self.lay(rank, rank * bytes, bytes, [ranks * bytes; 2]);
        let start = output.wrapping_sub(taken.map_or(0, |taken| taken.start));
        given.map_or(std::ptr::null(), |given| start.wrapping_add(given.start).cast_const())
    }
}

/// The length of the one buffer that holds both.
pub fn whole(places: &Places) -> usize {
    places.iter().flatten().map(|place| place.end).max().unwrap_or(0)
}

/// The sum of counts in bytes, if it fits into memory.
pub(crate) fn total_bytes(counts: &[usize], element: ElementType) -> Option<usize> {
    let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    sum?.checked_mul(element.size()).filter(|&bytes| bytes <= isize::MAX as usize)
}

/// A stretch of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes {
    pub start: *mut u8,
    pub len: usize,
}

/// Memory that a call reads and writes, as slices give it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<'b> {
    pub element: ElementType,
    /// Input and output; the same stretch twice where the call is in place.
    pub buffers: [Bytes; 2],
    in_place: bool,
    borrowed: PhantomData<&'b mut [u8]>,
}

impl<'b> Memory<'b> {
    /// An input and an output.
    pub fn two<T: Element>(input: &'b [T], output: &'b mut [T]) -> Memory<'b> {
        let input = Bytes { start: input.as_ptr().cast_mut().cast(), len: size_of_val(input) };
        let [output, _] = Memory::one(output).buffers;
        Memory { element: T::TYPE, buffers: [input, output], in_place: false, borrowed: PhantomData }
    }

    /// The buffer of a call in place.
    pub fn one<T: Element>(buffer: &'b mut [T]) -> Memory<'b> {
        let bytes = Bytes { start: buffer.as_mut_ptr().cast(), len: size_of_val(buffer) };
        Memory { element: T::TYPE, buffers: [bytes; 2], in_place: true, borrowed: PhantomData }
    }

    /// The call, with its count where no `counts` are given, and the addresses of input and output, if the lengths are the call's.
    ///
    /// # Errors
    /// [`Error::Length`]; those of [`CallSpec::places`].
    pub fn resolve(
        &self,
        call: CallSpec,
        counts: Option<&[usize]>,
        rank: usize,
        ranks: usize,
    ) -> Result<(CallSpec, *const u8, *mut u8), Error> {
        let collective = call.collective;
        let call = match counts {
            None => CallSpec { count: self.count(&call, rank, ranks), ..call },
            Some(_) => call,
        };
        let places = call.places(counts, rank, ranks)?;
        let [input, output] = self.buffers;
        if self.in_place {
            expect_length(collective, "buffer", whole(&places), input.len)?;
            let at = |place: Option<Range<usize>>| input.start.wrapping_add(place.map_or(0, |p| p.start));
            let [given, taken] = places;
            return Ok((call, at(given).cast_const(), at(taken)));
        }
        for (what, place, buffer) in [("input", &places[0], input), ("output", &places[1], output)] {
            if let Some(place) = place {
                expect_length(collective, what, place.len(), buffer.len)?;
            }
        }
        Ok((call, input.start.cast_const(), output.start))
    }

    /// Elements of the message, or of one block, by the buffer that tells on every rank.
    fn count(&self, call: &CallSpec, rank: usize, ranks: usize) -> usize {
        let [input, output] = self.buffers.map(|buffer| buffer.len / call.element.size());
        let collective = call.collective;
        if self.in_place {
            let extents = [collective.input(rank, call.root), collective.output(rank, call.root)];
            return if extents.contains(&Extent::Blocks) { input / ranks } else { input };
        }
        match collective {
            Collective::Scatter | Collective::ReduceScatter => output,
            Collective::Alltoall => input / ranks,
            Collective::Barrier
            | Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Gather
            | Collective::Allgather
            | Collective::Scan
            | Collective::Exscan => input,
        }
    }
}

/// Returns whether there is a number for each rank.
pub(crate) fn expect_counts(given: &[usize], taken: &[usize], ranks: usize) -> Result<(), Error> {
    let collective = Collective::Alltoall;
    let wrong = [given, taken].into_iter().find(|counts| counts.len() != ranks);
    wrong.map_or(Ok(()), |c| Err(Error::Counts { collective, expected: ranks, found: c.len() }))
}

pub(crate) fn expect_equal<T>(collective: Collective, input: &[T], output: &[T]) -> Result<(), Error> {
    expect_length(collective, "output", size_of_val(input), size_of_val(output))
}

pub(crate) fn expect_length(
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
