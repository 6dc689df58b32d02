//! Short paths: a call that was made last and comes again, without the general path.
//!
//! What lies between leaving one call and entering the next decides whether it costs one line transfer or two: in a
//! few nanoseconds the peer's poll takes the line that this rank is about to write. So a repeated call is
//! recognised by a few comparisons, its addresses are at hand, and nothing else is done. It runs the same plan on the same
//! flags. It is compiled into the caller, where type and operator are known; the general path is not.
//!
//! What it returns fits a register: whether it ran the call. Errors are long, so whoever called asks for one only then.

use super::{Engine, PlanId};
use crate::check::CallSpec;
use crate::compile::Home;
use crate::kernel::{word_fold, WordFold};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::Interrupted;

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
    fold: WordFold,
    /// Whether this rank's contribution is the left operand.
    left: bool,
}

impl Engine {
    /// Runs the barrier that was called last once more, if that is all there is to do: then it is true.
    #[inline(always)]
    pub(crate) fn repeat_barrier(&mut self) -> Result<bool, Interrupted> {
        if !self.hot.as_ref().is_some_and(|hot| hot.barrier) {
            return Ok(false);
        }
        self.repeat_exchange()
    }

    /// By reference throughout: copying the addresses about costs as much as the barrier may.
    #[inline(always)]
    pub(super) fn repeat_exchange(&mut self) -> Result<bool, Interrupted> {
        let Some(hot) = self.hot.as_ref() else { return Ok(false) };
        self.sequence += 1;
        // SAFETY: the sequence word, and flags of the bank that the plan stays in, in the segment that this
        // communicator keeps mapped.
        let (published, mine, theirs) = unsafe { (&*self.sequence_word, &*hot.mine, &*hot.theirs) };
        // Relaxed: as in `begin`.
        published.store(self.sequence, Ordering::Relaxed);
        let (value, wanted) = (self.base + hot.value, self.base + hot.wanted);
        let sleepers = hot.their_home.sleepers();
        self.base += hot.span;
        self.waiter.raise(mine, value, hot.home.sleepers());
        self.waiter.wait(theirs, wanted, sleepers, &mut self.watch)?;
        Ok(true)
    }

    /// Prepares [`Engine::repeat_exchange`] after a run; `barrier` when it was called as one.
    #[inline(always)]
    pub(crate) fn keep_exchange(&mut self, barrier: bool) {
        let Some(stay) = self.stay else { return };
        let plan = &self.plans[stay.plan.0 as usize];
        let flag = |at: usize| stay.bank.wrapping_add(at).cast_const().cast::<AtomicU64>();
        self.hot = plan.exchange().map(|e| Hot {
            plan: stay.plan,
            barrier,
            mine: flag(e.at),
            home: e.home,
            value: u64::from(e.value),
            theirs: flag(e.other),
            their_home: e.theirs,
            wanted: u64::from(e.wanted),
            span: plan.span,
        });
    }

    /// Runs the allreduce that ran last once more, if it is a swap of payloads and its bank is free: then it is true.
    ///
    /// # Safety
    /// As for [`Engine::call`].
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap(
        &mut self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
    ) -> Result<bool, Interrupted> {
        let (Some(hot), Some(stay)) = (self.hot_swap.as_ref(), self.stay.as_mut()) else { return Ok(false) };
        let apart = (input as usize).abs_diff(output as usize);
        if hot.call != *call || (apart != 0 && apart < hot.bytes) {
            return Ok(false);
        }
        let generation = (stay.runs % 2) as usize;
        stay.runs += 1;
        self.sequence += 1;
        self.watch.operation = "allreduce";
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
        let (value, wanted) = (self.base + hot.value, self.base + hot.wanted);
        let sleepers = hot.their_home.sleepers();
        self.base += hot.span;
        self.waiter.raise(&mine[0], value, hot.home.sleepers());
        let other = self.waiter.wait_with_word(&theirs[0], &theirs[1], wanted, sleepers, &mut self.watch)?;
        let (a, b) = if hot.left { (own, other) } else { (other, own) };
        // SAFETY: the caller vouches for `output`.
        unsafe { write_word(output, (hot.fold)(a, b), hot.bytes) };
        Ok(true)
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
        let line =
            |at: usize| [0, compiled.generations].map(|g| stay.bank.wrapping_add(at + g).cast_const().cast());
        Some(HotSwap {
            call: *call,
            bytes: swap.bytes,
            mine: line(swap.at),
            home: swap.home,
            value: u64::from(swap.value),
            theirs: line(swap.other),
            their_home: swap.theirs,
            wanted: u64::from(swap.wanted),
            span: compiled.span,
            fold,
            left: swap.left,
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
