//! Folds: combining two runs of elements into one.

use super::bf16_sum::paired_bf16_sum;
use super::half_fold::hardware_f16_fold;
use super::level::{at_levels, Level};
use super::number::Number;
use super::operator::{
    And, Bits, Both, Combine, Either, Max, MaxLoc, Min, MinLoc, OneOf, Or, Prod, Sum, Xor,
};
use super::pair::{DoubleInt, FloatInt, IntInt, LongInt, Pair, ShortInt};
use super::types::{ElementType, Operator, Undefined};
use ::half::{bf16, f16};
use num_complex::Complex;
use std::slice;

/// `dst[i] = a[i] (op) b[i]` for `i` in `0..elements`.
///
/// # Safety
///
/// - `a`, `b` and `dst` are aligned to the element and valid for `elements` elements (reads, reads, writes).
/// - `dst` is `a` or `b` exactly, or overlaps neither. `a` and `b` may overlap in any way when `dst` is apart from both.
/// - Nothing else writes `a` or `b`, or touches `dst`, meanwhile; between ranks, flags see to that.
pub type FoldFn = unsafe fn(a: *const u8, b: *const u8, dst: *mut u8, elements: usize);

/// Combines the elements of two words, lane by lane, in registers.
pub type WordFold = fn(a: u64, b: u64) -> u64;

/// One operator on one element type.
#[derive(Clone, Copy)]
struct Folds {
    run: FoldFn,
    /// For elements of which some fit a word, and that are numbers.
    word: Option<WordFold>,
}

/// The fold for an operator on an element type, with the widest vectors this CPU has. Resolve it once and keep it.
///
/// [`Operator::Avg`] folds as a sum; divide at the end with [`scale_fn`](super::scale_fn).
///
/// Results are stored plainly at every size: a fold's result is read next, by this rank or a peer, and the in-place
/// folds of a reduction have its line in the cache already, so there is no variant with non-temporal stores.
///
/// # Errors
///
/// [`Undefined`] when the type has no such operator, as for bitwise ones on floats; and for user-defined operators, which
/// are no kernels: see [`Fold::of`](super::Fold::of).
pub fn fold_fn(operator: Operator, element: ElementType) -> Result<FoldFn, Undefined> {
    Ok(resolve(operator, element, Level::best())?.run)
}

/// The fold of a message that fits a word: the same bits as [`fold_fn`]'s. Lanes behind the message's end are combined
/// as well, and mean nothing. Nothing where the type has no such operator, or only runs of its elements are folded.
pub fn word_fold(operator: Operator, element: ElementType) -> Option<WordFold> {
    resolve(operator, element, Level::Baseline).ok()?.word
}

/// The fold compiled for one level: the same bits as any other's, which is what tests and probes ask it for.
///
/// A level this CPU does not support yields the widest one that it does.
///
/// # Errors
///
/// The errors of [`fold_fn`].
pub fn fold_fn_at(operator: Operator, element: ElementType, level: Level) -> Result<FoldFn, Undefined> {
    Ok(resolve(operator, element, if level.supported() { level } else { Level::best() })?.run)
}

fn resolve(operator: Operator, element: ElementType, level: Level) -> Result<Folds, Undefined> {
    let folds = match element {
        ElementType::U8 => integer::<u8, u8>(operator, level),
        ElementType::U16 => integer::<u16, u16>(operator, level),
        ElementType::U32 => integer::<u32, u32>(operator, level),
        ElementType::U64 => integer::<u64, u64>(operator, level),
        ElementType::I8 => integer::<i8, u8>(operator, level),
        ElementType::I16 => integer::<i16, u16>(operator, level),
        ElementType::I32 => integer::<i32, u32>(operator, level),
        ElementType::I64 => integer::<i64, u64>(operator, level),
        ElementType::F16 => float::<f16>(operator, level)
            .map(|folds| Folds { run: hardware_f16_fold(operator, level).unwrap_or(folds.run), ..folds }),
        ElementType::BF16 => float::<bf16>(operator, level)
            .map(|folds| Folds { run: paired_bf16_sum(operator, level).unwrap_or(folds.run), ..folds }),
        ElementType::F32 => float::<f32>(operator, level),
        ElementType::F64 => float::<f64>(operator, level),
        ElementType::ComplexF32 => complex::<Complex<f32>>(operator, level),
        ElementType::ComplexF64 => complex::<Complex<f64>>(operator, level),
        ElementType::Bool => truth(operator, level),
        ElementType::FloatInt => located::<FloatInt>(operator, level),
        ElementType::DoubleInt => located::<DoubleInt>(operator, level),
        ElementType::LongInt => located::<LongInt>(operator, level),
        ElementType::IntInt => located::<IntInt>(operator, level),
        ElementType::ShortInt => located::<ShortInt>(operator, level),
        ElementType::Block(_) => None,
    };
    folds.ok_or(Undefined { operator, element })
}

/// An integer `T` whose unsigned counterpart is `U`: one clone serves both wherever the sign makes no difference.
fn integer<T: Number + Lanes, U: Number + Bits + Lanes>(operator: Operator, level: Level) -> Option<Folds> {
    Some(match operator {
        Operator::Sum | Operator::Avg => at::<U, Sum>(level),
        Operator::Prod => at::<U, Prod>(level),
        Operator::Min => at::<T, Min>(level),
        Operator::Max => at::<T, Max>(level),
        Operator::BitAnd => at::<U, And>(level),
        Operator::BitOr => at::<U, Or>(level),
        Operator::BitXor => at::<U, Xor>(level),
        Operator::LogicalAnd | Operator::LogicalOr | Operator::LogicalXor => {
            return logical::<U>(operator, level)
        }
        Operator::MinLoc | Operator::MaxLoc | Operator::User(_) => return None,
    })
}

fn logical<T: Number + Lanes>(operator: Operator, level: Level) -> Option<Folds> {
    match operator {
        Operator::LogicalAnd => Some(at::<T, Both>(level)),
        Operator::LogicalOr => Some(at::<T, Either>(level)),
        Operator::LogicalXor => Some(at::<T, OneOf>(level)),
        _ => None,
    }
}

/// Truth values are bytes, of which any but 0 is true; results are 0 or 1.
fn truth(operator: Operator, level: Level) -> Option<Folds> {
    logical::<u8>(operator, level).map(|folds| Folds { word: None, ..folds })
}

fn complex<T: Copy>(operator: Operator, level: Level) -> Option<Folds>
where
    Sum: Combine<T>,
    Prod: Combine<T>,
{
    match operator {
        Operator::Sum | Operator::Avg => Some(runs_at::<T, Sum>(level)),
        Operator::Prod => Some(runs_at::<T, Prod>(level)),
        _ => None,
    }
}

fn located<T: Pair>(operator: Operator, level: Level) -> Option<Folds> {
    match operator {
        Operator::MinLoc => Some(runs_at::<T, MinLoc>(level)),
        Operator::MaxLoc => Some(runs_at::<T, MaxLoc>(level)),
        _ => None,
    }
}

fn float<T: Number + Lanes>(operator: Operator, level: Level) -> Option<Folds> {
    match operator {
        Operator::Sum | Operator::Avg => Some(at::<T, Sum>(level)),
        Operator::Prod => Some(at::<T, Prod>(level)),
        Operator::Min => Some(at::<T, Min>(level)),
        Operator::Max => Some(at::<T, Max>(level)),
        Operator::LogicalAnd | Operator::LogicalOr | Operator::LogicalXor => logical::<T>(operator, level),
        _ => None,
    }
}

fn at<T: Lanes, C: Combine<T>>(level: Level) -> Folds {
    Folds { word: Some(|a, b| T::zip(a, b, C::combine)), ..runs_at::<T, C>(level) }
}

fn runs_at<T: Copy, C: Combine<T>>(level: Level) -> Folds {
    Folds { run: runs::<T, C>(level), word: None }
}

at_levels! {
    /// [`fold`] of so many elements.
    runs<T: Copy, C: Combine<T>> -> FoldFn = fold(a: *const u8, b: *const u8, dst: *mut u8, elements: usize)
}

/// Elements as the lanes of a word.
trait Lanes: Copy {
    fn zip(a: u64, b: u64, combine: impl Fn(Self, Self) -> Self) -> u64;
}

macro_rules! lanes {
    ($($element:ty),*) => {$(
        impl Lanes for $element {
            #[inline(always)]
            fn zip(a: u64, b: u64, combine: impl Fn(Self, Self) -> Self) -> u64 {
                const SIZE: usize = size_of::<$element>();
                let (a, b, mut word) = (a.to_ne_bytes(), b.to_ne_bytes(), [0; 8]);
                let lanes = a.chunks_exact(SIZE).zip(b.chunks_exact(SIZE)).zip(word.chunks_exact_mut(SIZE));
                for ((x, y), to) in lanes {
                    let lane = |bytes: &[u8]| <$element>::from_ne_bytes(bytes.try_into().expect("a lane"));
                    to.copy_from_slice(&combine(lane(x), lane(y)).to_ne_bytes());
                }
                u64::from_ne_bytes(word)
            }
        }
    )*};
}

lanes!(u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64);

/// The loop of every fold but the hardware's f16 and sums of bf16. Slices tell the compiler what does not overlap, without which an in-place fold, the common
/// kind, would fail the vectoriser's overlap check at run time and crawl.
///
/// # Safety
///
/// See [`FoldFn`].
#[inline(always)]
unsafe fn fold<T: Copy, C: Combine<T>>(a: *const u8, b: *const u8, dst: *mut u8, elements: usize) {
    let (a, b, dst) = (a.cast::<T>(), b.cast::<T>(), dst.cast::<T>());
    if elements == 0 {
        return;
    }
    // Operators are commutative to the last bit, so `dst == b` is `dst == a` with the operands exchanged.
    let (a, b) = if dst.cast_const() == b { (b, a) } else { (a, b) };
    if dst.cast_const() != a {
        // SAFETY: the caller vouches for the extents, and that `dst` is now apart from both.
        let (a, b, dst) = unsafe {
            (
                slice::from_raw_parts(a, elements),
                slice::from_raw_parts(b, elements),
                slice::from_raw_parts_mut(dst, elements),
            )
        };
        apart::<T, C>(a, b, dst);
    } else if dst.cast_const() != b {
        // SAFETY: as above; `a` is only reached through `dst`, and `b` is apart from it.
        let (b, dst) =
            unsafe { (slice::from_raw_parts(b, elements), slice::from_raw_parts_mut(dst, elements)) };
        in_place::<T, C>(b, dst);
    } else {
        // SAFETY: all three are one run of memory, reached through `dst` alone.
        for x in unsafe { slice::from_raw_parts_mut(dst, elements) } {
            *x = C::combine(*x, *x);
        }
    }
}

#[inline(always)]
fn apart<T: Copy, C: Combine<T>>(a: &[T], b: &[T], dst: &mut [T]) {
    for ((&x, &y), to) in a.iter().zip(b).zip(dst) {
        *to = C::combine(x, y);
    }
}

#[inline(always)]
fn in_place<T: Copy, C: Combine<T>>(b: &[T], dst: &mut [T]) {
    for (to, &y) in dst.iter_mut().zip(b) {
        *to = C::combine(*to, y);
    }
}
