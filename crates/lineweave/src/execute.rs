//! Running compiled steps: the innermost loop of the engine.

mod frame;

pub use frame::Frame;

use crate::compile::{Compiled, Step};
use crate::failure_detector::FailureDetector;
use crate::flag::Goal;
use crate::kernel::{load_words, store_words};
use crate::signature::is_plain;
use crate::sync::{prefetch_for_write, AtomicU64};
use crate::wait::{Interrupted, Waiter};
use lineweave_core::units::LINE;

/// Behaviour of a step that has to wait.
pub trait Patience {
    /// Reason why a step did not go on.
    type Stop: From<Interrupted>;

    /// Returns the waiter of the rank, which waits for flags, raises them and wakes peers.
    fn waiter(&self) -> &Waiter;

    /// Returns the failure detector, which watches over the peers.
    fn watch(&mut self) -> &mut FailureDetector;

    /// Raises a flag and wakes whoever sleeps on it.
    #[inline(always)]
    fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) {
        self.waiter().raise(flag, value, sleepers);
    }

    /// Adds `mark` to a counter and wakes whoever sleeps on it.
    #[inline(always)]
    fn add(&self, flag: &AtomicU64, mark: u64, sleepers: &AtomicU64) {
        self.waiter().add(flag, mark, sleepers);
    }

    /// Goes on when `flag` is at its goal; who raises it is `apart` or not (see [`Budget::apart`](crate::wait::Budget::apart)).
    fn wait_for(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        apart: bool,
    ) -> Result<(), Self::Stop>;

    /// As [`Patience::wait_for`], for a flag whose setter is not known to be apart.
    #[inline(always)]
    fn wait(&mut self, flag: &AtomicU64, goal: Goal, sleepers: &AtomicU64) -> Result<(), Self::Stop> {
        self.wait_for(flag, goal, sleepers, false)
    }

    /// Begins to reach other ranks' buffers, one of whose addresses was just taken; `known` is whether it was carried by this call.
    #[inline(always)]
    fn visit(&mut self, known: bool) -> Result<(), Self::Stop> {
        let visited = match known {
            true => self.watch().visit(),
            false => Err(self.watch().foreign_address()),
        };
        Ok(visited?)
    }
}

/// Waits, however long it takes.
#[derive(Debug)]
pub struct Blocking<'a> {
    /// See [`Patience::waiter`].
    pub waiter: &'a mut Waiter,
    /// See [`Patience::watch`].
    pub monitor: &'a mut FailureDetector,
}

impl Patience for Blocking<'_> {
    type Stop = Interrupted;

    #[inline(always)]
    fn waiter(&self) -> &Waiter {
        self.waiter
    }

    #[inline(always)]
    fn watch(&mut self) -> &mut FailureDetector {
        self.monitor
    }

    #[inline(always)]
    fn wait_for(
        &mut self,
        flag: &AtomicU64,
        goal: Goal,
        sleepers: &AtomicU64,
        apart: bool,
    ) -> Result<(), Interrupted> {
        self.waiter.wait_for(flag, goal, sleepers, self.monitor, apart)
    }
}

/// Never waits: a step that would have to is tried again later.
#[derive(Debug)]
pub struct Polling<'a> {
    /// See [`Patience::waiter`].
    pub waiter: &'a Waiter,
    /// See [`Patience::watch`].
    pub watch: &'a mut FailureDetector,
}

impl Patience for Polling<'_> {
    /// `None` where the step would have had to wait.
    type Stop = Option<Interrupted>;

    fn waiter(&self) -> &Waiter {
        self.waiter
    }

    fn watch(&mut self) -> &mut FailureDetector {
        self.watch
    }

    fn wait_for(&mut self, flag: &AtomicU64, goal: Goal, _: &AtomicU64, _: bool) -> Result<(), Self::Stop> {
        match goal.is_reached(flag) {
            true => Ok(()),
            false => Err(None),
        }
    }
}

/// Runs one rank's steps from number `from` on. Waiting steps have no side effects before the wait. The error carries the step
/// number, so execution can resume there.
///
/// # Safety
/// The bases of `in`, `out` and `acc` must be valid for the lengths that the plan declares, not be accessed by
/// anybody else meanwhile except as the plan says, and `out` and `acc` be writable. The plan must have been
/// proven, every rank of the segment must run it in the same order of calls, and `fold` must fit its grain. A run that
/// stopped goes on with the same frame and where it stopped.
#[inline(always)]
pub unsafe fn execute<P: Patience>(
    plan: &Compiled,
    from: usize,
    frame: &mut Frame<'_>,
    patience: &mut P,
) -> Result<(), (usize, P::Stop)> {
    for (number, step) in plan.steps.all[from..].iter().enumerate() {
        // SAFETY: passed on.
        if let Err(stop) = unsafe { one(plan, step, frame, patience) } {
            return Err((from + number, stop));
        }
    }
    Ok(())
}

/// Runs one step.
///
/// # Safety
/// The conditions of [`execute`].
#[inline(always)]
unsafe fn one<P: Patience>(
    plan: &Compiled,
    step: &Step,
    frame: &mut Frame<'_>,
    patience: &mut P,
) -> Result<(), P::Stop> {
    match *step {
        Step::Move { src, dst, len } => {
            // SAFETY: proven disjoint and in bounds; the caller vouches for the bases.
            unsafe { frame.transfer(src, dst, len) };
        }
        Step::Fold { a, b, dst, elements } => {
            // SAFETY: as above, and `dst` is disjoint from or equal to each operand.
            let done = unsafe { frame.fold.run(frame.at(a), frame.at(b), frame.at(dst), elements) };
            if !done {
                return Err(Interrupted.into());
            }
        }
        Step::FoldAll { number } => {
            // SAFETY: as above.
            if !unsafe { frame.combine_all(&plan.steps.chains[number as usize], plan.grain) } {
                return Err(Interrupted.into());
            }
        }
        Step::FoldTwice { number } => {
            // SAFETY: as above; the copy was proven disjoint.
            if !unsafe { frame.combine_twice(&plan.steps.doubles[number as usize], plan.grain) } {
                return Err(Interrupted.into());
            }
        }
        Step::CopyRemote { src, dst, len } => {
            // SAFETY: as above.
            if !unsafe { frame.reach(plan, src, dst, len) } {
                return Err(Interrupted.into());
            }
        }
        Step::ReduceRemote { a, b, dst, elements } => {
            // SAFETY: as above.
            if !unsafe { frame.combine(plan, a, b, dst, elements) } {
                return Err(Interrupted.into());
            }
        }
        Step::Set { at, home, value } => {
            patience.raise(frame.flag(at), frame.value(value), home.sleepers());
        }
        Step::SetBytes { at, home, value, src, len } => {
            // SAFETY: proven in bounds; the caller vouches for the base.
            let payload = unsafe { std::slice::from_raw_parts(frame.at(src), len as usize) };
            store_words(frame.payload(at, payload.len()), payload);
            patience.raise(frame.flag(at), frame.value(value), home.sleepers());
        }
        Step::SetAddress { at, home, value, base } => {
            let address = frame.bases[base as usize] as u64 ^ frame.key.of_addresses();
            // Relaxed: ordered by the raise below.
            frame.flag(at + 8).store(address, crate::sync::Ordering::Relaxed);
            patience.raise(frame.flag(at), frame.value(value), home.sleepers());
        }
        Step::SetPlace { at, home, value, base } => {
            let place = frame.heaps.place(frame.bases[base as usize]) ^ frame.key.of_addresses();
            // Relaxed: ordered by the raise below.
            frame.flag(at + 8).store(place, crate::sync::Ordering::Relaxed);
            patience.raise(frame.flag(at), frame.value(value), home.sleepers());
        }
        Step::PrefetchForWrite { at, lines } => {
            for line in 0..lines as usize {
                prefetch_for_write(frame.next.wrapping_add(at + line * LINE));
            }
        }
        Step::Wait { at, home, value, apart } => {
            patience.wait_for(frame.flag(at), frame.goal(value), home.sleepers(), apart)?;
        }
        Step::WaitEarlier { at, home, below, lag } => {
            if frame.earlier >= u64::from(lag) {
                let goal = Goal::of_call(frame.base.wrapping_sub(u64::from(below)));
                patience.wait(frame.flag(at), goal, home.sleepers())?;
            }
        }
        Step::WaitBytes { at, home, value, dst, len, apart } => {
            patience.wait_for(frame.flag(at), frame.goal(value), home.sleepers(), apart)?;
            // SAFETY: proven in bounds; the caller vouches for the base and that it is writable.
            let payload = unsafe { std::slice::from_raw_parts_mut(frame.at(dst), len as usize) };
            load_words(frame.payload(at, payload.len()), payload);
        }
        Step::WaitAddress { at, home, value, base } => {
            patience.wait(frame.flag(at), frame.goal(value), home.sleepers())?;
            // Relaxed: ordered by the wait above.
            let address = frame.flag(at + 8).load(crate::sync::Ordering::Relaxed) ^ frame.key.of_addresses();
            frame.bases[base as usize] = address as *mut u8;
            patience.visit(is_plain(address))?;
        }
        Step::WaitPlace { at, home, value, base, near, bytes } => {
            patience.wait(frame.flag(at), frame.goal(value), home.sleepers())?;
            // Relaxed: ordered by the wait above.
            let place = frame.flag(at + 8).load(crate::sync::Ordering::Relaxed) ^ frame.key.of_addresses();
            let found = frame.heaps.at_place(place, near, bytes);
            frame.bases[base as usize] = found.unwrap_or(std::ptr::null_mut());
            patience.visit(found.is_some())?;
        }
        Step::Add { at, home } => patience.add(frame.counter(at), frame.key.of_counters(), home.sleepers()),
        Step::WaitCount { at, home, each } => {
            let added = plan.counted[0].wrapping_add(frame.key.of_counters());
            let goal = Goal::exactly(added.wrapping_mul(u64::from(each)));
            patience.wait(frame.counter(at), goal, home.sleepers())?;
        }
    }
    Ok(())
}
