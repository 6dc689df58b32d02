//! What to call, with which buffers: one description for calls that are started once and for those that are started again.

use super::Recipe;
use crate::call::CallSpec;
use crate::call::{expect_counts, expect_length, Uneven};
use crate::communicator::Communicator;
use crate::engine::{Lengths, Pairs};
use crate::error::Error;
use crate::kernel::{Element, ElementType, Operator};
use lineweave_core::collective::{Collective, Extent};
use std::marker::PhantomData;
use std::sync::Arc;

/// A stretch of memory.
#[derive(Clone, Copy, Debug)]
struct Bytes {
    start: *mut u8,
    len: usize,
}

impl Bytes {
    fn read<T>(of: &[T]) -> Bytes {
        Bytes { start: of.as_ptr().cast_mut().cast(), len: size_of_val(of) }
    }

    fn write<T>(of: &mut [T]) -> Bytes {
        Bytes { start: of.as_mut_ptr().cast(), len: size_of_val(of) }
    }
}

#[derive(Debug)]
enum Memory {
    Two {
        input: Bytes,
        output: Bytes,
    },
    /// In place.
    One(Bytes),
}

#[derive(Debug)]
enum Counts {
    Even,
    /// Elements for each rank.
    Ranks(Box<[usize]>),
    /// Elements given to and taken from each rank.
    Pairs(Box<[usize]>, Box<[usize]>),
}

/// A collective with its buffers, to be started. Buffers are as for the calls of [`Communicator`] of the same names.
#[derive(Debug)]
#[must_use = "it is only a description; start it"]
pub struct Operation<'b> {
    collective: Collective,
    element: ElementType,
    operator: Option<Operator>,
    root: usize,
    memory: Memory,
    counts: Counts,
    borrowed: PhantomData<&'b mut [u8]>,
}

/// A description for two buffers.
fn two<'b, T: Element>(
    collective: Collective,
    operator: Option<Operator>,
    root: usize,
    input: &'b [T],
    output: &'b mut [T],
    counts: Counts,
) -> Operation<'b> {
    let memory = Memory::Two { input: Bytes::read(input), output: Bytes::write(output) };
    Operation { collective, element: T::TYPE, operator, root, memory, counts, borrowed: PhantomData }
}

/// A description for one.
fn one<'b, T: Element>(
    collective: Collective,
    operator: Option<Operator>,
    root: usize,
    buffer: &'b mut [T],
    counts: Counts,
) -> Operation<'b> {
    let memory = Memory::One(Bytes::write(buffer));
    Operation { collective, element: T::TYPE, operator, root, memory, counts, borrowed: PhantomData }
}

impl<'b> Operation<'b> {
    /// [`Communicator::barrier`].
    pub fn barrier() -> Operation<'static> {
        one::<u8>(Collective::Barrier, None, 0, &mut [], Counts::Even)
    }

    /// [`Communicator::bcast`].
    pub fn bcast<T: Element>(buffer: &'b mut [T], root: usize) -> Operation<'b> {
        one(Collective::Bcast, None, root, buffer, Counts::Even)
    }

    /// [`Communicator::reduce`].
    pub fn reduce<T: Element>(
        input: &'b [T],
        output: &'b mut [T],
        operator: Operator,
        root: usize,
    ) -> Operation<'b> {
        two(Collective::Reduce, Some(operator), root, input, output, Counts::Even)
    }

    /// [`Communicator::allreduce`].
    pub fn allreduce<T: Element>(input: &'b [T], output: &'b mut [T], operator: Operator) -> Operation<'b> {
        two(Collective::Allreduce, Some(operator), 0, input, output, Counts::Even)
    }

    /// [`Communicator::gather`].
    pub fn gather<T: Element>(input: &'b [T], output: &'b mut [T], root: usize) -> Operation<'b> {
        two(Collective::Gather, None, root, input, output, Counts::Even)
    }

    /// [`Communicator::gatherv`].
    pub fn gatherv<T: Element>(
        input: &'b [T],
        output: &'b mut [T],
        counts: &[usize],
        root: usize,
    ) -> Operation<'b> {
        two(Collective::Gather, None, root, input, output, Counts::Ranks(counts.into()))
    }

    /// [`Communicator::scatter`].
    pub fn scatter<T: Element>(input: &'b [T], output: &'b mut [T], root: usize) -> Operation<'b> {
        two(Collective::Scatter, None, root, input, output, Counts::Even)
    }

    /// [`Communicator::scatterv`].
    pub fn scatterv<T: Element>(
        input: &'b [T],
        output: &'b mut [T],
        counts: &[usize],
        root: usize,
    ) -> Operation<'b> {
        two(Collective::Scatter, None, root, input, output, Counts::Ranks(counts.into()))
    }

    /// [`Communicator::allgather`].
    pub fn allgather<T: Element>(input: &'b [T], output: &'b mut [T]) -> Operation<'b> {
        two(Collective::Allgather, None, 0, input, output, Counts::Even)
    }

    /// [`Communicator::allgatherv`].
    pub fn allgatherv<T: Element>(input: &'b [T], output: &'b mut [T], counts: &[usize]) -> Operation<'b> {
        two(Collective::Allgather, None, 0, input, output, Counts::Ranks(counts.into()))
    }

    /// [`Communicator::reduce_scatter_block`].
    pub fn reduce_scatter_block<T: Element>(
        input: &'b [T],
        output: &'b mut [T],
        operator: Operator,
    ) -> Operation<'b> {
        two(Collective::ReduceScatter, Some(operator), 0, input, output, Counts::Even)
    }

    /// [`Communicator::reduce_scatter`].
    pub fn reduce_scatter<T: Element>(
        input: &'b [T],
        output: &'b mut [T],
        counts: &[usize],
        operator: Operator,
    ) -> Operation<'b> {
        two(Collective::ReduceScatter, Some(operator), 0, input, output, Counts::Ranks(counts.into()))
    }

    /// [`Communicator::scan`].
    pub fn scan<T: Element>(input: &'b [T], output: &'b mut [T], operator: Operator) -> Operation<'b> {
        two(Collective::Scan, Some(operator), 0, input, output, Counts::Even)
    }

    /// [`Communicator::exscan`].
    pub fn exscan<T: Element>(input: &'b [T], output: &'b mut [T], operator: Operator) -> Operation<'b> {
        two(Collective::Exscan, Some(operator), 0, input, output, Counts::Even)
    }

    /// [`Communicator::alltoall`].
    pub fn alltoall<T: Element>(input: &'b [T], output: &'b mut [T]) -> Operation<'b> {
        two(Collective::Alltoall, None, 0, input, output, Counts::Even)
    }

    /// [`Communicator::alltoallv`].
    pub fn alltoallv<T: Element>(
        input: &'b [T],
        given: &[usize],
        output: &'b mut [T],
        taken: &[usize],
    ) -> Operation<'b> {
        let counts = Counts::Pairs(given.into(), taken.into());
        two(Collective::Alltoall, None, 0, input, output, counts)
    }

    /// The call in place: of every collective but barrier and broadcast, with one buffer as the calls `..._in_place` have it.
    pub fn in_place<T: Element>(
        collective: Collective,
        operator: Option<Operator>,
        buffer: &'b mut [T],
        root: usize,
    ) -> Operation<'b> {
        one(collective, operator, root, buffer, Counts::Even)
    }

    /// [`Operation::in_place`] with a count for each rank; in an alltoall each rank takes as much as it gives.
    pub fn in_place_uneven<T: Element>(
        collective: Collective,
        operator: Option<Operator>,
        buffer: &'b mut [T],
        counts: &[usize],
        root: usize,
    ) -> Operation<'b> {
        let counts = match collective {
            Collective::Alltoall => Counts::Pairs(counts.into(), counts.into()),
            _ => Counts::Ranks(counts.into()),
        };
        one(collective, operator, root, buffer, counts)
    }

    /// Checks it against this rank's place in the team.
    pub(super) fn resolve(self, comm: &Communicator) -> Result<Recipe, Error> {
        let Operation { collective, element, operator, root, counts, .. } = &self;
        let call = CallSpec {
            collective: *collective,
            element: *element,
            count: 0,
            operator: *operator,
            root: *root,
        };
        if operator.is_some() != collective.folds() {
            return Err(Error::Operator(format!(
                "{collective} with {operator:?}: a reduction needs an operator, and nothing else has one"
            )));
        }
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let recipe = match counts {
            Counts::Even => self.resolve_even(call, rank, ranks)?,
            Counts::Ranks(counts) => self.resolve_ranks(call, counts, rank, ranks)?,
            Counts::Pairs(given, taken) => self.resolve_pairs(call, given, taken, ranks)?,
        };
        comm.check_recipe(&recipe)?;
        Ok(recipe)
    }

    fn resolve_even(&self, mut call: CallSpec, rank: usize, ranks: usize) -> Result<Recipe, Error> {
        let (collective, root, size) = (call.collective, call.root, call.element.size());
        if root >= ranks {
            return Err(Error::Root { collective, root, ranks });
        }
        let extents = [collective.input(rank, root), collective.output(rank, root)];
        let lengths = Lengths::Even;
        match self.memory {
            Memory::Two { input, output } => {
                call.count = match collective {
                    Collective::Scatter | Collective::ReduceScatter => output.len / size,
                    Collective::Alltoall => input.len / size / ranks,
                    Collective::Barrier
                    | Collective::Bcast
                    | Collective::Reduce
                    | Collective::Allreduce
                    | Collective::Gather
                    | Collective::Allgather
                    | Collective::Scan
                    | Collective::Exscan => input.len / size,
                };
                if extents[0] != Extent::Nothing {
                    expect_length(collective, "input", call.input_bytes(rank, ranks), input.len)?;
                }
                if extents[1] != Extent::Nothing {
                    expect_length(collective, "output", call.output_bytes(rank, ranks), output.len)?;
                }
                Ok(Recipe { call, lengths, input: input.start, output: output.start })
            }
            Memory::One(buffer) => {
                let blocks = extents.contains(&Extent::Blocks);
                call.count = buffer.len / size / if blocks { ranks } else { 1 };
                let whole = extents.map(|e| e.bytes(ranks, call.bytes())).into_iter().max().unwrap_or(0);
                if collective != Collective::Bcast {
                    expect_length(collective, "buffer", whole, buffer.len)?;
                }
                let own = buffer.start.wrapping_add(rank * call.bytes());
                let (input, output) = match extents {
                    [Extent::Message, Extent::Blocks] => (own, buffer.start),
                    [Extent::Blocks, Extent::Message] if !collective.folds() => (buffer.start, own),
                    _ => (buffer.start, buffer.start),
                };
                Ok(Recipe { call, lengths, input, output })
            }
        }
    }

    fn resolve_ranks(
        &self,
        call: CallSpec,
        counts: &[usize],
        rank: usize,
        ranks: usize,
    ) -> Result<Recipe, Error> {
        let CallSpec { collective, element, operator, root, .. } = call;
        let places = Uneven { collective, operator, root, counts }.places(rank, ranks, element.size())?;
        let lengths = Lengths::Uneven(counts.into());
        let [given, taken, whole] = places.map(|place| place.unwrap_or((0, 0)));
        match self.memory {
            Memory::Two { input, output } => {
                if places[0].is_some() {
                    expect_length(collective, "input", given.1, input.len)?;
                }
                if places[1].is_some() {
                    expect_length(collective, "output", taken.1, output.len)?;
                }
                Ok(Recipe { call, lengths, input: input.start, output: output.start })
            }
            Memory::One(buffer) => {
                expect_length(collective, "buffer", whole.1, buffer.len)?;
                let at = |offset: usize| buffer.start.wrapping_add(offset);
                Ok(Recipe { call, lengths, input: at(given.0), output: at(taken.0) })
            }
        }
    }

    fn resolve_pairs(
        &self,
        call: CallSpec,
        given: &[usize],
        taken: &[usize],
        ranks: usize,
    ) -> Result<Recipe, Error> {
        expect_counts(given, taken, ranks)?;
        let collective = call.collective;
        let bytes = |counts: &[usize]| {
            let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
            sum.and_then(|sum| sum.checked_mul(call.element.size())).filter(|&n| n <= isize::MAX as usize)
        };
        let (Some(gives), Some(takes)) = (bytes(given), bytes(taken)) else {
            return Err(Error::Counts { collective, expected: ranks, found: given.len() });
        };
        let (input, output) = match self.memory {
            Memory::Two { input, output } => (input, output),
            Memory::One(buffer) => (buffer, buffer),
        };
        expect_length(collective, "input", gives, input.len)?;
        expect_length(collective, "output", takes, output.len)?;
        let lengths = Lengths::Gathered(Arc::new(Pairs::new(given, taken)));
        Ok(Recipe { call, lengths, input: input.start, output: output.start })
    }
}
