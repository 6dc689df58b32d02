//! Messages between two ranks that are started and waited for later. The communicator keeps their arrays as it does for
//! started calls (`requests`): a message that nobody waits for goes on.

use crate::array::Array;
use crate::held::Holding;
use crate::messages::{elements, incoming, outgoing};
use crate::pending::Pending;
use crate::rank::Communicator;
use lineweave::communicator::Message;
use lineweave::ElementType;
use pyo3::prelude::*;
use std::sync::Arc;

/// A started message. The thread that started it waits for it: the thread of all calls of its team.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Parcel {
    comm: Py<Communicator>,
    /// The message, and the number of received bytes when it is over.
    pending: Pending<Message, usize>,
    holding: Arc<Holding>,
    bytes: usize,
    /// The element type of a message that is received; `None` for one that is sent.
    element: Option<ElementType>,
}

impl Parcel {
    fn new(
        slf: &Bound<'_, Communicator>,
        message: Message,
        array: Array<'_>,
        objects: Vec<Py<PyAny>>,
        receives: bool,
    ) -> Parcel {
        let (bytes, element) = (array.layout.bytes(), array.layout.element);
        let holding = Holding::of_message(array.keep(), objects, Box::new(message.ended()));
        slf.get().held().add(&holding, false);
        Parcel {
            comm: slf.clone().unbind(),
            pending: Pending::new(message),
            holding,
            bytes,
            element: receives.then_some(element),
        }
    }

    /// Carries the message on, or waits until it is over if `wait` is true; returns the number of received elements if
    /// it is over.
    fn go_on(&self, py: Python<'_>, wait: bool) -> PyResult<Option<usize>> {
        let bytes = if wait { self.bytes } else { 0 };
        let came = self.pending.go_on(py, self.comm.get(), bytes, |comm, mut message| match wait {
            true => comm.wait_message(&message).map(Ok),
            false => Ok(comm.test_message(&mut message)?.ok_or(message)),
        });
        // A failed message was withdrawn, and its array is no longer used.
        if self.pending.has_ended() {
            self.holding.over();
        }
        match (came?, self.element) {
            (Some(bytes), Some(element)) => elements(py, bytes, element).map(Some),
            (came, _) => Ok(came),
        }
    }
}

#[pymethods]
impl Parcel {
    /// Waits until the message is over; returns how many elements came, nothing for one that was sent.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.go_on(py, true)?.filter(|_| self.element.is_some()))
    }

    /// Returns whether the message is over, after carrying it on a little.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.go_on(py, false)?.is_some())
    }

    fn __repr__(&self) -> String {
        let what = if self.element.is_some() { "recv" } else { "send" };
        format!("<lineweave request: {what}, {}>", self.pending.name())
    }
}

#[pymethods]
impl Communicator {
    /// Starts sending the elements of an array to another rank.
    #[pyo3(signature = (x, to, tag=0))]
    fn _isend(slf: &Bound<'_, Communicator>, x: &Bound<'_, PyAny>, to: usize, tag: u32) -> PyResult<Parcel> {
        let py = slf.py();
        let mut packed = None;
        let array = outgoing(x, &mut packed)?;
        let (start, bytes) = (array.layout.data.cast_const(), array.layout.bytes());
        // SAFETY: the array is dense, so long, and kept until the message is over.
        let message =
            slf.get().enter(py)?.run(py, 0, |comm| unsafe { comm.isend_bytes(start, bytes, to, tag) })?;
        let objects = packed.into_iter().chain(Some(x.clone())).map(Bound::unbind).collect();
        Ok(Parcel::new(slf, message, array, objects, false))
    }

    /// Starts receiving a message into an array that has room for it.
    #[pyo3(signature = (out, source, tag=0))]
    fn _irecv(
        slf: &Bound<'_, Communicator>,
        out: &Bound<'_, PyAny>,
        source: usize,
        tag: u32,
    ) -> PyResult<Parcel> {
        let py = slf.py();
        let array = incoming(out)?;
        let (start, room) = (array.layout.data, array.layout.bytes());
        // SAFETY: as above, and it may be written.
        let message =
            slf.get().enter(py)?.run(py, 0, |comm| unsafe { comm.irecv_bytes(start, room, source, tag) })?;
        Ok(Parcel::new(slf, message, array, vec![out.clone().unbind()], true))
    }

    /// The rank that a message has come from, and how many bytes it has, without receiving it.
    ///
    /// - `source`: the rank to look at; any if it is not given.
    /// - `tag`: the tag of the message.
    /// - `wait`: whether to wait until there is one.
    ///
    /// Returns `(rank, bytes)`, or `None` if no message has come and `wait` is false. Raises what every call raises.
    ///
    ///     >>> if team.rank == 1:
    ///     ...     team.send(np.zeros(3), to=0, tag=5)
    ///     ... else:
    ///     ...     source, size = team.probe(tag=5)
    ///     ...     x = np.empty(size // 8)
    ///     ...     print(source, size, team.recv(x, source, tag=5))
    ///     1 24 3
    #[pyo3(signature = (source=None, tag=0, wait=true))]
    fn probe(
        &self,
        py: Python<'_>,
        source: Option<usize>,
        tag: u32,
        wait: bool,
    ) -> PyResult<Option<(usize, usize)>> {
        self.enter(py)?.run(py, 0, |comm| comm.probe(source, tag, wait))
    }
}
