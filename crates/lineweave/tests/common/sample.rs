//! Elements of every type: small values, and what operators make of two of them, said as plainly as possible.

use half::{bf16, f16};
use lineweave::kernel::{Bool, DoubleInt, FloatInt, IntInt, LongInt, ShortInt};
use lineweave::{Block, Element, Operator};
use num_complex::Complex;
use std::fmt::Debug;

/// An element of any type, with its reference.
pub trait Sample: Element + PartialEq + Debug + Send + Sync + 'static {
    /// What `rank` contributes as number `n`, which is below 4.
    fn of(n: u32, rank: usize) -> Self;
    /// Two elements combined, the left one of the lower rank.
    fn combine(operator: Operator, a: Self, b: Self) -> Self;
    /// What an average makes of a sum over so many ranks.
    fn divide(self, ranks: usize) -> Self;
}

/// The operator of one's own for numbers: the greatest common divisor.
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Numbers are combined in 64 bits, where all these values are exact, and brought back.
macro_rules! numbers {
    ($($t:ty, $wide:ty, $to:expr, $from:expr);* $(;)?) => {$(
        impl Sample for $t {
            fn of(n: u32, _: usize) -> $t {
                let from: fn($wide) -> $t = $from;
                from(n as $wide)
            }

            fn combine(operator: Operator, a: $t, b: $t) -> $t {
                let (to, from): (fn($t) -> $wide, fn($wide) -> $t) = ($to, $from);
                let (a, b) = (to(a), to(b));
                let zero = 0 as $wide;
                let truth = |t: bool| if t { 1 as $wide } else { zero };
                let bits = |f: fn(u64, u64) -> u64| f(a as u64, b as u64) as $wide;
                from(match operator {
                    Operator::Sum | Operator::Avg => a + b,
                    Operator::Prod => a * b,
                    Operator::Min => if b < a { b } else { a },
                    Operator::Max => if b > a { b } else { a },
                    Operator::LogicalAnd => truth(a != zero && b != zero),
                    Operator::LogicalOr => truth(a != zero || b != zero),
                    Operator::LogicalXor => truth((a != zero) != (b != zero)),
                    Operator::BitAnd => bits(|a, b| a & b),
                    Operator::BitOr => bits(|a, b| a | b),
                    Operator::BitXor => bits(|a, b| a ^ b),
                    Operator::User(_) => bits(gcd),
                    Operator::MinLoc | Operator::MaxLoc => unreachable!("no numbers"),
                })
            }

            fn divide(self, ranks: usize) -> $t {
                let (to, from): (fn($t) -> $wide, fn($wide) -> $t) = ($to, $from);
                from(to(self) / ranks as $wide)
            }
        }
    )*};
}
numbers! {
    i8, i64, i64::from, |v| v as i8;
    i16, i64, i64::from, |v| v as i16;
    i32, i64, i64::from, |v| v as i32;
    i64, i64, |v| v, |v| v;
    u8, u64, u64::from, |v| v as u8;
    u16, u64, u64::from, |v| v as u16;
    u32, u64, u64::from, |v| v as u32;
    u64, u64, |v| v, |v| v;
    f16, f64, f16::to_f64, f16::from_f64;
    bf16, f64, bf16::to_f64, bf16::from_f64;
    f32, f64, f64::from, |v| v as f32;
    f64, f64, |v| v, |v| v;
}

macro_rules! complex {
    ($($t:ty),*) => {$(
        impl Sample for Complex<$t> {
            fn of(n: u32, rank: usize) -> Self {
                Complex::new(n as $t, if rank < 4 { 1.0 } else { 0.0 })
            }
            fn combine(operator: Operator, a: Self, b: Self) -> Self {
                if operator == Operator::Prod { a * b } else { a + b }
            }
            fn divide(self, ranks: usize) -> Self {
                self / ranks as $t
            }
        }
    )*};
}
complex!(f32, f64);

impl Sample for Bool {
    fn of(n: u32, _: usize) -> Bool {
        Bool::from(n > 1)
    }

    fn combine(operator: Operator, a: Bool, b: Bool) -> Bool {
        Bool::from(match operator {
            Operator::LogicalAnd => a.get() && b.get(),
            Operator::LogicalOr => a.get() || b.get(),
            _ => a.get() != b.get(),
        })
    }

    fn divide(self, _: usize) -> Bool {
        self
    }
}

macro_rules! pairs {
    ($($t:ident, $value:ty);*) => {$(
        impl Sample for $t {
            fn of(n: u32, rank: usize) -> $t {
                $t::new(n as $value, rank as i32)
            }
            fn combine(operator: Operator, a: $t, b: $t) -> $t {
                let better = if operator == Operator::MinLoc { b.value < a.value } else { b.value > a.value };
                // Of equal values that of the lower rank, which is the left one, stays.
                if better { b } else { a }
            }
            fn divide(self, _: usize) -> $t {
                self
            }
        }
    )*};
}
pairs!(FloatInt, f32; DoubleInt, f64; LongInt, i64; IntInt, i32; ShortInt, i16);

/// Maps `x -> m x + c` of bytes, one applied after the other: associative and not commutative. What is left of an odd number of bytes is the first
/// operand's, which is that as well.
pub fn apply<const N: usize>(first: &[u8; N], then: &mut [u8; N]) {
    let even = N / 2 * 2;
    for (f, t) in first[..even].chunks_exact(2).zip(then[..even].chunks_exact_mut(2)) {
        let (m, c) = (t[0], t[1]);
        t[0] = m.wrapping_mul(f[0]);
        t[1] = m.wrapping_mul(f[1]).wrapping_add(c);
    }
    then[even..].copy_from_slice(&first[even..]);
}

/// The blocks of random calls.
pub type Affine = [u8; 12];

impl<const N: usize> Sample for [u8; N]
where
    [u8; N]: Block,
{
    fn of(n: u32, rank: usize) -> Self {
        std::array::from_fn(|k| (2 * n as usize + 1 + 16 * rank + k / 2 * 2) as u8)
    }

    fn combine(_: Operator, a: Self, mut b: Self) -> Self {
        apply(&a, &mut b);
        b
    }

    fn divide(self, _: usize) -> Self {
        self
    }
}

/// Runs a function for the type of a number.
#[macro_export]
macro_rules! with_type {
    ($element:expr, $t:ident => $body:expr) => {{
        use half::{bf16, f16};
        use lineweave::kernel::{Bool, DoubleInt, ElementType as E, FloatInt, IntInt, LongInt, ShortInt};
        use num_complex::Complex;
        macro_rules! arm {
            ($rust:ty) => {{
                type $t = $rust;
                $body
            }};
        }
        match $element {
            E::I8 => arm!(i8),
            E::I16 => arm!(i16),
            E::I32 => arm!(i32),
            E::I64 => arm!(i64),
            E::U8 => arm!(u8),
            E::U16 => arm!(u16),
            E::U32 => arm!(u32),
            E::U64 => arm!(u64),
            E::F16 => arm!(f16),
            E::BF16 => arm!(bf16),
            E::F32 => arm!(f32),
            E::F64 => arm!(f64),
            E::ComplexF32 => arm!(Complex<f32>),
            E::ComplexF64 => arm!(Complex<f64>),
            E::Bool => arm!(Bool),
            E::FloatInt => arm!(FloatInt),
            E::DoubleInt => arm!(DoubleInt),
            E::LongInt => arm!(LongInt),
            E::IntInt => arm!(IntInt),
            E::ShortInt => arm!(ShortInt),
            E::Block(bytes) => match bytes.get() {
                2 => arm!([u8; 2]),
                12 => arm!([u8; 12]),
                13 => arm!([u8; 13]),
                _ => arm!([u8; 1001]),
            },
        }
    }};
}
