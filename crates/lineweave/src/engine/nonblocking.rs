//! Calls that were started: what is known of each, and what is left to do.

use super::course::Course;
use crate::call::{CallSpec, WORDS};
use crate::choose::PlanRequest;
use crate::error::Error;
use crate::kernel::ElementType;
use crate::sync::{AtomicBool, Ordering};
use crate::wait::Rounds;
use lineweave_core::collective::Collective;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

/// Calls that were started and are not over, in their order.
#[derive(Default)]
pub(super) struct Started {
    pub queue: VecDeque<NonblockingCall>,
    /// The rounds of a call that is only polled.
    pub rounds: Rounds,
}

/// Outcome of a call, once it has ended, and the waker that is to be told.
type State = (Option<Result<(), Error>>, Option<Waker>);

/// State of a started call, for whoever asks for its outcome.
#[derive(Debug, Default)]
pub(crate) struct RequestState {
    done: AtomicBool,
    state: Mutex<State>,
}

impl RequestState {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that panics is done under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the call is over.
    pub fn is_done(&self) -> bool {
        // SYNC: ticket
        self.done.load(Ordering::Acquire)
    }

    /// Returns the outcome of the call, if it has ended.
    pub fn outcome(&self) -> Option<Result<(), Error>> {
        if !self.is_done() {
            return None;
        }
        self.state().0.clone()
    }

    /// Sets the waker to be called when the call is over; returns true if the call is not over.
    pub fn wake(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        state.1 = Some(waker.clone());
        state.0.is_none()
    }

    /// Resets the state for a call that is made again.
    pub fn reset(&self) {
        let mut state = self.state();
        state.0 = None;
        // Relaxed: the call is handed over after this.
        self.done.store(false, Ordering::Relaxed);
    }

    pub fn finish(&self, outcome: Result<(), Error>, wakers: &mut Vec<Waker>) {
        let mut state = self.state();
        state.0 = Some(outcome);
        wakers.extend(state.1.take());
        // SYNC: ticket
        self.done.store(true, Ordering::Release);
    }
}

/// The lengths of a call's blocks.
#[derive(Clone, Debug)]
pub(crate) enum Lengths {
    /// As the call says.
    Even,
    /// One number for each rank, or for each pair of them.
    Uneven(Arc<[usize]>),
    /// Counts that every rank gives to every other, as the call before has gathered them.
    Gathered(Arc<Pairs>),
}

impl Lengths {
    /// Counts of which the ranks tell each other.
    pub fn pairs(given: &[usize], taken: &[usize]) -> Lengths {
        Lengths::Gathered(Arc::new(Pairs::new(given, taken)))
    }

    /// Returns whether both are the same lengths.
    pub fn equal(&self, other: &Lengths) -> bool {
        match (self, other) {
            (Lengths::Even, Lengths::Even) => true,
            (Lengths::Uneven(a), Lengths::Uneven(b)) => a == b,
            (Lengths::Gathered(a), Lengths::Gathered(b)) => a.given == b.given && a.taken == b.taken,
            (Lengths::Even | Lengths::Uneven(_) | Lengths::Gathered(_), _) => false,
        }
    }
}

/// Counts that the ranks of an alltoall with blocks of different lengths tell each other.
#[derive(Debug)]
pub(crate) struct Pairs {
    pub given: Box<[usize]>,
    told: Box<[u64]>,
    all: *mut u64,
    pub taken: Box<[usize]>,
}

// SAFETY: `all` belongs to it, and is touched by calls only, which are carried out by one thread at a time.
unsafe impl Send for Pairs {}
// SAFETY: as above.
unsafe impl Sync for Pairs {}

impl Pairs {
    fn new(given: &[usize], taken: &[usize]) -> Pairs {
        let all: Box<[u64]> = vec![0; given.len() * given.len()].into();
        Pairs {
            given: given.into(),
            told: given.iter().map(|&n| n as u64).collect(),
            all: Box::into_raw(all).cast(),
            taken: taken.into(),
        }
    }

    /// Input and output of the call that gathers them.
    pub fn buffers(&self) -> (*const u8, *mut u8) {
        (self.told.as_ptr().cast(), self.all.cast())
    }

    /// Returns the call.
    pub fn call(&self) -> CallSpec {
        let collective = Collective::Allgather;
        CallSpec { collective, element: ElementType::U64, count: self.given.len(), operator: None, root: 0 }
    }

    fn len(&self) -> usize {
        self.given.len() * self.given.len()
    }

    /// All lengths, once they are gathered.
    pub fn counts(&self) -> Vec<usize> {
        // SAFETY: as long as it was made, and nobody writes to it after the call that gathers.
        let all = unsafe { std::slice::from_raw_parts(self.all, self.len()) };
        all.iter().map(|&n| n as usize).collect()
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` with this length.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.all, self.len())) });
    }
}

/// A call that was started.
pub(crate) struct NonblockingCall {
    pub lengths: Lengths,
    pub ticket: Arc<RequestState>,
    /// Buffers that must live until it is over.
    pub keep: Option<Arc<dyn Any + Send + Sync>>,
    pub(super) course: Course,
}

impl NonblockingCall {
    pub fn new(
        call: CallSpec,
        lengths: Lengths,
        (input, output): (*const u8, *mut u8),
        ticket: Arc<RequestState>,
        keep: Option<Arc<dyn Any + Send + Sync>>,
    ) -> NonblockingCall {
        NonblockingCall { lengths, ticket, keep, course: Course::new(call, input, output) }
    }
}

/// A comparison under way.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub mine: [u64; WORDS],
    /// The rank to be compared with next.
    pub next: usize,
}

/// Combined answers of all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Agreed {
    /// All buffers of all ranks lie in heaps that all of them know.
    pub shared: bool,
    /// True if input and output are one buffer at some rank.
    pub in_place: bool,
}

impl Agreed {
    /// Value for a call about which nobody was asked.
    pub const NOTHING: Agreed = Agreed { shared: false, in_place: false };
}

/// A question under way.
#[derive(Debug)]
pub(crate) struct Agreement {
    pub turn: u64,
    /// The rank to be heard next.
    pub next: usize,
    pub said: u64,
}

/// Progress of a call with plans that are not chosen yet.
pub(super) enum ChangeOver {
    /// It has not been looked at.
    New,
    /// Ranks agree on the plans of this key.
    Agrees(PlanRequest, Option<Agreement>),
    /// It is settled which plans the call runs.
    Settled,
}
