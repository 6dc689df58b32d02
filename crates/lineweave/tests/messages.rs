//! Messages between threads, and waits for peers that do not come.
#![cfg(not(loom))]

// Of the conformance cases only the messages are run here.
#[allow(dead_code)]
mod common;

use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Charter, Team};
use lineweave::{Communicator, Error, Operation};
use std::time::Duration;

#[test]
fn messages_arrive_between_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 5] {
        let lengths = [0, 1, 13, 1023, 1024, 1025, 8191, 8193, 100_000];
        let outcomes = team::threads(ranks, |mut comm| Ok(common::messages::messages(&mut comm, &lengths)));
        for outcome in outcomes.expect("the team runs") {
            cases += outcome.unwrap_or_else(|why| panic!("{why}"));
        }
    }
    println!("tally: conformance cases (messages, threads) {cases}");
}

#[test]
fn messages_arrive_however_ranks_wait() {
    for wait in [Wait::Yield, Wait::Sleep] {
        let settings = Settings { wait, ..Settings::default() };
        let team = Team::with(Charter::new(5, &settings).expect("a charter")).expect("a team");
        let outcomes = team.threads(|mut comm| Ok(common::messages::messages(&mut comm, &[1, 5000, 40_000])));
        for outcome in outcomes.expect("the team runs") {
            outcome.unwrap_or_else(|why| panic!("{wait:?}: {why}"));
        }
    }
}

#[test]
fn messages_go_on_beside_started_calls_in_every_kind_of_communicator() {
    for (ranks, helped) in [(2, false), (3, true), (5, false)] {
        let outcomes = team::threads(ranks, |mut comm| {
            let mut parts = vec![comm.dup()?];
            parts.extend(comm.split(Some(comm.rank() as u64 % 2), 0)?);
            let backwards: Vec<usize> = (0..ranks).rev().collect();
            parts.push(comm.create_group(&backwards)?);
            drop(comm);
            let mut all: Result<usize, String> = Ok(0);
            for part in &mut parts {
                part.set_progress_thread(helped);
                all = all
                    .and_then(|n| Ok(n + common::messages::messages(part, &[3, 5000, 50_000])?))
                    .and_then(|n| Ok(n + common::messages::beside_started(part)?));
            }
            Ok(all)
        });
        for outcome in outcomes.expect("the team runs") {
            outcome.unwrap_or_else(|why| panic!("{ranks} ranks: {why}"));
        }
    }
}

#[test]
fn rings_and_windows_are_told_of_and_given_back() {
    let told = team::threads(3, |mut comm| {
        let mut other = comm.dup()?;
        other.barrier()?;
        comm.barrier()?;
        let occupied = |comm: &Communicator| comm.segment().pool().occupied_bytes();
        let (before, stated) = (occupied(&comm)?, other.memory().shared_bytes);
        comm.barrier()?;
        other.sendrecv(&[1u8], (other.rank() + 1) % 3, 0, &mut [0u8], (other.rank() + 2) % 3, 0)?;
        other.window_create(100_000)?;
        comm.barrier()?;
        let used = (occupied(&comm)? - before, other.memory().shared_bytes - stated);
        comm.barrier()?;
        drop(other);
        comm.barrier()?;
        let left = occupied(&comm)?.cmp(&before);
        comm.barrier()?;
        Ok((used, left))
    });
    for ((used, stated), left) in told.expect("the team runs") {
        assert_eq!(used, stated as u64, "what the communicator says of itself");
        assert!(used > 3 * (100_000 + 8 * 4096), "{used} bytes");
        assert!(left.is_lt(), "pages of barriers, rings and windows are given back");
    }
}

#[test]
fn waiting_beside_started_calls_ends_like_any_other_wait() {
    let settings = Settings { timeout: Some(Duration::from_millis(300)), ..Settings::default() };
    for leaves in [true, false] {
        let team = Team::with(Charter::new(2, &settings).expect("a charter")).expect("a team");
        let errors = team
            .threads(|mut comm| {
                if comm.rank() == 1 {
                    if !leaves {
                        std::thread::sleep(Duration::from_millis(700));
                    }
                    return Ok(None);
                }
                let call = comm.start((), |()| Operation::barrier())?;
                let error = comm.send(&vec![1u8; 1 << 20], 1, 0).expect_err("nobody takes it");
                assert!(call.wait().is_err());
                Ok(Some(error))
            })
            .expect("ranks return");
        let expected = |error: &Error| match leaves {
            true => matches!(error, Error::PeerLost { rank: 1, .. }),
            false => matches!(error, Error::Timeout { .. } | Error::Failed(_)),
        };
        assert!(errors[0].as_ref().is_some_and(expected), "{errors:?}");
    }
}

#[test]
fn a_peer_that_does_not_come_ends_the_wait() {
    let said = team::threads(2, |mut comm| {
        let mut word = [0u64];
        match comm.rank() {
            0 => {
                comm.send(&[5u64], 1, 0)?;
                Ok(String::new())
            }
            _ => {
                // What it sent before it left still arrives.
                std::thread::sleep(Duration::from_millis(20));
                comm.recv(&mut word, 0, 0)?;
                assert_eq!(word, [5]);
                Ok(comm.recv(&mut word, 0, 0).expect_err("rank 0 left").to_string())
            }
        }
    })
    .expect("ranks return");
    assert!(
        said[1].contains("rank 0") && said[1].contains("left while rank 1 waited for it in recv"),
        "{}",
        said[1]
    );
}

#[test]
fn a_message_that_nobody_takes_times_out_and_is_taken_back() {
    let settings = Settings { timeout: Some(Duration::from_millis(100)), ..Settings::default() };
    let team = Team::with(Charter::new(2, &settings).expect("a charter")).expect("a team");
    let said = team
        .threads(|mut comm| {
            if comm.rank() == 0 {
                let message = vec![1u8; 1 << 20];
                let error = comm.send(&message, 1, 0).expect_err("nobody takes it");
                assert!(matches!(error, Error::Timeout { .. }), "{error}");
                return Ok(error.to_string());
            }
            std::thread::sleep(Duration::from_millis(400));
            // Its memory is gone, and is not read.
            let mut buffer = vec![0u8; 1 << 20];
            let error = comm.recv(&mut buffer, 0, 0).expect_err("it was taken back");
            assert!(buffer.iter().all(|&b| b == 0));
            Ok(error.to_string())
        })
        .expect("ranks return");
    assert!(said[0].contains("in send"), "{}", said[0]);
    assert!(said[1].contains("rank 0") && said[1].contains("failed"), "{}", said[1]);
}
