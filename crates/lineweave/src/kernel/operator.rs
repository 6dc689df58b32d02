//! The operators as types, so that a fold is compiled with its operator inlined.

use super::number::Number;
use std::ops::{BitAnd, BitOr, BitXor};

/// Combines two elements. Commutative to the last bit: in-place folds rely on it.
pub(super) trait Combine<T> {
    fn combine(a: T, b: T) -> T;
}

/// The pair with the lesser value.
pub(super) enum MinLoc {}

/// The pair with the greater value.
pub(super) enum MaxLoc {}

macro_rules! operator {
    ($($name:ident: $bound:path, |$a:ident, $b:ident| $result:expr;)*) => {$(
        pub(super) enum $name {}

        impl<T: $bound + Copy> Combine<T> for $name {
            #[inline(always)]
            fn combine($a: T, $b: T) -> T {
                $result
            }
        }
    )*};
}

/// Integers, on which bitwise operators are defined.
pub(super) trait Bits:
    Sized + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
}

impl Bits for u8 {}
impl Bits for u16 {}
impl Bits for u32 {}
impl Bits for u64 {}

operator! {
    Sum: Number, |a, b| a.add(b);
    Prod: Number, |a, b| a.mul(b);
    Min: Number, |a, b| a.least(b);
    Max: Number, |a, b| a.greatest(b);
    And: Bits, |a, b| a & b;
    Or: Bits, |a, b| a | b;
    Xor: Bits, |a, b| a ^ b;
    Both: Number, |a, b| T::from_truth(a.truth() & b.truth());
    Either: Number, |a, b| T::from_truth(a.truth() | b.truth());
    OneOf: Number, |a, b| T::from_truth(a.truth() ^ b.truth());
}
