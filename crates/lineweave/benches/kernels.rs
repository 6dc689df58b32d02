//! Folds and copies by size: what the probes of a profile time, one kernel at a time.
//!
//! `cargo bench --locked -p lineweave --bench kernels [PART OF A NAME]`

use lineweave::kernel::{
    copy, copy_nt, copy_wide, fold_fn_at, scale_fn, CopyFn, ElementType, Level, Operator,
};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// From one line to beyond a last-level cache.
const SIZES: [usize; 5] = [64, 4 << 10, 256 << 10, 4 << 20, 64 << 20];

/// Element types whose folds differ in kind: an easy one, one without narrow vectors, two converted, one of 64 bits.
const TYPES: [ElementType; 5] =
    [ElementType::F32, ElementType::U8, ElementType::F16, ElementType::BF16, ElementType::I64];

/// Zeroed words: zero is an ordinary value of every element type.
fn buffer(bytes: usize) -> Vec<u64> {
    vec![0; bytes / 8]
}

/// Times `run`, which handles so many bytes, if the command line names no other: median and quartiles of 20 samples of 20 ms or more.
fn bench(name: &str, bytes: usize, mut run: impl FnMut()) {
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    if wanted.is_some_and(|part| !name.contains(&part)) {
        return;
    }
    let mut time = |calls: u32| {
        let began = Instant::now();
        (0..calls).for_each(|_| run());
        began.elapsed()
    };
    let mut calls = 1;
    while time(calls) < Duration::from_millis(20) {
        calls *= 2;
    }
    let mut samples: Vec<f64> = (0..20).map(|_| time(calls).as_nanos() as f64 / f64::from(calls)).collect();
    samples.sort_by(f64::total_cmp);
    let [low, median, high] = [5, 10, 15].map(|i| samples[i]);
    println!("{name:<40} {median:>14.1} ns [{low:.1} {high:.1}] {:>8.2} GB/s", bytes as f64 / median);
}

/// The common fold of a reduction, onto its left operand, f32 sums by size and by level.
fn folds_by_size() {
    for bytes in SIZES {
        for level in Level::available() {
            let fold = fold_fn_at(Operator::Sum, ElementType::F32, level).expect("sums are defined");
            let (mut acc, from) = (buffer(bytes), buffer(bytes));
            let dst = acc.as_mut_ptr().cast::<u8>();
            // SAFETY: both buffers hold `bytes` bytes and are aligned to 8; `dst` is the left operand itself.
            let run = || unsafe { fold(dst, black_box(from.as_ptr().cast()), dst, bytes / 4) };
            bench(&format!("fold_f32_sum/{level}/{bytes}"), bytes, run);
        }
    }
}

/// Every kind of fold on 16 KiB, which stay in a first-level cache, so that arithmetic is what is timed.
fn folds_by_type() {
    const BYTES: usize = 16 << 10;
    for element in TYPES {
        for operator in [Operator::Sum, Operator::Prod, Operator::Min, Operator::LogicalAnd] {
            for level in Level::available() {
                let fold = fold_fn_at(operator, element, level).expect("defined on every type");
                let (mut acc, from) = (buffer(BYTES), buffer(BYTES));
                let dst = acc.as_mut_ptr().cast::<u8>();
                // SAFETY: as above.
                let run =
                    || unsafe { fold(dst, black_box(from.as_ptr().cast()), dst, BYTES / element.size()) };
                bench(&format!("fold_16k/{element}_{operator}/{level}"), BYTES, run);
            }
        }
        let scale = scale_fn(Operator::Avg, element).expect("averages are scaled");
        let mut acc = buffer(BYTES);
        let ranks = NonZeroU32::new(black_box(3)).expect("3 is not 0");
        // SAFETY: the buffer holds BYTES bytes and is aligned to 8.
        let run = || unsafe { scale(acc.as_mut_ptr().cast(), BYTES / element.size(), ranks) };
        bench(&format!("fold_16k/{element}_scale"), BYTES, run);
    }
}

/// Plain against non-temporal, by size.
fn copies() {
    for bytes in [8, 24, 56].into_iter().chain(SIZES) {
        for (name, copy) in [("plain", copy as CopyFn), ("nt", copy_nt as CopyFn)] {
            let (from, mut to) = (buffer(bytes), buffer(bytes));
            // SAFETY: both buffers hold `bytes` bytes and are distinct.
            let run = || unsafe { copy(black_box(from.as_ptr().cast()), to.as_mut_ptr().cast(), bytes) };
            bench(&format!("copy/{name}/{bytes}"), bytes, run);
        }
    }
}

/// The C library's copy.
///
/// # Safety
///
/// See [`CopyFn`].
unsafe fn copy_library(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy_nonoverlapping(src, dst, len) }
}

/// The engine's copy against the C library's, with the destination on a line and beside one. The source is on a
/// line in both cases.
fn copies_by_alignment() {
    const PAGE: usize = 4096;
    for bytes in [2 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20] {
        let (from, mut to) = (buffer(bytes + PAGE), buffer(bytes + 2 * PAGE));
        let (src, line) = (from.as_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
        let (src, line) =
            (src.wrapping_add(src.align_offset(PAGE)), line.wrapping_add(line.align_offset(PAGE)));
        for (place, beyond) in [("on_line", 0), ("off_line", 16)] {
            let dst = line.wrapping_add(beyond);
            for (name, copy) in [("wide", copy_wide as CopyFn), ("library", copy_library as CopyFn)] {
                // SAFETY: from a page on, the source holds `bytes` bytes, and the destination a page more; they are distinct.
                let run = || unsafe { copy(black_box(src), dst, bytes) };
                bench(&format!("copy_alignment/{name}_{place}/{bytes}"), bytes, run);
            }
        }
    }
}

fn main() {
    folds_by_size();
    folds_by_type();
    copies();
    copies_by_alignment();
}
