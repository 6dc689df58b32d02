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

/// Lengths from 0 to `most`, all of it for someone.
fn lengths(n: usize, most: usize, salt: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..n).map(|i| most * ((i * 5 + salt) % 4) / 3).collect();
    counts[n / 2] = most;
    counts
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

/// The same calls with buffers in shared memory: of all ranks, of all but one, and in place.
pub fn shared(comm: &mut Communicator, longest: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let most = longest.iter().copied().max().unwrap_or(0) * ranks * ranks;
    let mut given = comm.alloc::<u32>(most).map_err(say)?;
    let mut taken = comm.alloc::<u32>(most).map_err(say)?;
    let mut own = [vec![0u32; most], vec![0u32; most]];
    let mut cases = 0;
    for (salt, &most) in longest.iter().enumerate() {
        for private in [None, Some(salt % ranks)] {
            let [a, b]: [&mut [u32]; 2] = match private {
                Some(other) if other == rank => own.each_mut().map(|buffer| &mut buffer[..]),
                _ => [&mut given, &mut taken],
            };
            cases += by_rank_in(comm, most, salt, a, b)?;
        }
    }
    Ok(cases)
}

fn by_rank_in(
    comm: &mut Communicator,
    most: usize,
    salt: usize,
    given: &mut [u32],
    taken: &mut [u32],
) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let counts = lengths(ranks, most, most);
    let of = |r: usize, len: usize| -> Vec<u32> { (0..len).map(|i| contribution(r, i, salt)).collect() };
    let (n, total, start) = (counts[rank], sum(&counts), sum(&counts[..rank]));
    let gathered: Vec<u32> = (0..ranks).flat_map(|r| of(r, counts[r])).collect();
    let sums: Vec<u32> =
        (start..start + n).map(|i| (0..ranks).map(|r| contribution(r, i, salt)).sum()).collect();
    let check = |what: &str, found: &[u32], wanted: &[u32]| match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} of {counts:?} on {ranks} ranks, shared: wrong at rank {rank}")),
    };
    let root = salt % ranks;
    given[..total].copy_from_slice(&of(rank, total));
    taken.fill(u32::MAX);
    comm.allgatherv(&given[..n], &mut taken[..total], &counts).map_err(say)?;
    check("allgatherv", &taken[..total], &gathered)?;
    taken.fill(u32::MAX);
    let out = if rank == root { total } else { 0 };
    comm.gatherv(&given[..n], &mut taken[..out], &counts, root).map_err(say)?;
    check("gatherv", &taken[..out], &gathered[..out])?;
    let whole = if rank == root { total } else { 0 };
    comm.scatterv(&given[..whole], &mut taken[..n], &counts, root).map_err(say)?;
    check("scatterv", &taken[..n], &of(root, total)[start..start + n])?;
    comm.reduce_scatter(&given[..total], &mut taken[..n], &counts, Operator::Sum).map_err(say)?;
    check("reduce-scatter", &taken[..n], &sums)?;
    comm.reduce_scatter_in_place(&mut given[..total], &counts, Operator::Sum).map_err(say)?;
    check("reduce-scatter in place", &given[..n], &sums)?;
    // One rank in place, the others not.
    let mine = of(rank, n);
    given[..n].copy_from_slice(&mine);
    taken.fill(u32::MAX);
    if rank == 0 {
        taken[start..start + n].copy_from_slice(&mine);
        comm.allgatherv_in_place(&mut taken[..total], &counts).map_err(say)?;
    } else {
        comm.allgatherv(&given[..n], &mut taken[..total], &counts).map_err(say)?;
    }
    check("allgatherv, in place at one rank", &taken[..total], &gathered)?;
    let started = lineweave::Operation::allgatherv(&given[..n], &mut taken[..total], &counts);
    comm.scope(|scope| scope.start(started)?.wait()).map_err(say)?;
    check("allgatherv, started", &taken[..total], &gathered)?;
    // From rank i to rank j, as many as the longer of their blocks.
    let pair = |i: usize, j: usize| counts[i.max(j)].min(most);
    let row: Vec<usize> = (0..ranks).map(|j| pair(rank, j)).collect();
    let all = sum(&row);
    given[..all].copy_from_slice(&of(rank, all));
    comm.alltoallv(&given[..all], &row, &mut taken[..all], &row).map_err(say)?;
    let wanted: Vec<u32> = (0..ranks)
        .flat_map(|i| {
            let before: usize = (0..rank).map(|j| pair(i, j)).sum();
            let theirs: usize = (0..ranks).map(|j| pair(i, j)).sum();
            of(i, theirs)[before..before + pair(i, rank)].to_vec()
        })
        .collect();
    check("alltoallv", &taken[..all], &wanted)?;
    Ok(8)
}
