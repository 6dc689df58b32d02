//! The state of a call or a message that was started and is waited for later.

use crate::raise;
use crate::rank::Communicator;
use lineweave::Error;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

enum State<W, D> {
    Started(W),
    Done(D),
    Failed(String),
}

/// A started operation, and later its result.
pub(crate) struct Pending<W, D>(Mutex<State<W, D>>);

impl<W, D: Copy> Pending<W, D> {
    pub(crate) fn new(started: W) -> Pending<W, D> {
        Pending(Mutex::new(State::Started(started)))
    }

    fn state(&self) -> MutexGuard<'_, State<W, D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries the operation on by `step`, which moves about `bytes` bytes and returns the result, or the operation if it is not over.
    /// Returns the result if it is over. A failed operation stays failed.
    pub(crate) fn go_on(
        &self,
        py: Python<'_>,
        comm: &Communicator,
        bytes: usize,
        step: impl FnOnce(&mut lineweave::Communicator, W) -> Result<Result<D, W>, Error>,
    ) -> PyResult<Option<D>> {
        let elsewhere = State::Failed("the request is being waited for elsewhere".into());
        let before = std::mem::replace(&mut *self.state(), elsewhere);
        let (after, told) = match before {
            State::Started(started) => match comm.enter(py) {
                Ok(mut entered) => match entered.run(py, bytes, |comm| step(comm, started)) {
                    Ok(Ok(what)) => (State::Done(what), Ok(Some(what))),
                    Ok(Err(started)) => (State::Started(started), Ok(None)),
                    Err(error) => (State::Failed(error.to_string()), Err(error)),
                },
                Err(error) => (State::Started(started), Err(error)),
            },
            State::Done(what) => (State::Done(what), Ok(Some(what))),
            State::Failed(why) => {
                let error = raise::own(py, "Error", format!("this request failed before: {why}"));
                (State::Failed(why), Err(error))
            }
        };
        *self.state() = after;
        told
    }

    /// Returns whether the operation is over or has failed.
    pub(crate) fn has_ended(&self) -> bool {
        !matches!(*self.state(), State::Started(_))
    }

    /// Returns the state in one word.
    pub(crate) fn name(&self) -> &'static str {
        match *self.state() {
            State::Started(_) => "started",
            State::Done(_) => "over",
            State::Failed(_) => "failed",
        }
    }
}
