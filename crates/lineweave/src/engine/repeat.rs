//! Short paths: a call that was made last and comes again, without the general path.
//!
//! What lies between leaving one call and entering the next decides whether it costs one line transfer or two: in a
//! few nanoseconds the peer's poll takes the line that this rank is about to write. So a repeated call is
//! recognised by a few comparisons, its addresses are at hand, and nothing else is done. It runs the same plan on the same
//! flags. It is compiled into the caller, where type and operator are known; the general path is not.
//!
//! It is straight code: what it returns fits a register, and a wait that is not over in a moment, or a peer to be woken, is left to
//! a function of its own. A call further in would have the caller save registers each time.

use super::fast_path::{read_word, CachedBarrier, CachedSmallAllreduce, FastPathResult};
use super::run::Buffers;
use super::state::Engine;
use crate::call::CallSpec;
use crate::compile::{MessageSpan, PlanId};
use crate::error::Error;
use crate::flag::Goal;
use crate::kernel::word_fold;
use crate::signature::CallSignature;
use crate::sync::{load_fence, spin_loop, AtomicU64, Ordering};
use crate::wait::Between;
use std::num::NonZeroU64;

impl Engine {
    /// Runs a prepared plan once, as a call of its own.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`]; the communicator cannot be used after one.
    ///
    /// # Safety
    /// The buffers must be valid for the lengths the plan gives this rank and not be used by anybody else
    /// meanwhile, `fold` must fit the plan's grain, and every rank must run the same plans in the same order.
    #[inline]
    pub unsafe fn run(&mut self, plan: PlanId, buffers: Buffers) -> Result<(), Error> {
        if self.repeat.exchange.as_ref().is_some_and(|hot| hot.plan == plan) {
            match self.repeat_exchange(self.between()) {
                FastPathResult::Done => return Ok(()),
                FastPathResult::Waits => return self.end_exchange(),
                FastPathResult::Other => {}
            }
        }
        let signature = CallSignature::plan(self.plans[plan].digest);
        self.begin("a plan", signature)?;
        // SAFETY: passed on.
        unsafe { self.run_window(plan, MessageSpan::NONE, buffers) }?;
        self.end();
        self.keep_exchange(false);
        Ok(())
    }

    /// Makes the barrier that was called last once more; [`Engine::end_exchange`] ends it if it waits. `between` lies between looks.
    #[inline(always)]
    pub(crate) fn repeat_barrier(&mut self, between: Between) -> FastPathResult {
        if !self.repeat.exchange.as_ref().is_some_and(|hot| hot.barrier) {
            return FastPathResult::Other;
        }
        self.repeat_exchange(between)
    }

    /// Runs the prepared exchange once more. Its addresses are used by reference throughout: copying them about costs as much as the
    /// barrier may.
    #[inline(always)]
    pub(super) fn repeat_exchange(&mut self, between: Between) -> FastPathResult {
        let Some(hot) = self.repeat.exchange.as_ref() else { return FastPathResult::Other };
        if self.health.is_inherited() {
            return FastPathResult::Other;
        }
        self.calls.count();
        // SAFETY: flags of the bank that the plan stays in, in the segment that this communicator keeps mapped.
        let (mine, theirs) = unsafe { (&*hot.mine, &*hot.theirs) };
        let (value, wanted) =
            (self.calls.base.wrapping_add(hot.value), self.calls.base.wrapping_add(hot.wanted));
        self.calls.base += hot.span;
        let sleeps = self.transport.waiter.p2p(mine, value, hot.home.sleepers());
        // While the line is under way.
        self.calls.publish(hot.signature);
        if sleeps {
            return FastPathResult::Waits;
        }
        let look = || Goal::of_call(wanted).is_reached(theirs).then_some(());
        let seen = match between {
            Between::Pause => self.transport.waiter.glance(look, spin_loop),
            Between::LoadFence => self.transport.waiter.glance(look, load_fence),
        };
        if seen.is_some() {
            FastPathResult::Done
        } else {
            FastPathResult::Waits
        }
    }

    /// Ends an exchange that [`Engine::repeat_exchange`] began.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`].
    #[cold]
    #[inline(never)]
    pub(crate) fn end_exchange(&mut self) -> Result<(), Error> {
        let Some(hot) = self.repeat.exchange.as_ref() else { return Ok(()) };
        // SAFETY: as in `repeat_exchange`.
        let (mine, theirs) = unsafe { (&*hot.mine, &*hot.theirs) };
        let wanted = Goal::of_call((self.calls.base - hot.span).wrapping_add(hot.wanted));
        let sleepers = hot.their_home.sleepers();
        self.transport.waiter.wake(mine, hot.home.sleepers());
        self.transport
            .waiter
            .wait_for(theirs, wanted, sleepers, &mut self.transport.watch, false)
            .map_err(|i| self.interrupted(i))
    }

    /// Prepares [`Engine::repeat_exchange`] after a run; `barrier` when it was called as one.
    #[inline(always)]
    pub(crate) fn keep_exchange(&mut self, barrier: bool) {
        let Some(residency) = self.banks.residency else { return };
        let plan = &self.plans[residency.plan];
        let key = self.calls.key(plan.digest).of_flags();
        let flag = |at: usize| residency.bank.wrapping_add(at).cast_const().cast::<AtomicU64>();
        self.repeat.exchange = plan.exchange().map(|e| CachedBarrier {
            plan: residency.plan,
            barrier,
            mine: flag(e.at),
            home: e.home,
            value: key + u64::from(e.value),
            theirs: flag(e.other),
            their_home: e.theirs,
            wanted: key + u64::from(e.wanted),
            span: plan.span,
            signature: self.calls.signature,
        });
    }

    /// Makes the allreduce that ran last once more, if it is a swap of payloads and its bank is free; [`Engine::end_swap`] ends
    /// it if it waits. `is_last` tells whether that one is meant.
    ///
    /// # Safety
    /// The conditions of [`Engine::call`].
    #[inline(always)]
    unsafe fn repeat_swap_if(
        &mut self,
        is_last: impl FnOnce(&CachedSmallAllreduce) -> bool,
        input: *const u8,
        output: *mut u8,
    ) -> FastPathResult {
        let (Some(hot), Some(residency)) = (self.repeat.swap.as_ref(), self.banks.residency.as_mut()) else {
            return FastPathResult::Other;
        };
        let apart = (input as usize).abs_diff(output as usize);
        if !is_last(hot) || (apart != 0 && apart < hot.bytes) || self.health.is_inherited() {
            return FastPathResult::Other;
        }
        let generation = (residency.runs % 2) as usize;
        residency.runs += 1;
        self.calls.count();
        // SAFETY: flags and the words behind them of the bank that the plan stays in, in the segment that this communicator
        // keeps mapped.
        let (mine, theirs) = unsafe { (&*hot.mine[generation], &*hot.theirs[generation]) };
        // SAFETY: the caller vouches for `input`.
        let own = unsafe { read_word(input, hot.bytes) };
        // Relaxed: published with the flag.
        mine[1].store(own, Ordering::Relaxed);
        let (value, wanted) =
            (self.calls.base.wrapping_add(hot.value), self.calls.base.wrapping_add(hot.wanted));
        self.calls.base += hot.span;
        let sleeps = self.transport.waiter.p2p(&mine[0], value, hot.home.sleepers());
        // While the line is under way.
        self.calls.publish(hot.signature);
        if sleeps {
            return FastPathResult::Waits;
        }
        // Every look loads the word as well: the peer may take the line for its next set as soon as this rank's own is out, and
        // a load after the look would then fetch it back. A load fence between looks loses here (docs/explanation/findings.md).
        let look = || {
            let reached = Goal::of_call(wanted).is_reached(&theirs[0]);
            // Relaxed: ordered after the acquire of the flag.
            let word = theirs[1].load(Ordering::Relaxed);
            reached.then_some(word)
        };
        match self.transport.waiter.glance(look, spin_loop) {
            Some(other) => {
                // SAFETY: the caller vouches for `output`.
                unsafe { hot.give(own, other, output) };
                FastPathResult::Done
            }
            None => FastPathResult::Waits,
        }
    }

    /// The allreduce `call`, if it is the one that ran last.
    ///
    /// # Safety
    /// The conditions of [`Engine::call`].
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap(
        &mut self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
    ) -> FastPathResult {
        // SAFETY: passed on.
        unsafe { self.repeat_swap_if(|hot| hot.call == *call, input, output) }
    }

    /// As [`Engine::repeat_swap`], for a caller that has the ticket of the call, which is compared sooner.
    ///
    /// # Safety
    /// The conditions of [`Engine::call`] with the call that the ticket is of.
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap_of(
        &mut self,
        ticket: NonZeroU64,
        input: *const u8,
        output: *mut u8,
    ) -> FastPathResult {
        // SAFETY: passed on.
        unsafe { self.repeat_swap_if(|hot| hot.ticket == ticket, input, output) }
    }

    /// Returns the ticket by which [`Engine::repeat_swap_of`] knows `call` while it is the allreduce that ran last.
    pub(crate) fn swap_ticket(&self, call: &CallSpec) -> Option<NonZeroU64> {
        self.repeat.swap.as_ref().filter(|hot| hot.call == *call).map(|hot| hot.ticket)
    }

    /// Ends a swap that [`Engine::repeat_swap`] began with this output.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`].
    ///
    /// # Safety
    /// The conditions of [`Engine::call`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn end_swap(&mut self, output: *mut u8) -> Result<(), Error> {
        let (Some(hot), Some(residency)) = (self.repeat.swap.as_ref(), self.banks.residency.as_ref()) else {
            return Ok(());
        };
        let generation = ((residency.runs - 1) % 2) as usize;
        // SAFETY: as in `repeat_swap_if`.
        let (mine, theirs) = unsafe { (&*hot.mine[generation], &*hot.theirs[generation]) };
        let wanted = Goal::of_call((self.calls.base - hot.span).wrapping_add(hot.wanted));
        let sleepers = hot.their_home.sleepers();
        self.transport.watch.operation = "allreduce";
        self.transport.waiter.wake(&mine[0], hot.home.sleepers());
        let waited =
            self.transport.waiter.wait_for(&theirs[0], wanted, sleepers, &mut self.transport.watch, false);
        // Relaxed: the own word, and one that is ordered after the acquire of its flag.
        let [own, other] = [mine, theirs].map(|line| line[1].load(Ordering::Relaxed));
        if let Err(interrupted) = waited {
            return Err(self.interrupted(interrupted));
        }
        // SAFETY: the caller vouches for `output`.
        unsafe { hot.give(own, other, output) };
        Ok(())
    }

    /// Prepares [`Engine::repeat_swap`] after a call that ran `plan` alone.
    pub(crate) fn keep_swap(&mut self, call: &CallSpec, plan: PlanId) {
        self.repeat.swap = self.hot_swap_of(call, plan);
    }

    fn hot_swap_of(&self, call: &CallSpec, plan: PlanId) -> Option<CachedSmallAllreduce> {
        let residency = self.banks.residency.filter(|residency| residency.plan == plan)?;
        let compiled = &self.plans[plan];
        let swap = compiled.swap()?;
        let fold = word_fold(call.operator?, call.element)?;
        let key = self.calls.key(compiled.digest).of_flags();
        let line = |at: usize| {
            [0, compiled.need.generations].map(|g| residency.bank.wrapping_add(at + g).cast_const().cast())
        };
        Some(CachedSmallAllreduce {
            call: *call,
            bytes: swap.bytes,
            mine: line(swap.at),
            home: swap.home,
            value: key + u64::from(swap.value),
            theirs: line(swap.other),
            their_home: swap.theirs,
            wanted: key + u64::from(swap.wanted),
            span: compiled.span,
            signature: self.calls.signature,
            fold,
            left: swap.left,
            ticket: NonZeroU64::new(self.calls.sequence)?,
        })
    }
}
