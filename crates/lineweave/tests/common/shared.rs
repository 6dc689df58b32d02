//! Buffers in shared memory: plans that use them where they lie, and calls to which all ranks, some, or none give such.

use super::{algorithms_in, contribution, expected, say, Outcome};
use lineweave::communicator::Communicator;
use lineweave::{CallSpec, ElementType, Error, Operation, Operator, SharedBuffer};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Grid};

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
}

/// Every collective with every way of giving shared buffers, as separate buffers and as one, blocking and started.
pub fn calls(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let ranks = comm.ranks();
    let most = counts.iter().copied().max().unwrap_or(0) * ranks;
    let mut shared = [comm.alloc::<u32>(most).map_err(say)?, comm.alloc::<u32>(most).map_err(say)?];
    let mut private = [vec![0u32; most], vec![0; most]];
    let mut cases = 0;
    for &count in counts {
        for collective in Collective::ALL {
            // Blocks add up.
            let count = if collective.has_blocks() { count.div_ceil(ranks) } else { count };
            let root = if collective.rooted() { count % ranks } else { 0 };
            let operator = collective.folds().then_some(Operator::Sum);
            let call = CallSpec { collective, element: ElementType::U32, count, operator, root };
            for given in [Given::All, Given::None, Given::AllBut(count % ranks), Given::Inputs] {
                for started in [false, true] {
                    if started && collective != Collective::Allreduce {
                        continue;
                    }
                    one(comm, &call, given, started, &mut shared, &mut private)
                        .map_err(|why| format!("{call:?} {given:?}, started {started}: {why}"))?;
                    cases += 1;
                }
            }
        }
    }
    Ok(cases)
}

fn one(
    comm: &mut Communicator,
    call: &CallSpec,
    given: Given,
    started: bool,
    shared: &mut [SharedBuffer<u32>; 2],
    private: &mut [Vec<u32>; 2],
) -> Result<(), String> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mine = match given {
        Given::All => [true, true],
        Given::None => [false, false],
        Given::AllBut(other) => [rank != other; 2],
        Given::Inputs => [true, false],
    };
    let blocks = Blocks::Dense;
    let grid =
        Grid { collective: call.collective, ranks, root: call.root, bytes: call.bytes(), blocks: &blocks };
    let (given, taken) = (grid.input_bytes(rank) / 4, grid.output_bytes(rank) / 4);
    let salt = call.count + usize::from(started);
    let [a, b] = shared;
    let [c, d] = private;
    let input: &mut [u32] = if mine[0] { a } else { c };
    let output: &mut [u32] = if mine[1] { b } else { d };
    // A broadcast has one buffer at each rank.
    let taken = if call.collective == Collective::Bcast { call.count } else { taken };
    for (i, place) in input[..given].iter_mut().enumerate() {
        *place = contribution(rank, i, salt);
    }
    output[..taken].fill(7);
    let expected = expected(&grid, rank, salt, output[..taken].to_vec());
    let (from, to) = (input.as_ptr().cast::<u8>(), output.as_mut_ptr().cast::<u8>());
    if started {
        let (input, output) = (&input[..given], &mut output[..taken]);
        let operation = Operation::allreduce(input, output, Operator::Sum);
        comm.scope(|scope| scope.start(operation)?.wait()).map_err(say)?;
    } else {
        // SAFETY: both buffers are as long as the collective needs.
        unsafe { comm.call(call, from, to) }.map_err(say)?;
    }
    if call.collective == Collective::Bcast && rank == call.root {
        return Ok(());
    }
    match output[..taken].iter().zip(&expected).position(|(found, wanted)| found != wanted) {
        None => Ok(()),
        Some(i) => {
            Err(format!("rank {rank} of {ranks}: element {i} is {}, expected {}", output[i], expected[i]))
        }
    }
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
