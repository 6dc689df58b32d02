//! Choices that are made beside the calls of one communicator, and the thread that makes them.

use super::request::PlanRequest;
use crate::affinity;
use std::collections::{HashSet, VecDeque};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Choices of one rank's communicator that are made beside its calls.
#[derive(Debug, Default)]
pub(super) struct PendingChoices {
    /// True if calls may run provisional plans.
    pub on: bool,
    /// Size classes whose chosen plans cannot be cut, so that each length has its own.
    pub without_plans: HashSet<PlanRequest>,
    /// True if a thread that chooses takes a CPU from ranks.
    pub throttled: bool,
    pub background: Background,
}

impl PendingChoices {
    /// Makes the record of a communicator whose calls may run provisional plans, or not, and of whether threads that choose take a CPU from ranks.
    pub fn new(on: bool, throttled: bool) -> PendingChoices {
        PendingChoices { on, throttled, ..PendingChoices::default() }
    }
}

/// Chooses and proves the plans of a request.
type Make = dyn Fn(&PlanRequest) + Send;

/// Requests whose plans are to be chosen, in their order, and the thread that chooses them: it is started for a first one, and ends when none is left.
#[derive(Debug, Default)]
pub(super) struct Background {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The first one is being chosen for while the thread runs.
    requests: VecDeque<PlanRequest>,
    runs: bool,
    /// True if choosing panicked. Calls choose by themselves from then on, so that theirs is the panic.
    panicked: bool,
}

impl Background {
    /// Nothing that could panic halfway is done under the lock.
    fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the plans of a request chosen and proved, by what `maker` returns if a thread is to be started, unless that is under way. Returns false where no
    /// thread can be started, or choosing panicked.
    pub fn plan(&self, request: PlanRequest, maker: impl FnOnce() -> Box<Make>) -> bool {
        let mut queue = Background::lock(&self.queue);
        if queue.panicked {
            return false;
        }
        if !queue.requests.contains(&request) {
            queue.requests.push_back(request);
        }
        if !queue.runs {
            let (make, shared) = (maker(), Arc::downgrade(&self.queue));
            let thread = std::thread::Builder::new().name("lineweave-plan".into());
            queue.runs = thread.spawn(move || Background::run(&shared, &make)).is_ok();
            if !queue.runs {
                queue.requests.clear();
            }
        }
        queue.runs
    }

    /// Chooses for one request after the other, until none is left or the communicator is gone.
    fn run(queue: &Weak<Mutex<Queue>>, make: &Make) {
        // The thread that started it may be a rank's and bound to its CPU.
        affinity::unpin();
        // Ranks that it takes a CPU from get it back soon.
        #[cfg(not(loom))]
        crate::time_slice::shorten();
        while let Some(request) = queue.upgrade().and_then(|queue| Background::lock(&queue).first()) {
            let panicked = catch_unwind(AssertUnwindSafe(|| make(&request))).is_err();
            let Some(queue) = queue.upgrade() else { return };
            let mut queue = Background::lock(&queue);
            queue.requests.retain(|other| *other != request);
            queue.panicked |= panicked;
        }
    }
}

impl Queue {
    /// Returns the request to choose for, or notes that the thread ends.
    fn first(&mut self) -> Option<PlanRequest> {
        let request = self.requests.front().cloned();
        self.runs = request.is_some();
        request
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::request;
    use super::*;
    use lineweave_core::collective::Collective;
    use std::sync::mpsc;

    #[test]
    fn requests_are_chosen_for_one_after_the_other_and_none_after_a_panic() {
        let background = Background::default();
        let (chose, chosen) = mpsc::channel();
        let requests = [1000, 2000, 3000].map(|bytes| request(Collective::Bcast, bytes, 1));
        let plan = |request: &PlanRequest| {
            let chose = chose.clone();
            background.plan(request.clone(), || {
                Box::new(move |request| {
                    chose.send(request.clone()).expect("the test hears");
                    assert!(request.bytes() < 3000, "a panic of the test");
                })
            })
        };
        for request in &requests {
            assert!(plan(request));
            assert_eq!(chosen.recv().as_ref(), Ok(request));
        }
        while plan(&requests[0]) {
            std::thread::yield_now();
        }
        assert!(Background::lock(&background.queue).panicked);
    }
}
