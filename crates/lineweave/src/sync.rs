//! The one file that names atomics.
//!
//! Everything above takes its atomics, fences and pauses from here, so that a build with `--cfg loom` checks the very
//! code that ships. The names are type aliases rather than re-exports: the lint that bars the originals
//! (`clippy.toml`) follows a re-export to its origin, but not an alias.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

#[cfg(loom)]
use loom::sync::atomic as origin;

#[cfg(not(loom))]
use core::sync::atomic as origin;

/// An atomic 64-bit word: flags, and the words of a payload beside one.
pub type AtomicU64 = origin::AtomicU64;

/// An atomic 32-bit word: what a futex sleeps on.
pub type AtomicU32 = origin::AtomicU32;

/// An atomic index or count in private memory.
pub type AtomicUsize = origin::AtomicUsize;

/// An atomic truth value.
pub type AtomicBool = origin::AtomicBool;

pub use origin::Ordering;

/// Order memory accesses without accessing memory.
#[inline(always)]
pub fn fence(order: Ordering) {
    origin::fence(order);
}

/// Tell the CPU that this is a polling loop; under loom, let another thread run.
#[inline(always)]
pub fn spin_loop() {
    #[cfg(loom)]
    loom::hint::spin_loop();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}

/// Offer the CPU to whoever else can run.
#[inline]
pub fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}
