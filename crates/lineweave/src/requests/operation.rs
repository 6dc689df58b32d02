//! Description of a call and its buffers: one for calls that are started once and for those that are started again.

use super::Recipe;
use crate::call::{expect_counts, expect_length, total_bytes, CallSpec, Memory};
use crate::communicator::Communicator;
use crate::engine::Lengths;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;

/// A collective with its buffers, to be started. Buffers are as for the calls of [`Communicator`] of the same names.
/// [`Communicator::start`], [`Communicator::scope`] and [`Communicator::init`] have examples.
#[derive(Debug)]
#[must_use = "it is only a description; start it"]
pub struct Operation<'b> {
    collective: Collective,
    operator: Option<Operator>,
    root: usize,
    memory: Memory<'b>,
    lengths: Lengths,
}

/// Descriptions with an input and an output: `name(arguments) = collective, operator, root, lengths`.
macro_rules! two_buffers {
    ($($name:ident($($argument:ident: $type:ty),*) = $collective:ident, $operator:expr, $root:expr, $lengths:expr;)+) => {
        impl<'b> Operation<'b> {$(
            #[doc = concat!("[`Communicator::", stringify!($name), "`].")]
            pub fn $name<T: Element>(input: &'b [T], output: &'b mut [T] $(, $argument: $type)*) -> Operation<'b> {
                let (collective, memory) = (Collective::$collective, Memory::two(input, output));
                Operation { collective, operator: $operator, root: $root, memory, lengths: $lengths }
            }
        )+}
    };
}

two_buffers! {
    reduce(operator: Operator, root: usize) = Reduce, Some(operator), root, Lengths::Even;
    allreduce(operator: Operator) = Allreduce, Some(operator), 0, Lengths::Even;
    gather(root: usize) = Gather, None, root, Lengths::Even;
    gatherv(counts: &[usize], root: usize) = Gather, None, root, Lengths::Uneven(counts.into());
    scatter(root: usize) = Scatter, None, root, Lengths::Even;
    scatterv(counts: &[usize], root: usize) = Scatter, None, root, Lengths::Uneven(counts.into());
    allgather() = Allgather, None, 0, Lengths::Even;
    allgatherv(counts: &[usize]) = Allgather, None, 0, Lengths::Uneven(counts.into());
    reduce_scatter_block(operator: Operator) = ReduceScatter, Some(operator), 0, Lengths::Even;
    reduce_scatter(counts: &[usize], operator: Operator) = ReduceScatter, Some(operator), 0, Lengths::Uneven(counts.into());
    scan(operator: Operator) = Scan, Some(operator), 0, Lengths::Even;
    exscan(operator: Operator) = Exscan, Some(operator), 0, Lengths::Even;
    alltoall() = Alltoall, None, 0, Lengths::Even;
}

/// A description for one buffer.
fn one<'b, T: Element>(
    collective: Collective,
    operator: Option<Operator>,
    root: usize,
    buffer: &'b mut [T],
    lengths: Lengths,
) -> Operation<'b> {
    Operation { collective, operator, root, memory: Memory::one(buffer), lengths }
}

impl<'b> Operation<'b> {
    /// [`Communicator::barrier`].
    pub fn barrier() -> Operation<'static> {
        one::<u8>(Collective::Barrier, None, 0, &mut [], Lengths::Even)
    }

    /// [`Communicator::bcast`].
    pub fn bcast<T: Element>(buffer: &'b mut [T], root: usize) -> Operation<'b> {
        one(Collective::Bcast, None, root, buffer, Lengths::Even)
    }

    /// [`Communicator::alltoallv`].
    pub fn alltoallv<T: Element>(
        input: &'b [T],
        given: &[usize],
        output: &'b mut [T],
        taken: &[usize],
    ) -> Operation<'b> {
        let lengths = Lengths::pairs(given, taken);
        Operation { lengths, ..Operation::alltoall(input, output) }
    }

    /// The call in place: of every collective but barrier and broadcast, with one buffer as the calls `..._in_place` have it.
    ///
    /// ```
    /// use lineweave::{Collective, Operation, Operator};
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let (mine, max) = (vec![comm.rank() as u32], Some(Operator::Max));
    ///     comm.start(mine, |buffer| Operation::in_place(Collective::Reduce, max, buffer, 0))?.wait()
    /// })?;
    /// assert_eq!(sums[0], [2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn in_place<T: Element>(
        collective: Collective,
        operator: Option<Operator>,
        buffer: &'b mut [T],
        root: usize,
    ) -> Operation<'b> {
        one(collective, operator, root, buffer, Lengths::Even)
    }

    /// [`Operation::in_place`] with a count for each rank; in an alltoall each rank takes as much as it gives.
    pub fn in_place_uneven<T: Element>(
        collective: Collective,
        operator: Option<Operator>,
        buffer: &'b mut [T],
        counts: &[usize],
        root: usize,
    ) -> Operation<'b> {
        let lengths = match collective {
            Collective::Alltoall => Lengths::pairs(counts, counts),
            _ => Lengths::Uneven(counts.into()),
        };
        one(collective, operator, root, buffer, lengths)
    }

    /// Checks it against this rank's place in the team.
    pub(super) fn resolve(self, comm: &Communicator) -> Result<Recipe, Error> {
        let Operation { collective, operator, root, memory, lengths } = self;
        let call = CallSpec { collective, element: memory.element, count: 0, operator, root };
        if operator.is_some() != collective.folds() {
            return Err(Error::Operator(format!(
                "{collective} with {operator:?}: a reduction needs an operator, and nothing else has one"
            )));
        }
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let (call, input, output) = match &lengths {
            Lengths::Even => memory.resolve(call, None, rank, ranks)?,
            Lengths::Uneven(counts) => memory.resolve(call, Some(counts), rank, ranks)?,
            Lengths::Gathered(pairs) => {
                expect_counts(&pairs.given, &pairs.taken, ranks)?;
                for (what, counts, buffer) in
                    [("input", &pairs.given, memory.buffers[0]), ("output", &pairs.taken, memory.buffers[1])]
                {
                    let Some(bytes) = total_bytes(counts, memory.element) else {
                        return Err(Error::Counts { collective, expected: ranks, found: counts.len() });
                    };
                    expect_length(collective, what, bytes, buffer.len)?;
                }
                let [input, output] = memory.buffers.map(|buffer| buffer.start);
                (call, input.cast_const(), output)
            }
        };
        let recipe = Recipe { call, lengths, input, output };
        comm.check_recipe(&recipe)?;
        Ok(recipe)
    }
}
