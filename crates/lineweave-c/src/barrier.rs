//! A barrier with the interface of `pthread_barrier_t`: for `count` threads that know nothing of teams.
//!
//! Each of the `count` places has a communicator of its own. A thread takes a free place at its first wait and gives it back when the
//! thread ends, so that another one can take it. A thread that knows its number, such as an OpenMP thread, may name the place instead.

use crate::handle::{lw_comm, no_handle, BUSY};
use crate::status::{guard, lw_status, Failure, LW_ERR_BUSY, LW_ERR_HANDLE, LW_ERR_NULL, LW_ERR_RANK, LW_OK};
use crate::team::size;
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::team::{Members, Team};
use lineweave::FastPathResult;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

const READY: u64 = u64::from_le_bytes(*b"lw-barri");
const DESTROYED: u64 = u64::from_le_bytes(*b"lw-bgone");
/// Longest time that a barrier's destruction waits for threads that are about to leave it.
const LEAVING: Duration = Duration::from_secs(1);

/** Returned to one of the threads that wait, as by pthread_barrier_wait. */
pub const LW_BARRIER_SERIAL_THREAD: lw_status = -1;

/** A barrier for a number of threads. Its fields are lineweave's. */
#[repr(C)]
pub struct lw_barrier_t {
    state: u64,
    inner: *const c_void,
}

struct Barrier {
    number: u64,
    members: Members,
    places: Box<[lw_comm]>,
    free: Mutex<Vec<usize>>,
}

impl Barrier {
    #[inline(always)]
    fn wait(&self, place: usize) -> Result<(), Failure> {
        let comm = &self.places[place];
        let join = || Ok(self.members.join(place)?);
        match comm.again(|comm, _| comm.try_barrier_again()) {
            FastPathResult::Done => Ok(()),
            FastPathResult::Waits => comm.call(join, |comm| Ok(comm.end_barrier()?)),
            FastPathResult::Other => comm.call(join, |comm| Ok(comm.barrier()?)),
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place that this thread has in a barrier.
struct Membership {
    number: u64,
    place: usize,
    barrier: Weak<Barrier>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(barrier) = self.barrier.upgrade() {
            barrier.free().push(self.place);
        }
    }
}

thread_local! {
    static PLACES: RefCell<Vec<Membership>> = const { RefCell::new(Vec::new()) };
}

fn barrier_of<'a>(barrier: *const lw_barrier_t) -> Result<&'a Arc<Barrier>, Failure> {
    if barrier.is_null() || !barrier.is_aligned() {
        return Err(no_handle("barrier", barrier.is_null()));
    }
    // SAFETY: not null and aligned, as just seen, and the program's own memory.
    let barrier = unsafe { &*barrier };
    match barrier.state {
        // SAFETY: an initialised barrier points to what `lw_barrier_init` made, until it is destroyed.
        READY => Ok(unsafe { &*barrier.inner.cast::<Arc<Barrier>>() }),
        DESTROYED => Err(Failure::new(LW_ERR_HANDLE, "the barrier was destroyed before")),
        _ => Err(Failure::new(LW_ERR_HANDLE, "the barrier was not initialised; call lw_barrier_init first")),
    }
}

/// Returns the place of this thread, which the thread takes at its first wait.
fn place_of(barrier: &Arc<Barrier>) -> Result<usize, Failure> {
    PLACES.with(|places| {
        let mut places = places.borrow_mut();
        if let Some(mine) = places.iter().find(|p| p.number == barrier.number) {
            return Ok(mine.place);
        }
        let Some(place) = barrier.free().pop() else {
            let most = barrier.places.len();
            let text = format!("the barrier is for {most} threads, and as many others use it; it is not for more, nor for threads that take turns");
            return Err(Failure::new(LW_ERR_RANK, text));
        };
        places.retain(|p| p.barrier.strong_count() > 0);
        places.push(Membership { number: barrier.number, place, barrier: Arc::downgrade(barrier) });
        Ok(place)
    })
}

/**
 * Makes a barrier for `count` threads of this process, with the settings of the environment. (lw_comm_barrier_init prepares lw_barrier.)
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_barrier_t barrier;
 *     lw_barrier_init(&barrier, 4);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_barrier_init(barrier: *mut lw_barrier_t, count: c_int) -> lw_status {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    guard(|| {
        if barrier.is_null() || !barrier.is_aligned() {
            return Err(no_handle("barrier", barrier.is_null()));
        }
        let ranks = size(count)?;
        lineweave::settings::Settings::say_ineffective();
        let made = Arc::new(Barrier {
            // Relaxed: only to be unlike others.
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            members: Team::new(ranks)?.members(),
            places: (0..ranks).map(|rank| lw_comm::empty(rank, ranks)).collect(),
            free: Mutex::new((0..ranks).rev().collect()),
        });
        let inner = Box::into_raw(Box::new(made)).cast_const().cast();
        // SAFETY: not null and aligned, as just seen, and the program's own memory.
        unsafe { barrier.write(lw_barrier_t { state: READY, inner }) };
        Ok(())
    })
}

/**
 * Returns when as many threads as the barrier is for have called it: LW_BARRIER_SERIAL_THREAD to one, LW_OK to the
 * others. A thread keeps its place until it ends: other threads cannot take turns with it.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_SIZE for one thread too many, LW_ERR_PEER.
 *
 *     if (lw_barrier_wait(&barrier) == LW_BARRIER_SERIAL_THREAD) puts("all are here");
 */
#[no_mangle]
pub unsafe extern "C" fn lw_barrier_wait(barrier: *mut lw_barrier_t) -> lw_status {
    let mut serial = false;
    let status = guard(|| {
        let barrier = barrier_of(barrier)?;
        let place = place_of(barrier)?;
        serial = place == 0;
        barrier.wait(place)
    });
    if status == LW_OK && serial {
        return LW_BARRIER_SERIAL_THREAD;
    }
    status
}

/**
 * lw_barrier_wait of a thread that says which of the places 0 to count - 1 is its, as omp_get_thread_num() does. It
 * returns LW_OK to all. Use this form or the other one with a barrier, not both.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_PEER.
 *
 *     lw_barrier_wait_at(&barrier, 0);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_barrier_wait_at(barrier: *mut lw_barrier_t, place: c_int) -> lw_status {
    guard(|| {
        let barrier = barrier_of(barrier)?;
        match usize::try_from(place) {
            Ok(place) if place < barrier.places.len() => barrier.wait(place),
            _ => {
                let text = format!("place {place} is not one of 0 to {}", barrier.places.len() - 1);
                Err(Failure::new(LW_ERR_RANK, text))
            }
        }
    })
}

/**
 * Ends a barrier that nobody will wait at.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_BUSY when somebody still waits after a second.
 *
 *     lw_barrier_destroy(&barrier);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_barrier_destroy(barrier: *mut lw_barrier_t) -> lw_status {
    guard(|| {
        if barrier.is_null() {
            return Err(Failure::new(LW_ERR_NULL, "the barrier is null"));
        }
        let inner = barrier_of(barrier)?;
        let start = Instant::now();
        // A waiting thread may be released and not have left the function yet.
        while inner.places.iter().any(|place| place.state() == BUSY) {
            if start.elapsed() > LEAVING {
                return Err(Failure::new(LW_ERR_BUSY, "a thread waits at the barrier"));
            }
            std::thread::yield_now();
        }
        // SAFETY: it was initialised, and nobody waits at it any more.
        let inner = unsafe {
            (*barrier).state = DESTROYED;
            Box::from_raw((*barrier).inner.cast_mut().cast::<Arc<Barrier>>())
        };
        drop(inner);
        Ok(())
    })
}
