//! What started calls use, kept for as long as they do.

use crate::array::Kept;
use lineweave::sync::{AtomicBool, Ordering};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// What one call keeps.
pub(crate) struct Holding {
    over: AtomicBool,
    _arrays: Vec<Kept>,
    _objects: Vec<Py<PyAny>>,
}

/// What all started calls of a communicator keep.
#[derive(Default)]
pub(crate) struct Held(Mutex<Vec<Arc<Holding>>>);

impl Holding {
    pub(crate) fn new(arrays: Vec<Kept>, objects: Vec<Py<PyAny>>) -> Arc<Holding> {
        Arc::new(Holding { over: AtomicBool::new(false), _arrays: arrays, _objects: objects })
    }

    /// The call is over.
    pub(crate) fn over(&self) {
        // Relaxed: read by the thread whose team it is.
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Held {
    /// Another one; those that are over are let go of, and all if `idle` says so.
    pub(crate) fn add(&self, holding: &Arc<Holding>, idle: bool) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let over: Vec<_> = match idle {
            true => list.drain(..).collect(),
            // Relaxed: as above.
            false => list.extract_if(.., |h| h.over.load(Ordering::Relaxed)).collect(),
        };
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
