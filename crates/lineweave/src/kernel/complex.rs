//! Complex numbers: sums and products of two parts.

use super::number::Number;
use super::operator::{Combine, Prod, Sum};
use num_complex::Complex;

macro_rules! complex {
    ($($part:ty),*) => {$(
        impl Combine<Complex<$part>> for Sum {
            #[inline(always)]
            fn combine(a: Complex<$part>, b: Complex<$part>) -> Complex<$part> {
                Complex::new(Number::add(a.re, b.re), Number::add(a.im, b.im))
            }
        }

        /// By the definition, without C's special cases for infinities. Exchanged operands give the same bits: products
        /// and sums of floats commute.
        impl Combine<Complex<$part>> for Prod {
            #[inline(always)]
            fn combine(a: Complex<$part>, b: Complex<$part>) -> Complex<$part> {
                let re = Number::add(Number::mul(a.re, b.re), -Number::mul(a.im, b.im));
                let im = Number::add(Number::mul(a.re, b.im), Number::mul(a.im, b.re));
                Complex::new(re, im)
            }
        }
    )*};
}

complex!(f32, f64);
