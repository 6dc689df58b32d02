//! Messages between two ranks that are started and waited for later. Their arrays are kept as those of started calls are
//! (`requests`), by the communicator: a message that nobody waits for goes on.

use crate::array::Array;
use crate::held::Holding;
use crate::messages::{elements, incoming, outgoing};
use crate::raise;
use crate::rank::Communicator;
use lineweave::communicator::Message;
use lineweave::ElementType;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// How far a message is.
enum State {
    Started(Message),
    /// With the elements that came.
    Done(usize),
    Failed(String),
}

/// A message that was started. Whoever started it waits for it, in the same thread as all calls of its team.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Parcel {
    comm: Py<Communicator>,
    state: Mutex<State>,
    holding: Arc<Holding>,
    bytes: usize,
    /// What is received; nothing for one that is sent.
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
            state: Mutex::new(State::Started(message)),
            holding,
            bytes,
            element: receives.then_some(element),
        }
    }

    fn take(&self) -> State {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *state, State::Failed("the request is being waited for elsewhere".into()))
    }

    fn put(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Waits until it is over if `wait` says so: whether it is.
    fn go_on(&self, py: Python<'_>, wait: bool) -> PyResult<bool> {
        let mut message = match self.take() {
            State::Started(message) => message,
            State::Done(count) => {
                self.put(State::Done(count));
                return Ok(true);
            }
            State::Failed(why) => {
                self.put(State::Failed(why.clone()));
                return Err(raise::own(py, "Error", format!("this message failed before: {why}")));
            }
        };
        let mut entered = match self.comm.get().enter(py) {
            Ok(entered) => entered,
            Err(error) => {
                self.put(State::Started(message));
                return Err(error);
            }
        };
        let done = match wait {
            true => entered.run(py, self.bytes, |comm| comm.wait_message(&message).map(Some)),
            false => entered.run(py, 0, |comm| comm.test_message(&mut message)),
        };
        drop(entered);
        let done = done.and_then(|came| match (came, self.element) {
            (Some(bytes), Some(element)) => elements(py, bytes, element).map(Some),
            (came, _) => Ok(came),
        });
        match done {
            Ok(None) => {
                self.put(State::Started(message));
                Ok(false)
            }
            Ok(Some(count)) => {
                self.put(State::Done(count));
                self.holding.over();
                Ok(true)
            }
            Err(error) => {
                self.put(State::Failed(error.to_string()));
                // It was taken back, and nobody uses its array any more.
                self.holding.over();
                Err(error)
            }
        }
    }
}

#[pymethods]
impl Parcel {
    /// Waits until the message is over; returns how many elements came, nothing for one that was sent.
    fn wait(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.go_on(py, true)?;
        Ok(match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Done(count) if self.element.is_some() => Some(*count),
            State::Done(_) | State::Started(_) | State::Failed(_) => None,
        })
    }

    /// Whether the message is over, after carrying it on a little.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        self.go_on(py, false)
    }

    fn __repr__(&self) -> String {
        let state = match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Started(_) => "started",
            State::Done(_) => "over",
            State::Failed(_) => "failed",
        };
        let what = if self.element.is_some() { "recv" } else { "send" };
        format!("<lineweave request: {what}, {state}>")
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
