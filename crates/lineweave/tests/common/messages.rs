//! Messages between pairs of ranks: every length, tags out of order, rings of exchanges, and what is refused.

use super::{contribution, say, Outcome};
use lineweave::{Communicator, Error, Operation, Operator};

fn message(from: usize, to: usize, len: usize, salt: usize) -> Vec<u32> {
    (0..len)
        .map(|i| contribution(from, i, salt) + 16 * (from * 64 + to) as u32 + ((i as u32) << 16))
        .collect()
}

/// Every pair of ranks exchanges messages of these lengths, in elements of 4 bytes.
pub fn messages(comm: &mut Communicator, lengths: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    let wrong =
        |what: &str, len: usize| format!("{what} of {len} elements on {ranks} ranks: wrong at rank {rank}");
    for (salt, &len) in lengths.iter().enumerate() {
        // 1. From each to the next, in turn.
        let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        if ranks > 1 {
            let mut got = vec![u32::MAX; len];
            for turn in 0..2 {
                if rank % 2 == turn && (rank + 1 < ranks || ranks % 2 == 0) {
                    comm.send(&message(rank, next, len, salt), next, 3).map_err(say)?;
                } else if last % 2 == turn && (last + 1 < ranks || ranks % 2 == 0) {
                    let n = comm.recv(&mut got, last, 3).map_err(say)?;
                    if n != len || got != message(last, rank, len, salt) {
                        return Err(wrong("a message", len));
                    }
                }
            }
        }
        // 2. All at once, round the ring and to oneself, into a buffer that is longer.
        for hop in 0..ranks {
            let (to, from) = ((rank + hop) % ranks, (rank + ranks - hop) % ranks);
            let mut got = vec![u32::MAX; len + 3];
            let n = comm
                .sendrecv(&message(rank, to, len, salt + hop), to, hop as u32, &mut got, from, hop as u32)
                .map_err(say)?;
            if n != len || got[..n] != message(from, rank, len, salt + hop) || got[n..] != [u32::MAX; 3] {
                return Err(wrong("an exchange", len));
            }
            cases += 1;
        }
        cases += 1;
    }
    Ok(cases + order(comm)? + refusals(comm)? + windows(comm)?)
}

/// Tags are asked for in another order than messages are sent in; those of one tag keep theirs.
fn order(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let tags = [5, 9, 5, 9, 5, 0, 9];
    if rank == 0 {
        for to in 1..ranks {
            for (i, &tag) in tags.iter().enumerate() {
                comm.send(&vec![i as u64; 1 + 40 * i], to, tag).map_err(say)?;
            }
        }
        return Ok(1);
    }
    for (wanted, tag) in [(1, 9), (3, 9), (5, 0), (0, 5), (6, 9), (2, 5), (4, 5)] {
        let mut got = [u64::MAX; 300];
        let n = comm.recv(&mut got, 0, tag).map_err(say)?;
        if n != 1 + 40 * wanted || got[..n].iter().any(|&g| g != wanted as u64) {
            return Err(format!(
                "tag {tag} at rank {rank}: message {} of {n} elements, not {wanted}",
                got[0]
            ));
        }
    }
    Ok(1)
}

/// Each rank puts into the windows of all others, and they read what their flags say is there.
fn windows(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    comm.window_create(ranks * 4000).map_err(say)?;
    for round in 1..=3 {
        for to in (0..ranks).map(|d| (rank + d) % ranks) {
            // SAFETY: each rank has a part of every window to itself, which is read after its flag, and written again
            // after a barrier.
            unsafe { comm.put(to, rank * 4000, &message(rank, to, 1000, round)) }.map_err(say)?;
            comm.flag_set(to, rank, round as u64).map_err(say)?;
        }
        for from in 0..ranks {
            comm.flag_wait(from, round as u64).map_err(say)?;
            let mut got = vec![0u32; 1000];
            // SAFETY: as above.
            unsafe { comm.get(rank, from * 4000, &mut got) }.map_err(say)?;
            if got != message(from, rank, 1000, round) {
                return Err(format!("what rank {from} put into the window of rank {rank} is wrong"));
            }
        }
        comm.barrier().map_err(say)?;
    }
    // SAFETY: nothing is accessed.
    let outside = unsafe { comm.put(0, ranks * 4000 - 3, &[0u32]) };
    match (outside, comm.flag_wait(64, 1), comm.flag_set(ranks, 0, 1)) {
        (Err(Error::Window { .. }), Err(Error::Window { .. }), Err(Error::NoRank { .. })) => Ok(3),
        other => Err(format!("not refused: {other:?}")),
    }
}

/// What is refused leaves the communicator usable.
fn refusals(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let expect = |what: &str, holds: bool| if holds { Ok(()) } else { Err(format!("{what} at rank {rank}")) };
    expect("a send to nobody", matches!(comm.send(&[1u8], ranks, 0), Err(Error::NoRank { .. })))?;
    expect("a recv from nobody", matches!(comm.recv(&mut [1u8], ranks, 0), Err(Error::NoRank { .. })))?;
    let large = vec![0u8; 1 << 20];
    expect("a large send to itself", matches!(comm.send(&large, rank, 0), Err(Error::ToItself { .. })))?;
    comm.send(&[7u8; 100], rank, 1).map_err(say)?;
    let mut small = [0u8; 99];
    match comm.recv(&mut small, rank, 1) {
        Err(Error::Truncated { sent: 100, room: 99, tag: 1, .. }) => {}
        other => return Err(format!("100 bytes for 99 at rank {rank}: {other:?}")),
    }
    if ranks > 1 && rank < 2 {
        // A long message is cut too, and what comes behind it arrives. In both directions at once.
        let peer = 1 - rank;
        let mut short = vec![0u8; 70_000];
        let cut = comm.sendrecv(&large[..100_000], peer, 2, &mut short, peer, 2);
        expect(
            "a long message that is cut",
            matches!(cut, Err(Error::Truncated { sent: 100_000, room: 70_000, .. })),
        )?;
        let mut byte = [0u8];
        comm.sendrecv(&[rank as u8 + 3], peer, 2, &mut byte, peer, 2).map_err(say)?;
        expect("what comes behind", byte[0] == peer as u8 + 3)?;
        if rank == 0 {
            for _ in 0..40 {
                comm.send(&large[..30_000], 1, 8).map_err(say)?;
            }
            comm.send(&[1u8], 1, 9).map_err(say)?;
        } else {
            // 40 messages of 30 kB are more than are kept.
            let refused = comm.recv(&mut byte, 0, 9);
            expect("too many others first", matches!(refused, Err(Error::Unexpected { tag: 9, .. })))?;
            for _ in 0..40 {
                let n = comm.recv(&mut short, 0, 8).map_err(say)?;
                expect("a message that was kept", n == 30_000)?;
            }
            comm.recv(&mut byte, 0, 9).map_err(say)?;
            expect("the one behind them", byte[0] == 1)?;
        }
    }
    comm.barrier().map_err(say)?;
    Ok(8)
}

/// Messages and flags that a peer wants before it makes the calls that this rank has started, and other orders.
pub fn beside_started(comm: &mut Communicator) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    comm.window_create(64).map_err(say)?;
    let mut cases = 0;
    // What a rank sends to itself has to fit the ring.
    let lengths = if ranks > 1 { [1, 3000, 90_000] } else { [1, 3000, 5000] };
    for (turn, len) in lengths.into_iter().enumerate() {
        for first in 0..ranks {
            let start = |comm: &mut Communicator| {
                let buffers = (vec![rank as u64 + 1; 5000], vec![0; 5000]);
                comm.start(buffers, |(mine, sum)| Operation::allreduce(mine, sum, Operator::Sum)).map_err(say)
            };
            // 1. One rank starts its calls before the messages, the others after them.
            let early = if rank == first { vec![start(comm)?, start(comm)?] } else { Vec::new() };
            let mut got = vec![0; len];
            // 2. A message goes round, and a flag.
            if rank == first {
                comm.send(&message(rank, next, len, turn), next, 1).map_err(say)?;
                comm.recv(&mut got, last, 1).map_err(say)?;
            } else {
                comm.recv(&mut got, last, 1).map_err(say)?;
                comm.send(&message(rank, next, len, turn), next, 1).map_err(say)?;
            }
            let exchanged = comm.sendrecv(&message(rank, next, len, 9), next, 2, &mut vec![0; len], last, 2);
            let value = (turn * ranks + first + 1) as u64;
            comm.flag_set(next, 0, value).map_err(say)?;
            comm.flag_wait(0, value).map_err(say)?;
            if got != message(last, rank, len, turn) || exchanged.map_err(say)? != len {
                return Err(format!("a message of {len} beside started calls: wrong at rank {rank}"));
            }
            // 3. The calls are over with everybody's.
            let calls = if rank == first { early } else { vec![start(comm)?, start(comm)?] };
            for call in calls {
                let (_, sum) = call.wait().map_err(say)?;
                if sum.iter().any(|&s| s != (ranks * (ranks + 1) / 2) as u64) {
                    return Err(format!("a started call beside messages of {len}: wrong at rank {rank}"));
                }
            }
            cases += 1;
        }
    }
    Ok(cases)
}
