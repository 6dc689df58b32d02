//! Short paths: a call that was made last and comes again, without the general path.
//!
//! What lies between leaving one call and entering the next decides whether it costs one line transfer or two: in a
//! few nanoseconds the peer's poll takes the line that this rank is about to write. So a repeated call is
//! recognised by a few comparisons, its addresses are at hand, and nothing else is done. It runs the same plan on the same
//! flags. It is compiled into the caller, where type and operator are known; the general path is not.
//!
//! It is straight code: what it returns fits a register, and a wait that is not over in a moment, or a peer to be woken, is left to
//! a function of its own. A call further in would have the caller save registers each time.

use super::engine::publish;
use super::{Engine, PlanId};
use crate::called::{Called, Key};
use crate::check::CallSpec;
use crate::compile::Home;
use crate::error::Error;
use crate::flag::Goal;
use crate::kernel::{word_fold, WordFold};
use crate::process::forks;
use crate::sync::{load_fence, spin_loop, AtomicU64, Ordering};
use crate::wait::Between;
use std::num::NonZeroU64;

/// How far a call came as the last one again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// It is over.
    Done,
    /// It is another call than the last one: nothing was done.
    Other,
    /// It has begun, and is to be ended by waiting.
    Waits,
}

/// An exchange of two flags in the bank where it ran last: the two-rank barrier is one store and one wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hot {
    pub plan: PlanId,
    /// Whether it is what `barrier` runs.
    barrier: bool,
    mine: *const AtomicU64,
    home: Home,
    value: u64,
    theirs: *const AtomicU64,
    their_home: Home,
    wanted: u64,
    span: u64,
    called: Called,
}

/// A swap of payloads of a word at most in the bank where it ran last: the small allreduce of two ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct HotSwap {
    call: CallSpec,
    bytes: usize,
    /// The flag to raise, the payload's word behind it, by generation.
    mine: [*const [AtomicU64; 2]; 2],
    home: Home,
    value: u64,
    /// The peer's.
    theirs: [*const [AtomicU64; 2]; 2],
    their_home: Home,
    wanted: u64,
    span: u64,
    called: Called,
    fold: WordFold,
    /// Whether this rank's contribution is the left operand.
    left: bool,
    /// The number of the call that prepared it, which no other has.
    ticket: NonZeroU64,
}

impl HotSwap {
    /// Combines both contributions.
    ///
    /// # Safety
    /// `output` must be valid for writes of the payload's length.
    #[inline(always)]
    unsafe fn give(&self, own: u64, other: u64, output: *mut u8) {
        let (a, b) = if self.left { (own, other) } else { (other, own) };
        // SAFETY: the caller's.
        unsafe { write_word(output, (self.fold)(a, b), self.bytes) };
    }
}

impl Engine {
    /// Makes the barrier that was called last once more; [`Engine::end_exchange`] ends it if it waits. `between` lies between looks.
    #[inline(always)]
    pub(crate) fn repeat_barrier(&mut self, between: Between) -> Again {
        if !self.hot.as_ref().is_some_and(|hot| hot.barrier) {
            return Again::Other;
        }
        self.repeat_exchange(between)
    }

    /// By reference throughout: copying the addresses about costs as much as the barrier may.
    #[inline(always)]
    pub(super) fn repeat_exchange(&mut self, between: Between) -> Again {
        let Some(hot) = self.hot.as_ref() else { return Again::Other };
        if self.forks != forks() {
            return Again::Other;
        }
        self.sequence += 1;
        // SAFETY: the sequence word, and flags of the bank that the plan stays in, in the segment that this
        // communicator keeps mapped.
        let (published, mine, theirs) = unsafe { (&*self.sequence_word, &*hot.mine, &*hot.theirs) };
        // Relaxed: as in `begin`.
        published.store(self.sequence, Ordering::Relaxed);
        let (value, wanted) = (self.base.wrapping_add(hot.value), self.base.wrapping_add(hot.wanted));
        self.base += hot.span;
        let sleeps = self.waiter.post(mine, value, hot.home.sleepers());
        // While the line is under way.
        // SAFETY: words of the segment.
        unsafe { publish(hot.called, self.called_words, self.sequence) };
        if sleeps {
            return Again::Waits;
        }
        let look = || Goal::of_call(wanted).is_reached(theirs).then_some(());
        let seen = match between {
            Between::Pause => self.waiter.glance(look, spin_loop),
            Between::LoadFence => self.waiter.glance(look, load_fence),
        };
        if seen.is_some() {
            Again::Done
        } else {
            Again::Waits
        }
    }

    /// Ends an exchange that [`Engine::repeat_exchange`] began.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`].
    #[cold]
    #[inline(never)]
    pub(crate) fn end_exchange(&mut self) -> Result<(), Error> {
        let Some(hot) = self.hot.as_ref() else { return Ok(()) };
        // SAFETY: as in `repeat_exchange`.
        let (mine, theirs) = unsafe { (&*hot.mine, &*hot.theirs) };
        let wanted = Goal::of_call((self.base - hot.span).wrapping_add(hot.wanted));
        let sleepers = hot.their_home.sleepers();
        self.waiter.wake(mine, hot.home.sleepers());
        self.waiter
            .wait_for(theirs, wanted, sleepers, &mut self.watch, false)
            .map_err(|i| self.interrupted(i))
    }

    /// Prepares [`Engine::repeat_exchange`] after a run; `barrier` when it was called as one.
    #[inline(always)]
    pub(crate) fn keep_exchange(&mut self, barrier: bool) {
        let Some(stay) = self.stay else { return };
        let plan = &self.plans[stay.plan.0 as usize];
        let key = Key::new(self.history, plan.digest).of_flags();
        let flag = |at: usize| stay.bank.wrapping_add(at).cast_const().cast::<AtomicU64>();
        self.hot = plan.exchange().map(|e| Hot {
            plan: stay.plan,
            barrier,
            mine: flag(e.at),
            home: e.home,
            value: key + u64::from(e.value),
            theirs: flag(e.other),
            their_home: e.theirs,
            wanted: key + u64::from(e.wanted),
            span: plan.span,
            called: self.called,
        });
    }

    /// Makes the allreduce that ran last once more, if it is a swap of payloads and its bank is free; [`Engine::end_swap`] ends
    /// it if it waits. `is_last` tells whether that one is meant.
    ///
    /// # Safety
    /// As for [`Engine::call`].
    #[inline(always)]
    unsafe fn repeat_swap_if(
        &mut self,
        is_last: impl FnOnce(&HotSwap) -> bool,
        input: *const u8,
        output: *mut u8,
    ) -> Again {
        let (Some(hot), Some(stay)) = (self.hot_swap.as_ref(), self.stay.as_mut()) else {
            return Again::Other;
        };
        let apart = (input as usize).abs_diff(output as usize);
        if !is_last(hot) || (apart != 0 && apart < hot.bytes) || self.forks != forks() {
            return Again::Other;
        }
        let generation = (stay.runs % 2) as usize;
        stay.runs += 1;
        self.sequence += 1;
        // SAFETY: the sequence word, and flags and the words behind them of the bank that the plan stays in, in
        // the segment that this communicator keeps mapped.
        let (published, mine, theirs) =
            unsafe { (&*self.sequence_word, &*hot.mine[generation], &*hot.theirs[generation]) };
        // Relaxed: as in `begin`.
        published.store(self.sequence, Ordering::Relaxed);
        // SAFETY: the caller vouches for `input`.
        let own = unsafe { read_word(input, hot.bytes) };
        // Relaxed: published with the flag.
        mine[1].store(own, Ordering::Relaxed);
        let (value, wanted) = (self.base.wrapping_add(hot.value), self.base.wrapping_add(hot.wanted));
        self.base += hot.span;
        let sleeps = self.waiter.post(&mine[0], value, hot.home.sleepers());
        // While the line is under way.
        // SAFETY: words of the segment.
        unsafe { publish(hot.called, self.called_words, self.sequence) };
        if sleeps {
            return Again::Waits;
        }
        // Every look loads the word as well: the peer may take the line for its next set as soon as this rank's own is out, and
        // a load after the look would then fetch it back. A load fence between looks loses here (docs/findings.md).
        let look = || {
            let reached = Goal::of_call(wanted).is_reached(&theirs[0]);
            // Relaxed: ordered after the acquire of the flag.
            let word = theirs[1].load(Ordering::Relaxed);
            reached.then_some(word)
        };
        match self.waiter.glance(look, spin_loop) {
            Some(other) => {
                // SAFETY: the caller vouches for `output`.
                unsafe { hot.give(own, other, output) };
                Again::Done
            }
            None => Again::Waits,
        }
    }

    /// The allreduce `call`, if it is the one that ran last.
    ///
    /// # Safety
    /// As for [`Engine::call`].
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Again {
        // SAFETY: passed on.
        unsafe { self.repeat_swap_if(|hot| hot.call == *call, input, output) }
    }

    /// The same for who has the ticket of the call, which is compared sooner.
    ///
    /// # Safety
    /// As for [`Engine::call`] with the call that the ticket is of.
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap_of(
        &mut self,
        ticket: NonZeroU64,
        input: *const u8,
        output: *mut u8,
    ) -> Again {
        // SAFETY: passed on.
        unsafe { self.repeat_swap_if(|hot| hot.ticket == ticket, input, output) }
    }

    /// What [`Engine::repeat_swap_of`] knows `call` by while it is the allreduce that ran last.
    pub(crate) fn swap_ticket(&self, call: &CallSpec) -> Option<NonZeroU64> {
        self.hot_swap.as_ref().filter(|hot| hot.call == *call).map(|hot| hot.ticket)
    }

    /// Ends a swap that [`Engine::repeat_swap`] began with this output.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`].
    ///
    /// # Safety
    /// As for [`Engine::call`].
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn end_swap(&mut self, output: *mut u8) -> Result<(), Error> {
        let (Some(hot), Some(stay)) = (self.hot_swap.as_ref(), self.stay.as_ref()) else { return Ok(()) };
        let generation = ((stay.runs - 1) % 2) as usize;
        // SAFETY: as in `repeat_swap_if`.
        let (mine, theirs) = unsafe { (&*hot.mine[generation], &*hot.theirs[generation]) };
        let wanted = Goal::of_call((self.base - hot.span).wrapping_add(hot.wanted));
        let sleepers = hot.their_home.sleepers();
        self.watch.operation = "allreduce";
        self.waiter.wake(&mine[0], hot.home.sleepers());
        let waited = self.waiter.wait_for(&theirs[0], wanted, sleepers, &mut self.watch, false);
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
        self.hot_swap = self.hot_swap_of(call, plan);
    }

    fn hot_swap_of(&self, call: &CallSpec, plan: PlanId) -> Option<HotSwap> {
        let stay = self.stay.filter(|stay| stay.plan == plan)?;
        let compiled = &self.plans[plan.0 as usize];
        let swap = compiled.swap()?;
        let fold = word_fold(call.operator?, call.element)?;
        let key = Key::new(self.history, compiled.digest).of_flags();
        let line =
            |at: usize| [0, compiled.generations].map(|g| stay.bank.wrapping_add(at + g).cast_const().cast());
        Some(HotSwap {
            call: *call,
            bytes: swap.bytes,
            mine: line(swap.at),
            home: swap.home,
            value: key + u64::from(swap.value),
            theirs: line(swap.other),
            their_home: swap.theirs,
            wanted: key + u64::from(swap.wanted),
            span: compiled.span,
            called: self.called,
            fold,
            left: swap.left,
            ticket: NonZeroU64::new(self.sequence)?,
        })
    }
}

/// The first `bytes` bytes, 8 at most, in the low addresses of a word; zeros behind them. The usual lengths go through a register: a
/// word that is put together in memory waits for its parts to arrive there.
///
/// # Safety
/// `from` must be valid for reads of as many.
#[inline(always)]
unsafe fn read_word(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's, and a word has 8 bytes.
    unsafe {
        if bytes == 8 {
            return from.cast::<u64>().read_unaligned();
        }
        if bytes == 4 && cfg!(target_endian = "little") {
            return u64::from(from.cast::<u32>().read_unaligned());
        }
        let mut word = [0; 8];
        from.copy_to_nonoverlapping(word.as_mut_ptr(), bytes);
        u64::from_ne_bytes(word)
    }
}

/// The other way.
///
/// # Safety
/// `to` must be valid for writes of `bytes` bytes, 8 at most.
#[inline(always)]
unsafe fn write_word(to: *mut u8, word: u64, bytes: usize) {
    // SAFETY: the caller's, and a word has 8 bytes.
    unsafe {
        if bytes == 8 {
            return to.cast::<u64>().write_unaligned(word);
        }
        if bytes == 4 && cfg!(target_endian = "little") {
            return to.cast::<u32>().write_unaligned(word as u32);
        }
        let word = word.to_ne_bytes();
        word.as_ptr().copy_to_nonoverlapping(to, bytes);
    }
}
