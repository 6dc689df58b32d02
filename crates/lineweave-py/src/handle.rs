//! A call that is made many times on the same arrays: its arguments are resolved once.

use crate::array::{Array, Kept};
use crate::prepare::{Given, Ready};
use crate::raise;
use crate::rank::Communicator;
use crate::requests::{collective, ready, Request};
use lineweave::CallSpec;
use pyo3::prelude::*;

/// A collective on the same arrays, ready to be made again: `handle()`, or `handle.start()` and a wait later.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Persistent {
    comm: Py<Communicator>,
    spec: CallSpec,
    input: *mut u8,
    output: *mut u8,
    result: Py<PyAny>,
    _kept: [Kept; 2],
    _x: Py<PyAny>,
}

// SAFETY: the addresses are used in calls on the communicator only, of which there is one at a time.
unsafe impl Sync for Persistent {}
// SAFETY: as above.
unsafe impl Send for Persistent {}

#[pymethods]
impl Persistent {
    #[inline]
    fn __call__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (input, output) = (self.input, self.output);
        let mut entered = self.comm.get().enter(py)?;
        // SAFETY: the arrays were checked when the handle was made, and are kept.
        entered.run(py, self.spec.bytes(), |comm| unsafe { comm.call(&self.spec, input, output) })?;
        Ok(self.result.clone_ref(py))
    }

    /// Starts the call; what is returned is waited for.
    fn start(slf: &Bound<'_, Persistent>) -> PyResult<Request> {
        let (py, this) = (slf.py(), slf.get());
        let result = Some(this.result.bind(py).clone()).filter(|r| !r.is_none());
        let ready = Ready { result, ..Ready::of(this.spec, this.input, this.output) };
        // The handle keeps the arrays.
        Request::start(this.comm.bind(py), ready, vec![slf.clone().into_any().unbind()])
    }

    fn __repr__(&self) -> String {
        let CallSpec { collective, element, count, .. } = self.spec;
        format!("<lineweave handle: {collective} of {count} x {element}>")
    }
}

#[pymethods]
impl Communicator {
    /// Prepares any collective by its name. The returned object makes the call when it is called, or starts it by its
    /// `start`. The arrays must not be resized.
    #[pyo3(signature = (name, x=None, out=None, op=None, root=0))]
    fn _init<'py>(
        slf: &Bound<'py, Communicator>,
        name: &str,
        x: Given<'_, 'py>,
        out: Given<'_, 'py>,
        op: Given<'_, 'py>,
        root: usize,
    ) -> PyResult<Persistent> {
        let py = slf.py();
        let prepared = ready(slf, collective(py, name, false)?, [x, out, op], root);
        let Ready { spec, input, output, kept, packed_input, unpack, result, .. } = prepared.map_err(|error| {
            match raise::is_callable_operator(py, &error) {
                true => raise::argument(py, "a handle takes operators by name or numpy's functions for them; a function of two arrays is for calls that are made or started"),
                false => error,
            }
        })?;
        if packed_input.is_some() || unpack.is_some() {
            return Err(raise::argument(
                py,
                "a handle needs contiguous arrays: what is packed once would not be packed again",
            ));
        }
        let [a, b] = kept.map(|array| array.map_or_else(Kept::nothing, Array::keep));
        let result = result.map_or_else(|| py.None(), Bound::unbind);
        Ok(Persistent {
            comm: slf.clone().unbind(),
            spec,
            input: input.cast_mut(),
            output,
            result,
            _kept: [a, b],
            _x: x.map_or_else(|| py.None(), |x| x.clone().unbind()),
        })
    }

    /// Prepares `allreduce` of `x`, in place or to `out`, to be made by calling what is returned.
    ///
    /// - `x`, `op`: as for `allreduce`, but arrays must be contiguous and not resized, and `op` no function of the program's.
    /// - `out`: where the result goes; `x` if it is not given.
    ///
    /// Returns what makes the call and returns `out`. Raises what `allreduce` does.
    ///
    ///     >>> x = np.ones(2)
    ///     >>> sum_up = team.allreduce_init(x)
    ///     >>> sum_up(), sum_up()
    ///     (array([4., 4.]), array([4., 4.]))
    #[pyo3(signature = (x, op=None, out=None))]
    fn allreduce_init<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Persistent> {
        Communicator::_init(slf, "allreduce", Some(x), Some(out.unwrap_or(x)), op, 0)
    }

    /// Prepares `bcast` of `x` from `root`, to be made by calling what is returned.
    ///
    /// - `x`, `root`: as for `bcast`, but `x` must be contiguous and not resized.
    ///
    /// Returns what makes the call and returns `x`. Raises what `bcast` does.
    ///
    ///     >>> x = np.array([float(team.rank)])
    ///     >>> copy = team.bcast_init(x, root=1)
    ///     >>> copy()
    ///     array([1.])
    #[pyo3(signature = (x, root=0))]
    fn bcast_init<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        root: usize,
    ) -> PyResult<Persistent> {
        Communicator::_init(slf, "bcast", Some(x), None, None, root)
    }
}
