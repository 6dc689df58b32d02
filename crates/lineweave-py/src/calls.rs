//! The blocking collectives on arrays.

use crate::numpy;
use crate::prepare::{Call, Given, Made};
use crate::raise;
use crate::rank::Communicator;
use crate::requests::method;
use lineweave::{CallSpec, Operator};
use lineweave_core::collective::Collective;
use pyo3::prelude::*;

impl<'py> Call<'_, 'py> {
    /// Makes the call, and returns the array with the result, if there is one.
    pub(crate) fn run(self, comm: &Communicator, py: Python<'py>) -> Made<'py> {
        let mut entered = comm.enter(py)?;
        let operator = self.operator.map(|given| entered.operator(py, given)).transpose()?;
        let ready = self.prepare(comm, py, operator)?;
        let (spec, input, output) = (ready.spec, ready.input, ready.output);
        // SAFETY: both are as long as the call says where it uses them, aligned for their elements, and kept by `ready`; that
        // nobody else uses them meanwhile is the caller's part.
        entered.run(py, ready.whole, |comm| unsafe { comm.call(&spec, input, output) })?;
        drop(entered);
        ready.finish(py)
    }
}

/// Makes the allreduce of two arrays if nothing has to be made, packed, unpacked or explained; otherwise returns `None`.
#[inline(always)]
fn direct<'py>(
    comm: &Communicator,
    x: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    op: Given<'_, 'py>,
) -> Option<PyResult<()>> {
    if !numpy::is_array(x) || !numpy::is_array(out) {
        return None;
    }
    let py = x.py();
    let (a, b) = (numpy::read(x, "x").ok()?, numpy::read(out, "out").ok()?);
    let alike = a.element == b.element && a.count == b.count && !a.truth && !b.truth;
    if !(alike && a.dense && b.dense && b.writable) {
        return None;
    }
    let mut entered = comm.enter(py).ok()?;
    let operator = Some(entered.operator(py, op).ok()?);
    let (collective, root) = (Collective::Allreduce, 0);
    let spec = CallSpec { collective, element: a.element, count: a.count, operator, root };
    // SAFETY: both arrays are dense and equally long, and the caller has them.
    Some(entered.run(py, spec.bytes(), |comm| unsafe { comm.call(&spec, a.data, b.data) }))
}

impl Communicator {
    /// Makes a call that moves blocks and does not fold.
    pub(crate) fn plain<'py>(
        &self,
        py: Python<'py>,
        collective: Collective,
        [x, out]: [Given<'_, 'py>; 2],
        root: usize,
    ) -> Made<'py> {
        Call { collective, x, out, operator: None, root }.run(self, py)
    }
}

/// Makes a call that folds. Where the operator is a function, the package calls it (`lineweave._functions`).
pub(crate) fn folding<'py>(
    slf: &Bound<'py, Communicator>,
    collective: Collective,
    [x, out, op]: [Given<'_, 'py>; 3],
    root: usize,
) -> Made<'py> {
    let done = Call { collective, x, out, operator: Some(op), root }.run(slf.get(), slf.py());
    match done {
        Err(error) if op.is_some() && raise::is_callable_operator(slf.py(), &error) => {
            let function = slf.py().import("lineweave._functions")?.getattr(method(collective, false))?;
            let result = function.call1((slf, x, op, root, out))?;
            Ok((!result.is_none()).then_some(result))
        }
        done => done,
    }
}

#[pymethods]
impl Communicator {
    /// Combines the `x` of all ranks elementwise. Every rank gets the result, with the same bits.
    ///
    /// - `x`: an array with as many elements of the same dtype at every rank.
    /// - `op`: 'sum' (if not given), 'prod', 'min', 'max', 'avg', 'band', 'bor', 'bxor', 'land', 'lor', 'lxor', numpy's function for one of
    ///   them, or any function of two arrays, which is slower.
    /// - `out`: where the result goes, an array as long as `x` and of its dtype; `x` itself for a call in place.
    ///
    /// Returns `out`; without it a new array of the shape and kind of `x`. Raises `BadArgument` for lengths that do not fit and unknown
    /// operators, `BadType` for dtypes that do not fit, and what every call raises (`help(lineweave.Team)`).
    ///
    ///     >>> team.allreduce(np.array([1.0, 2.0]))
    ///     array([2., 4.])
    ///     >>> x = np.array([team.rank, 5])
    ///     >>> team.allreduce(x, "max", out=x)          # in place
    ///     array([1, 5])
    #[pyo3(signature = (x, op=None, out=None))]
    #[inline]
    fn allreduce<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        if let Some(out) = out {
            if let Some(done) = direct(slf.get(), x, out, op) {
                return done.map(|()| Some(out.clone()));
            }
        }
        folding(slf, Collective::Allreduce, [Some(x), out, op], 0)
    }

    /// Copies the root's `x` into the `x` of every other rank.
    ///
    /// - `x`: an array with as many elements of the same dtype at every rank, which may be written at all but the root.
    /// - `root`: the rank whose array is copied.
    ///
    /// Always in place; returns `x`. Raises `BadArgument` for a root that is no rank and an `x` that may not be written, and what every call
    /// raises.
    ///
    ///     >>> x = np.array([3, 4]) if team.rank == 1 else np.zeros(2, int)
    ///     >>> team.bcast(x, root=1)
    ///     array([3, 4])
    #[pyo3(signature = (x, root=0))]
    fn bcast<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>, root: usize) -> PyResult<Bound<'py, PyAny>> {
        let collective = Collective::Bcast;
        let given = [(self.rank() == root).then_some(x), (self.rank() != root).then_some(x)];
        self.plain(py, collective, given, root)?;
        Ok(x.clone())
    }

    /// Combines the `x` of all ranks elementwise. The root gets the result.
    ///
    /// - `x`, `op`: as for `allreduce`.
    /// - `root`: the rank that gets the result.
    /// - `out`: where it goes at the root, `x` itself for a call in place; not used elsewhere.
    ///
    /// Returns `out` or a new array at the root, `None` elsewhere. Raises what `allreduce` does, and `BadArgument` for a root that is no rank.
    ///
    ///     >>> team.reduce(np.array([1, 2]), "prod", root=0)
    ///     array([1, 4])
    #[pyo3(signature = (x, op=None, root=0, out=None))]
    fn reduce<'py>(
        slf: &Bound<'py, Communicator>,
        x: Given<'_, 'py>,
        op: Given<'_, 'py>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        folding(slf, Collective::Reduce, [x, out, op], root)
    }

    /// Combines the `x` of the ranks 0 to this one, elementwise and in the order of ranks.
    ///
    /// - `x`, `op`, `out`: as for `allreduce`.
    ///
    /// Returns `out` or a new array. Raises what `allreduce` does.
    ///
    ///     >>> team.scan(np.array([team.rank + 1.0]))   # [3.] at rank 1
    ///     array([1.])
    #[pyo3(signature = (x, op=None, out=None))]
    fn scan<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        folding(slf, Collective::Scan, [Some(x), out, op], 0)
    }

    /// Combines the `x` of the ranks before this one, elementwise and in the order of ranks. Rank 0 gets nothing.
    ///
    /// - `x`, `op`, `out`: as for `allreduce`. At rank 0 `out` is left as it is.
    ///
    /// Returns `out` or a new array, `None` at rank 0 where there is no `out`. Raises what `allreduce` does.
    ///
    ///     >>> before = team.exscan(np.array([5]))      # array([5]) at rank 1
    ///     >>> team.rank, None if team.rank == 0 else int(before[0])
    ///     (0, None)
    #[pyo3(signature = (x, op=None, out=None))]
    fn exscan<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        folding(slf, Collective::Exscan, [Some(x), out, op], 0)
    }

    /// Makes a call by addresses, for callers that have already resolved everything: the number of the collective, element type and operator
    /// (-1 for none) in the order of the runtime's lists, the root, the elements of the message or of one block, and the addresses of input
    /// and output. The caller is responsible for all of them.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one number each")]
    fn _raw(
        &self,
        py: Python<'_>,
        collective: usize,
        element: usize,
        operator: isize,
        root: usize,
        count: usize,
        input: usize,
        output: usize,
    ) -> PyResult<()> {
        let unknown = |what: &str| raise::argument(py, format!("the number of the {what} is out of range"));
        let spec = CallSpec {
            collective: *Collective::ALL.get(collective).ok_or_else(|| unknown("collective"))?,
            element: *lineweave::ElementType::ALL.get(element).ok_or_else(|| unknown("element type"))?,
            count,
            operator: match usize::try_from(operator) {
                Ok(n) => Some(*Operator::ALL.get(n).ok_or_else(|| unknown("operator"))?),
                Err(_) => None,
            },
            root,
        };
        let (input, output) =
            (std::ptr::with_exposed_provenance(input), std::ptr::with_exposed_provenance_mut(output));
        let bytes = spec.bytes();
        // SAFETY: the caller's, within the package: `lineweave.torch`, which keeps the tensors during the call.
        self.enter(py)?.run(py, bytes, |comm| unsafe { comm.call(&spec, input, output) })
    }
}
