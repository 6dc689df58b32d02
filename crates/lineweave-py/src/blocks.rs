//! The collectives on arrays in which a rank has a block for every rank, blocking.

use crate::calls::folding;
use crate::prepare::{Given, Made};
use crate::rank::Communicator;
use lineweave_core::collective::Collective;
use pyo3::prelude::*;

#[pymethods]
impl Communicator {
    /// Gathers the `x` of all ranks at the root, in the order of ranks.
    ///
    /// - `x`: an array with as many elements of the same dtype at every rank. `None` at the root: its block lies in its place in `out`.
    /// - `root`: the rank that gathers.
    /// - `out`: where the blocks go at the root, an array for `size` times as many elements; not used elsewhere.
    ///
    /// Returns `out` at the root, or a new array whose first extent is the number of ranks; `None` elsewhere. Raises `BadArgument` for lengths
    /// that do not fit and a root that is no rank, and what every call raises.
    ///
    ///     >>> team.gather(np.array([7, 8]), root=0)
    ///     array([[7, 8],
    ///            [7, 8]])
    #[pyo3(signature = (x, root=0, out=None))]
    fn gather<'py>(&self, py: Python<'py>, x: Given<'_, 'py>, root: usize, out: Given<'_, 'py>) -> Made<'py> {
        self.plain(py, Collective::Gather, [x, out], root)
    }

    /// Gives each rank its block of the root's `x`.
    ///
    /// - `x`: an array with a block for each rank, in their order; used at the root only.
    /// - `root`: the rank that gives.
    /// - `out`: where this rank's block goes. Every rank but the root must give one, of the dtype of `x`.
    ///
    /// Returns `out`; at the root without one a new array, `x.shape[1:]` for an `x` with a row for each rank. Raises `BadArgument` for lengths
    /// that do not fit, and what every call raises.
    ///
    ///     >>> rows = np.array([[1, 2], [3, 4]])
    ///     >>> team.scatter(rows if team.rank == 0 else None, 0, out=np.empty(2, rows.dtype))
    ///     array([1, 2])
    #[pyo3(signature = (x, root=0, out=None))]
    fn scatter<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        let x = x.filter(|_| self.rank() == root);
        self.plain(py, Collective::Scatter, [x, out], root)
    }

    /// Gathers the `x` of all ranks at every rank, in the order of ranks.
    ///
    /// - `x`: an array with as many elements of the same dtype at every rank. `None`: this rank's block lies in its place in `out`.
    /// - `out`: where the blocks go, an array for `size` times as many elements.
    ///
    /// Returns `out`, or a new array whose first extent is the number of ranks. Raises `BadArgument` for lengths that do not fit, and what every
    /// call raises.
    ///
    ///     >>> team.allgather(np.array([team.rank, 9]))
    ///     array([[0, 9],
    ///            [1, 9]])
    #[pyo3(signature = (x, out=None))]
    fn allgather<'py>(&self, py: Python<'py>, x: Given<'_, 'py>, out: Given<'_, 'py>) -> Made<'py> {
        self.plain(py, Collective::Allgather, [x, out], 0)
    }

    /// Combines the `x` of all ranks elementwise and gives each rank its block of the result. Blocks are equally long
    /// (`MPI_Reduce_scatter_block`); `reduce_scatter` has a length for each.
    ///
    /// - `x`: an array with a block for each rank, in their order.
    /// - `op`: as for `allreduce`.
    /// - `out`: where this rank's block goes.
    ///
    /// Returns `out`, or a new array: `x.shape[1:]` for an `x` with a row for each rank, else as `x` with the first extent divided by the number
    /// of ranks. Raises `BadArgument` if that cannot be divided, and what `allreduce` does.
    ///
    ///     >>> team.reduce_scatter_block(np.array([[1, 2], [3, 4]]))    # [6, 8] at rank 1
    ///     array([2, 4])
    #[pyo3(signature = (x, op=None, out=None))]
    fn reduce_scatter_block<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        folding(slf, Collective::ReduceScatter, [Some(x), out, op], 0)
    }

    /// Gives block `j` of this rank's `x` to rank `j`, and gets this rank's block of every other's.
    ///
    /// - `x`: an array with an equally long block for each rank, in their order. `None` for a call in place: the blocks lie in `out`.
    /// - `out`: where the blocks that arrive go, in the order of ranks; as long as `x`.
    ///
    /// Returns `out`, or a new array of the shape of `x`. Raises `BadArgument` for lengths that do not fit, and what every call raises.
    ///
    ///     >>> team.alltoall(np.array([10 * team.rank, 10 * team.rank + 1]))
    ///     array([ 0, 10])
    #[pyo3(signature = (x, out=None))]
    fn alltoall<'py>(&self, py: Python<'py>, x: Given<'_, 'py>, out: Given<'_, 'py>) -> Made<'py> {
        self.plain(py, Collective::Alltoall, [x, out], 0)
    }
}
