//! Collectives that exchange blocks of one length, and scans.
//!
//! Where a rank's buffer holds a block for every rank, it is as long as all of them together, in the order of ranks. The
//! calls in place take one buffer: the one with all blocks at ranks that have such a buffer, the own block's
//! elsewhere.

use crate::call::{CallSpec, Memory};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::kernel::{Element, Operator};
use lineweave_core::collective::Collective;

two_buffers! {
    /// Gathers every rank's `input` in the root's `output`, in the order of ranks. There `output` is as long as all
    /// inputs together; other ranks may give an empty one.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Length`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let gathered = lineweave::team::threads(3, |mut comm| {
    ///     let mut all = [0u32; 6];
    ///     comm.gather(&[comm.rank() as u32; 2], &mut all, 1)?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(gathered[1], [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    gather(root: usize) = Gather, None, root, None;

    /// Gives block `r` of the root's `input` to rank `r`, in its `output`. At the root `input` is as long as all
    /// outputs together; other ranks may give an empty one.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Length`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let mine = lineweave::team::threads(3, |mut comm| {
    ///     let mut mine = [0u32];
    ///     comm.scatter(&[7, 8, 9], &mut mine, 0)?;
    ///     Ok(mine[0])
    /// })?;
    /// assert_eq!(mine, [7, 8, 9]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scatter(root: usize) = Scatter, None, root, None;

    /// Gathers every rank's `input` in every rank's `output`, in the order of ranks.
    ///
    /// # Errors
    /// [`Error::Length`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let all = lineweave::team::threads(3, |mut comm| {
    ///     let mut all = [0; 3];
    ///     comm.allgather(&[10 * comm.rank() as i32], &mut all)?;
    ///     Ok(all)
    /// })?;
    /// assert_eq!(all, [[0, 10, 20]; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    allgather() = Allgather, None, 0, None;

    /// Combines every rank's `input` elementwise and gives block `r` of the result to rank `r`: `input` is as long as
    /// all outputs together.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Operator`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut part = [0];
    ///     comm.reduce_scatter_block(&[1u64, 2], &mut part, Operator::Sum)?;
    ///     Ok(part)
    /// })?;
    /// assert_eq!(parts, [[2], [4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    reduce_scatter_block(operator: Operator) = ReduceScatter, Some(operator), 0, None;

    /// Combines elementwise, in rank order, the `input` of all ranks up to and with this one in its `output`.
    /// With [`Operator::Avg`] it is the average of these.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Operator`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(4, |mut comm| {
    ///     let mut sum = [0u64];
    ///     comm.scan(&[1 + comm.rank() as u64], &mut sum, Operator::Sum)?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [1, 3, 6, 10]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scan(operator: Operator) = Scan, Some(operator), 0, None;

    /// Combines elementwise, in rank order, the `input` of all ranks before this one in its `output`. Rank 0's
    /// `output` is not touched and may be empty.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Operator`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let before = lineweave::team::threads(3, |mut comm| {
    ///     let mut before = [0u64];
    ///     comm.exscan(&[1], &mut before, Operator::Sum)?;
    ///     Ok(before[0])
    /// })?;
    /// assert_eq!(before, [0, 1, 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    exscan(operator: Operator) = Exscan, Some(operator), 0, None;

    /// Gives block `j` of this rank's `input` to rank `j`, where it is block `r` of the `output`, `r` being this rank:
    /// both buffers hold a block for every rank.
    ///
    /// # Errors
    /// [`Error::Length`]; those of [`Communicator::barrier`].
    ///
    /// ```
    /// let rows = lineweave::team::threads(2, |mut comm| {
    ///     let mut row = [0; 2];
    ///     let column = [[1, 2], [3, 4]][comm.rank()];
    ///     comm.alltoall(&column, &mut row)?;
    ///     Ok(row)
    /// })?;
    /// assert_eq!(rows, [[1, 3], [2, 4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    alltoall() = Alltoall, None, 0, None;
}

in_place! {
    /// [`Communicator::gather`] where the root's own block already lies in its place in `buffer`; at other ranks
    /// `buffer` is the contribution.
    ///
    /// # Errors
    /// The errors of [`Communicator::gather`].
    ///
    /// ```
    /// let gathered = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = vec![comm.rank() as u32 + 5; if comm.rank() == 0 { 2 } else { 1 }];
    ///     comm.gather_in_place(&mut buffer, 0)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(gathered[0], [5, 6]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    gather_in_place(root: usize) = Gather, None, root, None;

    /// [`Communicator::scatter`] where the root's own block stays in its place in `buffer`; at other ranks `buffer`
    /// is what they get.
    ///
    /// # Errors
    /// The errors of [`Communicator::scatter`].
    ///
    /// ```
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = if comm.rank() == 0 { vec![7u32, 8] } else { vec![0] };
    ///     comm.scatter_in_place(&mut buffer, 0)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(parts, [vec![7, 8], vec![8]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scatter_in_place(root: usize) = Scatter, None, root, None;

    /// [`Communicator::allgather`] where each rank's own block already lies in its place in `buffer`.
    ///
    /// # Errors
    /// The errors of [`Communicator::allgather`].
    ///
    /// ```
    /// let all = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = [0u32; 2];
    ///     buffer[comm.rank()] = comm.rank() as u32 + 5;
    ///     comm.allgather_in_place(&mut buffer)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(all, [[5, 6]; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    allgather_in_place() = Allgather, None, 0, None;

    /// [`Communicator::reduce_scatter_block`] with the result where the first block of the input was. What is behind
    /// it may be changed or not.
    ///
    /// # Errors
    /// The errors of [`Communicator::reduce_scatter_block`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let parts = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = [1u64, 2];
    ///     comm.reduce_scatter_block_in_place(&mut buffer, Operator::Sum)?;
    ///     Ok(buffer[0])
    /// })?;
    /// assert_eq!(parts, [2, 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    reduce_scatter_block_in_place(operator: Operator) = ReduceScatter, Some(operator), 0, None;

    /// [`Communicator::scan`] with the result in place of the input.
    ///
    /// # Errors
    /// The errors of [`Communicator::scan`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let mut sum = [1u64];
    ///     comm.scan_in_place(&mut sum, Operator::Sum)?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [1, 2, 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    scan_in_place(operator: Operator) = Scan, Some(operator), 0, None;

    /// [`Communicator::exscan`] with the result in place of the input; rank 0's stays.
    ///
    /// # Errors
    /// The errors of [`Communicator::exscan`].
    ///
    /// ```
    /// use lineweave::Operator;
    /// let before = lineweave::team::threads(3, |mut comm| {
    ///     let mut buffer = [5u64];
    ///     comm.exscan_in_place(&mut buffer, Operator::Max)?;
    ///     Ok(buffer[0])
    /// })?;
    /// assert_eq!(before, [5; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    exscan_in_place(operator: Operator) = Exscan, Some(operator), 0, None;

    /// [`Communicator::alltoall`] with what arrives in place of what was given.
    ///
    /// # Errors
    /// The errors of [`Communicator::alltoall`].
    ///
    /// ```
    /// let rows = lineweave::team::threads(2, |mut comm| {
    ///     let mut buffer = [[1, 2], [3, 4]][comm.rank()];
    ///     comm.alltoall_in_place(&mut buffer)?;
    ///     Ok(buffer)
    /// })?;
    /// assert_eq!(rows, [[1, 3], [2, 4]]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    alltoall_in_place() = Alltoall, None, 0, None;
}

impl Communicator {
    /// A call on memory that is borrowed for it, with blocks of the lengths `counts` or of one.
    pub(super) fn exchange(
        &mut self,
        collective: Collective,
        operator: Option<Operator>,
        root: usize,
        counts: Option<&[usize]>,
        memory: Memory<'_>,
    ) -> Result<(), Error> {
        let call = CallSpec { collective, element: memory.element, count: 0, operator, root };
        let (call, input, output) = memory.resolve(call, counts, self.rank(), self.ranks())?;
        match counts {
            // SAFETY: the slices are borrowed for the call, and as long as it says where it uses them.
            None => unsafe { self.call(&call, input, output) },
            // SAFETY: as above.
            Some(counts) => unsafe { self.engine().run_uneven(&call, counts, input, output) },
        }
    }
}
