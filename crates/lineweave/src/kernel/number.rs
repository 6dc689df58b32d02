//! Arithmetic on one element, branch-free, so that a loop over it vectorises.

use super::half::{from_bf16, from_f16, to_bf16, to_f16};
use ::half::{bf16, f16};

/// Operations that folds and averages need of an element. Every result is a function of the operands' bits alone.
pub(super) trait Number: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
    /// Returns whether it is non-zero.
    fn truth(self) -> bool;
    fn from_truth(truth: bool) -> Self;
    /// Divided by a number of ranks, which is at least 1.
    fn quotient(self, ranks: u32) -> Self;
}

/// Further operations of an element, which a comparison of values needs.
pub(super) trait Ordered: Copy {
    fn below(self, other: Self) -> bool;
    /// Returns whether it is a NaN.
    fn unordered(self) -> bool;
    /// Equal, or both NaN.
    fn ties(self, other: Self) -> bool;
    /// With any NaN replaced by the one that folds produce.
    fn plain(self) -> Self;
}

macro_rules! whole {
    ($($int:ty),*) => {$(
        impl Ordered for $int {
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn unordered(self) -> bool {
                false
            }
            #[inline(always)]
            fn ties(self, other: Self) -> bool {
                self == other
            }
            #[inline(always)]
            fn plain(self) -> Self {
                self
            }
        }
    )*};
}

whole!(i16, i32, i64);

macro_rules! broken {
    ($($float:ty),*) => {$(
        impl Ordered for $float {
            #[inline(always)]
            fn below(self, other: Self) -> bool {
                self < other
            }
            #[inline(always)]
            fn unordered(self) -> bool {
                self.is_nan()
            }
            #[inline(always)]
            fn ties(self, other: Self) -> bool {
                (self == other) | (self.is_nan() & other.is_nan())
            }
            #[inline(always)]
            fn plain(self) -> Self {
                self.canonical()
            }
        }
    )*};
}

broken!(f32, f64);

macro_rules! integer {
    ($($int:ty, |$x:ident, $ranks:ident| $quotient:expr;)*) => {$(
        impl Number for $int {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                if self < other { self } else { other }
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0
            }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                <$int>::from(truth)
            }
            #[inline(always)]
            fn quotient(self, ranks: u32) -> Self {
                let ($x, $ranks) = (self, ranks);
                $quotient
            }
        }
    )*};
}

// Up to 32 bits through f64, which has a vector division: a quotient x/p of 32-bit integers that is below a whole
// number k is so by at least 1/p, relatively 1/(kp) >= 1/(x+p) > 2^-34, so rounding to 53 bits never reaches k and
// truncation is exact.
integer! {
    i8, |x, p| (f64::from(x) / f64::from(p)) as i8;
    i16, |x, p| (f64::from(x) / f64::from(p)) as i16;
    i32, |x, p| (f64::from(x) / f64::from(p)) as i32;
    i64, |x, p| x / i64::from(p);
    u8, |x, p| (f64::from(x) / f64::from(p)) as u8;
    u16, |x, p| (f64::from(x) / f64::from(p)) as u16;
    u32, |x, p| (f64::from(x) / f64::from(p)) as u32;
    u64, |x, p| x / u64::from(p);
}

macro_rules! float {
    ($($float:ty, nan $nan:literal;)*) => {$(
        impl Canonical for $float {
            #[inline(always)]
            fn canonical(self) -> Self {
                if self.is_nan() { <$float>::from_bits($nan) } else { self }
            }
        }

        impl Number for $float {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                (self + other).canonical()
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                (self * other).canonical()
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                // Equal operands differ in nothing but the sign of a zero: `or` keeps a minus.
                let lesser = if self < other { self } else { other };
                let equal = <$float>::from_bits(self.to_bits() | other.to_bits());
                let least = if self == other { equal } else { lesser };
                if self.is_nan() | other.is_nan() { <$float>::from_bits($nan) } else { least }
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                // As above: `and` keeps a plus.
                let greater = if self > other { self } else { other };
                let equal = <$float>::from_bits(self.to_bits() & other.to_bits());
                let greatest = if self == other { equal } else { greater };
                if self.is_nan() | other.is_nan() { <$float>::from_bits($nan) } else { greatest }
            }
            #[inline(always)]
            fn truth(self) -> bool {
                self != 0.0
            }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                if truth { 1.0 } else { 0.0 }
            }
            #[inline(always)]
            fn quotient(self, ranks: u32) -> Self {
                (self / ranks as $float).canonical()
            }
        }
    )*};
}

/// Replace any NaN by the one that folds produce.
pub(super) trait Canonical {
    fn canonical(self) -> Self;
}

float! {
    f32, nan 0x7fc0_0000;
    f64, nan 0x7ff8_0000_0000_0000;
}

// Computed in f32 and rounded back, to nearest even. For sums, products and quotients of f16 that equals rounding
// the exact result once, since 24 >= 2 * 11 + 2 digits (Figueroa, "When is double rounding innocuous?", 1995);
// likewise for bf16 unless the f32 result is subnormal.
macro_rules! half_float {
    ($($half:ty, $widen:ident, $narrow:ident;)*) => {$(
        impl Number for $half {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                <$half>::from_bits($narrow($widen(self.to_bits()).add($widen(other.to_bits()))))
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                <$half>::from_bits($narrow($widen(self.to_bits()).mul($widen(other.to_bits()))))
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                <$half>::from_bits($narrow($widen(self.to_bits()).least($widen(other.to_bits()))))
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                <$half>::from_bits($narrow($widen(self.to_bits()).greatest($widen(other.to_bits()))))
            }
            #[inline(always)]
            fn truth(self) -> bool {
                self.to_bits() & 0x7fff != 0
            }
            #[inline(always)]
            fn from_truth(truth: bool) -> Self {
                if truth { <$half>::ONE } else { <$half>::ZERO }
            }
            #[inline(always)]
            fn quotient(self, ranks: u32) -> Self {
                <$half>::from_bits($narrow($widen(self.to_bits()).quotient(ranks)))
            }
        }
    )*};
}

half_float! {
    f16, from_f16, to_f16;
    bf16, from_bf16, to_bf16;
}
