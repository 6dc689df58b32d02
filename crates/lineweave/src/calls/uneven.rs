//! Collectives that exchange blocks of different lengths: the `v` forms.
//!
//! Every rank gives the lengths of all blocks, in elements and in the order of ranks, and gives the same: a plan needs them
//! all. An exception is [`Communicator::alltoallv`], where a rank knows only its own; there the lengths are exchanged
//! first, by an allgather. Blocks lie one after the other, without gaps. Sets of lengths share plans, which are cut for each block;
//! where the blocks hold less than half of what they would if all were as long as the longest, a new set is chosen for and proven,
//! which takes milliseconds.

use crate::call::Memory;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;

two_buffers! {
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
    gatherv(counts: &[usize], root: usize) = Gather, None, root, Some(counts);

    /// [`Communicator::scatter`] of `counts[r]` elements to rank `r`.
    ///
    /// # Errors
    /// The errors of [`Communicator::gatherv`].
    ///
    /// ```
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut part = vec![0; comm.rank() + 1];
    ///     comm.scatterv(&[7u32, 8, 9], &mut part, &[1, 2], 0)?;
    ///     Ok(part)
    /// })?;
    /// assert_eq!(parts, [vec![7], vec![8, 9]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scatterv(counts: &[usize], root: usize) = Scatter, None, root, Some(counts);

    /// [`Communicator::allgather`] of `counts[r]` elements from rank `r`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Counts`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let mut all = [9u32; 3];
    ///     let mine = vec![comm.rank() as u32; comm.rank() + 1];
    ///     comm.allgatherv(&mine, &mut all, &[1, 2])?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all, [[0, 1, 1]; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    allgatherv(counts: &[usize]) = Allgather, None, 0, Some(counts);

    /// [`Communicator::reduce_scatter_block`] with `counts[r]` elements of the result for rank `r`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Counts`], [`Error::Operator`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut part = vec![0; comm.rank() + 1];
    ///     comm.reduce_scatter(&[1u64, 2, 3], &mut part, &[1, 2], Operator::Sum)?;
    ///     Ok(part)
    /// })?;
    /// assert_eq!(parts, [vec![2], vec![4, 6]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    reduce_scatter(counts: &[usize], operator: Operator) = ReduceScatter, Some(operator), 0, Some(counts);
}

in_place! {
    /// [`Communicator::gatherv`] where the root's own block already lies in its place in `buffer`; at other ranks
    /// `buffer` is the contribution.
    ///
    /// # Errors
    /// The errors of [`Communicator::gatherv`].
    ///
    /// ```
    /// let gathered = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = if comm.rank() == 0 { vec![4u32, 0, 0] } else { vec![5, 6] };
    ///     comm.gatherv_in_place(&mut buffer, &[1, 2], 0)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(gathered[0], [4, 5, 6]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    gatherv_in_place(counts: &[usize], root: usize) = Gather, None, root, Some(counts);

    /// [`Communicator::scatterv`] where the root's own block stays in its place in `buffer`; at other ranks `buffer`
    /// is what they get.
    ///
    /// # Errors
    /// The errors of [`Communicator::gatherv`].
    ///
    /// ```
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = if comm.rank() == 0 { vec![7u32, 8, 9] } else { vec![0; 2] };
    ///     comm.scatterv_in_place(&mut buffer, &[1, 2], 0)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(parts, [vec![7, 8, 9], vec![8, 9]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scatterv_in_place(counts: &[usize], root: usize) = Scatter, None, root, Some(counts);

    /// [`Communicator::allgatherv`] where each rank's own block already lies in its place in `buffer`.
    ///
    /// # Errors
    /// The errors of [`Communicator::allgatherv`].
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = if comm.rank() == 0 { [4u32, 0, 0] } else { [0, 5, 6] };
    ///     comm.allgatherv_in_place(&mut buffer, &[1, 2])?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(all, [[4, 5, 6]; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    allgatherv_in_place(counts: &[usize]) = Allgather, None, 0, Some(counts);

    /// [`Communicator::reduce_scatter`] with the result at the start of the input. What is behind it may be changed or
    /// not.
    ///
    /// # Errors
    /// The errors of [`Communicator::reduce_scatter`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = [1u64, 2, 3];
    ///     comm.reduce_scatter_in_place(&mut buffer, &[1, 2], Operator::Sum)?;
    ///     Ok(buffer[0])
    /// })?;
    /// assert_eq!(parts, [2, 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    reduce_scatter_in_place(counts: &[usize], operator: Operator) = ReduceScatter, Some(operator), 0, Some(counts);
}

impl Communicator {
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
        self.exchange(Collective::Alltoall, None, 0, Some(&counts), Memory::two(input, output))
    }

    /// [`Communicator::alltoallv`] with what arrives in place of what was given: from each rank as much as it gets.
    ///
    /// # Errors
    /// The errors of [`Communicator::alltoallv`].
    ///
    /// ```
    /// let rows = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = [[1, 2], [3, 4]][comm.rank()];
    ///     comm.alltoallv_in_place(&mut buffer, &[1, 1])?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(rows, [[1, 3], [2, 4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn alltoallv_in_place<T: Element>(
        &mut self,
        buffer: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        let counts = self.counts_of_pairs(counts, counts, size_of::<T>())?;
        self.exchange(Collective::Alltoall, None, 0, Some(&counts), Memory::one(buffer))
    }
}
