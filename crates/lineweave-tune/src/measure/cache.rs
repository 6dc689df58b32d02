//! Operations of a probe on single lines: hints and evictions, where the CPU has them.

#[cfg(target_arch = "x86_64")]
mod arch {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_clflush, _mm_lfence, _mm_mfence, _rdtsc};

    /// True if lines can be evicted from every cache.
    pub const FLUSHES: bool = true;

    /// Evicts the line at `at` from every cache.
    ///
    /// # Safety
    /// `at` must be readable.
    pub unsafe fn flush(at: *const u8) {
        // SAFETY: the caller's; SSE2 is part of x86-64.
        unsafe { _mm_clflush(at) }
    }

    /// Ends when evictions and stores before it are done.
    pub fn settle() {
        // SAFETY: SSE2 is part of x86-64; no memory is touched.
        unsafe { _mm_mfence() }
    }

    /// Lets nothing after it start before everything before it is done: transfers that an engine would wait
    /// for one by one shall not overlap in a loop.
    #[inline(always)]
    pub fn serialize() {
        // SAFETY: SSE2 is part of x86-64; no memory is touched.
        unsafe { _mm_lfence() }
    }

    fn feature7(bit: u32) -> bool {
        __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx & (1 << bit) != 0
    }

    /// CPUID 7 ECX bit 25.
    pub fn has_cldemote() -> bool {
        feature7(25)
    }

    /// CPUID 7 ECX bit 5.
    pub fn has_umwait() -> bool {
        feature7(5)
    }

    #[inline(always)]
    pub fn cldemote(at: *const u8) {
        // SAFETY: a hint; no address faults. `cldemote [rax]` by its bytes, a no-op where it is not known.
        unsafe { asm!(".byte 0x0f, 0x1c, 0x00", in("rax") at, options(nostack, preserves_flags)) }
    }

    /// Watches the line at `at`; [`umwait`] then ends when it is written.
    #[inline(always)]
    pub fn umonitor(at: *const u8) {
        // SAFETY: `umonitor rax` by its bytes; used where `has_umwait`, on readable memory.
        unsafe { asm!(".byte 0xf3, 0x0f, 0xae, 0xf0", in("rax") at, options(nostack, preserves_flags)) }
    }

    #[inline(always)]
    pub fn umwait() {
        // A limit of some 10 us, in case the write came before.
        // SAFETY: the counter exists on every x86-64 CPU.
        let limit = unsafe { _rdtsc() } + 30_000;
        // SAFETY: `umwait ecx` by its bytes, with the shallow state C0.1; used where `has_umwait`.
        unsafe {
            asm!(".byte 0xf2, 0x0f, 0xae, 0xf1", in("ecx") 1u32, in("edx") (limit >> 32) as u32,
                 in("eax") limit as u32, options(nostack));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod arch {
    pub const FLUSHES: bool = false;

    /// # Safety
    /// None: it does nothing.
    pub unsafe fn flush(_: *const u8) {}
    pub fn settle() {}
    #[inline(always)]
    pub fn serialize() {
        // The clock and the fence of a full barrier are the portable way to end what came before.
        lineweave::sync::fence(lineweave::sync::Ordering::SeqCst); // SYNC: sleepers (its order is not relied on)
    }
    pub fn has_cldemote() -> bool {
        false
    }
    pub fn has_umwait() -> bool {
        false
    }
    pub fn cldemote(_: *const u8) {}
    pub fn umonitor(_: *const u8) {}
    pub fn umwait() {}
}

pub use arch::{cldemote, flush, has_cldemote, has_umwait, serialize, settle, umonitor, umwait, FLUSHES};
