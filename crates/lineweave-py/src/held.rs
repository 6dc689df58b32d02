//! Arrays and objects that started calls and messages use, kept for as long as they are used.

use crate::array::Kept;
use lineweave::sync::{AtomicBool, Ordering};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

type Ended = Box<dyn Fn() -> bool + Send + Sync>;

/// The arrays and objects that one call keeps.
pub(crate) struct Holding {
    over: AtomicBool,
    /// A function that returns whether a message is over, since blocking calls do not complete messages; `None` for a
    /// call.
    ended: Option<Ended>,
    _arrays: Vec<Kept>,
    _objects: Vec<Py<PyAny>>,
}

/// The holdings of all started calls of a communicator.
#[derive(Default)]
pub(crate) struct Held(Mutex<Vec<Arc<Holding>>>);

impl Holding {
    pub(crate) fn new(arrays: Vec<Kept>, objects: Vec<Py<PyAny>>) -> Arc<Holding> {
        Arc::new(Holding { over: AtomicBool::new(false), ended: None, _arrays: arrays, _objects: objects })
    }

    /// Returns the holding of a message.
    pub(crate) fn of_message(array: Kept, objects: Vec<Py<PyAny>>, ended: Ended) -> Arc<Holding> {
        let over = AtomicBool::new(false);
        Arc::new(Holding { over, ended: Some(ended), _arrays: vec![array], _objects: objects })
    }

    /// Marks the call as over.
    pub(crate) fn over(&self) {
        // Relaxed: read by the thread whose team it is.
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self, idle: bool) -> bool {
        // Relaxed: as above.
        self.over.load(Ordering::Relaxed) || self.ended.as_ref().map_or(idle, |ended| ended())
    }
}

impl Held {
    /// Adds the holding of a call, and drops the holdings of calls that are over; `idle` says that all earlier ones
    /// are.
    pub(crate) fn add(&self, holding: &Arc<Holding>, idle: bool) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<_> = list.extract_if(.., |h| h.is_over(idle)).collect();
        list.push(Arc::clone(holding));
        drop(list);
        // The drop happens outside the lock: objects may run code when they are dropped.
        drop(over);
    }

    /// Drops all holdings, when no call can be under way any more.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }
}
