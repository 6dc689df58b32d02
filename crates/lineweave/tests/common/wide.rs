//! Elements that are no single numbers, and operators of one's own, through the calls a program makes.

use super::{contribution, say, Outcome};
use lineweave::kernel::{Bool, DoubleInt, FloatInt, IntInt, LongInt, ShortInt};
use lineweave::{Block, Communicator, Element, Error, Operator};
use num_complex::Complex;
use std::fmt::Debug;
use std::ops::Range;

/// Everything for messages of these lengths.
pub fn wide(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = complex(comm, counts)? + truths(comm, counts)?;
    macro_rules! searches {
        ($($pair:ident, $value:ty);*) => {$(
            cases += search(comm, counts, |v: u32, r| $pair::new(v as $value, r as i32), |p| p.index)?;
        )*};
    }
    searches!(FloatInt, f32; DoubleInt, f64; LongInt, i64; IntInt, i32; ShortInt, i16);
    cases += affine::<2>(comm, counts)? + affine::<12>(comm, counts)? + affine::<13>(comm, counts)?;
    cases += affine::<1001>(comm, &counts.iter().map(|n| n.min(&300)).copied().collect::<Vec<_>>())?;
    Ok(cases + words(comm, counts)? + refusals(comm)?)
}

/// Every folding collective of `count` elements, against a fold from left to right of what ranks bring.
fn folds<T: Element + PartialEq + Debug>(
    comm: &mut Communicator,
    operator: Operator,
    count: usize,
    value: impl Fn(usize, usize) -> T,
    combine: impl Fn(T, T) -> T,
    last: impl Fn(T, usize) -> T,
) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let result = |of: Range<usize>, i: usize| {
        let n = of.len();
        of.map(|r| value(r, i)).reduce(&combine).map(|sum| last(sum, n))
    };
    let check = |what: &str, found: &[T], of: Range<usize>, from: usize| {
        for (i, v) in found.iter().enumerate() {
            let wanted = result(of.clone(), from + i);
            if wanted != Some(*v) {
                return Err(format!(
                    "{what} {operator} of {count} {} on {ranks} ranks: rank {rank} element {i} is {v:?}, expected {wanted:?}",
                    T::TYPE
                ));
            }
        }
        Ok(())
    };
    let input: Vec<T> = (0..count).map(|i| value(rank, i)).collect();
    let mut out = input.clone();
    if made(comm.allreduce(&input, &mut out, operator))? {
        check("allreduce", &out, 0..ranks, 0)?;
    }
    out.copy_from_slice(&input);
    if made(comm.allreduce_in_place(&mut out, operator))? {
        check("allreduce in place", &out, 0..ranks, 0)?;
    }
    for root in [0, ranks - 1] {
        let mut out = if rank == root { input.clone() } else { Vec::new() };
        comm.reduce(&input, &mut out, operator, root).map_err(say)?;
        check("reduce", &out, 0..ranks, 0)?;
    }
    comm.scan(&input, &mut out, operator).map_err(say)?;
    check("scan", &out, 0..rank + 1, 0)?;
    out.copy_from_slice(&input);
    comm.scan_in_place(&mut out, operator).map_err(say)?;
    check("scan in place", &out, 0..rank + 1, 0)?;
    comm.exscan(&input, &mut out, operator).map_err(say)?;
    if rank > 0 {
        check("exscan", &out, 0..rank, 0)?;
    }
    let n = count / ranks;
    let mut block = input[..n].to_vec();
    comm.reduce_scatter_block(&input[..n * ranks], &mut block, operator).map_err(say)?;
    check("reduce-scatter", &block, 0..ranks, rank * n)?;
    let counts: Vec<usize> = (0..ranks).map(|r| if r == 0 { count - n * (ranks - 1) } else { n }).collect();
    let start = if rank == 0 { 0 } else { count - n * (ranks - rank) };
    let mut block = input[..counts[rank]].to_vec();
    comm.reduce_scatter(&input, &mut block, &counts, operator).map_err(say)?;
    check("reduce-scatter of uneven blocks", &block, 0..ranks, start)?;
    Ok(9)
}

/// Returns whether a call was made: it may be refused where LINEWEAVE_ALGORITHM names an algorithm that has no plan for it.
fn made(call: Result<(), Error>) -> Result<bool, String> {
    match call {
        Err(Error::NoPlan { .. }) if std::env::var_os("LINEWEAVE_ALGORITHM").is_some() => Ok(false),
        call => call.map(|()| true).map_err(say),
    }
}

fn complex(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = 0;
    for &count in counts {
        let part = |r, i, salt| f64::from(contribution(r, i, salt)) - 1.0;
        let value = |r, i| Complex::new(part(r, i, count), part(r, i + 1, count + 2));
        let narrow = |r, i| {
            let z = value(r, i);
            Complex::new(z.re as f32, z.im as f32)
        };
        cases += folds(comm, Operator::Sum, count, value, |a, b| a + b, |z, _| z)?;
        cases += folds(comm, Operator::Sum, count, narrow, |a, b| a + b, |z, _| z)?;
        cases += folds(comm, Operator::Avg, count, value, |a, b| a + b, |z, n| z / n as f64)?;
        // Of small whole numbers: exact, and so the same with any brackets.
        cases += folds(comm, Operator::Prod, count, value, |a, b| a * b, |z, _| z)?;
    }
    Ok(cases)
}

fn truths(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = 0;
    for &count in counts {
        let value = |r, i| Bool::from(contribution(r, i, count) > 1);
        let of = |f: fn(bool, bool) -> bool| move |a: Bool, b: Bool| Bool::from(f(a.get(), b.get()));
        cases += folds(comm, Operator::LogicalAnd, count, value, of(|a, b| a & b), |b, _| b)?;
        cases += folds(comm, Operator::LogicalOr, count, value, of(|a, b| a | b), |b, _| b)?;
        cases += folds(comm, Operator::LogicalXor, count, value, of(|a, b| a ^ b), |b, _| b)?;
    }
    Ok(cases)
}

/// Few values and many ranks: ties are common. The index is the rank.
fn search<T: Element + PartialEq + Debug>(
    comm: &mut Communicator,
    counts: &[usize],
    pair: impl Fn(u32, usize) -> T,
    index: impl Fn(T) -> i32,
) -> Outcome {
    let mut cases = 0;
    for &count in counts {
        let value = |r, i| contribution(r, i, count);
        for (operator, most) in [(Operator::MinLoc, false), (Operator::MaxLoc, true)] {
            for i in 0..3 {
                // Which element it is does not matter to the reference: it is told by the index.
                let better = |a: T, b: T| {
                    let of = |p: T| value(index(p) as usize, i);
                    let wins = if most { of(a) >= of(b) } else { of(a) <= of(b) };
                    if wins {
                        a
                    } else {
                        b
                    }
                };
                cases += folds(comm, operator, count, |r, _| pair(value(r, i), r), better, |p, _| p)?;
            }
        }
    }
    Ok(cases)
}

/// Maps `x -> m x + c` of bytes, one applied after the other: associative and not commutative. What is left of an odd
/// number of bytes is the first operand's, which is that as well.
fn apply<const N: usize>(first: &[u8; N], then: &mut [u8; N]) {
    let even = N / 2 * 2;
    for (f, t) in first[..even].chunks_exact(2).zip(then[..even].chunks_exact_mut(2)) {
        let (m, c) = (t[0], t[1]);
        t[0] = m.wrapping_mul(f[0]);
        t[1] = m.wrapping_mul(f[1]).wrapping_add(c);
    }
    then[even..].copy_from_slice(&first[even..]);
}

fn affine<const N: usize>(comm: &mut Communicator, counts: &[usize]) -> Outcome
where
    [u8; N]: Block,
{
    let operator = Operator::new(false, |left: &[[u8; N]], right: &mut [[u8; N]]| {
        left.iter().zip(right).for_each(|(l, r)| apply(l, r));
    });
    let combine = |a: [u8; N], mut b: [u8; N]| {
        apply(&a, &mut b);
        b
    };
    let mut cases = 0;
    for &count in counts {
        let value = |r: usize, i: usize| -> [u8; N] {
            std::array::from_fn(|k| (2 * contribution(r, i + k, count) + 1) as u8 + 16 * r as u8)
        };
        cases += folds(comm, operator, count, value, combine, |v, _| v)?;
    }
    // Blocks of bytes move like anything else.
    let root = comm.ranks() / 2;
    let mut block = [[if comm.rank() == root { 7 } else { 0 }; N]; 3];
    comm.bcast(&mut block, root).map_err(say)?;
    match block == [[7; N]; 3] {
        true => Ok(cases + 1),
        false => Err(format!("bcast of blocks of {N} bytes is wrong at rank {}", comm.rank())),
    }
}

/// Operators of one's own on numbers, commutative.
fn words(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let gcd = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let operator = Operator::new(true, move |left: &[u32], right: &mut [u32]| {
        left.iter().zip(right).for_each(|(&l, r)| *r = gcd(l, *r));
    });
    let mut cases = 0;
    for &count in counts {
        let value = |r: usize, i: usize| 6 * (1 + contribution(r, i, count)) * (1 + i as u32 % 5);
        cases += folds(comm, operator, count, value, gcd, |v, _| v)?;
    }
    Ok(cases)
}

/// What is not defined is refused, and the communicator goes on.
fn refusals(comm: &mut Communicator) -> Outcome {
    let own = Operator::new(true, |_: &[u64], _: &mut [u64]| {});
    let refused = [
        comm.allreduce_in_place(&mut [Complex::new(0.0f64, 1.0)], Operator::Max),
        comm.allreduce_in_place(&mut [Bool::from(true)], Operator::Sum),
        comm.allreduce_in_place(&mut [FloatInt::new(1.0, 1)], Operator::Min),
        comm.allreduce_in_place(&mut [1.0f32], Operator::MinLoc),
        comm.allreduce_in_place(&mut [[0u8; 24]], Operator::BitOr),
        comm.allreduce_in_place(&mut [1u32], own),
    ];
    for refused in &refused {
        if !matches!(refused, Err(Error::Operator(_))) {
            return Err(format!("not refused: {refused:?}"));
        }
    }
    Ok(refused.len())
}
