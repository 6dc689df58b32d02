//! Where blocks of different lengths lie.

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
pub(crate) type Places = [Option<(usize, usize)>; 3];

/// A stretch of a buffer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// From the start of the one buffer that a call in place has.
    pub offset: usize,
    /// Length.
    pub bytes: usize,
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
