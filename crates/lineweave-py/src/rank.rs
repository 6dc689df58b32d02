//! One rank's end of a team, in the form that Python holds.

use crate::attend::{Attendance, Lock};
use crate::held::Held;
use crate::operator::Last;
use crate::raise;
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::{Error, Operator};
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The states: ready for a call, in a call, or left.
const LIVE: u64 = 0;
const BUSY: u64 = 1;
const LEFT: u64 = 2;

/// Number of forks between the process that loaded the module and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts a fork. It is called in each child after a fork: teams of the parent are not the child's.
#[pyfunction]
pub(crate) fn forked() {
    // Relaxed: a child has one thread.
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of forks so far.
pub(crate) fn forks() -> u64 {
    // Relaxed: it changes in a fork only.
    FORKS.load(Ordering::Relaxed)
}

/// One rank's end of a team. It belongs to one thread at a time.
#[pyclass(subclass, frozen, module = "lineweave._lineweave")]
pub(crate) struct Communicator {
    state: AtomicU64,
    forks: u64,
    rank: usize,
    ranks: usize,
    /// True if ranks are threads of this interpreter, which need its lock to make the call at all.
    threads: bool,
    lock: Arc<Lock>,
    operator: Last,
    inner: UnsafeCell<Option<lineweave::Communicator>>,
    /// Arrays of started calls. The field follows `inner`, whose drop ends these calls.
    held: Held,
}

// SAFETY: `inner` is touched only by who moved `state` from LIVE to BUSY.
unsafe impl Sync for Communicator {}
// SAFETY: a communicator may be moved between threads.
unsafe impl Send for Communicator {}

impl Communicator {
    pub(crate) fn new(mut comm: lineweave::Communicator, threads: bool) -> Communicator {
        let lock = Arc::new(Lock::default());
        comm.set_wait_callback(Some(Box::new(Attendance::new(Arc::clone(&lock)))));
        Communicator {
            state: AtomicU64::new(LIVE),
            forks: forks(),
            rank: comm.rank(),
            ranks: comm.ranks(),
            threads,
            lock,
            operator: Last::default(),
            inner: UnsafeCell::new(Some(comm)),
            held: Held::default(),
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    pub(crate) fn has_threads(&self) -> bool {
        self.threads
    }

    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// Begins a call: until the guard is dropped, the communicator belongs to this thread.
    #[inline(always)]
    pub(crate) fn enter<'a>(&'a self, py: Python<'_>) -> PyResult<InCall<'a>> {
        if self.forks != forks() {
            return Err(self.unusable(py, LIVE));
        }
        // SYNC: python (with the release when `InCall` is dropped). Relaxed on failure: only the message depends on it.
        match self.state.compare_exchange(LIVE, BUSY, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(InCall { comm: self }),
            Err(state) => Err(self.unusable(py, state)),
        }
    }

    #[cold]
    fn unusable(&self, py: Python<'_>, state: u64) -> PyErr {
        let (class, text) = if self.forks != forks() {
            ("Error", "this team was made before the process was forked and belongs to the parent; let the child make or join a team of its own, by lineweave.spawn or lineweave.connect")
        } else if state == BUSY {
            ("Error", "this team is in a call in another thread; let one thread at a time use it, or give each a team of its own")
        } else {
            ("Error", "this team was closed")
        };
        raise::own(py, class, text)
    }
}

/// A call under way.
pub(crate) struct InCall<'a> {
    comm: &'a Communicator,
}

impl InCall<'_> {
    /// Returns the operator for the object `given`. If it is a function, the package has to call it, which an exception tells it.
    #[inline(always)]
    pub(crate) fn operator(
        &mut self,
        py: Python<'_>,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Operator> {
        // SAFETY: this thread is the one in a call.
        let found = unsafe { self.comm.operator.find(given) }?;
        found.ok_or_else(|| raise::own(py, "CallableOperator", "a function has to be called by the package"))
    }

    /// Runs `f`, which moves about `bytes` bytes. The interpreter's lock is released if they are many, or if other ranks need it.
    #[inline(always)]
    pub(crate) fn run<T>(
        &mut self,
        py: Python<'_>,
        bytes: usize,
        f: impl FnOnce(&mut lineweave::Communicator) -> Result<T, Error>,
    ) -> PyResult<T> {
        // SAFETY: the state was LIVE and is BUSY for as long as this guard lives.
        let inner = unsafe { &mut *self.comm.inner.get() };
        let Some(inner) = inner else { return Err(self.comm.unusable(py, LEFT)) };
        let done = if self.comm.threads || bytes > LONG {
            let released = self.comm.lock.release();
            let done = f(inner);
            if released {
                self.comm.lock.acquire();
            }
            done
        } else {
            f(inner)
        };
        done.map_err(|error| raise::error(py, &error, Some(self.comm.rank)))
    }
}

/// Number of bytes from which a call lasts many times longer than releasing the interpreter's lock and taking it again.
const LONG: usize = 128 << 10;

impl Drop for InCall<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SYNC: python.
        self.comm.state.store(LIVE, Ordering::Release);
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().take();
        if self.forks != forks() {
            // The communicator is the parent's: leaving the team here would take the parent's rank with it.
            std::mem::forget(inner);
            std::mem::forget(std::mem::take(&mut self.held));
        }
    }
}

/// A place in a team, which a `Team` takes.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Seat {
    place: Mutex<Option<Communicator>>,
}

impl Seat {
    pub(crate) fn new(comm: lineweave::Communicator, threads: bool) -> Seat {
        Seat { place: Mutex::new(Some(Communicator::new(comm, threads))) }
    }

    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Communicator> {
        let place = self.place.lock().ok().and_then(|mut place| place.take());
        place.ok_or_else(|| {
            raise::argument(py, "this place is taken; every rank makes or joins a team of its own")
        })
    }
}

/// Returns a number of seconds as a duration.
pub(crate) fn duration(py: Python<'_>, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    let known = Duration::try_from_secs_f64(seconds).ok().filter(|d| !d.is_zero());
    known.map(Some).ok_or_else(|| raise::argument(py, format!("{seconds} is no number of seconds above 0")))
}

#[pymethods]
impl Communicator {
    #[new]
    fn from_seat(seat: &Bound<'_, Seat>) -> PyResult<Communicator> {
        seat.get().take(seat.py())
    }

    /// This rank, from 0.
    ///
    ///     >>> team.rank
    ///     0
    #[getter(rank)]
    fn get_rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    ///
    ///     >>> team.size
    ///     2
    #[getter(size)]
    fn get_size(&self) -> usize {
        self.ranks
    }

    /// Returns whether the ranks are threads of this process.
    ///
    ///     >>> team.threads
    ///     False
    #[getter]
    fn threads(&self) -> bool {
        self.threads
    }

    /// Returns whether this rank closed the team, or the team is that of the process that this one was forked from.
    ///
    ///     >>> team.closed
    ///     False
    #[getter]
    fn closed(&self) -> bool {
        // SYNC: python.
        self.state.load(Ordering::Acquire) == LEFT || self.forks != forks()
    }

    /// Leaves the team. Ranks that wait for this one get `RankLost`. Closing twice does nothing.
    ///
    ///     >>> other = team.dup()
    ///     >>> other.close()
    ///     >>> other.closed
    ///     True
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.closed() {
            return Ok(());
        }
        let entered = self.enter(py)?;
        // SAFETY: as in `run`.
        drop(unsafe { &mut *self.inner.get() }.take());
        std::mem::forget(entered);
        // SYNC: python.
        self.state.store(LEFT, Ordering::Release);
        self.held.clear();
        Ok(())
    }

    /// Tells the other ranks that this one failed: calls in which they wait for it end with `RankLost`, which has the words of `why`.
    ///
    ///     >>> other = team.dup()
    ///     >>> try:
    ///     ...     other.abandon("no data") if other.rank == 1 else other.barrier()
    ///     ... except lineweave.RankLost as lost:
    ///     ...     print(lost.peer)
    ///     1
    fn abandon(&self, py: Python<'_>, why: &str) -> PyResult<()> {
        if self.closed() {
            return Ok(());
        }
        let mut call = self.enter(py)?;
        call.run(py, 0, |comm| {
            comm.abandon(why);
            Ok(())
        })
    }

    /// Why the team cannot be used any more, in words, or `None`.
    ///
    ///     >>> team.failure is None
    ///     True
    #[getter]
    fn failure(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.enter(py)?.run(py, 0, |comm| Ok(comm.failure().map(str::to_owned)))
    }

    /// Sets how many seconds a call may wait for other ranks before it ends with `Timeout`; `None` for no limit. Raises `BadArgument` for a number
    /// that is not above 0.
    ///
    ///     >>> team.set_timeout(30.0)
    fn set_timeout(&self, py: Python<'_>, seconds: Option<f64>) -> PyResult<()> {
        let limit = duration(py, seconds)?;
        self.enter(py)?.run(py, 0, |comm| {
            comm.set_timeout(limit);
            Ok(())
        })
    }

    /// Returns when every rank has called it. Raises what every call raises (`help(lineweave.Team)`).
    ///
    ///     >>> team.barrier()
    #[inline]
    fn barrier(&self, py: Python<'_>) -> PyResult<()> {
        self.enter(py)?.run(py, 0, lineweave::Communicator::barrier)
    }
}
