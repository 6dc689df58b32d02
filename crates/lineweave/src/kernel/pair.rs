//! Values with an index: what minloc and maxloc combine.

use super::number::{Number, Ordered};
use super::operator::{Combine, MaxLoc, MinLoc};

/// Choice between two pairs: a search for the least keeps `lesser`, a search for the greatest keeps `greater`.
pub(super) trait Pair: Copy {
    fn lesser(self, other: Self) -> Self;
    fn greater(self, other: Self) -> Self;
}

impl<T: Pair> Combine<T> for MinLoc {
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.lesser(b)
    }
}

impl<T: Pair> Combine<T> for MaxLoc {
    #[inline(always)]
    fn combine(a: T, b: T) -> T {
        a.greater(b)
    }
}

macro_rules! pair {
    ($($(#[$about:meta])* $name:ident { $value:ty $(, $gap:ident: $padding:ty)?; $($tail:ident: $last:ty)? })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Default, Debug)]
        #[repr(C)]
        pub struct $name {
            /// Value that is compared.
            pub value: $value,
            $($gap: $padding,)?
            /// Index that says where the value is from.
            pub index: i32,
            $($tail: $last,)?
        }

        impl $name {
            /// A value and where it is from.
            pub fn new(value: $value, index: i32) -> $name {
                $name { value, $($gap: 0,)? index, $($tail: 0,)? }
            }

            #[inline(always)]
            fn best(self, other: $name, before: bool, tie: bool, value: $value) -> $name {
                let mine = before | (tie & (self.index < other.index));
                let index = if mine { self.index } else { other.index };
                // Of equal values that differ in their bits, as zeros do, both orders yield the same.
                let kept = if tie { value } else if mine { self.value } else { other.value };
                $name::new(kept.plain(), index)
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.value == other.value && self.index == other.index
            }
        }

        impl Pair for $name {
            #[inline(always)]
            fn lesser(self, other: $name) -> $name {
                let (a, b) = (self.value, other.value);
                let before = a.below(b) | (a.unordered() & !b.unordered());
                self.best(other, before, a.ties(b), a.least(b))
            }

            #[inline(always)]
            fn greater(self, other: $name) -> $name {
                let (a, b) = (self.value, other.value);
                let before = b.below(a) | (a.unordered() & !b.unordered());
                self.best(other, before, a.ties(b), a.greatest(b))
            }
        }
    )*};
}

pair! {
    /// A float and an index, as C lays out `struct { float; int; }`.
    FloatInt { f32; }
    /// A double and an index, as C lays out `struct { double; int; }`.
    ///
    /// ```
    /// use lineweave::{kernel::DoubleInt, Operator};
    /// let least = lineweave::team::threads(3, |mut comm| {
    ///     let value = [2.5, 0.5, 1.0][comm.rank()];
    ///     let mut least = [DoubleInt::new(value, comm.rank() as i32)];
    ///     comm.allreduce_in_place(&mut least, Operator::MinLoc)?;
    ///     Ok((least[0].value, least[0].index))
    /// })?;
    /// assert_eq!(least, [(0.5, 1); 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    DoubleInt { f64; padding: u32 }
    /// A long and an index, as C lays out `struct { long; int; }` on 64-bit Unix.
    LongInt { i64; padding: u32 }
    /// An int and an index, as C lays out `struct { int; int; }`.
    IntInt { i32; }
    /// A short and an index, as C lays out `struct { short; int; }`.
    ShortInt { i16, padding: u16; }
}
