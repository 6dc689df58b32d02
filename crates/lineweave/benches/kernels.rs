//! Folds and copies by size: what the probes of a profile time, under criterion's statistics.

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use lineweave::kernel::{
    copy, copy_nt, copy_wide, fold_fn_at, scale_fn, CopyFn, ElementType, Level, Operator,
};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

/// From one line to beyond a last-level cache.
const SIZES: [usize; 5] = [64, 4 << 10, 256 << 10, 4 << 20, 64 << 20];

/// Element types whose folds differ in kind: an easy one, one without narrow vectors, two converted, one of 64 bits.
const TYPES: [ElementType; 5] =
    [ElementType::F32, ElementType::U8, ElementType::F16, ElementType::BF16, ElementType::I64];

/// Zeroed words: zero is an ordinary value of every element type.
fn buffer(bytes: usize) -> Vec<u64> {
    vec![0; bytes / 8]
}

/// The common fold of a reduction, onto its left operand, f32 sums by size and by level.
fn folds_by_size(c: &mut Criterion) {
    let mut group = c.benchmark_group("fold_f32_sum");
    for bytes in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        for level in Level::available() {
            let fold = fold_fn_at(Operator::Sum, ElementType::F32, level).expect("sums are defined");
            let (mut acc, from) = (buffer(bytes), buffer(bytes));
            group.bench_function(BenchmarkId::new(level.to_string(), bytes), |b| {
                let dst = acc.as_mut_ptr().cast::<u8>();
                // SAFETY: both buffers hold `bytes` bytes and are aligned to 8; `dst` is the left operand itself.
                b.iter(|| unsafe { fold(dst, black_box(from.as_ptr().cast()), dst, bytes / 4) });
            });
        }
    }
    group.finish();
}

/// Every kind of fold on 16 KiB, which stay in a first-level cache, so that arithmetic is what is timed.
fn folds_by_type(c: &mut Criterion) {
    const BYTES: usize = 16 << 10;
    let mut group = c.benchmark_group("fold_16k");
    group.throughput(Throughput::Bytes(BYTES as u64));
    for element in TYPES {
        for operator in [Operator::Sum, Operator::Prod, Operator::Min, Operator::LogicalAnd] {
            for level in Level::available() {
                let fold = fold_fn_at(operator, element, level).expect("defined on every type");
                let (mut acc, from) = (buffer(BYTES), buffer(BYTES));
                group.bench_function(format!("{element}_{operator}/{level}"), |b| {
                    let dst = acc.as_mut_ptr().cast::<u8>();
                    // SAFETY: as above.
                    b.iter(|| unsafe {
                        fold(dst, black_box(from.as_ptr().cast()), dst, BYTES / element.size())
                    });
                });
            }
        }
        let scale = scale_fn(Operator::Avg, element).expect("averages are scaled");
        let mut acc = buffer(BYTES);
        group.bench_function(format!("{element}_scale"), |b| {
            let ranks = NonZeroU32::new(black_box(3)).expect("3 is not 0");
            // SAFETY: the buffer holds BYTES bytes and is aligned to 8.
            b.iter(|| unsafe { scale(acc.as_mut_ptr().cast(), BYTES / element.size(), ranks) });
        });
    }
    group.finish();
}

/// Plain against non-temporal, by size.
fn copies(c: &mut Criterion) {
    let mut group = c.benchmark_group("copy");
    for bytes in [8, 24, 56].into_iter().chain(SIZES) {
        group.throughput(Throughput::Bytes(bytes as u64));
        for (name, copy) in [("plain", copy as CopyFn), ("nt", copy_nt as CopyFn)] {
            let (from, mut to) = (buffer(bytes), buffer(bytes));
            group.bench_function(BenchmarkId::new(name, bytes), |b| {
                // SAFETY: both buffers hold `bytes` bytes and are distinct.
                b.iter(|| unsafe { copy(black_box(from.as_ptr().cast()), to.as_mut_ptr().cast(), bytes) });
            });
        }
    }
    group.finish();
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
fn copies_by_alignment(c: &mut Criterion) {
    const PAGE: usize = 4096;
    let mut group = c.benchmark_group("copy_alignment");
    for bytes in [2 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20] {
        group.throughput(Throughput::Bytes(bytes as u64));
        let (from, mut to) = (buffer(bytes + PAGE), buffer(bytes + 2 * PAGE));
        let (src, line) = (from.as_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
        let (src, line) =
            (src.wrapping_add(src.align_offset(PAGE)), line.wrapping_add(line.align_offset(PAGE)));
        for (place, beyond) in [("on_line", 0), ("off_line", 16)] {
            let dst = line.wrapping_add(beyond);
            for (name, copy) in [("wide", copy_wide as CopyFn), ("library", copy_library as CopyFn)] {
                group.bench_function(BenchmarkId::new(format!("{name}_{place}"), bytes), |b| {
                    // SAFETY: from a page on, the source holds `bytes` bytes, and the destination a page more;
                    // they are distinct.
                    b.iter(|| unsafe { copy(black_box(src), dst, bytes) });
                });
            }
        }
    }
    group.finish();
}

criterion_group! {
    name = kernels;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .sample_size(20);
    targets = folds_by_size, folds_by_type, copies, copies_by_alignment
}
criterion_main!(kernels);
