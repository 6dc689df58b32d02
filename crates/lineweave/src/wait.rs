//! Waits of a rank: spin, then yield the CPU, then sleep.
//!
//! Spinning is fastest when the awaited rank runs on a CPU of its own; yielding when it waits for this one;
//! sleeping when it is far from done. The budgets follow from the measured round trip and from whether ranks
//! outnumber usable CPUs.

mod budget;
mod rounds;
mod sleep;
mod preemption;
mod shared_cpu;

pub use budget::{Between, Budget, SLEEP};
pub use rounds::{Rounds, EVERY};
pub use sleep::{sleep_while, wake_sleepers};

use crate::affinity;
use crate::flag::{self, Goal, WakeFence};
use crate::sync::{self, spin_loop, AtomicU64};
use preemption::PreemptionDetector;
use shared_cpu::SharedCpuDetector;
use sleep::sleep;
use std::time::{Duration, Instant};

/// Checks that a waiting rank makes every few milliseconds.
pub trait WaitMonitor {
    /// Called every few milliseconds of a wait, with the time waited so far; an error ends the wait.
    fn check(&mut self, waited: Duration) -> Result<(), Interrupted>;

    /// Called when a wait turns out not to be over at once.
    fn begin(&mut self) {}

    /// Called when such a wait is over.
    fn end(&mut self) {}

    /// Called when it ended with its flag: whether what waited may go on.
    fn resume(&mut self) -> Result<(), Interrupted> {
        Ok(())
    }

    /// Returns whether the last check saw something that another one soon may find to be an error.
    fn suspects(&self) -> bool {
        false
    }

    /// Asked after a check's error: whether the wait ends well nevertheless, if what is awaited was `raised` by now. What a rank did before it was lost
    /// counts.
    fn forgives(&mut self, _raised: impl Fn() -> bool) -> bool {
        false
    }
}

/// A wait that ended without its flag; the reason is kept by the [`WaitMonitor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// A call into a host library, made while waiting so that it can progress.
pub type ProgressHook = Box<dyn FnMut() + Send>;

/// The waiting of one rank.
pub struct Waiter {
    budget: Budget,
    order: WakeFence,
    hook: Option<ProgressHook>,
    slices: PreemptionDetector,
    together: SharedCpuDetector,
}

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter").field("budget", &self.budget).field("order", &self.order).finish()
    }
}

/// The shortest and the longest nap of a wait that no flag ends, and by how much shorter than the time waited so far it is in
/// between: a wait becomes longer by no more than that share, and one that lasts costs little.
const NAPS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(5));
const NAP_SHARE: u32 = 16;
/// Polls between two calls of the progress hook, and between two looks at the clock while spinning.
const POLLS_A_LOOK: u32 = 1 << 10;
/// Looks of a short path: about a microsecond of them, after which a call more does not count.
const LOOKS_A_GLANCE: u32 = 64;
/// Yields for each call of the progress hook. Whoever is waited for on the same CPU comes after one or two, and a host library's
/// hook may take as long as a yield: it may yield itself.
const YIELDS_A_HOOK: u32 = 8;

impl Waiter {
    /// Makes a waiter with these budgets and this way to wake peers.
    pub fn new(budget: Budget, order: WakeFence) -> Waiter {
        Waiter {
            budget,
            order,
            hook: None,
            slices: PreemptionDetector::default(),
            together: shared_cpu::APART,
        }
    }

    /// The budgets in force.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the fence with which this waiter wakes peers.
    pub fn order(&self) -> WakeFence {
        self.order
    }

    /// Changes the budgets.
    pub fn set_budget(&mut self, budget: Budget) {
        self.budget = budget;
        self.together = shared_cpu::APART;
    }

    /// A function to call while waiting.
    pub fn set_hook(&mut self, hook: Option<ProgressHook>) {
        self.hook = hook;
    }

    /// Raises a flag and wakes whoever sleeps on it.
    #[inline(always)]
    pub fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) {
        flag::raise(flag, value);
        self.wake(flag, sleepers);
    }

    /// Raises a flag; whether somebody sleeps on it, whom [`Waiter::wake`] wakes.
    #[inline(always)]
    pub fn p2p(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) -> bool {
        flag::raise(flag, value);
        flag::has_sleepers(sleepers, self.order)
    }

    /// Adds `mark` to a counter and wakes whoever sleeps on it.
    #[inline(always)]
    pub fn add(&self, flag: &AtomicU64, mark: u64, sleepers: &AtomicU64) {
        flag::add(flag, mark);
        self.wake(flag, sleepers);
    }

    /// Wakes whoever sleeps on a flag that was raised.
    #[inline(always)]
    pub fn wake(&self, flag: &AtomicU64, sleepers: &AtomicU64) {
        wake_sleepers(flag, sleepers, self.order);
    }

    /// Waits until `flag` has reached `value`.
    #[inline(always)]
    pub fn wait<V: WaitMonitor>(
        &mut self,
        flag: &AtomicU64,
        value: u64,
        sleepers: &AtomicU64,
        monitor: &mut V,
    ) -> Result<(), Interrupted> {
        self.poll(flag, Goal::at_least(value), sleepers, monitor, self.budget.spins)
    }

    /// Waits for a plan's flag, which is raised by who is `apart`, or may be on this CPU.
    #[inline(always)]
    pub fn wait_for<V: WaitMonitor>(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        monitor: &mut V,
        apart: bool,
    ) -> Result<(), Interrupted> {
        let spins = if apart { self.budget.apart } else { self.budget.spins };
        self.poll(flag, goal, sleepers, monitor, spins)
    }

    /// Returns the instruction between the looks of an exchange.
    #[inline(always)]
    pub fn between(&self) -> Between {
        self.budget.exchange
    }

    /// Looks for a moment, as a short path does, which leaves longer waits to others.
    #[inline(always)]
    pub fn glance<T>(&self, look: impl Fn() -> Option<T>, between: impl Fn()) -> Option<T> {
        look_for(self.budget.spins.min(LOOKS_A_GLANCE), look, between)
    }

    /// Waits until `ready` says so, for what no single flag says: where it would sleep it naps.
    pub fn wait_until<V: WaitMonitor>(
        &mut self,
        ready: impl Fn() -> bool,
        monitor: &mut V,
    ) -> Result<(), Interrupted> {
        for _ in 0..self.budget.spins.min(POLLS_A_LOOK) {
            if ready() {
                return Ok(());
            }
            spin_loop();
        }
        monitor.begin();
        let nap = |_, waited: Duration| sync::sleep((waited / NAP_SHARE).clamp(NAPS.0, NAPS.1));
        let done = self.keep_looking(ready, nap, monitor);
        monitor.end();
        done
    }

    #[inline(always)]
    fn poll<V: WaitMonitor>(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        monitor: &mut V,
        spins: u32,
    ) -> Result<(), Interrupted> {
        // Nearly every wait ends here.
        // A hook is called from the first look on: what a host library has to do can wait for some microseconds.
        let look = || goal.is_reached(flag).then_some(());
        match look_for(spins.min(POLLS_A_LOOK).min(self.together.looks), look, spin_loop) {
            Some(()) => Ok(()),
            None => self.wait_long(flag, goal, sleepers, monitor),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_long<V: WaitMonitor>(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        monitor: &mut V,
    ) -> Result<(), Interrupted> {
        monitor.begin();
        let done = self.keep_waiting(flag, goal, sleepers, monitor);
        monitor.end();
        done?;
        monitor.resume()
    }

    fn keep_waiting<V: WaitMonitor>(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        monitor: &mut V,
    ) -> Result<(), Interrupted> {
        let order = self.order;
        let sleep = |limit, _| sleep(flag, goal, sleepers, order, limit);
        self.keep_looking(|| goal.is_reached(flag), sleep, monitor)
    }

    /// Looks whether it is `ready` as the budgets say; sleeps no longer than `sleep` is told, with the time waited so far.
    fn keep_looking<V: WaitMonitor>(
        &mut self,
        ready: impl Fn() -> bool,
        sleep: impl Fn(Duration, Duration),
        monitor: &mut V,
    ) -> Result<(), Interrupted> {
        let start = Instant::now();
        let mut rounds = Rounds::default();
        rounds.due(start);
        let mut waited = Duration::ZERO;
        let spins = self.budget.spins.min(self.together.looks);
        let mut polls: u32 = POLLS_A_LOOK.min(spins);
        let mut yields: u32 = 0;
        let mut until_hook: u32 = 0;
        let mut looked = start;
        let lost = self.slices.are_lost(start);
        if !lost {
            affinity::home();
        }
        let moves = self.may_sleep() && self.together.sleeps();
        let mut sleepy = moves || lost && !crate::progress::any();
        // Whether another thread ran in the first yield, where nothing was asked since.
        let mut ran = false;
        loop {
            if ready() {
                if !moves {
                    self.together.ended(ran);
                }
                if yields > 0 {
                    self.slices.yielded(start);
                }
                return Ok(());
            }
            ran = false;
            let spinning = !sleepy && polls < spins;
            let yielding = !sleepy && !spinning && yields < self.budget.yields;
            until_hook = if yielding && until_hook > 0 { until_hook - 1 } else { YIELDS_A_HOOK - 1 };
            if !yielding || until_hook == 0 {
                self.call_hook();
                if self.hook.is_some() {
                    // What a host library does there is no slice of another program's.
                    looked = Instant::now();
                }
            }
            crate::progress::turn();
            if spinning {
                for _ in 0..POLLS_A_LOOK.min(spins - polls) {
                    spin_loop();
                    if ready() {
                        self.together.ended(false);
                        return Ok(());
                    }
                }
                if spins != u32::MAX {
                    polls = polls.saturating_add(POLLS_A_LOOK);
                }
            } else if yielding {
                let first = (yields == 0 && self.may_sleep()).then(Instant::now);
                rustix::thread::sched_yield();
                ran = first.is_some_and(|before| before.elapsed() >= shared_cpu::RUN);
                // A look at the clock costs a tenth of a yield: now and then, and after the first ones, which say whether other
                // programs have the CPU.
                if self.budget.yields != u32::MAX {
                    yields += 1;
                    let says = yields.is_power_of_two() && !self.budget.crowded;
                    if !says && yields % 64 != 0 {
                        continue;
                    }
                }
            } else if self.has_other_work() {
                sleep(Duration::from_millis(1), waited);
            } else if monitor.suspects() {
                sleep(self.budget.sleep.min(SLEEP), waited);
            } else {
                sleep(self.budget.sleep, waited);
            }
            let now = Instant::now();
            if (spinning || yielding) && self.may_sleep() && !crate::progress::any() {
                self.slices.look(now, now - looked);
                sleepy = self.slices.are_lost(now);
                if sleepy {
                    // The system knows a CPU with less to do.
                    affinity::roam();
                }
            }
            looked = now;
            waited = now - start;
            if rounds.due(now).is_some() {
                if let Err(interrupted) = monitor.check(waited) {
                    return if monitor.forgives(&ready) { Ok(()) } else { Err(interrupted) };
                }
                // The check took some time, too.
                looked = Instant::now();
            }
        }
    }

    /// Returns whether a rank that would spin or yield may sleep instead: it was not told otherwise, and has a CPU of its own.
    fn may_sleep(&self) -> bool {
        self.budget.yields != u32::MAX && !self.budget.crowded
    }

    /// Returns whether what it waits for may take more than looking at it.
    fn has_other_work(&self) -> bool {
        self.hook.is_some() || crate::progress::any()
    }

    /// Lets a host library progress.
    pub fn call_hook(&mut self) {
        if let Some(hook) = &mut self.hook {
            hook();
        }
    }
}

/// Looks once and up to `more` times more: a short loop that the compiler keeps in the caller.
#[inline(always)]
fn look_for<T>(more: u32, look: impl Fn() -> Option<T>, between: impl Fn()) -> Option<T> {
    if let Some(seen) = look() {
        return Some(seen);
    }
    for _ in 0..more {
        between();
        if let Some(seen) = look() {
            return Some(seen);
        }
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests;
