//! Conversions between f32 and the two 16-bit floats.

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
