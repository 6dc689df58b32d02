//! Folds of f16 that use the CPU's own conversion.

use super::fold::FoldFn;
#[cfg(target_arch = "x86_64")]
use super::half::{from_f16, to_f16};
use super::level::Level;
#[cfg(target_arch = "x86_64")]
use super::operator::{Combine, Max, Min, Prod, Sum};
use super::types::Operator;

/// The f16 fold that converts in hardware, where the level and the operator have the instructions.
pub(super) fn hardware_f16_fold(operator: Operator, level: Level) -> Option<FoldFn> {
    // Eight lanes a step at AVX-512 too: a step of 16 bytes already keeps up with the caches beyond the first.
    match (level, operator) {
        (Level::Baseline, _) => None,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2 | Level::Avx512, operator) => match operator {
            Operator::Sum | Operator::Avg => Some(x86::fold::<Sum>),
            Operator::Prod => Some(x86::fold::<Prod>),
            Operator::Min => Some(x86::fold::<Min>),
            Operator::Max => Some(x86::fold::<Max>),
            _ => None,
        },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{from_f16, to_f16, Combine, Max, Min, Prod, Sum};
    use std::arch::x86_64::*;

    /// Elements that one conversion takes.
    const LANES: usize = 8;

    /// [`Combine`] on eight lanes at once, spelled out because the vectoriser does not see through the conversions
    /// (left to itself it took up to three times as long on a Zen 3).
    pub(super) trait Lanes: Combine<f32> {
        /// # Safety
        ///
        /// The CPU has AVX2.
        unsafe fn lanes(x: __m256, y: __m256) -> __m256;
    }

    macro_rules! lanes {
        ($($operator:ty: |$x:ident, $y:ident| $result:expr;)*) => {$(
            impl Lanes for $operator {
                #[inline]
                #[target_feature(enable = "avx2")]
                unsafe fn lanes($x: __m256, $y: __m256) -> __m256 {
                    $result
                }
            }
        )*};
    }

    lanes! {
        Sum: |x, y| { let sum = _mm256_add_ps(x, y); nan_where_unordered(sum, sum, sum) };
        Prod: |x, y| { let product = _mm256_mul_ps(x, y); nan_where_unordered(product, product, product) };
        Min: |x, y| {
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y);
            nan_where_unordered(x, y, _mm256_blendv_ps(_mm256_min_ps(x, y), _mm256_or_ps(x, y), equal))
        };
        Max: |x, y| {
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(x, y);
            nan_where_unordered(x, y, _mm256_blendv_ps(_mm256_max_ps(x, y), _mm256_and_ps(x, y), equal))
        };
    }

    /// The canonical NaN in the lanes where `x` or `y` is one, else `result`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn nan_where_unordered(x: __m256, y: __m256, result: __m256) -> __m256 {
        let nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc0_0000));
        _mm256_blendv_ps(result, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, y))
    }

    /// # Safety
    ///
    /// The conditions of [`FoldFn`](super::FoldFn), on a CPU that has the features.
    #[target_feature(enable = "avx2,f16c")]
    pub(super) unsafe fn fold<C: Lanes>(a: *const u8, b: *const u8, dst: *mut u8, elements: usize) {
        let (a, b, dst) = (a.cast::<u16>(), b.cast::<u16>(), dst.cast::<u16>());
        let whole = elements / LANES * LANES;
        for i in (0..whole).step_by(LANES) {
            // SAFETY: i + LANES <= elements, which the caller vouches for, as for the features. Both operands are
            // read before the result, which may lie on either, is written.
            unsafe {
                let x = _mm256_cvtph_ps(_mm_loadu_si128(a.add(i).cast()));
                let y = _mm256_cvtph_ps(_mm_loadu_si128(b.add(i).cast()));
                let narrow = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(C::lanes(x, y));
                _mm_storeu_si128(dst.add(i).cast(), narrow);
            }
        }
        for i in whole..elements {
            // SAFETY: i < elements, which the caller vouches for.
            unsafe {
                let result = C::combine(from_f16(a.add(i).read()), from_f16(b.add(i).read()));
                dst.add(i).write(to_f16(result));
            }
        }
    }
}
