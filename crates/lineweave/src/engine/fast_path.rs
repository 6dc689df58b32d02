//! The cached state by which the previous call is repeated.

use crate::call::CallSpec;
use crate::compile::{PlanId, SleeperCounter};
use crate::kernel::WordFold;
use crate::signature::CallSignature;
use crate::sync::AtomicU64;
use std::num::NonZeroU64;

/// The previous call, where it can be repeated.
#[derive(Debug, Default)]
pub(super) struct FastPath {
    /// Set while the plan that stays is a two-rank barrier, last called as such.
    pub exchange: Option<CachedBarrier>,
    /// Set while the last allreduce was a swap of payloads.
    pub swap: Option<CachedSmallAllreduce>,
}

/// The result of trying to repeat the previous call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FastPathResult {
    /// The call is complete.
    Done,
    /// The call differs from the previous one: nothing was done.
    Other,
    /// The call has begun; the caller has to wait for its end.
    Waits,
}

/// An exchange of two flags in the bank where it ran last: the two-rank barrier is one store and one wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedBarrier {
    pub plan: PlanId,
    /// True if it is what `barrier` runs.
    pub barrier: bool,
    pub mine: *const AtomicU64,
    pub home: SleeperCounter,
    pub value: u64,
    pub theirs: *const AtomicU64,
    pub their_home: SleeperCounter,
    pub wanted: u64,
    pub span: u64,
    pub signature: CallSignature,
}

/// A swap of payloads of a word at most in the bank where it ran last: the small allreduce of two ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedSmallAllreduce {
    pub call: CallSpec,
    pub bytes: usize,
    /// The flag to raise, the payload's word behind it, by generation.
    pub mine: [*const [AtomicU64; 2]; 2],
    pub home: SleeperCounter,
    pub value: u64,
    /// The peer's flag, the payload's word behind it, by generation.
    pub theirs: [*const [AtomicU64; 2]; 2],
    pub their_home: SleeperCounter,
    pub wanted: u64,
    pub span: u64,
    pub signature: CallSignature,
    pub fold: WordFold,
    /// True if this rank's contribution is the left operand.
    pub left: bool,
    /// The number of the call that prepared it, which no other has.
    pub ticket: NonZeroU64,
}

impl CachedSmallAllreduce {
    /// Combines both contributions.
    ///
    /// # Safety
    /// `output` must be valid for writes of the payload's length.
    #[inline(always)]
    pub unsafe fn give(&self, own: u64, other: u64, output: *mut u8) {
        let (a, b) = if self.left { (own, other) } else { (other, own) };
        // SAFETY: the caller's.
        unsafe { write_word(output, (self.fold)(a, b), self.bytes) };
    }
}

/// The first `bytes` bytes, 8 at most, in the low addresses of a word; zeros behind them. The usual lengths go through a register: a
/// word that is put together in memory waits for its parts to arrive there.
///
/// # Safety
/// `from` must be valid for reads of as many.
#[inline(always)]
pub(super) unsafe fn read_word(from: *const u8, bytes: usize) -> u64 {
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

/// Writes the first `bytes` bytes of a word, 8 at most, in its low addresses: the inverse of [`read_word`].
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
