//! Messages between threads, and waits for peers that do not come.

use crate::{common, most, run};
use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Team, TeamConfig};
use lineweave::{Communicator, Error, Operation};
use std::sync::Barrier;
use std::time::Duration;

#[test]
fn messages_arrive_between_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 5] {
        let lengths = [0, 1, 13, 1023, 1024, 1025, 8191, 8193, 100_000];
        cases += run(ranks, |comm| common::messages::messages(comm, &lengths));
    }
    println!("tally: conformance cases (messages, threads) {cases}");
}

#[test]
fn messages_arrive_however_ranks_wait() {
    for wait in [Wait::Yield, Wait::Sleep] {
        let settings = Settings { wait, ..Settings::default() };
        let team = Team::with(TeamConfig::new(5, &settings).expect("a configuration")).expect("a team");
        let outcomes = team.threads(|mut comm| Ok(common::messages::messages(&mut comm, &[1, 5000, 40_000])));
        most(outcomes.expect("the team runs"));
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
        assert!(left.is_eq(), "pages of rings and windows are given back, and those of barriers kept");
    }
}

#[test]
fn waiting_beside_started_calls_ends_like_any_other_wait() {
    let settings = Settings { timeout: Some(Duration::from_millis(300)), ..Settings::default() };
    for leaves in [true, false] {
        let team = Team::with(TeamConfig::new(2, &settings).expect("a configuration")).expect("a team");
        let told = Barrier::new(2);
        let errors = team
            .threads(|mut comm| {
                if comm.rank() == 1 {
                    if !leaves {
                        told.wait();
                    }
                    return Ok(None);
                }
                let call = comm.start((), |()| Operation::barrier())?;
                let error = comm.send(&vec![1u8; 1 << 20], 1, 0).expect_err("nobody takes it");
                let ended = call.wait();
                if !leaves {
                    told.wait();
                }
                assert!(ended.is_err());
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
    let left = Barrier::new(2);
    let said = team::threads(2, |mut comm| {
        let mut word = [0u64];
        match comm.rank() {
            0 => {
                comm.send(&[5u64], 1, 0)?;
                drop(comm);
                left.wait();
                Ok(String::new())
            }
            _ => {
                // What it sent before it left still arrives.
                left.wait();
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
    let team = Team::with(TeamConfig::new(2, &settings).expect("a configuration")).expect("a team");
    let taken_back = Barrier::new(2);
    let said = team
        .threads(|mut comm| {
            if comm.rank() == 0 {
                let message = vec![1u8; 1 << 20];
                let error = comm.send(&message, 1, 0).expect_err("nobody takes it");
                drop(message);
                taken_back.wait();
                assert!(matches!(error, Error::Timeout { .. }), "{error}");
                return Ok(error.to_string());
            }
            taken_back.wait();
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

/// A message of `bytes` bytes that `from` sends under `tag`.
fn content(from: usize, tag: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + from * 31 + tag as usize * 3) as u8).collect()
}

#[test]
fn started_messages_are_sorted_by_tag_and_carried_on_by_other_calls() {
    // Short ones, longer than a ring, and longer than what is kept of messages that nobody asked for.
    let sizes = [(0u32, 10usize), (1, 100_000), (2, 3_000_000), (3, 0)];
    for (ranks, helped) in [(2, false), (3, true), (4, false)] {
        let outcomes = team::threads(ranks, |mut comm| {
            comm.set_progress_thread(helped);
            let me = comm.rank();
            let peers: Vec<usize> = (0..ranks).collect();
            let given: Vec<Vec<u8>> = sizes.iter().map(|&(tag, n)| content(me, tag, n)).collect();
            let mut taken = vec![Vec::new(); ranks * sizes.len()];
            let mut messages = Vec::new();
            // Receives in the opposite order of sends.
            for &peer in &peers {
                for (i, &(tag, n)) in sizes.iter().enumerate().rev() {
                    let room = &mut taken[peer * sizes.len() + i];
                    room.resize(n, 0);
                    // SAFETY: rooms are not touched before all messages are over.
                    messages.push(unsafe { comm.irecv_bytes(room.as_mut_ptr(), n, peer, tag) }?);
                }
            }
            let mut sent = Vec::new();
            for &peer in &peers {
                for (message, &(tag, n)) in given.iter().zip(&sizes) {
                    // SAFETY: as above.
                    sent.push(unsafe { comm.isend_bytes(message.as_ptr(), n, peer, tag) }?);
                }
            }
            // Neither waits for the other.
            comm.barrier()?;
            if me % 2 == 0 {
                sent.reverse();
            }
            for message in &sent {
                assert_eq!(comm.wait_message(message)?, 0);
            }
            for message in &mut messages {
                while comm.test_message(message)?.is_none() {
                    std::thread::yield_now();
                }
            }
            for &peer in &peers {
                for (i, &(tag, n)) in sizes.iter().enumerate() {
                    assert!(
                        taken[peer * sizes.len() + i] == content(peer, tag, n),
                        "rank {me} from {peer}, tag {tag}"
                    );
                }
            }
            // The rings are the calls' again that block.
            let mut word = [0u8];
            comm.sendrecv(&[me as u8], (me + 1) % ranks, 9, &mut word, (me + ranks - 1) % ranks, 9)?;
            assert_eq!(usize::from(word[0]), (me + ranks - 1) % ranks);
            comm.barrier()
        });
        outcomes.expect("the team runs");
    }
}

#[test]
fn calls_that_block_line_up_behind_started_messages_and_probes_tell_what_came() {
    let outcomes = team::threads(2, |mut comm| {
        let other = 1 - comm.rank();
        let mut late = vec![0u8; 40_000];
        if comm.rank() == 0 {
            let (first, second) = (content(0, 5, 2_000_000), content(0, 6, 40_000));
            // SAFETY: both live until they are over.
            let started = unsafe { comm.isend_bytes(first.as_ptr(), first.len(), other, 5) }?;
            comm.send(&second, other, 6)?;
            comm.wait_message(&started)?;
            comm.send(&[1u8], other, 7)?;
            comm.barrier()?;
            return Ok(());
        }
        // SAFETY: it lives until it is over.
        let last = unsafe { comm.irecv_bytes(late.as_mut_ptr(), 40_000, other, 6) }?;
        // What comes first is longer than what is kept, and is asked for only now.
        match comm.wait_message(&last) {
            Err(Error::Unexpected { .. }) => {}
            unexpected => panic!("{unexpected:?}"),
        }
        assert_eq!(comm.probe(None, 5, true)?, Some((0, 2_000_000)));
        let mut room = vec![0u8; 2_000_000];
        assert_eq!(comm.recv(&mut room, other, 5)?, 2_000_000);
        assert!(room == content(0, 5, 2_000_000));
        assert_eq!(comm.recv(&mut late, other, 6)?, 40_000);
        assert!(late == content(0, 6, 40_000));
        assert_eq!(comm.probe(Some(other), 7, true)?, Some((0, 1)));
        assert_eq!(comm.probe(Some(other), 8, false)?, None);
        assert_eq!(comm.recv(&mut [0u8], other, 7)?, 1);
        // One that is too long for its room.
        comm.barrier()?;
        assert!(matches!(comm.probe(Some(2), 0, false), Err(Error::NoRank { .. })));
        Ok(())
    });
    outcomes.expect("the team runs");
}

#[test]
fn a_started_message_whose_peer_leaves_says_so() {
    let outcomes = team::threads(2, |mut comm| {
        let mut room = vec![0u8; 100];
        if comm.rank() == 1 {
            let big = content(1, 0, 200_000);
            // SAFETY: it lives longer than the communicator, whose end is the message's.
            let _lost = unsafe { comm.isend_bytes(big.as_ptr(), big.len(), 0, 0) }?;
            drop(comm);
            return Ok(());
        }
        // SAFETY: it lives until it is over.
        let message = unsafe { comm.irecv_bytes(room.as_mut_ptr(), 100, 1, 3) }?;
        match comm.wait_message(&message) {
            Err(Error::PeerLost { rank: 1, .. }) => Ok(()),
            unexpected => panic!("{unexpected:?}"),
        }
    });
    outcomes.expect("the team runs");
}
