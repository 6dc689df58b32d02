//! Levels of vector width: a kernel is compiled once per level and the CPU picks, once, at run time.
//!
//! The levels hold plain loops that the compiler vectorises; only f16 folds and non-temporal stores name
//! instructions. Clones are generic functions with a `target_feature` each, so choosing one yields an ordinary
//! function pointer and the hot path has no dispatch left (a dispatcher inside the function, as the `multiversion`
//! crate builds, would cost an atomic load and a second indirect jump per fold).

use std::fmt;

/// A set of vector instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Instructions that every CPU of this architecture has: SSE2 on x86-64, NEON on AArch64.
    Baseline,
    /// AVX2 with F16C: 32-byte vectors (x86-64-v3).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL: 64-byte vectors (x86-64-v4).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// The levels this CPU and its operating system support, narrowest first; never empty.
    pub fn available() -> Vec<Level> {
        #[cfg(target_arch = "x86_64")]
        {
            let levels = [Level::Baseline, Level::Avx2, Level::Avx512];
            levels.into_iter().filter(|level| level.supported()).collect()
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            vec![Level::Baseline]
        }
    }

    /// The widest level this CPU supports.
    pub fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            match () {
                () if Level::Avx512.supported() => Level::Avx512,
                () if Level::Avx2.supported() => Level::Avx2,
                () => Level::Baseline,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            Level::Baseline
        }
    }

    /// Returns whether this CPU can run it.
    pub fn supported(self) -> bool {
        match self {
            Level::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c"),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                Level::Avx2.supported()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            #[cfg(target_arch = "x86_64")]
            Level::Baseline => "sse2",
            #[cfg(not(target_arch = "x86_64"))]
            Level::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        })
    }
}

/// A function that resolves to `$each`, compiled for a level: all clones are one generic function inlined into another with the level's features.
macro_rules! at_levels {
    ($(#[$doc:meta])* $name:ident<$($generic:ident: $bound:path),*> -> $pointer:ty = $each:ident($($argument:ident: $type:ty),+)) => {
        $(#[$doc])*
        fn $name<$($generic: $bound),*>(level: Level) -> $pointer {
            // What the pointer's type asks for is the caller's to keep, and a level is only taken where the CPU supports it.
            unsafe fn baseline<$($generic: $bound),*>($($argument: $type),+) {
                // SAFETY: the caller's.
                unsafe { $each::<$($generic),*>($($argument),+) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c")]
            unsafe fn avx2<$($generic: $bound),*>($($argument: $type),+) {
                // SAFETY: the caller's.
                unsafe { $each::<$($generic),*>($($argument),+) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")]
            unsafe fn avx512<$($generic: $bound),*>($($argument: $type),+) {
                // SAFETY: the caller's.
                unsafe { $each::<$($generic),*>($($argument),+) }
            }
            match level {
                Level::Baseline => baseline::<$($generic),*>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => avx2::<$($generic),*>,
                #[cfg(target_arch = "x86_64")]
                Level::Avx512 => avx512::<$($generic),*>,
            }
        }
    };
}
pub(super) use at_levels;
