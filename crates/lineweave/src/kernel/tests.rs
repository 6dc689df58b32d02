//! Every fold and every scale, at every level this CPU has, against a scalar reference written a second time.

mod reference;

use super::{fold_fn, fold_fn_at, scale_fn_at, word_fold, ElementType, FoldFn, Level, Operator};
use reference::{mask, quotient_reference, reference};
use std::num::NonZeroU32;

/// The longest run: past two blocks of the widest unrolled loop of bytes, plus a tile of the f16 fold.
const LONGEST: usize = 300;

/// Random bits, one element in three replaced by one where arithmetic changes its mind.
fn data(element: ElementType, seed: u64) -> Vec<u64> {
    let special: &[u64] = match element {
        ElementType::F16 => &[
            0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01,
            0x7e00, 0xfe12,
        ],
        ElementType::BF16 => &[
            0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x3f80, 0xbf80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0,
            0xffd2,
        ],
        ElementType::F32 => &[
            0,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f80_0000,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x7f80_0000,
            0xff80_0000,
            0x7f80_0001,
            0x7fc0_0000,
            0xffc1_2345,
        ],
        ElementType::F64 => &[
            0,
            1 << 63,
            1,
            (1 << 63) | 1,
            0x000f_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            0x3ff0_0000_0000_0000,
            0x7fef_ffff_ffff_ffff,
            0xffef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0xfff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_0000,
            0xfff8_1234_5678_9abc,
        ],
        ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
            &[0, 1, u64::MAX, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fff_ffff, 0x8000_0000, u64::MAX >> 1, 1 << 63]
        }
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            &[0, 1, 2, u64::MAX, 0x80, 1 << 63]
        }
        other => unreachable!("{other} is no number"),
    };
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        // xorshift64*, Vigna 2016.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    (0..LONGEST)
        .map(|_| {
            let choice = random() >> 32;
            let bits = if choice % 3 == 0 { special[choice as usize / 3 % special.len()] } else { random() };
            bits & mask(element)
        })
        .collect()
}

/// Elements in memory aligned to 8 bytes, at an offset in elements.
struct Run {
    memory: Vec<u64>,
    element: ElementType,
    offset: usize,
}

impl Run {
    fn new(element: ElementType, offset: usize, values: &[u64]) -> Run {
        let mut run = Run { memory: vec![0xa5a5_a5a5_a5a5_a5a5; values.len() + offset + 2], element, offset };
        for (i, value) in values.iter().enumerate() {
            // SAFETY: a word is at least as large as an element, so element i + offset lies within the memory; and on
            // little-endian machines its first bytes are the element.
            unsafe {
                let from = std::ptr::from_ref(value).cast::<u8>();
                from.copy_to(run.pointer().add(i * element.size()), element.size());
            }
        }
        run
    }

    fn pointer(&mut self) -> *mut u8 {
        // SAFETY: the offset is within the memory.
        unsafe { self.memory.as_mut_ptr().cast::<u8>().add(self.offset * self.element.size()) }
    }

    fn get(&mut self, i: usize) -> u64 {
        let mut bits = 0u64;
        // SAFETY: as in `new`; i is at most one past the values, where two words of padding lie.
        unsafe {
            let from = self.pointer().add(i * self.element.size());
            from.copy_to(std::ptr::from_mut(&mut bits).cast::<u8>(), self.element.size());
        }
        bits
    }
}

/// Relation of the result's place to the operands'.
#[derive(Clone, Copy, Debug)]
enum Aliasing {
    Apart,
    OnLeft,
    OnRight,
    OnBoth,
}

fn check(
    fold: FoldFn,
    operator: Operator,
    element: ElementType,
    len: usize,
    place: Aliasing,
    offset: usize,
    what: &str,
) {
    let (left, right) = (data(element, 1 + len as u64), data(element, 2000 + len as u64));
    let mut a = Run::new(element, offset, &left[..len]);
    let mut b = Run::new(element, offset / 2, &right[..len]);
    let mut apart = Run::new(element, offset, &vec![0; len]);
    let (x, y) = (a.pointer(), b.pointer());
    let (y, dst) = match place {
        Aliasing::Apart => (y, apart.pointer()),
        Aliasing::OnLeft => (y, x),
        Aliasing::OnRight => (y, y),
        Aliasing::OnBoth => (x, x),
    };
    // SAFETY: each run holds `len` elements, aligned since its memory and offset are; places are as FoldFn allows.
    unsafe { fold(x, y, dst, len) };
    let result = match place {
        Aliasing::Apart => &mut apart,
        Aliasing::OnLeft | Aliasing::OnBoth => &mut a,
        Aliasing::OnRight => &mut b,
    };
    for i in 0..len {
        let second = if matches!(place, Aliasing::OnBoth) { left[i] } else { right[i] };
        let want = reference(operator, element, left[i], second);
        assert_eq!(
            result.get(i),
            want,
            "{operator} {element} at {what}, {place:?}, element {i} of {len}: {:#x} and {second:#x} gave {:#x}, not {want:#x}",
            left[i],
            result.get(i),
        );
    }
    assert_eq!(
        result.get(len),
        0xa5a5_a5a5_a5a5_a5a5 & mask(element),
        "{operator} {element} wrote beyond {len}"
    );
}

fn defined() -> impl Iterator<Item = (Operator, ElementType)> {
    Operator::ALL
        .into_iter()
        .flat_map(|o| ElementType::NUMBERS.map(|e| (o, e)))
        .filter(|(operator, element)| operator.defined_for(*element))
}

#[test]
fn every_fold_has_the_reference_bits_at_every_level_and_length() {
    for (operator, element) in defined() {
        for level in Level::available() {
            let fold = fold_fn_at(operator, element, level).unwrap();
            for len in (0..=130).chain([255, LONGEST]) {
                let place = [Aliasing::Apart, Aliasing::OnLeft, Aliasing::OnRight, Aliasing::OnBoth][len % 4];
                check(fold, operator, element, len, place, len / 4 % 3, &level.to_string());
            }
            for place in [Aliasing::Apart, Aliasing::OnLeft, Aliasing::OnRight, Aliasing::OnBoth] {
                check(fold, operator, element, LONGEST, place, 1, &level.to_string());
            }
        }
        check(
            fold_fn(operator, element).unwrap(),
            operator,
            element,
            77,
            Aliasing::Apart,
            0,
            "the level chosen",
        );
    }
}

#[test]
fn a_word_is_folded_like_a_run() {
    for (operator, element) in defined() {
        let (fold, word) = (fold_fn(operator, element).unwrap(), word_fold(operator, element).unwrap());
        let (a, b) = (data(element, 5), data(element, 6));
        let lanes = 8 / element.size();
        for (x, y) in a.chunks_exact(lanes).zip(b.chunks_exact(lanes)) {
            let (mut x, mut y) = (Run::new(element, 0, x), Run::new(element, 0, y));
            let mut whole = [0u64];
            // SAFETY: three runs of `lanes` elements, a word each, apart and aligned for words.
            let [x, y] = unsafe {
                fold(x.pointer(), y.pointer(), whole.as_mut_ptr().cast(), lanes);
                [&mut x, &mut y].map(|run| run.pointer().cast::<u64>().read_unaligned())
            };
            assert_eq!(word(x, y), whole[0], "{operator} of {element}");
        }
    }
}

#[test]
fn every_operator_is_commutative_to_the_last_bit() {
    for (operator, element) in defined() {
        let fold = fold_fn(operator, element).unwrap();
        let (left, right) = (data(element, 5), data(element, 6));
        let (mut a, mut b) = (Run::new(element, 0, &left), Run::new(element, 0, &right));
        let (mut ab, mut ba) = (Run::new(element, 0, &left), Run::new(element, 0, &left));
        // SAFETY: four distinct runs of LONGEST elements.
        unsafe {
            fold(a.pointer(), b.pointer(), ab.pointer(), LONGEST);
            fold(b.pointer(), a.pointer(), ba.pointer(), LONGEST);
        }
        assert_eq!(ab.memory, ba.memory, "{operator} {element}");
    }
}

#[test]
fn every_scale_divides_as_the_reference() {
    for element in ElementType::NUMBERS {
        for ranks in [1u32, 2, 3, 7, 10, 64, 200, 4096, 65_535] {
            for level in Level::available() {
                for len in (0..40).chain([LONGEST]) {
                    let values = data(element, u64::from(ranks) + len as u64);
                    let mut run = Run::new(element, 1, &values[..len]);
                    let scale = scale_fn_at(Operator::Avg, element, level).unwrap();
                    // SAFETY: the run holds `len` elements, aligned.
                    unsafe { scale(run.pointer(), len, NonZeroU32::new(ranks).unwrap()) };
                    for (i, &value) in values[..len].iter().enumerate() {
                        let want = quotient_reference(element, value, ranks);
                        assert_eq!(run.get(i), want, "{element} {value:#x} / {ranks} at {level}");
                    }
                    assert_eq!(
                        run.get(len),
                        0xa5a5_a5a5_a5a5_a5a5 & mask(element),
                        "{element} wrote beyond {len}"
                    );
                }
            }
        }
    }
}

#[test]
fn bitwise_operators_on_floats_are_refused_in_words() {
    let error = fold_fn(Operator::BitXor, ElementType::BF16).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`bxor` is not defined on bf16: bf16 takes sum, prod, min, max, avg, land, lor, lxor, \
         and `bxor` takes i8, i16, i32, i64, u8, u16, u32, u64"
    );
    for operator in Operator::ALL {
        for element in ElementType::ALL {
            assert_eq!(
                fold_fn(operator, element).is_ok(),
                operator.defined_for(element),
                "{operator} {element}"
            );
        }
    }
}

#[test]
fn names_round_trip() {
    for element in ElementType::ALL {
        assert_eq!(element.to_string().parse(), Ok(element));
    }
    for operator in Operator::ALL {
        assert_eq!(operator.to_string().parse(), Ok(operator));
    }
    let error = "f8".parse::<ElementType>().unwrap_err().to_string();
    assert_eq!(error, "unknown element type `f8`: expected one of i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, \
         complex-f32, complex-f64, bool, float-int, double-int, long-int, int-int, short-int, or blockN for N bytes");
    let error = "mean".parse::<Operator>().unwrap_err().to_string();
    assert!(error.starts_with("unknown operator `mean`: expected one of sum, prod,"), "{error}");
}
