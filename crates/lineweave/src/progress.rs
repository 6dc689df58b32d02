//! Calls that were started and are not over, on communicators that nobody waits in: carried on by whoever waits elsewhere in
//! their thread, or by a helper thread.
//!
//! Without that, a rank that waits in one communicator could wait for a rank that waits for it in another one.

use crate::backoff::Backoff;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// State of started calls after they were carried on a little.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progressed {
    /// Nothing is left.
    Over,
    /// They came further, and something is left.
    Further,
    /// They wait for other ranks.
    Waiting,
}

impl Progressed {
    /// Returns the state of what is left or not, and came further or not.
    pub fn of(is_left: bool, further: bool) -> Progressed {
        match (is_left, further) {
            (false, _) => Progressed::Over,
            (true, true) => Progressed::Further,
            (true, false) => Progressed::Waiting,
        }
    }
}

/// Something that can be carried on a little without waiting.
pub trait Progress: Send + Sync {
    /// Does what can be done now. Returns at once when somebody else is at it.
    fn progress(&self) -> Progressed;
}

type Started = Weak<dyn Progress>;

thread_local! {
    static OURS: RefCell<Vec<Started>> = const { RefCell::new(Vec::new()) };
}

/// Adds it to a list, unless it is there.
fn add(list: &mut Vec<Started>, it: Started) {
    if !list.iter().any(|known| known.ptr_eq(&it)) {
        list.push(it);
    }
}

/// Has it carried on by whoever waits in this thread, until nothing is left.
pub fn register(started: &Arc<dyn Progress>) {
    let it = Arc::downgrade(started);
    OURS.with_borrow_mut(|ours| {
        if !ours.iter().any(|known| known.ptr_eq(&it)) {
            // Who never waits never turns: what is gone would be kept here for ever.
            ours.retain(|known| known.strong_count() > 0);
            ours.push(it);
        }
    });
}

/// Returns whether there is anything to carry on.
pub fn any() -> bool {
    OURS.try_with(|ours| ours.try_borrow().is_ok_and(|ours| !ours.is_empty())).unwrap_or(false)
}

/// Carries everything on a little that this thread has started.
pub fn turn() {
    if !any() {
        return;
    }
    // Taken out meanwhile: what is carried on may come here again.
    let turned = OURS.take();
    let left: Vec<Started> = turned
        .into_iter()
        .filter(|it| it.upgrade().is_some_and(|it| it.progress() != Progressed::Over))
        .collect();
    OURS.with_borrow_mut(|ours| {
        let new = std::mem::replace(ours, left);
        new.into_iter().for_each(|it| add(ours, it));
    });
}

/// Calls that the helper thread carries on, for all ranks of this process.
struct Helper {
    started: Mutex<(Vec<Started>, bool)>,
    more: Condvar,
}

static HELPER: Helper = Helper { started: Mutex::new((Vec::new(), false)), more: Condvar::new() };

/// Time that the helper thread stays when there is nothing to do.
const IDLE: Duration = Duration::from_millis(200);

/// Has it carried on by the helper thread, which is started when there is none.
pub fn help(started: &Arc<dyn Progress>) {
    // The helper thread does not panic while it holds the lock.
    let mut list = HELPER.started.lock().unwrap_or_else(PoisonError::into_inner);
    add(&mut list.0, Arc::downgrade(started));
    if !list.1 {
        let thread = std::thread::Builder::new().name("lineweave-help".into());
        // Without it, waits and tests carry calls on as ever.
        list.1 = thread.spawn(run_helper).is_ok();
    }
    HELPER.more.notify_one();
}

fn run_helper() {
    // The thread that started it may be a rank's and bound to its CPU.
    crate::affinity::unpin();
    // It pauses longer and longer while nothing comes further.
    let mut backoff = Backoff::unhurried();
    loop {
        let turned = {
            let mut list = HELPER.started.lock().unwrap_or_else(PoisonError::into_inner);
            if list.0.is_empty() {
                backoff = Backoff::unhurried();
                list = HELPER
                    .more
                    .wait_timeout_while(list, IDLE, |list| list.0.is_empty())
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                if list.0.is_empty() {
                    list.1 = false;
                    return;
                }
            }
            std::mem::take(&mut list.0)
        };
        let mut further = false;
        let mut is_left = |it: &Started| {
            let now = it.upgrade().map_or(Progressed::Over, |it| it.progress());
            further |= now != Progressed::Waiting;
            now != Progressed::Over
        };
        let left: Vec<Started> = turned.into_iter().filter(&mut is_left).collect();
        let mut list = HELPER.started.lock().unwrap_or_else(PoisonError::into_inner);
        // What was started meanwhile comes further in the next turn.
        further |= !list.0.is_empty();
        left.into_iter().for_each(|it| add(&mut list.0, it));
        drop(list);
        if further {
            backoff = Backoff::unhurried();
        }
        backoff.pause();
    }
}
