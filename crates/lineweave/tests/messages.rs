//! Messages between threads, and waits for peers that do not come.
#![cfg(not(loom))]

// Of the conformance cases only the messages are run here.
#[allow(dead_code)]
mod common;

use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Charter, Team};
use lineweave::Error;
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
