//! What one rank does, in a process of its own.

use crate::{children, common, started, SOCKET};
use lineweave::team;
use lineweave::{Communicator, Error, Operator};
use std::time::Duration;

/// The part of one rank.
pub fn rank(job: &str) -> i32 {
    if job == "several" {
        return several();
    }
    let joined = match std::env::var(SOCKET) {
        Ok(name) => team::connect(&name, None),
        Err(_) => team::from_environment(),
    };
    let outcome = joined.map_err(|e| e.to_string()).and_then(|mut comm| work(job, &mut comm));
    match outcome {
        Ok(text) => {
            println!("{text}");
            0
        }
        Err(why) => {
            println!("{why}");
            1
        }
    }
}

/// What a rank prints when all ranks are there.
pub const READY: &str = "ready";
/// The jobs that go on until a rank is killed.
const ENDLESS: [&str; 2] = ["sending", "splitting"];

fn work(job: &str, comm: &mut Communicator) -> Result<String, String> {
    let count = |outcome: common::Outcome| outcome.map(|n| n.to_string());
    if ENDLESS.contains(&job) {
        comm.barrier().map_err(|e| e.to_string())?;
        println!("{READY}");
    }
    match job {
        "algorithms" => count(common::algorithms(comm, &[0, 1, 13, 300, 9001], false)),
        "types" => count(common::calls::numbers(comm, &[0, 1, 7, 1023])),
        "messages" => {
            let lengths = [0, 1, 13, 1024, 1025, 8193, 100_000];
            let mut other = comm.dup().map_err(|e| e.to_string())?;
            let here = common::messages::messages(comm, &lengths)?;
            let there = common::messages::messages(&mut other, &lengths[3..])?;
            let beside = common::messages::beside_started(&mut other)?;
            count(Ok(here + there + beside))
        }
        "wide" => count(common::calls::wide(comm, &[0, 1, 7, 300])),
        "lengths" => {
            let lengths = common::lengths::around(&[320, 5120]);
            let cases = common::lengths::lengths(comm, &lengths)? + common::lengths::halves(comm, &lengths)?;
            Ok((cases + common::lengths::few_plans(comm)?).to_string())
        }
        "blocks" => {
            let sizes = [0, 1, 14, 257, 30_000];
            let even = common::calls::blocks_and_scans(comm, &sizes)?;
            let uneven = common::calls::uneven(comm, &[0, 2, 13, 999])? + common::uneven::many(comm, 150)?;
            Ok((even + uneven).to_string())
        }
        "mixed" => count(common::mixed(comm, 400)),
        "shared plans" => count(common::shared::plans(comm, &[0, 1, 13, 3001])),
        "shared" => count(common::shared::calls(comm, &[0, 1, 20_001], false).and_then(|done| {
            Ok(done + common::shared::in_place(comm, &[3, 20_001])? + common::shared::given_back(comm, 20)?)
        })),
        // The window, an element less and one more, and several windows.
        "shared around" => {
            count(common::shared::calls(comm, &[(1 << 18) - 1, 1 << 18, (1 << 18) + 1, 700_001], false))
        }
        // Longer than what a call asks from.
        "shared uneven" => {
            count(Ok(common::uneven::overlaps(comm)? + common::shared::calls(comm, &[13, 40_000], true)?))
        }
        "shared few" => count(common::shared::calls(comm, &[4097], false)),
        "children" => {
            // Ranks are in communicators of different sizes.
            let mut most = [children::every_kind(comm)? as u64 + children::again(comm)? as u64];
            comm.allreduce_in_place(&mut most, Operator::Max).map_err(|e| e.to_string())?;
            Ok(most[0].to_string())
        }
        "started" => count(started::every_collective(comm, &[0, 1, 13, 700])),
        "sending" => {
            // Rank 1 takes nothing: rank 0 waits for that, and rank 2 for a message of rank 0.
            let ended = match comm.rank() {
                0 => comm.send(&vec![1u8; 1 << 20], 1, 0),
                1 => loop {
                    std::thread::sleep(Duration::from_secs(1));
                },
                _ => comm.recv(&mut [0u8; 8], 0, 0).map(drop),
            };
            Ok(ended.expect_err("rank 1 takes nothing").to_string())
        }
        "splitting" => loop {
            let made = comm.split(Some(comm.rank() as u64 / 3), 0).and_then(|part| match part {
                Some(mut part) => part.dup()?.barrier(),
                None => Ok(()),
            });
            if let Err(e) = made {
                return Ok(e.to_string());
            }
        },
        "socket" => {
            comm.barrier().map_err(|e| e.to_string())?;
            Ok(format!("{} of {}", comm.rank(), comm.ranks()))
        }
        "sums" => sums(comm).map_err(|e| e.to_string()),
        "mismatch" => {
            let mut buffer = vec![1.0f32; if comm.rank() == 2 { 9 } else { 8 }];
            let outcome = comm.allreduce_in_place(&mut buffer, Operator::Sum);
            Ok(outcome.expect_err("counts differ").to_string())
        }
        other => Err(format!("no job {other}")),
    }
}

/// The process's threads, each a rank.
fn several() -> i32 {
    let members = team::members_from_environment().expect("ranks of this process");
    let mine = members.mine();
    let beyond = members.join(mine.end).expect_err("another process's, or nobody's").to_string();
    assert!(beyond.contains("it belongs to another process") || beyond.contains("no such rank"), "{beyond}");
    let work = &|rank: usize| -> Result<usize, String> {
        let mut comm = members.join(rank).map_err(|e| e.to_string())?;
        let done = common::mixed(&mut comm, 60)? + common::shared::calls(&mut comm, &[1, 9001], false)?;
        // The threads of a process are a communicator of threads.
        let here = mine.clone().collect::<Vec<_>>();
        let mut part = comm.create_group(&here).map_err(|e| e.to_string())?;
        let again = common::algorithms(&mut part, &[13, 3001], true)?;
        comm.barrier().map_err(|e| e.to_string())?;
        Ok(done + again)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = mine.clone().map(|rank| scope.spawn(move || work(rank))).collect();
        handles.into_iter().map(|handle| handle.join().expect("no rank panics")).collect()
    });
    match outcomes.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(counts) => {
            println!("done {counts:?}");
            0
        }
        Err(why) => {
            println!("{why}");
            1
        }
    }
}

/// The bits of ill-conditioned sums, through every folding collective.
pub fn sums(comm: &mut Communicator) -> Result<String, Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    comm.set_reproducible(true);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for n in [1, 70, 30_000] {
        let part = |i: usize| [1e16, -1e16, 3.0, 1e8][(rank + i) % 4] + (rank * 7 + i % 11) as f64 + 0.1;
        let input: Vec<f64> = (0..n).map(part).collect();
        let (mut all, mut upto, mut own) = (vec![0.0; n], vec![0.0; n], vec![0.0; n / ranks]);
        comm.allreduce(&input, &mut all, Operator::Sum)?;
        comm.scan(&input, &mut upto, Operator::Sum)?;
        comm.reduce_scatter_block(&input[..n / ranks * ranks], &mut own, Operator::Sum)?;
        for word in all.iter().chain(&upto).chain(&own) {
            hash = (hash ^ word.to_bits()).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}
