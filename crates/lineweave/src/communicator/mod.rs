//! One rank's end of a team, as a program holds it.
//!
//! What it runs is in `engine`; it hands that to whoever carries started calls on (`lend`), and takes it back before a call that
//! blocks.

mod children;
// For tests/loom.rs.
#[doc(hidden)]
pub mod ownership;
mod pending;
mod plans;
mod factory;

pub use crate::choose::Planner;
pub use crate::compile::PlanId;
pub use crate::engine::{Buffers, FastPathResult, Memory, Options};
pub use crate::segment::Setup;
pub use factory::CommunicatorFactory;
pub(crate) use ownership::LockedEngine;
pub use pending::Message;

use crate::choose::PlanSelector;
use crate::engine::{Engine, Mode, NonblockingCall, ProcessGroup};
use crate::error::Error;
use crate::failure_detector::WaitCallback;
use crate::progress::{self, Progress};
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::wait::ProgressHook;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// One rank's end of a team of threads or processes. It belongs to the thread that uses it.
///
/// Calls that block first complete those that were started and are not over; so do the methods that tell or change how it works.
pub struct Communicator {
    shared: Arc<LockedEngine>,
    segment: Arc<Segment>,
    rank: usize,
    /// Calls were started, and the engine may be in use by who carries them on.
    lent: Cell<bool>,
    /// Bytes of every rank's window.
    pub(crate) window: usize,
    /// Messages that were started, while there are any.
    pending: Option<Arc<pending::SharedPending>>,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Communicator");
        out.field("rank", &self.rank).field("ranks", &self.ranks()).field("started", &self.lent.get());
        if !self.lent.get() {
            let engine = self.engine_ref();
            out.field("calls", &engine.sequence());
            out.field("failed", &engine.failure()).field("memory", &engine.memory());
        }
        out.finish_non_exhaustive()
    }
}

impl Communicator {
    /// Joins a segment as `rank`, once every other rank has.
    ///
    /// # Errors
    /// [`Error::Memory`] when the rank's area cannot be reserved; [`Error::Timeout`] when other ranks have not
    /// joined within `patience`.
    pub(crate) fn join(
        segment: Arc<Segment>,
        rank: usize,
        options: Options,
        selector: PlanSelector,
        group: Arc<ProcessGroup>,
        patience: Duration,
    ) -> Result<Communicator, Error> {
        let helped = options.progress_thread;
        Ok(Communicator::of(Engine::join(segment, rank, options, selector, group, patience)?, helped))
    }

    fn of(engine: Engine, helped: bool) -> Communicator {
        let (segment, rank) = (Arc::clone(&engine.segment), engine.rank());
        let shared = Arc::new(LockedEngine::new(engine, helped));
        Communicator { shared, segment, rank, lent: Cell::new(false), window: 0, pending: None }
    }

    /// Returns the engine, after all started calls have been completed.
    #[inline(always)]
    pub(crate) fn engine(&mut self) -> &mut Engine {
        if self.lent.get() {
            self.recall();
        }
        // SAFETY: not lent, so nobody but the owner touches it, and the owner is borrowed.
        unsafe { &mut *self.shared.engine.get() }
    }

    /// Returns the engine, if no started call is left. It does not wait for started calls.
    #[inline(always)]
    pub(crate) fn idle_engine(&mut self) -> Option<&mut Engine> {
        // SAFETY: as above.
        (!self.lent.get()).then(|| unsafe { &mut *self.shared.engine.get() })
    }

    pub(crate) fn engine_ref(&self) -> &Engine {
        if self.lent.get() {
            self.recall();
        }
        // SAFETY: as above; it is lent again only by a call that borrows the owner for itself.
        unsafe { &*self.shared.engine.get() }
    }

    /// Completes the calls that were started. How they ended is for who started them.
    #[cold]
    fn recall(&self) {
        self.shared.complete();
        self.lent.set(false);
    }

    /// Adds calls to those that were started, and carries them on as far as they go without waiting.
    pub(crate) fn enqueue(&mut self, jobs: impl IntoIterator<Item = NonblockingCall>) {
        let held = if self.lent.get() { self.shared.hold() } else { None };
        match held {
            Some(mut held) => {
                held.engine().enqueue(jobs);
                held.carry_on(Mode::Poll, None);
            }
            None => {
                // SAFETY: not lent, or idle again: nobody but the owner touches it.
                let engine = unsafe { &mut *self.shared.engine.get() };
                engine.cool();
                engine.enqueue(jobs);
                self.lent.set(true);
                self.shared.lend();
                self.shared.progress();
            }
        }
        let started: Arc<dyn Progress> = Arc::<LockedEngine>::clone(&self.shared);
        progress::register(&started);
        // Relaxed: a preference, of use as soon as it is seen.
        if self.shared.helped.load(Ordering::Relaxed) {
            progress::help(&started);
        }
    }

    pub(crate) fn shared(&self) -> &Arc<LockedEngine> {
        &self.shared
    }

    /// Returns whether calls that were started may not be over.
    pub fn has_started(&self) -> bool {
        self.lent.get()
    }

    /// Makes a helper thread carry started calls on while this rank does something else, or stops that. The helper thread is one for all
    /// ranks of a process and exists while there is something for it to do. `LINEWEAVE_PROGRESS_THREAD` sets what holds from
    /// the start.
    ///
    /// ```
    /// use lineweave::Operator;
    /// lineweave::team::threads(2, |mut comm| {
    ///     comm.set_progress_thread(true);
    ///     let request = comm.start_allreduce(vec![1.0; 1 << 16], Operator::Sum)?;
    ///     // While this rank computes, the helper thread carries the call on.
    ///     assert_eq!(request.wait()?[0], 2.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn set_progress_thread(&mut self, on: bool) {
        // Relaxed: as in `enqueue`.
        self.shared.helped.store(on, Ordering::Relaxed);
    }

    /// This rank, from 0 to [`Communicator::ranks`] - 1.
    ///
    /// ```
    /// let seen = lineweave::team::threads(3, |comm| Ok((comm.rank(), comm.ranks())))?;
    /// assert_eq!(seen, [(0, 3), (1, 3), (2, 3)]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks of this communicator.
    pub fn ranks(&self) -> usize {
        self.segment.ranks()
    }

    /// The memory that the team shares.
    #[doc(hidden)]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns the memory that this communicator takes. [`Communicator::setup`] has an example.
    pub fn memory(&self) -> Memory {
        self.engine_ref().memory()
    }

    /// Returns what choosing, proving and compiling the plans of this communicator have cost this rank.
    ///
    /// ```
    /// lineweave::team::threads(2, |mut comm| {
    ///     comm.allreduce_in_place(&mut [1.0f64; 1000], lineweave::Operator::Sum)?;
    ///     let (memory, setup) = (comm.memory(), comm.setup());
    ///     assert!(setup.plans > 0 && setup.plan_bytes <= memory.private_bytes);
    ///     assert!(memory.shared_bytes <= memory.address_bytes);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn setup(&self) -> Setup {
        self.engine_ref().setup()
    }

    /// Sets a function to be called while this rank waits, so that a host library can progress.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    /// use std::sync::Arc;
    /// let turns = lineweave::team::threads(2, |mut comm| {
    ///     let turns = Arc::new(AtomicUsize::new(0));
    ///     let counted = Arc::clone(&turns);
    ///     // A program with another library calls that here.
    ///     comm.set_progress_hook(Some(Box::new(move || drop(counted.fetch_add(1, Relaxed)))));
    ///     comm.barrier()?;
    ///     Ok(turns.load(Relaxed))
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn set_progress_hook(&mut self, hook: Option<ProgressHook>) {
        self.engine().transport.waiter.set_hook(hook);
    }

    /// Sets who is told when a wait lasts long, and may end it: [`WaitCallback`] has an example.
    pub fn set_wait_callback(&mut self, wait_callback: Option<Box<dyn WaitCallback>>) {
        self.engine().transport.watch.set_wait_callback(wait_callback);
    }

    /// Changes how long a wait may last; nothing for no limit. `LINEWEAVE_TIMEOUT` says what holds at first. A call that waited as long
    /// ends with [`Error::Timeout`], and the communicator cannot be used any more.
    ///
    /// ```
    /// use std::time::Duration;
    /// let over = std::sync::Barrier::new(2);
    /// let ends = lineweave::team::threads(2, |mut comm| {
    ///     comm.set_timeout(Some(Duration::from_millis(50)));
    ///     let end = if comm.rank() == 0 { comm.barrier().err() } else { None }; // Rank 1 does not come.
    ///     over.wait();
    ///     Ok(end)
    /// })?;
    /// assert!(matches!(ends[0], Some(lineweave::Error::Timeout { .. })));
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.engine().transport.watch.set_limit(limit);
    }

    /// Leaves the team as one who failed: peers that wait for this rank, or will, get [`Error::PeerLost`] at once.
    ///
    /// ```
    /// use lineweave::Error;
    /// let ends = lineweave::team::threads(2, |mut comm| {
    ///     if comm.rank() == 1 {
    ///         comm.abandon("its input cannot be read");
    ///         return Ok(comm.barrier().err());
    ///     }
    ///     Ok(comm.barrier().err())
    /// })?;
    /// assert!(matches!(ends[0], Some(Error::PeerLost { .. })));
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn abandon(&mut self, why: &str) {
        if self.segment.is_inherited() {
            return;
        }
        // Calls that were started would wait for others: they end here.
        self.shared.abandon(why);
        self.end_parcels(why);
        self.engine().give_up_team(why);
    }

    /// Returns whether results are reproducible: their brackets, and with them their bits, depend on the number of ranks alone, and
    /// not on the algorithm, box sizes, where ranks sit, or whether they are threads or processes. User-defined operators
    /// have to keep their part of that.
    pub fn reproducible(&self) -> bool {
        self.engine_ref().reproducible()
    }

    /// Asks for reproducible results from now on, or no longer. `LINEWEAVE_REPRODUCIBLE` says what holds at first. All ranks
    /// must ask for the same between the same calls.
    ///
    /// ```
    /// use lineweave::Operator;
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let before = comm.set_reproducible(true);
    ///     let mut sum = [[1e16, 1.0, -1e16][comm.rank()]];
    ///     comm.allreduce_in_place(&mut sum, Operator::Sum)?;
    ///     comm.set_reproducible(before);
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [(1e16 + 1.0) - 1e16; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn set_reproducible(&mut self, reproducible: bool) -> bool {
        self.engine().set_reproducible(reproducible)
    }

    /// Returns whether its ranks reach each other's memory by cross-memory attach: they are in several processes, `LINEWEAVE_CMA` and the
    /// profile ask for it, and the kernel permits it to all of them.
    pub fn cross_memory(&self) -> bool {
        self.engine_ref().selector.attach()
    }

    /// Makes long calls go by cross-memory attach where that is possible and predicted or measured to be faster, or stops that; returns
    /// whether they did before. All ranks must ask for the same between the same calls.
    pub fn set_cross_memory(&mut self, on: bool) -> bool {
        self.engine().set_cross_memory(on)
    }

    /// Returns the reason why this communicator cannot be used any more, or `None`.
    pub fn failure(&self) -> Option<&str> {
        self.engine_ref().failure()
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.segment.is_inherited() {
            return;
        }
        if self.lent.get() && std::thread::panicking() {
            // To complete them could mean to wait for ranks that wait for this one.
            self.shared.abandon("the rank panicked");
        }
        self.end_parcels("the rank has left");
        // Requests may keep the engine's memory, but the rank leaves now.
        self.engine().depart();
    }
}
