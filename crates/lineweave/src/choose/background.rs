//! Choices that are made beside the calls of one communicator, and the thread that makes them.

use super::proven::Key;
use crate::affinity;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Choices of one rank's communicator that are made beside its calls.
#[derive(Debug, Default)]
pub(super) struct PendingChoices {
    /// True if calls may run provisional plans.
    pub on: bool,
    /// Size classes whose chosen plans cannot be cut, so that each length has its own.
    pub without_plans: HashSet<Key>,
    pub background: Background,
}

impl PendingChoices {
    /// Makes the record of a communicator whose calls may run provisional plans, or not.
    pub fn new(on: bool) -> PendingChoices {
        PendingChoices { on, ..PendingChoices::default() }
    }
}

/// Chooses and proves the plans of a key.
type Make = dyn Fn(&Key) + Send;

/// Keys whose plans are to be chosen, in their order, and the thread that chooses them: it is started for a first key, and ends when none is left.
#[derive(Debug, Default)]
pub(super) struct Background {
    queue: Arc<Mutex<Queue>>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The first one is being chosen for while the thread runs.
    keys: VecDeque<Key>,
    runs: bool,
}

impl Background {
    /// Nothing that could panic halfway is done under the lock.
    fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
        queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the plans of a key chosen and proved, by what `maker` returns if a thread is to be started, unless that is under way. Returns false where no
    /// thread can be started.
    pub fn plan(&self, key: Key, maker: impl FnOnce() -> Box<Make>) -> bool {
        let mut queue = Background::lock(&self.queue);
        if !queue.keys.contains(&key) {
            queue.keys.push_back(key);
        }
        if !queue.runs {
            let (make, shared) = (maker(), Arc::clone(&self.queue));
            let thread = std::thread::Builder::new().name("lineweave-plan".into());
            queue.runs = thread.spawn(move || Background::run(&shared, &make)).is_ok();
            if !queue.runs {
                queue.keys.clear();
            }
        }
        queue.runs
    }

    fn run(queue: &Mutex<Queue>, make: &Make) {
        // The thread that started it may be a rank's and bound to its CPU.
        affinity::unpin();
        // Ranks that it takes a CPU from get it back soon.
        #[cfg(not(loom))]
        crate::time_slice::shorten();
        loop {
            let key = {
                let mut queue = Background::lock(queue);
                let Some(&key) = queue.keys.front() else {
                    queue.runs = false;
                    return;
                };
                key
            };
            make(&key);
            Background::lock(queue).keys.retain(|other| *other != key);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        Background::lock(&self.queue).keys.clear();
    }
}
