//! The collectives with blocks of different lengths.

use super::{contribution, say, Outcome};
use lineweave::{Communicator, Operator};

/// Blocks of lengths up to each of `longest`; the lengths come twice, as the second call finds its plans ready.
pub fn uneven(comm: &mut Communicator, longest: &[usize]) -> Outcome {
    let mut cases = 0;
    for (salt, &most) in longest.iter().enumerate() {
        for turn in 0..2 {
            cases += by_rank(comm, most, salt + turn)?;
            cases += by_pair(comm, most, salt + turn)?;
        }
    }
    Ok(cases)
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

fn by_rank(comm: &mut Communicator, most: usize, salt: usize) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    // The salt of the data differs from that of the lengths, which come twice.
    let counts = lengths(ranks, most, most);
    let of = |r: usize, len: usize| -> Vec<u32> { (0..len).map(|i| contribution(r, i, salt)).collect() };
    let (n, total, start) = (counts[rank], sum(&counts), sum(&counts[..rank]));
    let (block, whole) = (of(rank, n), of(rank, total));
    let own = start..start + n;
    let gathered: Vec<u32> = (0..ranks).flat_map(|r| of(r, counts[r])).collect();
    let check = |what: &str, found: &[u32], wanted: &[u32]| match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} of {counts:?} on {ranks} ranks: wrong at rank {rank}")),
    };
    for root in [salt % ranks, ranks - 1] {
        let mut out = vec![u32::MAX; if rank == root { total } else { 0 }];
        comm.gatherv(&block, &mut out, &counts, root).map_err(say)?;
        check("gatherv", &out, if rank == root { &gathered } else { &[] })?;
        let mut buffer = if rank == root { vec![u32::MAX; total] } else { block.clone() };
        if rank == root {
            buffer[own.clone()].copy_from_slice(&block);
        }
        comm.gatherv_in_place(&mut buffer, &counts, root).map_err(say)?;
        check("gatherv in place", &buffer, if rank == root { &gathered } else { &block })?;
        let given = of(root, total);
        let mut out = vec![u32::MAX; n];
        comm.scatterv(if rank == root { &given } else { &[] }, &mut out, &counts, root).map_err(say)?;
        check("scatterv", &out, &given[own.clone()])?;
        let mut buffer = if rank == root { given.clone() } else { vec![u32::MAX; n] };
        comm.scatterv_in_place(&mut buffer, &counts, root).map_err(say)?;
        check("scatterv in place", &buffer, if rank == root { &given } else { &given[own.clone()] })?;
    }
    let mut out = vec![u32::MAX; total];
    comm.allgatherv(&block, &mut out, &counts).map_err(say)?;
    check("allgatherv", &out, &gathered)?;
    let mut buffer = vec![u32::MAX; total];
    buffer[own.clone()].copy_from_slice(&block);
    comm.allgatherv_in_place(&mut buffer, &counts).map_err(say)?;
    check("allgatherv in place", &buffer, &gathered)?;
    let sums: Vec<u32> = own.map(|i| (0..ranks).map(|r| contribution(r, i, salt)).sum()).collect();
    let mut out = vec![u32::MAX; n];
    comm.reduce_scatter(&whole, &mut out, &counts, Operator::Sum).map_err(say)?;
    check("reduce-scatter", &out, &sums)?;
    let mut buffer = whole.clone();
    comm.reduce_scatter_in_place(&mut buffer, &counts, Operator::Sum).map_err(say)?;
    check("reduce-scatter in place", &buffer[..n], &sums)?;
    Ok(12)
}

fn by_pair(comm: &mut Communicator, most: usize, salt: usize) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let counts = lengths(ranks * ranks, most, most);
    let of = |r: usize, len: usize| -> Vec<u32> { (0..len).map(|i| contribution(r, i, salt)).collect() };
    let alltoallv = |comm: &mut Communicator, count: &dyn Fn(usize, usize) -> usize, in_place: bool| {
        let row = |i: usize| (0..ranks).map(|j| count(i, j)).collect::<Vec<usize>>();
        let (given, taken) = (row(rank), (0..ranks).map(|i| count(i, rank)).collect::<Vec<usize>>());
        let input = of(rank, sum(&given));
        let wanted: Vec<u32> = (0..ranks)
            .flat_map(|i| {
                let theirs = row(i);
                let start = sum(&theirs[..rank]);
                of(i, sum(&theirs))[start..start + theirs[rank]].to_vec()
            })
            .collect();
        let found = if in_place {
            let mut buffer = input;
            comm.alltoallv_in_place(&mut buffer, &given).map_err(say)?;
            buffer
        } else {
            let mut out = vec![u32::MAX; sum(&taken)];
            comm.alltoallv(&input, &given, &mut out, &taken).map_err(say)?;
            out
        };
        match found == wanted {
            true => Ok(()),
            false => Err(format!("alltoallv up to {most} on {ranks} ranks: wrong at rank {rank}")),
        }
    };
    alltoallv(comm, &|i, j| counts[i * ranks + j], false)?;
    // In place each pair gives as much as it takes.
    alltoallv(comm, &|i, j| counts[i.min(j) * ranks + i.max(j)], true)?;
    Ok(2)
}
