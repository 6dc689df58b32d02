//! Where blocks of different lengths lie, and calls with them on raw buffers.

use crate::check::CallSpec;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::Operator;
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
