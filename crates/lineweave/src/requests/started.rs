//! The collectives, started with buffers that the request owns: each is [`Communicator::start`] of an [`Operation`].

use super::{Operation, Request};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;

/// Calls with one buffer, in which the result arrives too.
macro_rules! in_place {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $operation:expr;)+) => {
        impl Communicator {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// The errors of [`Communicator::start`].
            pub fn $name<T, B>(&mut self, buffer: B $(, $argument: $type)*) -> Result<Request<B>, Error>
            where
                T: Element,
                B: AsMut<[T]> + Send + 'static,
            {
                self.start(buffer, |buffer| $operation(AsMut::<[T]>::as_mut(buffer)))
            }
        )+}
    };
}

/// Calls with an input and an output.
macro_rules! from_to {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) = $operation:expr;)+) => {
        impl Communicator {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// The errors of [`Communicator::start`].
            pub fn $name<T, I, O>(
                &mut self,
                input: I,
                output: O
                $(, $argument: $type)*
            ) -> Result<Request<(I, O)>, Error>
            where
                T: Element,
                I: AsRef<[T]> + Send + 'static,
                O: AsMut<[T]> + Send + 'static,
            {
                self.start((input, output), |(input, output)| {
                    $operation(AsRef::<[T]>::as_ref(input), AsMut::<[T]>::as_mut(output))
                })
            }
        )+}
    };
}

in_place! {
    /// Starts [`Communicator::bcast`]; the request gives `buffer` back.
    ///
    /// ```
    /// let words = lineweave::team::threads(3, |mut comm| {
    ///     let request = comm.start_bcast(vec![10 * comm.rank()  as u64; 2], 1)?;
    ///     request.wait()
    /// })?;
    /// assert_eq!(words, [[10, 10]; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_bcast(root: usize) = |buffer| Operation::bcast(buffer, root);

    /// Starts [`Communicator::reduce`] in place: the request gives `buffer` back, at the root with the result.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let found = lineweave::team::threads(3, |mut comm| {
    ///     comm.start_reduce(vec![1 + comm.rank() as u64], Operator::Prod, 2)?.wait()
    /// })?;
    /// assert_eq!(found[2], [6]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_reduce(operator: Operator, root: usize) =
        |buffer| Operation::in_place(Collective::Reduce, Some(operator), buffer, root);

    /// Starts [`Communicator::allreduce`] in place: the request gives `buffer` back, with the result.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(4, |mut comm| {
    ///     let request = comm.start_allreduce(vec![comm.rank() as f64; 2], Operator::Sum)?;
    ///     // Something else.
    ///     request.wait()
    /// })?;
    /// assert_eq!(sums, [[6.0, 6.0]; 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_allreduce(operator: Operator) =
        |buffer| Operation::in_place(Collective::Allreduce, Some(operator), buffer, 0);

    /// Starts [`Communicator::scan`] in place: the request gives `buffer` back, with the result.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(3, |mut comm| comm.start_scan([1u64], Operator::Sum)?.wait())?;
    /// assert_eq!(sums, [[1], [2], [3]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_scan(operator: Operator) =
        |buffer| Operation::in_place(Collective::Scan, Some(operator), buffer, 0);

    /// Starts [`Communicator::exscan`] in place: the request gives `buffer` back, with the result; at rank 0 as it was.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let before = lineweave::team::threads(3, |mut comm| comm.start_exscan([1u64], Operator::Sum)?.wait())?;
    /// assert_eq!(before[1..], [[1], [2]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_exscan(operator: Operator) =
        |buffer| Operation::in_place(Collective::Exscan, Some(operator), buffer, 0);

    /// Starts [`Communicator::alltoall`] in place: the request gives `buffer` back, with what arrived.
    ///
    /// ```
    /// let turned = lineweave::team::threads(2, |mut comm| {
    ///     let me = 10 * comm.rank() as i32;
    ///     comm.start_alltoall([me, me + 1])?.wait()
    /// })?;
    /// assert_eq!(turned, [[0, 10], [1, 11]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_alltoall() = |buffer| Operation::in_place(Collective::Alltoall, None, buffer, 0);
}

from_to! {
    /// Starts [`Communicator::gather`]; the request gives both buffers back.
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let (_, all) = comm.start_gather([comm.rank() as u32], vec![0; 2], 0)?.wait()?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all[0], [0, 1]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_gather(root: usize) = |input, output| Operation::gather(input, output, root);

    /// Starts [`Communicator::gatherv`]; the request gives both buffers back.
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let mine = vec![comm.rank() as u32; comm.rank() + 1];
    ///     let (_, all) = comm.start_gatherv(mine, vec![9; 3], &[1, 2], 0)?.wait()?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all[0], [0, 1, 1]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_gatherv(counts: &[usize], root: usize) = |input, output| Operation::gatherv(input, output, counts, root);

    /// Starts [`Communicator::scatter`]; the request gives both buffers back.
    ///
    /// ```
    /// let mine = lineweave::team::threads(2, |mut comm| {
    ///     let (_, mine) = comm.start_scatter([7u32, 8], [0; 1], 0)?.wait()?;
    ///     Ok(mine)
    /// })?;
    /// assert_eq!(mine, [[7], [8]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_scatter(root: usize) = |input, output| Operation::scatter(input, output, root);

    /// Starts [`Communicator::scatterv`]; the request gives both buffers back.
    ///
    /// ```
    /// let mine = lineweave::team::threads(2, |mut comm| {
    ///     let (_, mine) = comm.start_scatterv([7u32, 8, 9], vec![0; comm.rank() + 1], &[1, 2], 0)?.wait()?;
    ///     Ok(mine)
    /// })?;
    /// assert_eq!(mine, [vec![7], vec![8, 9]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_scatterv(counts: &[usize], root: usize) = |input, output| Operation::scatterv(input, output, counts, root);

    /// Starts [`Communicator::allgather`]; the request gives both buffers back.
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let (_, all) = comm.start_allgather([comm.rank() as u32], [0; 2])?.wait()?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all, [[0, 1]; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_allgather() = |input, output| Operation::allgather(input, output);

    /// Starts [`Communicator::allgatherv`]; the request gives both buffers back.
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let mine = vec![comm.rank() as u32; comm.rank() + 1];
    ///     let (_, all) = comm.start_allgatherv(mine, [9; 3], &[1, 2])?.wait()?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all, [[0, 1, 1]; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_allgatherv(counts: &[usize]) = |input, output| Operation::allgatherv(input, output, counts);

    /// Starts [`Communicator::reduce_scatter_block`]; the request gives both buffers back.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let (_, part) = comm.start_reduce_scatter_block([1u64, 2], [0; 1], Operator::Sum)?.wait()?;
    ///     Ok(part)
    /// })?;
    /// assert_eq!(parts, [[2], [4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_reduce_scatter_block(operator: Operator) =
        |input, output| Operation::reduce_scatter_block(input, output, operator);

    /// Starts [`Communicator::reduce_scatter`]; the request gives both buffers back.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let own = vec![0; comm.rank() + 1];
    ///     let (_, part) = comm.start_reduce_scatter([1u64, 2, 3], own, &[1, 2], Operator::Sum)?.wait()?;
    ///     Ok(part)
    /// })?;
    /// assert_eq!(parts, [vec![2], vec![4, 6]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_reduce_scatter(counts: &[usize], operator: Operator) =
        |input, output| Operation::reduce_scatter(input, output, counts, operator);

    /// Starts [`Communicator::alltoallv`], `given` and `taken` being the elements that go to each rank and come from it; the
    /// request gives both buffers back.
    ///
    /// ```
    /// let taken = lineweave::team::threads(2, |mut comm| {
    ///     let (me, from_each) = (comm.rank() as u32, [comm.rank() + 1; 2]);
    ///     let (_, taken) = comm.start_alltoallv([me; 3], vec![9; 2 * from_each[0]], &[1, 2], &from_each)?.wait()?;
    ///     Ok(taken)
    /// })?;
    /// assert_eq!(taken, [vec![0, 1], vec![0, 0, 1, 1]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    start_alltoallv(given: &[usize], taken: &[usize]) =
        |input, output| Operation::alltoallv(input, given, output, taken);
}

impl Communicator {
    /// Starts [`Communicator::barrier`]: the request is over when every rank has started it.
    ///
    /// # Errors
    /// The errors of [`Communicator::start`].
    ///
    /// ```
    /// lineweave::team::threads(2, |mut comm| {
    ///     let mut request = comm.start_barrier()?;
    ///     while !request.test()? { /* something else */ }
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn start_barrier(&mut self) -> Result<Request, Error> {
        self.start((), |()| Operation::barrier())
    }
}
