//! Sums of bf16, by two in the word that they fill: each is one half of an f32's bits already, so none is moved to lanes of its own.

use super::fold::FoldFn;
use super::level::{at_levels, Level};
use super::number::{Canonical, Number};
use super::types::Operator;
use ::half::bf16;
use std::slice;

/// The fold of two words' halves, for sums and averages.
pub(super) fn paired_bf16_sum(operator: Operator, level: Level) -> Option<FoldFn> {
    if !matches!(operator, Operator::Sum | Operator::Avg) {
        return None;
    }
    Some(at(level))
}

at_levels! {
    /// [`fold`] of so many elements.
    at<> -> FoldFn = fold(a: *const u8, b: *const u8, dst: *mut u8, elements: usize)
}

type Two = [u8; 4];

#[inline(always)]
fn add(a: Two, b: Two) -> Two {
    const UPPER: u32 = 0xffff_0000;
    let (a, b) = (u32::from_ne_bytes(a), u32::from_ne_bytes(b));
    // To nearest even, in the upper half.
    let sum = |a: u32, b: u32| {
        let bits = (f32::from_bits(a) + f32::from_bits(b)).canonical().to_bits();
        bits.wrapping_add(0x7fff + (bits >> 16 & 1))
    };
    (sum(a & UPPER, b & UPPER) & UPPER | sum(a << 16, b << 16) >> 16).to_ne_bytes()
}

/// # Safety
///
/// See [`FoldFn`].
#[inline(always)]
unsafe fn fold(a: *const u8, b: *const u8, dst: *mut u8, elements: usize) {
    // As in the other folds, `dst == b` is `dst == a` with the operands exchanged.
    let (a, b) = if std::ptr::eq(dst, b) { (b, a) } else { (a, b) };
    let (pairs, odd) = (elements / 2, elements % 2);
    // SAFETY: the caller vouches for the extents, and that `dst` is now `a`, or apart from it, and apart from `b` or equal to both. What is
    // equal is reached through `dst` alone.
    unsafe {
        let to = slice::from_raw_parts_mut(dst.cast::<Two>(), pairs);
        let halves = [a, b].map(|x| x.cast::<Two>());
        match (std::ptr::eq(dst, a), std::ptr::eq(dst, b)) {
            (true, true) => to.iter_mut().for_each(|x| *x = add(*x, *x)),
            (true, false) => {
                let b = slice::from_raw_parts(halves[1], pairs);
                to.iter_mut().zip(b).for_each(|(x, &y)| *x = add(*x, y));
            }
            (false, _) => {
                let (a, b) =
                    (slice::from_raw_parts(halves[0], pairs), slice::from_raw_parts(halves[1], pairs));
                to.iter_mut().zip(a).zip(b).for_each(|((to, &x), &y)| *to = add(x, y));
            }
        }
        if odd == 1 {
            let last = |x: *const u8| x.cast::<bf16>().add(elements - 1);
            dst.cast::<bf16>().add(elements - 1).write(last(a).read().add(last(b).read()));
        }
    }
}
