//! Waiting within an interpreter that has a lock and signal handlers.
//!
//! 1. A short call is made with the interpreter's lock held: releasing the lock and taking it again costs as much as
//!    the call. A call in which ranks wait for threads of the same interpreter, or that moves many bytes, releases it
//!    first.
//! 2. A wait that is not over after about a thousand polls releases the lock, so that other threads can go on.
//! 3. During the wait, signal handlers are run from time to time. An exception that they raise (`KeyboardInterrupt`)
//!    ends the wait.
//! 4. When the interpreter shuts down, waits end, so that none takes the lock of an interpreter that no longer exists.

use lineweave::sync::{AtomicBool, AtomicU64, Ordering};
use lineweave::WaitCallback;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two checks for signals during a wait; a check takes the lock.
const SIGNALS: Duration = Duration::from_millis(50);

static CLOSING: AtomicBool = AtomicBool::new(false);
static WAITING: AtomicU64 = AtomicU64::new(0);

/// Makes waits end with an error from now on: the interpreter is about to shut down.
#[pyfunction]
pub(crate) fn closing() {
    // Relaxed: seen at some look.
    CLOSING.store(true, Ordering::Relaxed);
}

/// Returns the number of threads that wait without the interpreter's lock.
#[pyfunction]
pub(crate) fn waiting() -> u64 {
    // Relaxed: polled.
    WAITING.load(Ordering::Relaxed)
}

/// The interpreter's lock, while a rank's thread has released it.
#[derive(Default)]
pub(crate) struct Lock {
    saved: UnsafeCell<Option<*mut ffi::PyThreadState>>,
}

// SAFETY: touched by the thread that is in a call on the communicator only, of which there is one at a time.
unsafe impl Sync for Lock {}
// SAFETY: as above; a saved state is restored by the thread that saved it, before its call ends.
unsafe impl Send for Lock {}

impl Lock {
    /// Releases the lock; returns whether this thread held it.
    pub(crate) fn release(&self) -> bool {
        // SAFETY: the calling thread is in a call, see above.
        let saved = unsafe { &mut *self.saved.get() };
        if saved.is_some() {
            return false;
        }
        // Relaxed: a count to be polled.
        WAITING.fetch_add(1, Ordering::Relaxed);
        // SAFETY: it holds the lock: methods are called with it, and it was not let go of since.
        *saved = Some(unsafe { ffi::PyEval_SaveThread() });
        true
    }

    /// Takes the lock again, if it was released; returns whether it was.
    pub(crate) fn acquire(&self) -> bool {
        // SAFETY: as above.
        let saved = unsafe { &mut *self.saved.get() }.take();
        if let Some(saved) = saved {
            // SAFETY: saved by this thread when it let go.
            unsafe { ffi::PyEval_RestoreThread(saved) };
            // Relaxed: as above.
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
        saved.is_some()
    }
}

/// The attendance of the waits on one communicator: it releases the lock and checks for signals.
pub(crate) struct Attendance {
    lock: Arc<Lock>,
    mine: bool,
    looked: Option<Instant>,
}

impl Attendance {
    pub(crate) fn new(lock: Arc<Lock>) -> Attendance {
        Attendance { lock, mine: false, looked: None }
    }
}

impl WaitCallback for Attendance {
    fn begin(&mut self) {
        self.looked = None;
        self.mine = self.lock.release();
    }

    fn look(&mut self) -> Result<(), String> {
        // Relaxed: a later look sees it too.
        if CLOSING.load(Ordering::Relaxed) {
            return Err("the interpreter is shutting down".into());
        }
        let now = Instant::now();
        if now - *self.looked.get_or_insert(now) < SIGNALS {
            return Ok(());
        }
        self.looked = Some(now);
        // A call that is only polled is attended with the lock held.
        let taken = self.lock.acquire();
        // SAFETY: the lock was just taken, or never let go of.
        let raised = unsafe { ffi::PyErr_CheckSignals() } != 0;
        if taken {
            self.lock.release();
        }
        match raised {
            true => Err("a signal handler raised an exception".into()),
            false => Ok(()),
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.mine) {
            self.lock.acquire();
        }
    }
}
