//! Sums of many runs of 16-bit floats, which are kept in f32 and rounded once.

use super::half::{from_bf16, from_f16, to_bf16, to_f16};
use super::level::Level;
use super::number::Canonical;
use super::types::{ElementType, Operator};
use ::half::{bf16, f16};
use std::slice;

/// Functions that make sums of runs of elements, each run of as many elements as there are sums.
///
/// # Safety
/// Of all three: runs are aligned to the element and valid for as many elements, and nobody else writes what is read or touches
/// what is written meanwhile. The CPU supports the level that they were asked for.
#[derive(Debug)]
pub struct Sums {
    /// The first run.
    pub first: unsafe fn(run: *const u8, sums: &mut [f32]),
    /// Each other one.
    pub next: unsafe fn(run: *const u8, sums: &mut [f32]),
    /// Rounds them, to nearest even.
    pub round: unsafe fn(sums: &[f32], dst: *mut u8),
}

/// Returns the functions that sum up runs with one rounding, for sums and averages of f16 and bf16. The same bits at every level.
pub fn sums(operator: Operator, element: ElementType) -> Option<&'static Sums> {
    sums_at(operator, element, Level::best())
}

/// As [`sums`], at one level, which this CPU supports.
pub(super) fn sums_at(operator: Operator, element: ElementType, level: Level) -> Option<&'static Sums> {
    if !matches!(operator, Operator::Sum | Operator::Avg) {
        return None;
    }
    match element {
        ElementType::F16 => Some(of::<f16>(level)),
        ElementType::BF16 => Some(of::<bf16>(level)),
        _ => None,
    }
}

trait Narrow: Copy + 'static {
    fn widen(bits: u16) -> f32;
    fn narrow(sum: f32) -> u16;
}

impl Narrow for f16 {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        from_f16(bits)
    }
    #[inline(always)]
    fn narrow(sum: f32) -> u16 {
        to_f16(sum.canonical())
    }
}

impl Narrow for bf16 {
    #[inline(always)]
    fn widen(bits: u16) -> f32 {
        from_bf16(bits)
    }
    #[inline(always)]
    fn narrow(sum: f32) -> u16 {
        to_bf16(sum.canonical())
    }
}

fn of<N: Narrow>(level: Level) -> &'static Sums {
    match level {
        Level::Baseline => &Sums { first: first::<N>, next: next::<N>, round: round::<N> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &Sums { first: avx2::first::<N>, next: avx2::next::<N>, round: avx2::round::<N> },
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => {
            &Sums { first: avx512::first::<N>, next: avx512::next::<N>, round: avx512::round::<N> }
        }
    }
}

/// # Safety
/// See [`Sums`].
#[inline(always)]
unsafe fn first<N: Narrow>(run: *const u8, sums: &mut [f32]) {
    // SAFETY: the caller's.
    let run = unsafe { slice::from_raw_parts(run.cast::<u16>(), sums.len()) };
    for (sum, &x) in sums.iter_mut().zip(run) {
        *sum = N::widen(x);
    }
}

/// # Safety
/// See [`Sums`].
#[inline(always)]
unsafe fn next<N: Narrow>(run: *const u8, sums: &mut [f32]) {
    // SAFETY: the caller's.
    let run = unsafe { slice::from_raw_parts(run.cast::<u16>(), sums.len()) };
    for (sum, &x) in sums.iter_mut().zip(run) {
        *sum += N::widen(x);
    }
}

/// # Safety
/// See [`Sums`].
#[inline(always)]
unsafe fn round<N: Narrow>(sums: &[f32], dst: *mut u8) {
    // SAFETY: the caller's.
    let dst = unsafe { slice::from_raw_parts_mut(dst.cast::<u16>(), sums.len()) };
    for (to, &sum) in dst.iter_mut().zip(sums) {
        *to = N::narrow(sum);
    }
}

macro_rules! level {
    ($name:ident, $features:literal) => {
        #[cfg(target_arch = "x86_64")]
        mod $name {
            use super::Narrow;

            #[target_feature(enable = $features)]
            pub(super) unsafe fn first<N: Narrow>(run: *const u8, sums: &mut [f32]) {
                // SAFETY: the caller's.
                unsafe { super::first::<N>(run, sums) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn next<N: Narrow>(run: *const u8, sums: &mut [f32]) {
                // SAFETY: the caller's.
                unsafe { super::next::<N>(run, sums) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn round<N: Narrow>(sums: &[f32], dst: *mut u8) {
                // SAFETY: the caller's.
                unsafe { super::round::<N>(sums, dst) }
            }
        }
    };
}

level!(avx2, "avx2,f16c");
level!(avx512, "avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_rounded_once_and_the_same_at_every_level() {
        // 1 + 2^-8 + 2^-8: each addition alone rounds back to 1.
        let runs =
            [[1.0f32, 1e30, f32::INFINITY], [1.0 / 256.0, -1e30, f32::NEG_INFINITY], [1.0 / 256.0, 2.0, 1.0]];
        let runs = runs.map(|run| run.map(bf16::from_f32));
        for level in Level::available() {
            let Sums { first, next, round } =
                sums_at(Operator::Sum, ElementType::BF16, level).expect("bf16 is summed up");
            let (mut wide, mut sum) = ([0f32; 3], [bf16::ZERO; 3]);
            // SAFETY: three elements each.
            unsafe {
                first(runs[0].as_ptr().cast(), &mut wide);
                next(runs[1].as_ptr().cast(), &mut wide);
                next(runs[2].as_ptr().cast(), &mut wide);
                round(&wide, sum.as_mut_ptr().cast());
            }
            assert_eq!(sum[..2], [1.0 + 1.0 / 128.0, 2.0].map(bf16::from_f32), "{level:?}");
            assert_eq!(sum[2].to_bits(), 0x7fc0, "the one NaN, {level:?}");
        }
        assert!(
            sums(Operator::Max, ElementType::BF16).is_none()
                && sums(Operator::Sum, ElementType::F32).is_none()
        );
    }
}
