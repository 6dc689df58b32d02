//! Collectives that are started and waited for later.
//!
//! 1. The communicator keeps the arrays of a started call, not the request: a request that nobody waits for may be dropped, and its call
//!    goes on.
//! 2. The arrays are released when the call is seen to be over, when a blocking call on the communicator has completed all started ones,
//!    or when the team is closed.

use crate::array::Array;
use crate::held::Holding;
use crate::pending::Pending;
use crate::prepare::{helper, Call, Given, Ready};
use crate::raise;
use crate::rank::Communicator;
use lineweave::Blocks;
use lineweave_core::collective::Collective;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// A started call. The thread that started it waits for it: the thread of all calls of its team.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Request {
    comm: Py<Communicator>,
    pending: Pending<lineweave::requests::Request, ()>,
    holding: Arc<Holding>,
    collective: Collective,
    bytes: usize,
    unpack: Mutex<Option<(Py<PyAny>, Py<PyAny>)>>,
    result: Option<Py<PyAny>>,
}

impl Request {
    /// Starts a prepared call.
    pub(crate) fn start(
        slf: &Bound<'_, Communicator>,
        ready: Ready<'_>,
        also: Vec<Py<PyAny>>,
    ) -> PyResult<Request> {
        let py = slf.py();
        let comm = slf.get();
        let Ready { spec, input, output, whole, kept, packed_input, unpack, result } = ready;
        let (mut request, mut idle) = (None, false);
        comm.enter(py)?.run(py, 0, |comm| {
            idle = !comm.has_started();
            // SAFETY: both are as long as the call says, aligned, and kept below until it is over.
            request = Some(unsafe { comm.start_call(&spec, Blocks::Even, input, output) }?);
            Ok(())
        })?;
        let objects = also
            .into_iter()
            .chain(packed_input.map(Bound::unbind))
            .chain(unpack.as_ref().map(|(packed, _)| packed.clone().unbind()))
            .chain(result.as_ref().map(|r| r.clone().unbind()))
            .collect();
        let mut made = Request::of(slf, request, spec.collective, whole, (kept, objects, idle), result)?;
        made.unpack = Mutex::new(unpack.map(|(a, b)| (a.unbind(), b.unbind())));
        Ok(made)
    }

    /// Returns the request for a started call, with the arrays that are kept until it is over; `idle` says that no call was under way
    /// before.
    pub(crate) fn of(
        slf: &Bound<'_, Communicator>,
        request: Option<lineweave::requests::Request>,
        collective: Collective,
        bytes: usize,
        (kept, objects, idle): ([Option<Array<'_>>; 2], Vec<Py<PyAny>>, bool),
        result: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Request> {
        let Some(request) = request else {
            return Err(raise::own(slf.py(), "Error", "the call was not started"));
        };
        let holding = Holding::new(kept.into_iter().flatten().map(Array::keep).collect(), objects);
        slf.get().held().add(&holding, idle);
        Ok(Request {
            comm: slf.clone().unbind(),
            pending: Pending::new(request),
            holding,
            collective,
            bytes,
            unpack: Mutex::new(None),
            result: result.map(Bound::unbind),
        })
    }

    /// Releases the arrays of a call that is over, and unpacks its output the first time. A failed call may still be under way: its arrays
    /// stay until the team is closed.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.holding.over();
        let unpack = self.unpack.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((packed, target)) = unpack {
            helper(py, "unpack")?.call1((packed, target))?;
        }
        Ok(())
    }

    fn result(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.result.as_ref().map(|r| r.clone_ref(py))
    }
}

#[pymethods]
impl Request {
    /// Waits until the call is over, and returns what the blocking one would have returned.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.pending.go_on(py, self.comm.get(), self.bytes, |_, request| request.wait().map(Ok))?;
        self.finish(py)?;
        Ok(self.result(py))
    }

    /// Returns whether the call is over, after carrying started calls on a little.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        let step = |_: &mut _, mut request: lineweave::requests::Request| {
            Ok(if request.test()? { Ok(()) } else { Err(request) })
        };
        let over = self.pending.go_on(py, self.comm.get(), 0, step)?.is_some();
        if over {
            self.finish(py)?;
        }
        Ok(over)
    }

    /// Returns the result of the blocking call; its contents are final only when the call is over.
    #[getter]
    fn target(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.result(py)
    }

    fn __repr__(&self) -> String {
        format!("<lineweave request: {}, {}>", self.collective, self.pending.name())
    }
}

/// Returns the name of a collective's method, with a length for each block (`counted`) or one for all.
pub(crate) fn method(collective: Collective, counted: bool) -> String {
    match (collective, counted) {
        (Collective::ReduceScatter, false) => "reduce_scatter_block".to_owned(),
        (Collective::ReduceScatter, true) => "reduce_scatter".to_owned(),
        (_, false) => collective.name().to_owned(),
        (_, true) => format!("{collective}v"),
    }
}

/// Returns a collective by the name of its method.
pub(crate) fn collective(py: Python<'_>, name: &str, counted: bool) -> PyResult<Collective> {
    let found = Collective::ALL.into_iter().find(|&c| method(c, counted) == name);
    found.ok_or_else(|| {
        let known = Collective::ALL.map(|c| method(c, counted)).join(", ");
        raise::argument(py, format!("there is no collective `{name}`; expected one of {known}"))
    })
}

/// Prepares a call of the general form.
pub(crate) fn ready<'py>(
    slf: &Bound<'py, Communicator>,
    collective: Collective,
    [x, out, op]: [Given<'_, 'py>; 3],
    root: usize,
) -> PyResult<Ready<'py>> {
    let (py, comm) = (slf.py(), slf.get());
    let given = x;
    let (mut x, mut out) = (x, out);
    match collective {
        // The root reads the one array, and the other ranks write it.
        Collective::Bcast if comm.rank() == root => out = None,
        Collective::Bcast => (x, out) = (None, x),
        Collective::Scatter if comm.rank() != root => x = None,
        _ => {}
    }
    let operator = match collective.folds() {
        true => Some(comm.enter(py)?.operator(py, op)?),
        false => None,
    };
    if collective == Collective::Barrier {
        let spec = lineweave::CallSpec {
            collective,
            element: lineweave::ElementType::U8,
            count: 0,
            operator: None,
            root: 0,
        };
        return Ok(Ready::of(spec, std::ptr::null(), std::ptr::null_mut()));
    }
    let mut ready = Call { collective, x, out, operator: None, root }.prepare(comm, py, operator)?;
    if collective == Collective::Bcast {
        ready.result = given.cloned();
    }
    Ok(ready)
}

#[pymethods]
impl Communicator {
    /// Starts a collective by name.
    #[pyo3(signature = (name, x=None, out=None, op=None, root=0))]
    fn _start<'py>(
        slf: &Bound<'py, Communicator>,
        name: &str,
        x: Given<'_, 'py>,
        out: Given<'_, 'py>,
        op: Given<'_, 'py>,
        root: usize,
    ) -> PyResult<Request> {
        let ready = ready(slf, collective(slf.py(), name, false)?, [x, out, op], root)?;
        let also = [x, out].into_iter().flatten().map(|o| o.clone().unbind()).collect();
        Request::start(slf, ready, also)
    }

    /// Returns whether calls that were started may not be over yet.
    ///
    ///     >>> team.has_started
    ///     False
    #[getter]
    fn has_started(&self, py: Python<'_>) -> PyResult<bool> {
        self.enter(py)?.run(py, 0, |comm| Ok(comm.has_started()))
    }

    /// Has a helper thread carry started calls on while this rank does something else (`True`), or no longer.
    ///
    ///     >>> team.set_progress_thread(True)
    ///     >>> team.iallreduce(np.ones(1)).wait()
    ///     array([2.])
    ///     >>> team.set_progress_thread(False)
    fn set_progress_thread(&self, py: Python<'_>, on: bool) -> PyResult<()> {
        self.enter(py)?.run(py, 0, |comm| {
            comm.set_progress_thread(on);
            Ok(())
        })
    }
}
