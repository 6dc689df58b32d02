//! Sleeping on a flag, and waking who sleeps there.

use crate::flag::{self, Goal, WakeFence};
use crate::sync::{AtomicU64, FutexWord};
use std::time::Duration;

/// Sleeps once while a flag is short of its goal, for `limit` at most.
pub(super) fn sleep(flag: &AtomicU64, goal: Goal, sleepers: &AtomicU64, order: WakeFence, limit: Duration) {
    flag::announce_sleeper(sleepers, order);
    let seen = flag::peek(flag);
    if !goal.is_met(seen) {
        sleep_on(flag, seen as u32, limit);
    }
    flag::retire_sleeper(sleepers);
}

/// Sleeps once while a word is what was `seen`, for `limit` at most, without carrying on anything else meanwhile.
pub fn sleep_while(word: &AtomicU64, seen: u64, sleepers: &AtomicU64, order: WakeFence, limit: Duration) {
    sleep(word, Goal::at_least(seen + 1), sleepers, order, limit);
}

/// Wakes whoever sleeps on a word that was raised.
pub fn wake_sleepers(word: &AtomicU64, sleepers: &AtomicU64, order: WakeFence) {
    if flag::has_sleepers(sleepers, order) {
        wake_all(word);
    }
}

/// The low half of a flag: growing flags differ in it unless 2^32 sets pass during one look, and sleeps are
/// bounded besides.
fn futex_word(flag: &AtomicU64) -> &FutexWord {
    let low = std::ptr::from_ref(flag).cast::<FutexWord>();
    let low = if cfg!(target_endian = "big") { low.wrapping_add(1) } else { low };
    // SAFETY: half of a live atomic word, aligned for 32 bits; the kernel and this crate only ever use
    // atomic accesses on it, and user code never loads or stores through the half.
    unsafe { &*low }
}

fn wake_all(flag: &AtomicU64) {
    // A failure means that nobody sleeps there.
    let _ =
        rustix::thread::futex::wake(futex_word(flag), rustix::thread::futex::Flags::empty(), i32::MAX as u32);
}

fn sleep_on(flag: &AtomicU64, seen: u32, limit: Duration) {
    let limit = rustix::thread::Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()) as _,
    };
    // Every outcome (woken, changed, timed out, interrupted) leads to another look at the flag.
    let _ = rustix::thread::futex::wait(
        futex_word(flag),
        rustix::thread::futex::Flags::empty(),
        seen,
        Some(&limit),
    );
}
