//! What started calls and messages use, kept for as long as they do.

use crate::array::Kept;
use lineweave::sync::{AtomicBool, Ordering};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

type Ended = Box<dyn Fn() -> bool + Send + Sync>;

/// What one call keeps.
pub(crate) struct Holding {
    over: AtomicBool,
    /// Of a message, which calls that block do not complete: whether it is over.
    ended: Option<Ended>,
    _arrays: Vec<Kept>,
    _objects: Vec<Py<PyAny>>,
}

/// What all started calls of a communicator keep.
#[derive(Default)]
pub(crate) struct Held(Mutex<Vec<Arc<Holding>>>);

impl Holding {
    pub(crate) fn new(arrays: Vec<Kept>, objects: Vec<Py<PyAny>>) -> Arc<Holding> {
        Arc::new(Holding { over: AtomicBool::new(false), ended: None, _arrays: arrays, _objects: objects })
    }

    /// Of a message.
    pub(crate) fn of_message(array: Kept, objects: Vec<Py<PyAny>>, ended: Ended) -> Arc<Holding> {
        let over = AtomicBool::new(false);
        Arc::new(Holding { over, ended: Some(ended), _arrays: vec![array], _objects: objects })
    }

    /// The call is over.
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
    /// A call more; those that are over are let go of, which all calls are if `idle` says so.
    pub(crate) fn add(&self, holding: &Arc<Holding>, idle: bool) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<_> = list.extract_if(.., |h| h.is_over(idle)).collect();
        list.push(Arc::clone(holding));
        drop(list);
        // Not under the lock: objects may run code when they go.
        drop(over);
    }

    /// Everything, when no call can be under way any more.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(all);
    }
}
