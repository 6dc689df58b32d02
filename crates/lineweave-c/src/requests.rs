//! Handles of started and persistent calls, as C holds them.

use crate::collectives::Resolved;
use crate::handle::{enter, give, handle, lw_comm, no_handle, place_for, retire, FREED, LIVE};
use crate::operators::asks_for_reproducible;
use crate::status::{guard, lw_status, Failure, LW_ERR_HANDLE, LW_ERR_NULL, LW_ERR_OP};
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::{Communicator, Persistent, Request};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::Arc;

/// The call that a handle stands for.
enum Inner {
    /// A started call, whose handle is freed when the call is over.
    Once(Request),
    /// A persistent call, which can be started again.
    FastPathResult(Persistent),
}

/** A call that was started, or one that can be started again and again. It belongs to one thread at a time. */
pub struct lw_request {
    state: AtomicU64,
    comm: Arc<lw_comm>,
    inner: UnsafeCell<Option<Inner>>,
}

// SAFETY: the header's rule: one thread at a time.
unsafe impl Sync for lw_request {}
// SAFETY: nothing in it is tied to a thread.
unsafe impl Send for lw_request {}

/// The time at which a call is made: at once, or whenever `lw_start` is called.
#[derive(Clone, Copy)]
pub(crate) enum How {
    Start,
    Init,
}

/// Makes a request for a call on a communicator.
pub(crate) fn make(
    comm: *mut lw_comm,
    request: *mut *mut lw_request,
    how: How,
    f: impl FnOnce(&Communicator) -> Result<Resolved<'static>, Failure>,
) -> lw_status {
    enter(comm, |inner| {
        place_for(request)?;
        let call = f(inner)?;
        if call.asked.is_some_and(asks_for_reproducible) {
            // The plan of a started call is chosen only when its turn comes.
            let text = "LW_REPRODUCIBLE cannot be added to the operator of a started call; \
                        ask for it on the communicator: lw_comm_set_reproducible";
            return Err(Failure::new(LW_ERR_OP, text));
        }
        let Resolved { spec, blocks, input, output, .. } = call;
        let made = match how {
            // SAFETY: checked for what can be seen from here; that they are as long as said and used by nobody else before the
            // call is over is the header's rule.
            How::Start => Inner::Once(unsafe { inner.start_call(&spec, blocks, input, output) }?),
            // SAFETY: as above.
            How::Init => Inner::FastPathResult(unsafe { inner.init_call(&spec, blocks, input, output) }?),
        };
        let comm = handle(comm)?;
        // SAFETY: communicators that C holds come from `Arc::into_raw`.
        let comm = unsafe {
            Arc::increment_strong_count(comm);
            Arc::from_raw(comm)
        };
        let (state, inner) = (AtomicU64::new(LIVE), UnsafeCell::new(Some(made)));
        give(request, Box::into_raw(Box::new(lw_request { state, comm, inner })))
    })
}

/// Returns the request at a place that C gave; `None` where it holds null.
fn at<'a>(request: *mut *mut lw_request) -> Result<Option<&'a lw_request>, Failure> {
    place_for(request)?;
    // SAFETY: not null and aligned, as just seen, and valid by the header's rule.
    let request = unsafe { *request };
    match request.is_null() {
        true => Ok(None),
        false => request_of(request).map(Some),
    }
}

fn request_of<'a>(request: *const lw_request) -> Result<&'a lw_request, Failure> {
    if request.is_null() || !request.is_aligned() {
        return Err(no_handle("request", request.is_null()));
    }
    // SAFETY: the header's rule: it came from this library. Memory of freed ones is kept for a while.
    let request = unsafe { &*request };
    // Relaxed: nothing that is read later depends on it.
    match request.state.load(Ordering::Relaxed) {
        LIVE => Ok(request),
        FREED => Err(Failure::new(LW_ERR_HANDLE, "the request was freed, or waited for, before")),
        _ => Err(no_handle("request", false)),
    }
}

impl lw_request {
    /// Returns the call that the handle stands for.
    #[allow(clippy::mut_from_ref)]
    fn inner(&self) -> &mut Option<Inner> {
        // SAFETY: the header's rule: one thread at a time; and no function here keeps the reference.
        unsafe { &mut *self.inner.get() }
    }

    fn test(&self) -> Result<bool, Failure> {
        Ok(match self.inner() {
            Some(Inner::Once(request)) => request.test()?,
            Some(Inner::FastPathResult(call)) => call.test()?,
            None => true,
        })
    }

    fn wait(&self) -> Result<(), Failure> {
        match self.inner() {
            Some(Inner::FastPathResult(call)) => Ok(call.wait()?),
            once => match once.take() {
                Some(Inner::Once(request)) => Ok(request.wait()?),
                _ => Ok(()),
            },
        }
    }
}

/// Frees a request and sets its place to null; a call that is under way goes on.
fn free(request: *mut *mut lw_request) {
    // SAFETY: checked by `at` before, and not freed, as the state said.
    let owned = unsafe {
        let owned = *request;
        *request = std::ptr::null_mut();
        Box::from_raw(owned)
    };
    // Relaxed: what is left of it only tells that it was freed.
    owned.state.store(FREED, Ordering::Relaxed);
    drop(owned.inner().take());
    retire(owned);
}

/// Frees a request that is over and cannot be started again.
fn free_once(request: *mut *mut lw_request, known: &lw_request) {
    if !matches!(known.inner(), Some(Inner::FastPathResult(_))) {
        free(request);
    }
}

/// Returns the places of an array of requests that C passed.
fn places(count: usize, requests: *mut *mut lw_request) -> Result<Vec<*mut *mut lw_request>, Failure> {
    if count > 0 {
        place_for(requests)?;
    }
    Ok((0..count).map(|i| requests.wrapping_add(i)).collect())
}

/**
 * Starts a persistent call. It must not be under way.
 * Errors: of calls, LW_ERR_BUSY when it is.
 *
 *     lw_start(request);
 *     lw_wait(&request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_start(request: *mut lw_request) -> lw_status {
    guard(|| {
        let request = request_of(request)?;
        match request.inner() {
            Some(Inner::FastPathResult(call)) => request.comm.call(
                || Err(Failure::new(LW_ERR_HANDLE, "the communicator was freed before")),
                |comm| Ok(call.start(comm)?),
            ),
            _ => Err(Failure::new(LW_ERR_HANDLE, "the request was started; only persistent ones are again")),
        }
    })
}

/**
 * Waits until the call at *request is over and returns how it ended. Unless it is persistent, the request is freed and
 * *request becomes null. A null *request is over.
 * Errors: those of the call, LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     lw_iallreduce(comm, x, y, n, LW_F64, LW_SUM, &request);
 *     lw_wait(&request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_wait(request: *mut *mut lw_request) -> lw_status {
    guard(|| wait_at(request))
}

fn wait_at(request: *mut *mut lw_request) -> Result<(), Failure> {
    let Some(known) = at(request)? else { return Ok(()) };
    let ended = known.wait();
    free_once(request, known);
    ended
}

fn test_at(request: *mut *mut lw_request) -> Result<bool, Failure> {
    let Some(known) = at(request)? else { return Ok(true) };
    let ended = known.test();
    if !matches!(ended, Ok(false)) {
        free_once(request, known);
    }
    ended
}

/**
 * Carries started calls on a little; *done tells whether the one at *request is over (1), which then is as after lw_wait, or not (0).
 * Errors: those of lw_wait.
 *
 *     int done = 0;
 *     while (!done) lw_test(&request, &done);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_test(request: *mut *mut lw_request, done: *mut c_int) -> lw_status {
    guard(|| {
        place_for(done)?;
        give(done, c_int::from(test_at(request)?))
    })
}

/**
 * lw_wait for each of `count` requests. Returns the first status that is not LW_OK; all are over.
 * Errors: those of lw_wait.
 *
 *     lw_waitall(2, requests);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_waitall(count: usize, requests: *mut *mut lw_request) -> lw_status {
    guard(|| {
        let ended: Vec<_> = places(count, requests)?.into_iter().map(wait_at).collect();
        ended.into_iter().collect()
    })
}

/**
 * Waits until one of `count` requests is over, which then is as after lw_wait, and tells which: its place in the list, or
 * `count` when all are null.
 * Errors: those of lw_wait.
 *
 *     size_t index;
 *     lw_waitany(2, requests, &index);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_waitany(
    count: usize,
    requests: *mut *mut lw_request,
    index: *mut usize,
) -> lw_status {
    guard(|| {
        place_for(index)?;
        let places = places(count, requests)?;
        loop {
            let mut empty = true;
            for (i, &place) in places.iter().enumerate() {
                if at(place)?.is_none() {
                    continue;
                }
                empty = false;
                match test_at(place) {
                    Ok(false) => {}
                    ended => {
                        give(index, i)?;
                        return ended.map(|_| ());
                    }
                }
            }
            if empty {
                return give(index, count);
            }
            std::thread::yield_now();
        }
    })
}

/**
 * Carries started calls on a little; *done tells whether all of them are over (1), which then are as after lw_wait, or not (0).
 * Errors: those of lw_wait.
 *
 *     int done;
 *     lw_testall(2, requests, &done);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_testall(
    count: usize,
    requests: *mut *mut lw_request,
    done: *mut c_int,
) -> lw_status {
    guard(|| {
        place_for(done)?;
        let places = places(count, requests)?;
        for &place in &places {
            let over = at(place)?.map_or(Ok(true), lw_request::test);
            if !matches!(over, Ok(true)) {
                give(done, 0)?;
                return over.map(|_| ());
            }
        }
        give(done, 1)?;
        places.into_iter().try_for_each(wait_at)
    })
}

/**
 * Frees the request at *request, which becomes null. A call that is under way goes on: its buffers are in use until then.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_request_free(&request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_request_free(request: *mut *mut lw_request) -> lw_status {
    guard(|| {
        if request.is_null() {
            return Err(Failure::new(LW_ERR_NULL, "the place of the request is null"));
        }
        if at(request)?.is_some() {
            free(request);
        }
        Ok(())
    })
}

/**
 * Has a helper thread carry started calls on while this rank does something else (1), or no longer (0).
 * Errors: of calls.
 *
 *     lw_comm_set_progress_thread(comm, 1);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_set_progress_thread(comm: *mut lw_comm, on: c_int) -> lw_status {
    enter(comm, |comm| {
        comm.set_progress_thread(on != 0);
        Ok(())
    })
}
