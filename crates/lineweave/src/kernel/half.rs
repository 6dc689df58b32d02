//! Conversions between f32 and the two 16-bit floats, and f16 folds that use the CPU's own conversion.

use super::fold::FoldFn;
use super::level::Level;
#[cfg(target_arch = "x86_64")]
use super::operator::{Combine, Max, Min, Prod, Sum};
use super::types::Operator;

/// Smallest f32 exponent field of a normal f16.
const F16_MIN_NORMAL: u32 = (127 - 14) << 23;
/// First f32 beyond every finite f16, rounding apart.
const F16_OVERFLOW: u32 = (127 + 16) << 23;
/// A power of two whose last mantissa bit is the last bit of a subnormal f16: adding it rounds there.
const F16_SUBNORMAL_ROUNDER: u32 = (127 - 14 + 13) << 23;

/// Widen an f16. Branch-free after F. Giesen, "half to float done quick" (2012); exact.
#[inline(always)]
pub(super) fn from_f16(bits: u16) -> f32 {
    let bits = u32::from(bits);
    let shifted = (bits & 0x7fff) << 13;
    let exponent = shifted & 0x0f80_0000;
    let rebiased = shifted + ((127 - 15) << 23);
    let special = rebiased + ((128 - 16) << 23);
    let subnormal = (f32::from_bits(rebiased + (1 << 23)) - f32::from_bits(F16_MIN_NORMAL)).to_bits();
    let magnitude = if exponent == 0x0f80_0000 {
        special
    } else if exponent == 0 {
        subnormal
    } else {
        rebiased
    };
    f32::from_bits(magnitude | (bits & 0x8000) << 16)
}

/// Narrow to f16, to nearest even; any NaN becomes the quiet one without payload, sign kept.
#[inline(always)]
pub(super) fn to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let rounder = f32::from_bits(F16_SUBNORMAL_ROUNDER);
    let subnormal = (f32::from_bits(magnitude) + rounder).to_bits().wrapping_sub(F16_SUBNORMAL_ROUNDER);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    let rounded = if magnitude >= F16_OVERFLOW {
        special
    } else if magnitude < F16_MIN_NORMAL {
        subnormal
    } else {
        normal
    };
    (rounded | (bits & 0x8000_0000) >> 16) as u16
}

/// Widen a bf16; exact.
#[inline(always)]
pub(super) fn from_bf16(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Narrow to bf16, to nearest even; a NaN must be the canonical one, which this leaves as it is.
///
/// Not by AVX-512's own instruction, which flushes subnormals.
#[inline(always)]
pub(super) fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The f16 fold that converts in hardware, where the level and the operator have the instructions.
pub(super) fn hardware_f16_fold(operator: Operator, level: Level) -> Option<FoldFn> {
    // Eight lanes a step at AVX-512 too: a step of 16 bytes already keeps up with the caches beyond the first.
    match (level, operator) {
        (Level::Baseline, _) => None,
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2 | Level::Avx512, Operator::Sum | Operator::Avg) => Some(x86::fold::<Sum>),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2 | Level::Avx512, Operator::Prod) => Some(x86::fold::<Prod>),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2 | Level::Avx512, Operator::Min) => Some(x86::fold::<Min>),
        #[cfg(target_arch = "x86_64")]
        (Level::Avx2 | Level::Avx512, Operator::Max) => Some(x86::fold::<Max>),
        #[cfg(target_arch = "x86_64")]
        (
            Level::Avx2 | Level::Avx512,
            Operator::BitAnd
            | Operator::BitOr
            | Operator::BitXor
            | Operator::LogicalAnd
            | Operator::LogicalOr
            | Operator::LogicalXor
            | Operator::MinLoc
            | Operator::MaxLoc
            | Operator::User(_),
        ) => None,
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
    /// As for [`FoldFn`](super::FoldFn), on a CPU that has the features.
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

#[cfg(test)]
mod tests {
    use super::super::number::Canonical;
    use super::*;
    use ::half::{bf16, f16};

    #[test]
    fn widening_is_exact_for_every_value() {
        for bits in 0..=u16::MAX {
            let (want16, wantb) = (f16::from_bits(bits).to_f32_const(), bf16::from_bits(bits).to_f32_const());
            if want16.is_nan() {
                assert!(from_f16(bits).is_nan(), "f16 {bits:#06x}");
            } else {
                assert_eq!(from_f16(bits).to_bits(), want16.to_bits(), "f16 {bits:#06x}");
            }
            if wantb.is_nan() {
                assert!(from_bf16(bits).is_nan(), "bf16 {bits:#06x}");
            } else {
                assert_eq!(from_bf16(bits).to_bits(), wantb.to_bits(), "bf16 {bits:#06x}");
            }
        }
    }

    #[test]
    fn narrowing_rounds_to_nearest_even() {
        // Every 16-bit value, every midpoint between two, and their neighbours, of both signs.
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x7fff, 0x8000, 0x8001, 0xffff] {
                for value in [
                    f32::from_bits(u32::from(high) << 16 | low),
                    f32::from_bits(from_f16(high).to_bits().wrapping_add(low)),
                ] {
                    if value.is_nan() {
                        assert!(f16::from_bits(to_f16(value)).is_nan());
                        assert_eq!(to_bf16(value.canonical()), 0x7fc0);
                    } else {
                        assert_eq!(
                            to_f16(value),
                            f16::from_f32_const(value).to_bits(),
                            "{:#010x}",
                            value.to_bits()
                        );
                        assert_eq!(
                            to_bf16(value),
                            bf16::from_f32_const(value).to_bits(),
                            "{:#010x}",
                            value.to_bits()
                        );
                    }
                }
            }
        }
    }
}
