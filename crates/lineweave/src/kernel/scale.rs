//! The division that ends an average.

use super::level::{at_levels, Level};
use super::number::Number;
use super::types::{ElementType, Operator};
use ::half::{bf16, f16};
use num_complex::Complex;
use std::num::NonZeroU32;
use std::slice;

/// Divide each element by the number of ranks.
///
/// Integers truncate towards zero, and a sum that wrapped stays wrapped: the average of 100 and 100 as `i8` is -28.
/// Floats round to nearest even.
///
/// # Safety
///
/// `dst` is aligned to the element, valid for `elements` elements, and touched by nothing else meanwhile.
pub type ScaleFn = unsafe fn(dst: *mut u8, elements: usize, ranks: NonZeroU32);

/// Returns the division that turns a folded message into the result of [`Operator::Avg`]; nothing for other operators.
pub fn scale_fn(operator: Operator, element: ElementType) -> Option<ScaleFn> {
    scale_fn_at(operator, element, Level::best())
}

/// As [`scale_fn`], compiled for one level; the widest supported one if this CPU does not support it.
pub fn scale_fn_at(operator: Operator, element: ElementType, level: Level) -> Option<ScaleFn> {
    let level = if level.supported() { level } else { Level::best() };
    if operator == Operator::Avg {
        resolve(element, level)
    } else {
        None
    }
}

fn resolve(element: ElementType, level: Level) -> Option<ScaleFn> {
    Some(match element {
        ElementType::I8 => at::<i8>(level),
        ElementType::I16 => at::<i16>(level),
        ElementType::I32 => at::<i32>(level),
        ElementType::I64 => at::<i64>(level),
        ElementType::U8 => at::<u8>(level),
        ElementType::U16 => at::<u16>(level),
        ElementType::U32 => at::<u32>(level),
        ElementType::U64 => at::<u64>(level),
        ElementType::F16 => at::<f16>(level),
        ElementType::BF16 => at::<bf16>(level),
        ElementType::F32 => at::<f32>(level),
        ElementType::F64 => at::<f64>(level),
        ElementType::ComplexF32 => at::<Complex<f32>>(level),
        ElementType::ComplexF64 => at::<Complex<f64>>(level),
        _ => return None,
    })
}

/// Something that has an average.
trait Quotient: Copy {
    fn divided(self, ranks: u32) -> Self;
}

impl<T: Number> Quotient for T {
    #[inline(always)]
    fn divided(self, ranks: u32) -> T {
        self.quotient(ranks)
    }
}

impl<T: Number> Quotient for Complex<T> {
    #[inline(always)]
    fn divided(self, ranks: u32) -> Complex<T> {
        Complex { re: self.re.quotient(ranks), im: self.im.quotient(ranks) }
    }
}

at_levels! {
    /// [`scale`] of so many elements.
    at<T: Quotient> -> ScaleFn = scale(dst: *mut u8, elements: usize, ranks: NonZeroU32)
}

/// # Safety
///
/// See [`ScaleFn`].
#[inline(always)]
unsafe fn scale<T: Quotient>(dst: *mut u8, elements: usize, ranks: NonZeroU32) {
    if elements == 0 {
        return;
    }
    // SAFETY: the caller vouches for the extent and for being alone with it.
    for x in unsafe { slice::from_raw_parts_mut(dst.cast::<T>(), elements) } {
        *x = x.divided(ranks.get());
    }
}
