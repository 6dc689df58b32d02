//! What to call, with which buffers: one description for calls that are started once and for those that are started again.

use super::Recipe;
use crate::call::{expect_counts, expect_length, total_bytes, CallSpec, Memory};
use crate::communicator::Communicator;
use crate::engine::{Lengths, Pairs};
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;
use std::sync::Arc;

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
    operator: Option<Operator>,
    root: usize,
    memory: Memory<'b>,
    counts: Counts,
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
    Operation { collective, operator, root, memory: Memory::two(input, output), counts }
}

/// A description for one.
fn one<'b, T: Element>(
    collective: Collective,
    operator: Option<Operator>,
    root: usize,
    buffer: &'b mut [T],
    counts: Counts,
) -> Operation<'b> {
    Operation { collective, operator, root, memory: Memory::one(buffer), counts }
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
        let Operation { collective, operator, root, memory, counts } = self;
        let call = CallSpec { collective, element: memory.element, count: 0, operator, root };
        if operator.is_some() != collective.folds() {
            return Err(Error::Operator(format!(
                "{collective} with {operator:?}: a reduction needs an operator, and nothing else has one"
            )));
        }
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let ((call, input, output), lengths) = match counts {
            Counts::Even => (memory.resolve(call, None, rank, ranks)?, Lengths::Even),
            Counts::Ranks(counts) => {
                (memory.resolve(call, Some(&counts), rank, ranks)?, Lengths::Uneven(counts.into()))
            }
            Counts::Pairs(given, taken) => {
                expect_counts(&given, &taken, ranks)?;
                for (what, counts, buffer) in
                    [("input", &given, memory.buffers[0]), ("output", &taken, memory.buffers[1])]
                {
                    let Some(bytes) = total_bytes(counts, memory.element) else {
                        return Err(Error::Counts { collective, expected: ranks, found: counts.len() });
                    };
                    expect_length(collective, what, bytes, buffer.len)?;
                }
                let [input, output] = memory.buffers.map(|buffer| buffer.start);
                ((call, input.cast_const(), output), Lengths::Gathered(Arc::new(Pairs::new(&given, &taken))))
            }
        };
        let recipe = Recipe { call, lengths, input, output };
        comm.check_recipe(&recipe)?;
        Ok(recipe)
    }
}
