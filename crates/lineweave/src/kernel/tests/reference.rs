//! Result of each operator for one element, written a second time.

use crate::kernel::{ElementType, Operator};
use ::half::{bf16, f16};

/// The bits of one element, combined by the book.
pub fn reference(operator: Operator, element: ElementType, a: u64, b: u64) -> u64 {
    match element {
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            integer_reference(operator, element, sign_extend(element, a), sign_extend(element, b))
        }
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            integer_reference(operator, element, i128::from(a), i128::from(b))
        }
        ElementType::F16 => {
            let (x, y) = (f16::from_bits(a as u16), f16::from_bits(b as u16));
            f16_reference(float_reference(operator, x.to_f64_const(), y.to_f64_const()))
        }
        ElementType::BF16 => {
            let (x, y) = (bf16::from_bits(a as u16), bf16::from_bits(b as u16));
            let (x, y) = (f64::from(x.to_f32_const()), f64::from(y.to_f32_const()));
            let result = float_reference(operator, x, y) as f32;
            u64::from(if result.is_nan() { 0x7fc0 } else { bf16::from_f32_const(result).to_bits() })
        }
        ElementType::F32 => {
            // f64 has more than twice the digits of f32, so rounding twice is rounding once.
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            let result = float_reference(operator, f64::from(x), f64::from(y)) as f32;
            u64::from(if result.is_nan() { 0x7fc0_0000 } else { result.to_bits() })
        }
        ElementType::F64 => {
            let result = float_reference(operator, f64::from_bits(a), f64::from_bits(b));
            if result.is_nan() {
                0x7ff8_0000_0000_0000
            } else {
                result.to_bits()
            }
        }
        other => unreachable!("{other} is no number"),
    }
}

/// Round an exact value to f16 once. (`half`'s conversion from f64 drops the lower 32 bits before it rounds.)
fn f16_reference(exact: f64) -> u64 {
    if exact.is_nan() {
        return 0x7e00;
    }
    let exponent = (exact.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let ulp = 2f64.powi(exponent.clamp(-14, 16) - 10);
    let rounded = (exact / ulp).round_ties_even() * ulp;
    u64::from(f16::from_f32_const(rounded as f32).to_bits())
}

fn sign_extend(element: ElementType, bits: u64) -> i128 {
    let unused = 128 - 8 * element.size();
    (i128::from(bits) << unused) >> unused
}

pub fn mask(element: ElementType) -> u64 {
    u64::MAX >> (64 - 8 * element.size())
}

fn integer_reference(operator: Operator, element: ElementType, a: i128, b: i128) -> u64 {
    let result = match operator {
        Operator::Sum | Operator::Avg => a + b,
        Operator::Prod => a.wrapping_mul(b),
        Operator::Min => a.min(b),
        Operator::Max => a.max(b),
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        Operator::LogicalAnd => i128::from(a != 0 && b != 0),
        Operator::LogicalOr => i128::from(a != 0 || b != 0),
        Operator::LogicalXor => i128::from((a != 0) != (b != 0)),
        other => unreachable!("{other} is for no number"),
    };
    result as u64 & mask(element)
}

fn float_reference(operator: Operator, a: f64, b: f64) -> f64 {
    let truth = |truth| if truth { 1.0 } else { 0.0 };
    match operator {
        Operator::Sum | Operator::Avg => a + b,
        Operator::Prod => a * b,
        Operator::Min | Operator::Max if a.is_nan() || b.is_nan() => f64::NAN,
        // The total order of non-NaN floats is IEEE's order with -0 below +0.
        Operator::Min => *[a, b].iter().min_by(|x, y| x.total_cmp(y)).unwrap(),
        Operator::Max => *[a, b].iter().max_by(|x, y| x.total_cmp(y)).unwrap(),
        Operator::LogicalAnd => truth(a != 0.0 && b != 0.0),
        Operator::LogicalOr => truth(a != 0.0 || b != 0.0),
        Operator::LogicalXor => truth((a != 0.0) != (b != 0.0)),
        other => unreachable!("{other} on floats is refused"),
    }
}

/// The bits of one element, divided by the book.
pub fn quotient_reference(element: ElementType, bits: u64, ranks: u32) -> u64 {
    let p = f64::from(ranks);
    match element {
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            (sign_extend(element, bits) / i128::from(ranks)) as u64 & mask(element)
        }
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => bits / u64::from(ranks),
        ElementType::F16 => f16_reference(f16::from_bits(bits as u16).to_f64_const() / p),
        ElementType::BF16 => match (f64::from(bf16::from_bits(bits as u16).to_f32_const()) / p) as f32 {
            nan if nan.is_nan() => 0x7fc0,
            quotient => u64::from(bf16::from_f32_const(quotient).to_bits()),
        },
        ElementType::F32 => match (f64::from(f32::from_bits(bits as u32)) / p) as f32 {
            nan if nan.is_nan() => 0x7fc0_0000,
            quotient => u64::from(quotient.to_bits()),
        },
        ElementType::F64 => match f64::from_bits(bits) / p {
            nan if nan.is_nan() => 0x7ff8_0000_0000_0000,
            quotient => quotient.to_bits(),
        },
        other => unreachable!("{other} is no number"),
    }
}
