//! The collectives with blocks of different lengths.

use super::{contribution, say, Outcome};
use lineweave::{CallSpec, Communicator, ElementType, Error, Operator};
use lineweave_core::collective::Collective;

/// So many tables of lengths, each another one, of which few plans are held. Short ones and long ones, with blocks that are empty, and all of one.
pub fn many(comm: &mut Communicator, tables: usize) -> Outcome {
    // With plans of its own.
    let comm = &mut comm.dup().map_err(say)?;
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    // Of one rank no two blocks differ.
    let tables = if ranks == 1 { 0 } else { tables };
    for table in 0..tables {
        let most = [3, 20, 200, 2000][table % 4] + table;
        let counts: Vec<usize> = (0..ranks)
            .map(|r| match (r * 7 + table * 3) % ranks {
                0 if ranks > 2 => 0,
                part => most - part * most / (2 * ranks),
            })
            .collect();
        let total = sum(&counts);
        let of = |r: usize, len: usize| -> Vec<u32> { (0..len).map(|i| contribution(r, i, table)).collect() };
        let gathered: Vec<u32> = (0..ranks).flat_map(|r| of(r, counts[r])).collect();
        let mut all = vec![u32::MAX; total];
        comm.allgatherv(&of(rank, counts[rank]), &mut all, &counts).map_err(say)?;
        let start = sum(&counts[..rank]);
        let sums = |i| (0..ranks).fold(0u32, |sum, r| sum.wrapping_add(contribution(r, i, table)));
        let mut part = vec![u32::MAX; counts[rank]];
        comm.reduce_scatter(&of(rank, total), &mut part, &counts, Operator::Sum).map_err(say)?;
        if all != gathered || part != (start..start + counts[rank]).map(sums).collect::<Vec<_>>() {
            return Err(format!("table {table} of {counts:?}: wrong at rank {rank} of {ranks}"));
        }
        cases += 2;
    }
    // Some twenty classes of lengths, two collectives.
    match comm.setup().plans {
        0..=48 => Ok(cases),
        held => Err(format!("{held} plans are held after {tables} tables of lengths")),
    }
}

fn sum(counts: &[usize]) -> usize {
    counts.iter().sum()
}

/// Input and output that overlap in a way that no call in place has are refused at every rank, before anything moves.
pub fn overlaps(comm: &mut Communicator) -> Outcome {
    let ranks = comm.ranks();
    let counts: Vec<usize> = (1..=ranks).collect();
    let pairs: Vec<usize> = (0..ranks * ranks).map(|i| 1 + i / ranks + i % ranks).collect();
    let mut buffer = vec![3u32; 8 * ranks * ranks + 8];
    let calls = [Collective::Allgather, Collective::ReduceScatter, Collective::Alltoall];
    for collective in calls {
        let operator = collective.folds().then_some(Operator::Sum);
        let call = CallSpec { collective, element: ElementType::U32, count: 0, operator, root: 0 };
        let counts = if collective == Collective::Alltoall { &pairs } else { &counts };
        let start = buffer.as_mut_ptr();
        // An element from where the call in place would have it; for the allgather the last element of all.
        let last = counts[..ranks].iter().sum::<usize>() - 1;
        let (from, to) = match collective {
            Collective::Allgather => (start.wrapping_add(last), start),
            _ => (start, start.wrapping_add(1)),
        };
        // SAFETY: the buffer is longer than all blocks together and those before them.
        let refused = unsafe { comm.call_uneven(&call, counts, from.cast(), to.cast()) };
        if !matches!(refused, Err(Error::Overlap { collective: c }) if c == collective) {
            return Err(format!("{collective}: overlapping buffers were not refused: {refused:?}"));
        }
    }
    comm.barrier().map_err(say)?;
    match buffer.iter().all(|&x| x == 3) {
        true => Ok(calls.len()),
        false => Err("a refused call has moved something".to_owned()),
    }
}
