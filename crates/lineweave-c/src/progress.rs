//! The function of C that is called while a rank waits, and the throttle of threads beside ranks.

use crate::handle::{enter, lw_comm};
use crate::status::{guard, lw_status};
use lineweave::internal::throttle;
use std::ffi::{c_int, c_void};

/** Called over and over while a rank waits, with the argument that was given with it. */
pub type lw_progress_fn = Option<extern "C" fn(arg: *mut c_void)>;

/// An argument that is passed on to a function of the program.
#[derive(Clone, Copy)]
pub(crate) struct Argument(pub *mut c_void);

// SAFETY: lineweave only passes it on, and by the header's rule the program's function may be called by the threads that pass it: one at a
// time while a rank waits, several at once for an operator or a team's ranks.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

/**
 * Sets what to call while this rank waits, so that another library can progress; null for nothing. It must not use this
 * communicator (LW_ERR_BUSY).
 * Errors: of calls.
 *
 *     lw_comm_set_progress(comm, poll, NULL);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_set_progress(
    comm: *mut lw_comm,
    progress: lw_progress_fn,
    arg: *mut c_void,
) -> lw_status {
    enter(comm, |comm| {
        comm.set_progress_hook(hook(progress, arg));
        Ok(())
    })
}

/**
 * Has the calling thread sleep three quarters of the time while it forms teams (1), or no longer (0). For a thread beside ranks that take all CPUs:
 * they lose less time to it at a stretch.
 * Errors: none.
 *
 *     lw_thread_throttle(1);
 */
#[no_mangle]
pub extern "C" fn lw_thread_throttle(on: c_int) -> lw_status {
    guard(|| {
        throttle(on != 0);
        Ok(())
    })
}

/// Returns a function of C in the form that the runtime calls.
pub(crate) fn hook(progress: lw_progress_fn, arg: *mut c_void) -> Option<Box<dyn FnMut() + Send>> {
    let argument = Argument(arg);
    progress.map(|f| {
        let hook = move || {
            let whole = &argument;
            f(whole.0);
        };
        Box::new(hook) as Box<dyn FnMut() + Send>
    })
}
