//! The calls that a program makes, each way that there is, compared with the reference of [`super::call`].

use super::call::Call;
use super::sample::{apply, gcd, Sample};
use super::{say, Outcome};
use crate::with_type;
use lineweave::kernel::{fold_fn, ElementType};
use lineweave::{Communicator, Element, Error, Operator};
use lineweave_core::collective::Collective;

/// Makes a call, and compares it. It may be refused where LINEWEAVE_ALGORITHM names an algorithm that has no plan for it.
fn made(comm: &mut Communicator, call: &Call, salt: usize) -> Outcome {
    let part = call.part(comm, salt);
    with_type!(call.element, T => {
        let mut buffers = part.buffers::<T>();
        match part.block(comm, buffers.parts()) {
            Err(Error::NoPlan { .. }) if std::env::var_os("LINEWEAVE_ALGORITHM").is_some() => return Ok(0),
            made => made.map_err(|e| format!("{call:?}: {e}"))?,
        }
        part.check(&buffers)?;
    });
    Ok(1)
}

/// Makes each call from each of these roots, as far as it has one.
fn made_all(
    comm: &mut Communicator,
    calls: impl Iterator<Item = Call>,
    roots: &[usize],
    salt: usize,
) -> Outcome {
    let mut cases = 0;
    for call in calls {
        let roots = if call.collective.rooted() { roots } else { &roots[..1] };
        for &root in roots {
            cases += made(comm, &Call { root, ..call.clone() }, salt)?;
        }
    }
    Ok(cases)
}

/// Returns the roots 0, what remains of `n`, and the last, each once.
fn roots(comm: &Communicator, n: usize) -> Vec<usize> {
    let mut roots = vec![0, n % comm.ranks(), comm.ranks() - 1];
    roots.dedup();
    roots
}

/// Blocks of one length, and scans, also of averages.
pub fn blocks_and_scans(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = 0;
    let is_scan = |c: Collective| matches!(c, Collective::Scan | Collective::Exscan);
    for (salt, &n) in counts.iter().enumerate() {
        let roots = roots(comm, n);
        for collective in Collective::ALL.into_iter().filter(|&c| c.has_blocks() || is_scan(c)) {
            let averages = (collective == Collective::Scan).then_some(Operator::Avg);
            for operator in [Operator::Sum].into_iter().chain(averages) {
                let calls = Call::each_way(collective, ElementType::U32, Some(operator), n);
                cases += made_all(comm, calls.filter(|call| !call.uneven), &roots, salt)?;
            }
        }
    }
    Ok(cases)
}

/// Blocks of different lengths; the lengths come twice, as the second call finds its plans ready.
pub fn uneven(comm: &mut Communicator, lengths: &[usize]) -> Outcome {
    let mut cases = 0;
    for (salt, &n) in lengths.iter().enumerate() {
        for turn in 0..2 {
            for collective in Collective::ALL {
                let calls = Call::each_way(collective, ElementType::U32, Some(Operator::Sum), n);
                let roots = [salt + turn, comm.ranks() - 1];
                cases += made_all(comm, calls.filter(|call| call.uneven), &roots, salt + turn)?;
            }
        }
    }
    Ok(cases)
}

/// Returns the operators that are defined for an element.
fn defined(element: ElementType) -> impl Iterator<Item = Operator> {
    Operator::ALL.into_iter().filter(move |&operator| fold_fn(operator, element).is_ok())
}

/// Every number with every operator it has, moved and folded.
pub fn numbers(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = 0;
    let is_number = |element: &ElementType| fold_fn(Operator::Min, *element).is_ok();
    for element in ElementType::ALL.into_iter().filter(is_number) {
        for &n in counts {
            for operator in defined(element) {
                for collective in [Collective::Allreduce, Collective::Reduce] {
                    let calls = Call::each_way(collective, element, Some(operator), n);
                    cases += made_all(comm, calls, &[n], n)?;
                }
            }
            for collective in [Collective::Bcast, Collective::Barrier] {
                cases += made_all(comm, Call::each_way(collective, element, None, n), &[n], 1)?;
            }
        }
    }
    Ok(cases + refusals(comm)?)
}

/// Elements that are no single numbers with every operator they have, and operators of one's own: moved by a broadcast, and folded.
pub fn wide(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    fn affine<const N: usize>() -> (ElementType, Operator)
    where
        [u8; N]: Sample,
    {
        let operator = Operator::new(false, |left: &[[u8; N]], right: &mut [[u8; N]]| {
            left.iter().zip(right).for_each(|(l, r)| apply(l, r));
        });
        (<[u8; N]>::TYPE, operator)
    }
    let divisor = Operator::new(true, |left: &[u32], right: &mut [u32]| {
        left.iter().zip(right).for_each(|(&l, r)| *r = gcd(l.into(), (*r).into()) as u32);
    });
    let own = [affine::<2>(), affine::<12>(), affine::<13>(), affine::<1001>(), (ElementType::U32, divisor)];
    let is_wide = |element: &ElementType| fold_fn(Operator::Min, *element).is_err();
    let known = ElementType::ALL.into_iter().filter(is_wide).flat_map(|e| defined(e).map(move |o| (e, o)));
    let mut cases = 0;
    for (element, operator) in known.chain(own) {
        for &n in counts {
            let n = if element.size() > 100 { n.min(300) } else { n };
            for collective in Collective::ALL.into_iter().filter(|&c| c.folds() || c == Collective::Bcast) {
                let calls = Call::each_way(collective, element, Some(operator), n);
                let roots = [0, comm.ranks() - 1];
                cases += made_all(comm, calls, &roots, n)?;
            }
        }
    }
    Ok(cases + refusals(comm)?)
}

/// What is not defined is refused, and the communicator goes on.
fn refusals(comm: &mut Communicator) -> Outcome {
    let mut cases = 0;
    let own = Operator::new(true, |_: &[u64], _: &mut [u64]| {});
    let mut expect = |refused: Result<(), Error>| match refused {
        Err(Error::Operator(_)) => {
            cases += 1;
            Ok(())
        }
        other => Err(format!("not refused: {other:?}")),
    };
    expect(comm.allreduce_in_place(&mut [1u32], own))?;
    expect(comm.allreduce_in_place(&mut [[0u8; 24]], Operator::BitOr))?;
    for element in ElementType::ALL {
        for operator in Operator::ALL.into_iter().filter(|&o| fold_fn(o, element).is_err()) {
            with_type!(element, T => expect(comm.allreduce_in_place(&mut [T::of(1, 0)], operator))?);
        }
    }
    comm.barrier().map_err(say)?;
    Ok(cases)
}
