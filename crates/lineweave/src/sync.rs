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

use std::time::{Duration, Instant};

/// An atomic 64-bit word: flags, and the words of a payload beside one.
pub type AtomicU64 = origin::AtomicU64;

/// A 64-bit count that is nobody's to wait for, and may be static: loom's words may not.
pub type Count = core::sync::atomic::AtomicU64;

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

/// Let earlier loads finish before anything later begins: a poll behind it is not issued over and over while the
/// last one is under way. Where the CPU has no such instruction, or under loom, as [`spin_loop`].
#[inline(always)]
pub fn load_fence() {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: every 64-bit x86 CPU has the instruction.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    spin_loop();
}

/// Returns whether [`load_fence`] is that.
pub fn has_load_fence() -> bool {
    cfg!(all(target_arch = "x86_64", not(loom)))
}

/// Returns whether the CPU has [`prefetch_for_write`] (CPUID 8000_0001 ECX bit 8).
pub fn has_prefetch_for_write() -> bool {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        use core::arch::x86_64::__cpuid;
        // A virtual machine is left for each CPUID, and every communicator asks.
        static HAS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *HAS.get_or_init(|| {
            __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).ecx & (1 << 8) != 0
        })
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    false
}

/// Ask for the line at `at`, to write it soon: a hint, for where [`has_prefetch_for_write`]. Nothing happens at an address that is not mapped.
#[inline(always)]
pub fn prefetch_for_write(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: a hint, which faults at no address and changes no byte; whoever calls has seen that the CPU has it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = at;
}

/// Offer the CPU to whoever else can run.
#[inline]
pub fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// Order memory accesses for the compiler only.
#[inline(always)]
pub fn compiler_fence() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst); // SYNC: sleepers
}

/// The kernel's view of half a flag, for futex calls.
pub type FutexWord = core::sync::atomic::AtomicU32;

/// Sleeps for so long. The standard library's own panics where a sandbox refuses `clock_nanosleep`.
pub fn sleep(time: Duration) {
    use rustix::event::Timespec;
    use rustix::thread::{nanosleep, NanosleepRelativeResult};
    let began = Instant::now();
    while let Some(left) = time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()) {
        // No time is too long for the kernel's form of it.
        let left = Timespec::try_from(left).unwrap_or_default();
        if matches!(nanosleep(&left), NanosleepRelativeResult::Err(_)) {
            yield_now();
        }
    }
}

/// A fence on every CPU that runs a process registered for it (see [`register_membarrier`]).
pub fn membarrier() {
    use rustix::thread::{membarrier, MembarrierCommand as Command};
    // The first may lack memory for a moment (ENOMEM); the second takes milliseconds and needs none.
    if membarrier(Command::GlobalExpedited).or_else(|_| membarrier(Command::Global)).is_err() {
        // A sandbox that came after the registration. No CPU keeps a store to itself for so long.
        sleep(Duration::from_millis(1));
    }
}

/// Registers this process for [`membarrier`]; whether the kernel offers it.
pub fn register_membarrier() -> bool {
    use rustix::thread::MembarrierCommand as Command;
    let offered = rustix::thread::membarrier_query();
    offered.contains_command(Command::GlobalExpedited)
        && offered.contains_command(Command::RegisterGlobalExpedited)
        && rustix::thread::membarrier(Command::RegisterGlobalExpedited).is_ok()
}
