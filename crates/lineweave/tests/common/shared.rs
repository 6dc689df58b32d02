//! Buffers in shared memory: plans that use them where they lie, and calls to which all ranks, some, or none give such.

use super::call::Call;
use super::{algorithms_in, say, Outcome};
use lineweave::communicator::Communicator;
use lineweave::{ElementType, Error, Operator, SharedBuffer};
use lineweave_core::collective::Collective;

/// Every algorithm that reaches others' buffers, on shared ones.
pub fn plans(comm: &mut Communicator, sizes: &[usize]) -> Outcome {
    let ranks = comm.ranks();
    let most = 4 + ranks * sizes.iter().copied().max().unwrap_or(0).min(1501) * 2;
    let most = most.max(sizes.iter().copied().max().unwrap_or(0));
    let mut room = [comm.alloc::<u32>(most).map_err(say)?, comm.alloc::<u32>(most).map_err(say)?];
    algorithms_in(comm, sizes, true, Some(&mut room))
}

/// Which ranks give which shared buffers.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Given {
    All,
    None,
    /// All but one rank.
    AllBut(usize),
    Inputs,
    /// All buffers are shared, and rank 0 gives one where others give an input and an output.
    OneInPlace,
}

/// Every collective with every way of giving shared buffers, blocking and some started: with blocks of one length, or (`uneven`) of
/// different ones, as separate buffers and as one.
pub fn calls(comm: &mut Communicator, counts: &[usize], uneven: bool) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let most = counts.iter().copied().max().unwrap_or(0) * ranks * if uneven { 2 } else { 1 };
    let mut shared = [comm.alloc::<u32>(most).map_err(say)?, comm.alloc::<u32>(most).map_err(say)?];
    let mut private = [vec![0u32; most], vec![0; most]];
    let mut cases = 0;
    for &count in counts {
        for collective in Collective::ALL {
            // Blocks add up.
            let n = if collective.has_blocks() && !uneven { count.div_ceil(ranks) } else { count };
            let calls = Call::each_way(collective, ElementType::U32, Some(Operator::Sum), n);
            let startable =
                collective == Collective::Allreduce || uneven && collective == Collective::Allgather;
            for call in calls.filter(|call| call.uneven == uneven && (uneven || !call.in_place)) {
                for given in
                    [Given::All, Given::None, Given::AllBut(n % ranks), Given::Inputs, Given::OneInPlace]
                {
                    let one_in_place = given == Given::OneInPlace;
                    if one_in_place && collective != Collective::Allgather {
                        continue;
                    }
                    let in_place = call.in_place || one_in_place && rank == 0;
                    let root = if collective.rooted() { n } else { 0 };
                    let call = Call { in_place, root, ..call.clone() };
                    for started in if startable { &[false, true][..] } else { &[false] } {
                        one(comm, &call, given, *started, &mut shared, &mut private)
                            .map_err(|why| format!("{given:?}, started {started}: {why}"))?;
                        cases += 1;
                    }
                }
            }
        }
    }
    Ok(cases)
}

fn one(
    comm: &mut Communicator,
    call: &Call,
    given: Given,
    started: bool,
    [a, b]: &mut [SharedBuffer<u32>; 2],
    [c, d]: &mut [Vec<u32>; 2],
) -> Result<(), String> {
    let mine = match given {
        Given::All | Given::OneInPlace => [true, true],
        Given::None => [false, false],
        Given::AllBut(other) => [comm.rank() != other; 2],
        Given::Inputs => [true, false],
    };
    let part = call.part(comm, call.n + usize::from(started));
    let mut buffers = part.buffers::<u32>();
    let (from, to) = buffers.parts();
    let input: &mut [u32] = if mine[0] { a } else { c };
    let output: &mut [u32] = if mine[1] { b } else { d };
    let (input, output) = (&mut input[..from.len()], &mut output[..to.len()]);
    input.copy_from_slice(from);
    output.copy_from_slice(to);
    match started {
        false => part.block(comm, (input, output)),
        true => comm.scope(|scope| scope.start(part.describe((input, output)))?.wait()),
    }
    .map_err(say)?;
    to.copy_from_slice(output);
    part.check(&buffers)
}

/// Calls in place, and what is refused.
pub fn in_place(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    for &count in counts {
        let mut field = comm.alloc::<u64>(count).map_err(say)?;
        for others in [false, true] {
            field.iter_mut().enumerate().for_each(|(i, x)| *x = (i + rank) as u64);
            // One rank in place makes a difference to all.
            if others && rank > 0 {
                let mut out = comm_buffer(count);
                comm.allreduce(&field, &mut out, Operator::Sum).map_err(say)?;
                field.copy_from_slice(&out);
            } else {
                comm.allreduce_in_place(&mut field, Operator::Sum).map_err(say)?;
            }
            let sum = |i: usize| (0..ranks).map(|r| (i + r) as u64).sum::<u64>();
            if let Some(i) = (0..count).find(|&i| field[i] != sum(i)) {
                return Err(format!("allreduce in place of {count}: element {i} is {}", field[i]));
            }
        }
    }
    // More than there can be: every rank hears so, and goes on.
    let refused = comm.alloc::<u64>(1 << 57);
    if !matches!(refused, Err(Error::Heap { need, available, .. }) if need > available) {
        return Err(format!("2^60 bytes were not refused: {refused:?}"));
    }
    // What one rank asks for alone is refused for all.
    let refused = comm.alloc::<u8>(if rank == ranks - 1 { usize::MAX } else { 1 });
    if !matches!(refused, Err(Error::Heap { .. })) {
        return Err(format!("2^64 bytes of one rank were not refused: {refused:?}"));
    }
    comm.barrier().map_err(say)?;
    children(comm)?;
    Ok(counts.len())
}

fn comm_buffer(count: usize) -> Vec<u64> {
    vec![0; count]
}

/// Communicators made from one know its buffers, and buffers outlive communicators.
fn children(comm: &mut Communicator) -> Result<(), String> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut early = comm.alloc::<u32>(30_000).map_err(say)?;
    let mut child = comm.split(Some((rank % 2) as u64), 0).map_err(say)?.ok_or("no part")?;
    let mut own = child.alloc::<u32>(30_000).map_err(say)?;
    let parts = child.ranks() as u32;
    for buffer in [&mut early, &mut own] {
        buffer.fill(1);
        child.allreduce_in_place(buffer, Operator::Sum).map_err(say)?;
        if let Some(wrong) = buffer.iter().find(|&&x| x != parts) {
            return Err(format!("allreduce in a part: {wrong} instead of {parts}"));
        }
    }
    drop(child);
    own.fill(2);
    let before = comm.set_shared_buffers(false);
    comm.allreduce_in_place(&mut early, Operator::Max).map_err(say)?;
    comm.set_shared_buffers(before);
    if !before || early[0] != ranks.div_ceil(2) as u32 {
        return Err(format!("{before}, {}", early[0]));
    }
    let sizes = [comm.alloc::<u8>(0).map_err(say)?.len(), comm.alloc::<u8>(rank).map_err(say)?.len()];
    if sizes != [0, rank] {
        return Err(format!("{sizes:?}"));
    }
    Ok(())
}

/// Memory is given back as buffers are dropped, in whatever order.
pub fn given_back(comm: &mut Communicator, rounds: usize) -> Outcome {
    let keep = comm.alloc::<u8>(5000).map_err(say)?;
    comm.barrier().map_err(say)?;
    let before = comm.memory().shared_bytes;
    comm.barrier().map_err(say)?;
    let mut kept = Vec::new();
    for round in 0..rounds {
        kept.push(comm.alloc::<u64>(100_000).map_err(say)?);
        if round % 3 == comm.rank() % 3 {
            kept.clear();
        }
    }
    comm.barrier().map_err(say)?;
    let most = comm.memory().shared_bytes;
    comm.barrier().map_err(say)?;
    drop(kept);
    comm.barrier().map_err(say)?;
    let after = comm.memory().shared_bytes;
    comm.barrier().map_err(say)?;
    if after != before || most <= before {
        return Err(format!("{before} bytes, {most} at most, {after} in the end"));
    }
    drop(keep);
    Ok(rounds)
}
