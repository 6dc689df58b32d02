//! The collectives that exchange blocks, and scans, through the calls a program makes, in place and not.

use super::{contribution, say, Outcome};
use lineweave::{Communicator, Operator};

/// Blocks of every length, each collective from several roots.
pub fn blocks(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for (salt, &n) in counts.iter().enumerate() {
        let of = |r: usize, len: usize| -> Vec<u32> { (0..len).map(|i| contribution(r, i, salt)).collect() };
        let (block, whole) = (of(rank, n), of(rank, n * ranks));
        let gathered: Vec<u32> = (0..ranks).flat_map(|r| of(r, n)).collect();
        let own = rank * n..rank * n + n;
        let check = |what: &str, found: &[u32], wanted: &[u32]| match found == wanted {
            true => Ok(()),
            false => Err(format!("{what} of blocks of {n} on {ranks} ranks: wrong at rank {rank}")),
        };
        let mut roots = vec![0, n % ranks, ranks - 1];
        roots.dedup();
        for root in roots {
            let mut out = vec![u32::MAX; if rank == root { n * ranks } else { 0 }];
            comm.gather(&block, &mut out, root).map_err(say)?;
            check("gather", &out, if rank == root { &gathered } else { &[] })?;
            let mut buffer = if rank == root { vec![u32::MAX; n * ranks] } else { block.clone() };
            if rank == root {
                buffer[own.clone()].copy_from_slice(&block);
            }
            comm.gather_in_place(&mut buffer, root).map_err(say)?;
            check("gather in place", &buffer, if rank == root { &gathered } else { &block })?;
            let given = of(root, n * ranks);
            let mut out = vec![u32::MAX; n];
            comm.scatter(if rank == root { &given } else { &[] }, &mut out, root).map_err(say)?;
            check("scatter", &out, &given[own.clone()])?;
            let mut buffer = if rank == root { given.clone() } else { vec![u32::MAX; n] };
            comm.scatter_in_place(&mut buffer, root).map_err(say)?;
            check("scatter in place", &buffer, if rank == root { &given } else { &given[own.clone()] })?;
            cases += 4;
        }
        let mut out = vec![u32::MAX; n * ranks];
        comm.allgather(&block, &mut out).map_err(say)?;
        check("allgather", &out, &gathered)?;
        let mut buffer = vec![u32::MAX; n * ranks];
        buffer[own.clone()].copy_from_slice(&block);
        comm.allgather_in_place(&mut buffer).map_err(say)?;
        check("allgather in place", &buffer, &gathered)?;
        let turned: Vec<u32> = (0..ranks).flat_map(|r| of(r, n * ranks)[own.clone()].to_vec()).collect();
        comm.alltoall(&whole, &mut out).map_err(say)?;
        check("alltoall", &out, &turned)?;
        let mut buffer = whole.clone();
        comm.alltoall_in_place(&mut buffer).map_err(say)?;
        check("alltoall in place", &buffer, &turned)?;
        let sums: Vec<u32> = own.map(|i| (0..ranks).map(|r| contribution(r, i, salt)).sum()).collect();
        let mut out = vec![u32::MAX; n];
        comm.reduce_scatter_block(&whole, &mut out, Operator::Sum).map_err(say)?;
        check("reduce-scatter", &out, &sums)?;
        let mut buffer = whole.clone();
        comm.reduce_scatter_block_in_place(&mut buffer, Operator::Sum).map_err(say)?;
        check("reduce-scatter in place", &buffer[..n], &sums)?;
        cases += 6;
    }
    Ok(cases)
}

/// Scans of every length, also of averages.
pub fn scans(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for &n in counts {
        let input: Vec<u32> = (0..n).map(|i| contribution(rank, i, n)).collect();
        let upto = |end: usize| -> Vec<u32> {
            (0..n).map(|i| (0..end).map(|r| contribution(r, i, n)).sum()).collect()
        };
        let check = |what: &str, found: &[u32], wanted: &[u32]| match found == wanted {
            true => Ok(()),
            false => Err(format!("{what} of {n} on {ranks} ranks: wrong at rank {rank}")),
        };
        let untouched = |wanted: Vec<u32>, before: &[u32]| if rank == 0 { before.to_vec() } else { wanted };
        let mut out = vec![7; n];
        comm.scan(&input, &mut out, Operator::Sum).map_err(say)?;
        check("scan", &out, &upto(rank + 1))?;
        let mut buffer = input.clone();
        comm.scan_in_place(&mut buffer, Operator::Sum).map_err(say)?;
        check("scan in place", &buffer, &upto(rank + 1))?;
        comm.scan(&input, &mut out, Operator::Avg).map_err(say)?;
        let mean: Vec<u32> = upto(rank + 1).iter().map(|sum| sum / (rank as u32 + 1)).collect();
        check("scan of averages", &out, &mean)?;
        let mut out = vec![7; n];
        comm.exscan(&input, &mut out, Operator::Sum).map_err(say)?;
        check("exscan", &out, &untouched(upto(rank), &vec![7; n]))?;
        let mut buffer = input.clone();
        comm.exscan_in_place(&mut buffer, Operator::Sum).map_err(say)?;
        check("exscan in place", &buffer, &untouched(upto(rank), &input))?;
        cases += 5;
    }
    Ok(cases)
}
