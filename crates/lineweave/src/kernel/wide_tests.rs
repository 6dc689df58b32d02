//! Folds of elements that are no single numbers, at every level, against references spelled out by hand; and
//! user-defined operators.

use super::{
    fold_fn, fold_fn_at, scale_fn, take_panic, Bool, DoubleInt, Element, ElementType, FloatInt, Fold, IntInt,
    Level, LongInt, Operator, ShortInt,
};
use num_complex::Complex;
use std::num::NonZeroU32;

/// Folds two runs at every level, with the result apart from both, on the left one and on the right one.
fn folded<T: Element>(operator: Operator, a: &[T], b: &[T]) -> Vec<Vec<T>> {
    let n = a.len();
    let mut results = Vec::new();
    for level in Level::available() {
        let fold = fold_fn_at(operator, T::TYPE, level).unwrap();
        let (mut apart, mut left, mut right) = (a.to_vec(), a.to_vec(), b.to_vec());
        // SAFETY: runs of `n` elements; each result is apart from the operands or exactly one of them.
        unsafe {
            fold(a.as_ptr().cast(), b.as_ptr().cast(), apart.as_mut_ptr().cast(), n);
            fold(left.as_ptr().cast(), b.as_ptr().cast(), left.as_mut_ptr().cast(), n);
            fold(a.as_ptr().cast(), right.as_ptr().cast(), right.as_mut_ptr().cast(), n);
        }
        results.extend([apart, left, right]);
    }
    results
}

#[test]
fn complex_numbers_add_and_multiply_by_parts() {
    let a: Vec<Complex<f64>> = (0..37).map(|i| Complex::new(f64::from(i), 3.0 - f64::from(i))).collect();
    let b: Vec<Complex<f64>> = (0..37).map(|i| Complex::new(0.5, f64::from(i % 5))).collect();
    for (operator, of) in [
        (Operator::Sum, (|x, y| x + y) as fn(Complex<f64>, Complex<f64>) -> Complex<f64>),
        (Operator::Prod, |x, y| Complex::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)),
    ] {
        let wanted: Vec<_> = a.iter().zip(&b).map(|(&x, &y)| of(x, y)).collect();
        for found in folded(operator, &a, &b) {
            assert_eq!(found, wanted, "{operator}");
        }
        for found in folded(operator, &b, &a) {
            assert_eq!(found, wanted, "{operator}, exchanged");
        }
        let narrow = |z: &[Complex<f64>]| -> Vec<Complex<f32>> {
            z.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect()
        };
        for found in folded(operator, &narrow(&a), &narrow(&b)) {
            assert_eq!(found, narrow(&wanted), "{operator}");
        }
    }
    let mut sum = [Complex::new(6.0f32, -9.0)];
    let scale = scale_fn(Operator::Avg, ElementType::ComplexF32).unwrap();
    // SAFETY: one complex number.
    unsafe { scale(sum.as_mut_ptr().cast(), 1, NonZeroU32::new(3).unwrap()) };
    assert_eq!(sum, [Complex::new(2.0, -3.0)]);
}

#[test]
fn truth_is_any_byte_but_zero_and_results_are_one() {
    // SAFETY: one byte each.
    let odd: Bool = unsafe { std::mem::transmute(6u8) };
    let (yes, no) = (Bool::from(true), Bool::from(false));
    for (operator, wanted) in [
        (Operator::LogicalAnd, [true, false, false]),
        (Operator::LogicalOr, [true, true, false]),
        (Operator::LogicalXor, [false, true, false]),
    ] {
        for found in folded(operator, &[odd, odd, no], &[yes, no, no]) {
            assert_eq!(found.iter().map(|b| b.get()).collect::<Vec<_>>(), wanted, "{operator}");
        }
    }
    assert!(fold_fn(Operator::Sum, ElementType::Bool).is_err());
}

macro_rules! search {
    ($pair:ident, $least:expr, $most:expr) => {{
        let (a, b) = (
            [$pair::new($least, 5), $pair::new($most, 1), $pair::new($most, 4), $pair::new($least, 0)],
            [$pair::new($most, 2), $pair::new($least, 3), $pair::new($most, 3), $pair::new($least, 9)],
        );
        for (x, y) in [(&a, &b), (&b, &a)] {
            for found in folded(Operator::MinLoc, x, y) {
                let least = [(5, $least), (3, $least), (3, $most), (0, $least)];
                assert_eq!(found, least.map(|(index, value)| $pair::new(value, index)));
            }
            for found in folded(Operator::MaxLoc, x, y) {
                let most = [(2, $most), (1, $most), (3, $most), (0, $least)];
                assert_eq!(found, most.map(|(index, value)| $pair::new(value, index)));
            }
        }
    }};
}

#[test]
fn searches_keep_the_value_and_of_equal_ones_the_lower_index() {
    search!(FloatInt, -1.5, 2.5);
    search!(DoubleInt, f64::NEG_INFINITY, 2.5);
    search!(LongInt, i64::MIN, i64::MAX);
    search!(IntInt, -7, 7);
    search!(ShortInt, i16::MIN, -1);
    let nan = FloatInt::new(f32::NAN, 8);
    for operator in [Operator::MinLoc, Operator::MaxLoc] {
        for found in folded(operator, &[nan, FloatInt::new(-f32::NAN, 3)], &[FloatInt::new(1.0, 2), nan]) {
            assert_eq!(found.iter().map(|p| p.index).collect::<Vec<_>>(), [8, 3], "{operator}");
            assert!(found.iter().all(|p| p.value.to_bits() == 0x7fc0_0000), "{operator}");
        }
        let zeros = [FloatInt::new(-0.0, 4)];
        let [forth, back] = [
            folded(operator, &zeros, &[FloatInt::new(0.0, 4)]),
            folded(operator, &[FloatInt::new(0.0, 4)], &zeros),
        ];
        assert!(forth.iter().chain(&back).all(|p| p[0].value.to_bits() == forth[0][0].value.to_bits()));
    }
}

#[test]
fn pairs_lie_as_in_c() {
    let sizes = [
        (ElementType::FloatInt, 8, 4),
        (ElementType::DoubleInt, 16, 8),
        (ElementType::LongInt, 16, 8),
        (ElementType::IntInt, 8, 4),
        (ElementType::ShortInt, 8, 4),
    ];
    for (element, size, align) in sizes {
        assert_eq!((element.size(), element.align()), (size, align), "{element}");
    }
    assert_eq!(std::mem::offset_of!(DoubleInt, index), 8);
    assert_eq!(std::mem::offset_of!(ShortInt, index), 4);
    assert_eq!((size_of::<LongInt>(), size_of::<ShortInt>(), align_of::<DoubleInt>()), (16, 8, 8));
}

#[test]
fn a_block_has_no_operator_but_ones_own() {
    assert_eq!(<[u8; 24]>::TYPE, ElementType::block(24).unwrap());
    assert_eq!("block24".parse(), Ok(<[u8; 24]>::TYPE));
    assert_eq!((ElementType::block(0), ElementType::block(1 << 31)), (None, None));
    let error = fold_fn(Operator::Sum, <[u8; 24]>::TYPE).unwrap_err().to_string();
    assert!(
        error.starts_with("`sum` is not defined on block24: block24 takes user-defined operators only"),
        "{error}"
    );
    let error = fold_fn(Operator::Min, ElementType::ComplexF32).unwrap_err().to_string();
    assert!(
        error.starts_with("`min` is not defined on complex-f32: complex-f32 takes sum, prod, avg"),
        "{error}"
    );
    let own = Operator::new(true, |_: &[[u8; 24]], _: &mut [[u8; 24]]| {});
    let error = Fold::of(own, ElementType::F64).unwrap_err().to_string();
    assert!(error.ends_with("`user-defined` takes elements of 24 bytes"), "{error}");
}

/// Blocks of N bytes, concatenating-like: each byte of the result depends on both operands and their order.
fn in_order<const N: usize>() -> Operator {
    Operator::new(false, |left: &[[u8; N]], right: &mut [[u8; N]]| {
        for (l, r) in left.iter().zip(right) {
            for (&l, r) in l.iter().zip(r) {
                *r = l.wrapping_mul(3).wrapping_sub(*r);
            }
        }
    })
}

fn ordered<const N: usize>(elements: usize) {
    let fold = Fold::of(in_order::<N>(), <[u8; N]>::TYPE).unwrap();
    let a: Vec<u8> = (0..N * elements).map(|i| (i * 7) as u8).collect();
    let b: Vec<u8> = (0..N * elements).map(|i| (i * 31 + 5) as u8).collect();
    let wanted: Vec<u8> = a.iter().zip(&b).map(|(&a, &b)| a.wrapping_mul(3).wrapping_sub(b)).collect();
    let (mut apart, mut left, mut right) = (vec![0; a.len()], a.clone(), b.clone());
    // SAFETY: runs of so many elements; each result is apart from the operands or exactly one of them.
    let done = unsafe {
        [
            fold.run(a.as_ptr(), b.as_ptr(), apart.as_mut_ptr(), elements),
            fold.run(left.as_ptr(), b.as_ptr(), left.as_mut_ptr(), elements),
            fold.run(a.as_ptr(), right.as_ptr(), right.as_mut_ptr(), elements),
        ]
    };
    assert_eq!(done, [true; 3]);
    assert!(apart == wanted && left == wanted && right == wanted, "{elements} elements of {N} bytes");
}

#[test]
fn the_left_operand_is_on_the_left_wherever_the_result_goes() {
    for elements in [0, 1, 3, 5000] {
        ordered::<1>(elements);
        ordered::<12>(elements);
        ordered::<1001>(elements);
    }
    // Larger than a piece.
    ordered::<20_000>(3);
}

#[test]
fn a_panic_of_an_operator_is_kept_and_not_passed_on() {
    let fails = Operator::new(true, |_: &[u64], _: &mut [u64]| panic!("cannot add these"));
    let fold = Fold::of(fails, ElementType::U64).unwrap();
    let (a, mut b) = ([1u64], [2u64]);
    // SAFETY: one element each, and the result on the right one.
    let done = unsafe { fold.run(a.as_ptr().cast(), b.as_ptr().cast(), b.as_mut_ptr().cast(), 1) };
    assert!(!done);
    assert_eq!(take_panic().as_deref(), Some("cannot add these"));
    assert_eq!(take_panic(), None);
}

#[test]
fn a_released_operator_is_refused() {
    let operator = Operator::new(true, |_: &[u64], _: &mut [u64]| {});
    let Operator::User(user) = operator else { panic!("an operator of one's own") };
    assert!(operator.defined_for(ElementType::U64));
    assert_eq!(super::UserOperator::numbered(user.number()), Some(user));
    // SAFETY: nothing was called with it.
    unsafe { user.release() };
    assert!(!operator.defined_for(ElementType::U64));
    assert!(Fold::of(operator, ElementType::U64).unwrap_err().to_string().contains("released"));
}
