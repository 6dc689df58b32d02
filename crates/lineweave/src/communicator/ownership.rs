//! Ownership of a communicator's engine: the rule for which thread may touch the engine while calls are under way in it.
//!
//! Without such calls only the communicator's owner does, and needs no lock. Protocol, for one word:
//!
//! 1. The owner starts a call: it stores LENT, or if it was lent before, holds it while it adds the call.
//! 2. Whoever wants to carry calls on exchanges LENT for HELD, and gives up if the word is anything else.
//! 3. The holder stores LENT again, or IDLE when no call is left. It does not touch the engine after that.
//! 4. The owner that finds IDLE has the engine for itself again; nobody but the owner leaves that state.
//!
//! The owner remembers by itself whether it has lent the engine. So a call on a communicator without calls under way looks
//! at one bool of its own and at no shared word.

use crate::backoff::Backoff;
use crate::engine::RequestState;
use crate::engine::{Engine, Mode};
use crate::progress::{Progress, Progressed};
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use std::cell::UnsafeCell;
use std::task::Waker;

/// The word of the protocol.
#[derive(Debug)]
pub struct EngineOwnership(AtomicU64);

const IDLE: u64 = 0;
const LENT: u64 = 1;
const HELD: u64 = 2;

impl Default for EngineOwnership {
    fn default() -> EngineOwnership {
        EngineOwnership(AtomicU64::new(IDLE))
    }
}

impl EngineOwnership {
    /// Lends the engine; called by the owner that has it for itself (step 1).
    pub fn lend(&self) {
        // SYNC: lending
        self.0.store(LENT, Ordering::Release);
    }

    /// Returns whether it is held now, by who asked (step 2).
    pub fn try_hold(&self) -> bool {
        // SYNC: lending; relaxed on failure, after which nothing is touched.
        self.0.compare_exchange(LENT, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the engine back; called by the holder, with whether calls are left (step 3).
    pub fn release(&self, left: bool) {
        // SYNC: lending
        self.0.store(if left { LENT } else { IDLE }, Ordering::Release);
    }

    /// Returns whether the owner has it for itself (step 4).
    pub fn is_idle(&self) -> bool {
        // SYNC: lending
        self.0.load(Ordering::Acquire) == IDLE
    }
}

/// An engine with its lock.
pub(crate) struct LockedEngine {
    lending: EngineOwnership,
    /// True while the helper thread carries calls on.
    pub helped: AtomicBool,
    pub engine: UnsafeCell<Engine>,
}

// SAFETY: the engine is touched by the owner alone, or by who holds it (the protocol above).
unsafe impl Sync for LockedEngine {}
// SAFETY: nothing in it is tied to a thread.
unsafe impl Send for LockedEngine {}

impl LockedEngine {
    pub fn new(engine: Engine, helped: bool) -> LockedEngine {
        LockedEngine {
            lending: EngineOwnership::default(),
            helped: AtomicBool::new(helped),
            engine: UnsafeCell::new(engine),
        }
    }

    /// Lends the engine; later holders see what the owner did to it.
    pub fn lend(&self) {
        self.lending.lend();
    }

    /// The engine, unless it is idle or somebody else's at this moment.
    pub fn try_hold(&self) -> Option<EngineGuard<'_>> {
        // Not `then_some`: what it would make and drop gives the engine back.
        self.lending.try_hold().then(|| EngineGuard { shared: self, wakers: Vec::new() })
    }

    /// The engine as soon as nobody else has it; none when it is idle.
    pub fn hold(&self) -> Option<EngineGuard<'_>> {
        let mut backoff = Backoff::default();
        loop {
            if let Some(held) = self.try_hold() {
                return Some(held);
            }
            if self.lending.is_idle() {
                return None;
            }
            pause(&mut backoff);
        }
    }

    /// Completes the calls that were started. How they ended is for who started them.
    pub fn complete(&self) {
        while let Some(mut held) = self.hold() {
            held.carry_on(Mode::Block, None);
        }
    }

    /// Ends the calls that were started with an error, when this rank cannot carry them on.
    pub fn abandon(&self, why: &str) {
        if let Some(mut held) = self.hold() {
            let EngineGuard { shared, wakers } = &mut held;
            // SAFETY: held, so nobody else touches it.
            unsafe { &mut *shared.engine.get() }.abandon(why, wakers);
        }
    }

    /// Waits until a call is over, carrying on what comes before it.
    pub fn wait(&self, ticket: &RequestState) {
        let mut backoff = Backoff::default();
        while !ticket.is_done() {
            match self.try_hold() {
                Some(mut held) => held.carry_on(Mode::Block, Some(ticket)),
                // Somebody else carries it on, or has just done so.
                None => pause(&mut backoff),
            }
        }
    }
}

/// Pauses between looks at what another thread does. A pause that gives the CPU away first carries on what this thread has started on any
/// communicator.
pub(super) fn pause(backoff: &mut Backoff) {
    if backoff.yields() {
        crate::progress::turn();
    }
    backoff.pause();
}

impl Progress for LockedEngine {
    fn progress(&self) -> Progressed {
        match self.try_hold() {
            Some(mut held) => {
                let before = held.engine().position();
                held.carry_on(Mode::Poll, None);
                Progressed::of(held.is_left(), held.engine().position() != before)
            }
            None => Progressed::of(!self.lending.is_idle(), false),
        }
    }
}

/// The right to touch an engine that is lent.
pub(crate) struct EngineGuard<'a> {
    shared: &'a LockedEngine,
    /// Wakers of calls that ended, called once the engine is given back: their tasks may want it.
    wakers: Vec<Waker>,
}

impl EngineGuard<'_> {
    pub fn engine(&mut self) -> &mut Engine {
        // SAFETY: held, so nobody else touches it.
        unsafe { &mut *self.shared.engine.get() }
    }

    /// Carries calls on, in their order, up to `until`.
    pub fn carry_on(&mut self, mode: Mode, until: Option<&RequestState>) {
        // SAFETY: held, so nobody else touches it.
        let engine = unsafe { &mut *self.shared.engine.get() };
        engine.carry_on(mode, until, &mut self.wakers);
    }

    pub fn is_left(&mut self) -> bool {
        self.engine().has_started()
    }
}

impl Drop for EngineGuard<'_> {
    fn drop(&mut self) {
        let left = self.is_left();
        self.shared.lending.release(left);
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
