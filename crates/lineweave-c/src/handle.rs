//! Handles of communicators, as C holds them.
//!
//! A handle begins with a word that tells its kind, and whether it is in use or was freed. Memory of freed handles is given back
//! only after many more were freed, so that using a handle a moment too late is an error and not a read of other memory.

use crate::status::{guard, lw_status, Failure, LW_ERR_BUSY, LW_ERR_FAILED, LW_ERR_HANDLE, LW_ERR_NULL};
use crate::types::{lw_op, lw_type};
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::{CallSpec, Communicator, FastPathResult};
use lineweave_core::collective::Collective;
use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};

/// State of a handle whose rank has not joined yet.
pub(crate) const EMPTY: u64 = u64::from_le_bytes(*b"lw-empty");
/// State of a handle that is ready for a call.
pub(crate) const LIVE: u64 = u64::from_le_bytes(*b"lw-alive");
/// State of a handle that is in a call.
pub(crate) const BUSY: u64 = u64::from_le_bytes(*b"lw-busy!");
/// State of a freed handle.
pub(crate) const FREED: u64 = u64::from_le_bytes(*b"lw-freed");
/// State of a handle in which a call panicked.
const PANICKED: u64 = u64::from_le_bytes(*b"lw-panic");

/// The last call of each collective.
pub(crate) type Lasts = [Option<Last>; Collective::ALL.len()];

/// Returns the table of last calls before any collective was called.
fn nothing_yet() -> UnsafeCell<Lasts> {
    UnsafeCell::new([None; Collective::ALL.len()])
}

/// Number of freed handles whose memory is kept.
const KEPT: usize = 1024;

static GRAVES: Mutex<VecDeque<Box<dyn Any + Send>>> = Mutex::new(VecDeque::new());

/// Keeps the memory of a freed handle for a while.
pub(crate) fn retire(handle: Box<dyn Any + Send>) {
    let mut graves = GRAVES.lock().unwrap_or_else(PoisonError::into_inner);
    graves.push_back(handle);
    if graves.len() > KEPT {
        graves.pop_front();
    }
}

/// The state of a handle to what threads may use at once, and what that is. It is a part of each such type of C's.
pub(crate) struct Shared<T> {
    state: AtomicU64,
    inner: Arc<T>,
}

impl<T> Shared<T> {
    pub(crate) fn new(inner: T) -> Shared<T> {
        Shared { state: AtomicU64::new(LIVE), inner: Arc::new(inner) }
    }
}

/// Returns the shared part of a handle that is called `what`.
fn part<'a, H: 'a, T: 'a>(
    handle: *const H,
    what: &str,
    part: impl FnOnce(&'a H) -> &'a Shared<T>,
) -> Result<&'a Shared<T>, Failure> {
    if handle.is_null() || !handle.is_aligned() {
        return Err(no_handle(what, handle.is_null()));
    }
    // SAFETY: the header's rule: it came from this library. Memory of freed ones is kept for a while.
    let shared = part(unsafe { &*handle });
    // Relaxed: nothing that is read later depends on it.
    match shared.state.load(Ordering::Relaxed) {
        LIVE => Ok(shared),
        FREED => Err(freed(what)),
        _ => Err(no_handle(what, false)),
    }
}

fn freed(what: &str) -> Failure {
    Failure::new(LW_ERR_HANDLE, format!("the {what} was freed before"))
}

/// Returns what a handle is for.
pub(crate) fn shared<H, T>(
    handle: *const H,
    what: &str,
    shared: impl FnOnce(&H) -> &Shared<T>,
) -> Result<Arc<T>, Failure> {
    Ok(Arc::clone(&part(handle, what, shared)?.inner))
}

/// Frees a handle that came from `Box::into_raw`. Null is allowed.
pub(crate) fn free<H: Any + Send, T>(
    handle: *mut H,
    what: &str,
    shared: impl FnOnce(&H) -> &Shared<T>,
) -> Result<(), Failure> {
    if handle.is_null() {
        return Ok(());
    }
    let state = &part(handle, what, shared)?.state;
    // Relaxed: the exchange alone decides who frees it.
    if state.compare_exchange(LIVE, FREED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return Err(freed(what));
    }
    // SAFETY: it came from `Box::into_raw`, and this thread alone moved its state.
    retire(unsafe { Box::from_raw(handle) });
    Ok(())
}

/** One rank's end of a team. It belongs to one thread at a time. */
pub struct lw_comm {
    state: AtomicU64,
    rank: usize,
    ranks: usize,
    inner: UnsafeCell<Option<Communicator>>,
    last: UnsafeCell<Lasts>,
}

/// The last call of a collective with the arguments of C, and its form for the runtime: most programs repeat it.
#[derive(Clone, Copy)]
pub(crate) struct Last {
    pub count: usize,
    pub element: lw_type,
    pub operator: Option<lw_op>,
    pub root: c_int,
    pub spec: CallSpec,
    /// Bytes of this rank's input and output.
    pub bytes: [usize; 2],
    /// Alignment of its elements.
    pub align: usize,
    /// Ticket of an allreduce that can be repeated in steps.
    pub ticket: Option<NonZeroU64>,
}

// SAFETY: `inner` and `last` are touched only by who moved `state` from LIVE, EMPTY or PANICKED to BUSY or FREED, and by
// `again`, which calls nobody who could come back here and is over before anything else in its thread begins; a program
// that uses one communicator from two threads at once breaks the header's rule, and is told so where it is seen.
unsafe impl Sync for lw_comm {}

impl lw_comm {
    /// Returns the handle of a rank that has not joined yet.
    pub(crate) fn empty(rank: usize, ranks: usize) -> lw_comm {
        lw_comm {
            state: AtomicU64::new(EMPTY),
            rank,
            ranks,
            inner: UnsafeCell::new(None),
            last: nothing_yet(),
        }
    }

    pub(crate) fn new(comm: Communicator) -> Arc<lw_comm> {
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let (state, inner) = (AtomicU64::new(LIVE), UnsafeCell::new(Some(comm)));
        Arc::new(lw_comm { state, rank, ranks, inner, last: nothing_yet() })
    }

    pub(crate) fn state(&self) -> u64 {
        // SYNC: handle-over (with the release of `InCall`): who sees LIVE sees what the call left.
        self.state.load(Ordering::Acquire)
    }

    /// Makes a call on the communicator, after `fill` has joined the team if the handle is empty.
    #[inline(always)]
    pub(crate) fn call(
        &self,
        fill: impl FnOnce() -> Result<Communicator, Failure>,
        f: impl FnOnce(&mut Communicator) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let state = self.state();
        if state != LIVE && state != EMPTY {
            return Err(unusable(state));
        }
        // Relaxed, and not an exchange: the rule is one thread at a time, and this finds calls from within a call.
        self.state.store(BUSY, Ordering::Relaxed);
        let mut in_call = InCall { comm: self, after: EMPTY };
        // SAFETY: the state was LIVE or EMPTY, and is BUSY until `in_call` is dropped.
        let inner = unsafe { &mut *self.inner.get() };
        if inner.is_none() {
            *inner = Some(fill()?);
        }
        in_call.after = LIVE;
        match inner {
            Some(comm) => f(comm),
            None => Err(unusable(FREED)),
        }
    }

    /// Begins the last call again, if nothing else has to be done. The state is not set to `BUSY`: `f` neither waits for long,
    /// panics nor calls the program.
    #[inline(always)]
    pub(crate) fn again(
        &self,
        f: impl FnOnce(&mut Communicator, &Lasts) -> FastPathResult,
    ) -> FastPathResult {
        if self.state() != LIVE {
            return FastPathResult::Other;
        }
        // SAFETY: as said where `Sync` is.
        let (inner, last) = unsafe { (&mut *self.inner.get(), &*self.last.get()) };
        inner.as_mut().map_or(FastPathResult::Other, |comm| f(comm, last))
    }

    /// Leaves the team. The state is `FREED` afterwards, and no call can be made.
    pub(crate) fn close(&self) -> Result<(), Failure> {
        let state = self.state();
        if state != LIVE && state != EMPTY && state != PANICKED {
            return Err(unusable(state));
        }
        // Relaxed on failure: only the message depends on it.
        // SYNC: handle-over.
        match self.state.compare_exchange(state, FREED, Ordering::Acquire, Ordering::Relaxed) {
            // SAFETY: this thread, and no other, moved the state to FREED.
            Ok(_) => drop(unsafe { (*self.inner.get()).take() }),
            Err(now) => return Err(unusable(now)),
        }
        Ok(())
    }
}

/// A guard that ends a call, also when the call panics.
struct InCall<'a> {
    comm: &'a lw_comm,
    after: u64,
}

impl Drop for InCall<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let after = if std::thread::panicking() { PANICKED } else { self.after };
        // SYNC: handle-over.
        self.comm.state.store(after, Ordering::Release);
    }
}

#[cold]
fn unusable(state: u64) -> Failure {
    let (code, text) = match state {
        BUSY => (LW_ERR_BUSY, "the communicator is in a call; use it from one thread at a time, and not from a progress function"),
        FREED => (LW_ERR_HANDLE, "the communicator was freed before"),
        PANICKED => (LW_ERR_FAILED, "a call on this communicator panicked earlier; make a new one"),
        _ => (LW_ERR_HANDLE, "this is not a communicator"),
    };
    Failure::new(code, text)
}

/// Returns the handle at a pointer that C passed.
#[inline(always)]
pub(crate) fn handle<'a>(comm: *const lw_comm) -> Result<&'a lw_comm, Failure> {
    if comm.is_null() || !comm.is_aligned() {
        return Err(no_handle("communicator", comm.is_null()));
    }
    // SAFETY: the header's rule: it came from this library. Memory of freed ones is kept for a while.
    Ok(unsafe { &*comm })
}

#[cold]
pub(crate) fn no_handle(what: &str, null: bool) -> Failure {
    match null {
        true => Failure::new(LW_ERR_NULL, format!("the {what} is null")),
        false => Failure::new(LW_ERR_HANDLE, format!("this is not a {what}")),
    }
}

/// Makes a call on a communicator that C passed.
#[inline(always)]
pub(crate) fn enter(
    comm: *const lw_comm,
    f: impl FnOnce(&mut Communicator) -> Result<(), Failure>,
) -> lw_status {
    enter_with(comm, |inner, _| f(inner))
}

#[inline(always)]
fn enter_with(
    comm: *const lw_comm,
    f: impl FnOnce(&mut Communicator, &lw_comm) -> Result<(), Failure>,
) -> lw_status {
    guard(|| {
        let comm = handle(comm)?;
        if comm.state() == EMPTY {
            return Err(unusable(EMPTY));
        }
        comm.call(|| Err(unusable(FREED)), |inner| f(inner, comm))
    })
}

/// As [`lw_comm::again`], for a communicator that C passed; an invalid one is left to [`enter`].
#[inline(always)]
pub(crate) fn again(
    comm: *const lw_comm,
    f: impl FnOnce(&mut Communicator, &Lasts) -> FastPathResult,
) -> FastPathResult {
    if comm.is_null() || !comm.is_aligned() {
        return FastPathResult::Other;
    }
    // SAFETY: as in `handle`.
    unsafe { &*comm }.again(f)
}

/// As [`enter`], with the last call of this collective.
#[inline(always)]
pub(crate) fn enter_again(
    comm: *const lw_comm,
    collective: Collective,
    f: impl FnOnce(&mut Communicator, &mut Option<Last>) -> Result<(), Failure>,
) -> lw_status {
    enter_with(comm, |inner, comm| {
        // SAFETY: in `call` the state is BUSY, so nobody else touches it.
        let last = unsafe { &mut *comm.last.get() };
        f(inner, &mut last[collective as usize])
    })
}

/// Stores a new value at the place that C gave.
pub(crate) fn give<T>(to: *mut T, value: T) -> Result<(), Failure> {
    place_for(to)?;
    // SAFETY: not null and aligned, as just seen, and valid by the header's rule.
    unsafe { to.write(value) };
    Ok(())
}

/// Checks that a result can be stored at this place, before there is one.
pub(crate) fn place_for<T>(to: *mut T) -> Result<(), Failure> {
    match to.is_null() || !to.is_aligned() {
        true => Err(Failure::new(LW_ERR_NULL, "the place for the result is null or misaligned")),
        false => Ok(()),
    }
}

/// Returns one of a communicator's numbers, such as its rank, or -1 if the handle is invalid.
fn number(comm: *const lw_comm, which: impl FnOnce(&lw_comm) -> usize) -> c_int {
    let mut found = -1;
    guard(|| {
        let comm = handle(comm)?;
        match comm.state() {
            LIVE | BUSY | PANICKED => found = which(comm) as c_int,
            state => return Err(unusable(state)),
        }
        Ok(())
    });
    found
}

/**
 * This rank, from 0; -1 when it is not a communicator.
 *
 *     int rank = lw_comm_rank(comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_rank(comm: *const lw_comm) -> c_int {
    number(comm, |c| c.rank)
}

/**
 * The number of ranks; -1 when it is not a communicator.
 *
 *     int size = lw_comm_size(comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_size(comm: *const lw_comm) -> c_int {
    number(comm, |c| c.ranks)
}

/**
 * Leaves the team. Ranks that wait for this one get LW_ERR_PEER. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_comm_free(comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_free(comm: *mut lw_comm) -> lw_status {
    guard(|| {
        if comm.is_null() {
            return Ok(());
        }
        handle(comm)?.close()?;
        // SAFETY: it came from `Arc::into_raw`, and this thread alone closed it.
        retire(Box::new(unsafe { Arc::from_raw(comm.cast_const()) }));
        Ok(())
    })
}
