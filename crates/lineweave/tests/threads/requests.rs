//! Started and persistent calls, among threads.

#[path = "../common/started.rs"]
mod started;

use crate::run;
use lineweave::settings::Settings;
use lineweave::team::{self, Team, TeamConfig};
use lineweave::{Communicator, Error, Operation, Operator, Request};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

/// A contribution and the sum.
type Sum = Request<(Vec<u64>, Vec<u64>)>;

fn sum(comm: &mut Communicator, mine: u64) -> Result<Sum, Error> {
    comm.start((vec![mine], vec![0]), |(mine, all)| Operation::allreduce(mine, all, Operator::Sum))
}

#[test]
fn every_collective_is_right_when_started() {
    let mut cases = 0;
    for ranks in 1..=9 {
        cases += run(ranks, |comm| started::every_collective(comm, &[0, 1, 5, 600]));
    }
    // Several windows.
    cases += run(2, |comm| started::every_collective(comm, &[(1 << 18) + 1]));
    println!("tally: conformance cases (started calls, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn every_collective_is_right_with_a_helper_thread() {
    for ranks in [2, 3, 5] {
        run(ranks, |comm| {
            comm.set_progress_thread(true);
            started::every_collective(comm, &[0, 3, 700])
        });
    }
}

#[test]
fn communicators_are_waited_for_in_any_order() {
    let sums = team::threads(4, |mut a| {
        let mut b = a.dup()?;
        let rank = a.rank() as u64;
        let mut total = 0;
        for turn in 0..50 {
            let (first, second) = (sum(&mut a, rank)?, sum(&mut b, rank + turn)?);
            // Even ranks wait for B first and odd ones for A; some block in the other communicator in between.
            let [first, second] = match rank % 2 {
                0 => {
                    let second = second.wait()?;
                    [first.wait()?, second]
                }
                _ => [first.wait()?, second.wait()?],
            };
            total += first.1[0] + second.1[0];
            let request = sum(&mut a, 1)?;
            if rank % 3 == 0 {
                b.barrier()?;
                total += request.wait()?.1[0];
            } else {
                total += request.wait()?.1[0];
                b.barrier()?;
            }
        }
        Ok(total)
    });
    let wanted = (0..50).map(|turn| 6 + 6 + 4 * turn + 4).sum::<u64>();
    assert_eq!(sums.expect("the team runs"), [wanted; 4]);
}

#[test]
fn dropped_and_forgotten_requests_go_on() {
    team::threads(3, |mut comm| {
        for turn in 0..20 {
            drop(sum(&mut comm, 1)?);
            std::mem::forget(sum(&mut comm, 2)?);
            let request = sum(&mut comm, turn)?;
            if turn % 2 == 0 {
                comm.barrier()?;
            }
            assert_eq!(request.wait()?.1[0], 3 * turn);
        }
        // The last ones are completed by leaving.
        drop(sum(&mut comm, 1)?);
        let left = sum(&mut comm, 5)?;
        drop(comm);
        assert_eq!(left.wait()?.1[0], 15);
        Ok(())
    })
    .expect("the team runs");
}

#[test]
fn persistent_calls_are_started_again() {
    for ranks in [1, 2, 5] {
        run(ranks, |comm| {
            let cases = started::calls(6);
            let parts: Vec<_> = cases.iter().map(|case| case.part(comm, 1)).collect();
            let mut calls = Vec::new();
            for part in &parts {
                let again = part.clone().into_owned();
                calls.push(
                    comm.init(part.buffers::<u32>(), move |b| again.describe(b.parts()))
                        .map_err(|e| e.to_string())?,
                );
            }
            let mut done = 0;
            for _ in 0..3 {
                // New buffers, which have other addresses.
                for (call, part) in calls.iter_mut().zip(&parts) {
                    *call.buffers().map_err(|e| e.to_string())? = part.buffers();
                }
                for call in &mut calls {
                    call.start(comm).map_err(|e| e.to_string())?;
                }
                let refused = calls[3].start(comm).expect_err("it is active");
                assert!(matches!(refused, Error::Request(_)), "{refused}");
                for (call, part) in calls.iter_mut().zip(&parts) {
                    call.wait().map_err(|e| e.to_string())?;
                    part.check(call.buffers().map_err(|e| e.to_string())?)?;
                    done += 1;
                }
            }
            Ok(done)
        });
    }
}

#[test]
fn scopes_borrow_and_complete() {
    let found = team::threads(3, |mut comm| {
        let mine = [comm.rank() as i64; 3];
        let (mut sums, mut all, mut word) = ([0; 3], [0; 9], [comm.rank() as u8]);
        comm.scope(|scope| {
            let first = scope.start(Operation::allreduce(&mine, &mut sums, Operator::Sum))?;
            scope.start(Operation::allgather(&mine, &mut all)).map(std::mem::forget)?;
            let mut again = scope.init(Operation::bcast(&mut word, 2))?;
            for _ in 0..3 {
                scope.restart(&mut again)?;
                again.wait()?;
            }
            scope.restart(&mut again)?;
            scope.with(Communicator::barrier)?;
            assert!(again.test()?);
            first.wait()
        })?;
        assert_eq!(all, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        Ok((sums[0], word[0]))
    });
    assert_eq!(found.expect("the team runs"), [(3, 2); 3]);
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(5)),
        }
    }
}

#[test]
fn requests_are_futures() {
    for helped in [false, true] {
        team::threads(3, |mut comm| {
            comm.set_progress_thread(helped);
            for turn in 0..20 {
                let request = sum(&mut comm, turn)?;
                assert_eq!(block_on(request)?.1[0], 3 * turn);
            }
            Ok(())
        })
        .expect("the team runs");
    }
}

#[test]
fn a_helper_thread_carries_on_while_a_rank_computes() {
    let (mut settings, _) = Settings::from_environment().expect("settings");
    settings.threads.progress = true;
    let team = Team::with(TeamConfig::new(2, &settings).expect("a configuration")).expect("a team");
    let waited = team.threads(|mut comm| {
        comm.barrier()?;
        // Some windows, which neither rank carries on by itself before both have slept.
        let big = vec![1u32; 1 << 20];
        let mut request =
            comm.start((big.clone(), big), |(mine, all)| Operation::allreduce(mine, all, Operator::Sum))?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
            // Only a look at the ticket: debugging does not carry anything on.
            if format!("{request:?}").contains("true") {
                break;
            }
        }
        let done = format!("{request:?}").contains("true");
        assert!(request.test()? || !done);
        Ok((done, request.wait()?.1[7]))
    });
    assert_eq!(waited.expect("the team runs"), [(true, 2); 2]);
}

#[test]
fn wrong_calls_are_refused_and_nothing_is_started() {
    let said = team::threads(2, |mut comm| {
        let mut said = Vec::new();
        let buffers = || (vec![0u32; 4], vec![0u32; 3]);
        let mut note = |refused: Result<Request<_>, Error>| match refused {
            Ok(_) => panic!("started"),
            Err(e) => said.push(e.to_string()),
        };
        note(comm.start(buffers(), |(a, b)| Operation::allreduce(a, b, Operator::Sum)));
        note(comm.start(buffers(), |(a, b)| Operation::gather(a, b, 2)));
        note(comm.start(buffers(), |(a, b)| Operation::alltoallv(a, &[1], b, &[1])));
        note(comm.start(buffers(), |(a, b)| Operation::allgatherv(a, b, &[4])));
        assert!(!comm.has_started());
        let floats = comm.start(vec![0f32; 4], |a| {
            Operation::in_place(
                lineweave_core::collective::Collective::Allreduce,
                Some(Operator::BitXor),
                a,
                0,
            )
        });
        said.push(floats.expect_err("no such operator").to_string());
        comm.barrier()?;
        Ok(said)
    });
    let said = &said.expect("the team runs")[0];
    assert_eq!(said[0], "allreduce: output is 12 bytes long and 16 were expected");
    assert!(
        said[1].contains("root 2") && said[2].contains("counts") && said[3].contains("counts"),
        "{said:?}"
    );
}

#[test]
fn a_collective_without_a_root_is_the_same_call_whatever_root_is_given() {
    for check in [false, true] {
        let settings = Settings { check, ..Settings::default() };
        let team = Team::with(TeamConfig::new(2, &settings).expect("a configuration")).expect("a team");
        let sums = team.threads(|mut comm| {
            let (collective, root) = (lineweave_core::collective::Collective::Allreduce, comm.rank());
            comm.start(vec![1u32; 4], |a| Operation::in_place(collective, Some(Operator::Sum), a, root))?
                .wait()
        });
        assert_eq!(sums.expect("the team runs"), vec![vec![2; 4]; 2], "checked: {check}");
    }
}

#[test]
fn errors_come_out_of_waits_and_tests() {
    let settings = Settings { check: true, timeout: Some(Duration::from_millis(400)), ..Settings::default() };
    let team = |ranks: usize| {
        Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team")
    };
    // Different calls.
    let said = team(2).threads(|mut comm| {
        let n = 3 + comm.rank();
        let request =
            comm.start((vec![1u32; n], vec![0; n]), |(a, b)| Operation::allreduce(a, b, Operator::Sum))?;
        let second = sum(&mut comm, 1)?;
        Ok([
            request.wait().expect_err("counts differ").to_string(),
            second.wait().expect_err("failed").to_string(),
        ])
    });
    let said = &said.expect("the team runs")[0];
    assert!(said[0].contains("rank 1 called allreduce(4 x u32, sum)"), "{}", said[0]);
    assert!(said[1].contains("failed earlier"), "{}", said[1]);
    // A rank that does not come, by waiting and by testing.
    for tests in [false, true] {
        let told = Barrier::new(2);
        let said = team(2).threads(|mut comm| {
            if comm.rank() == 1 {
                told.wait();
                return Ok(String::new());
            }
            let mut request = sum(&mut comm, 1)?;
            let error = match tests {
                false => request.wait().expect_err("rank 1 does not come"),
                true => loop {
                    match request.test() {
                        Ok(done) => assert!(!done),
                        Err(error) => break error,
                    }
                    std::thread::sleep(Duration::from_millis(2));
                },
            };
            told.wait();
            Ok(error.to_string())
        });
        let said = &said.expect("the team runs")[0];
        assert!(said.contains("waited 0.4 s in allreduce") && said.contains("rank 1"), "{said}");
    }
    // A rank that leaves without its part.
    let said = team(3).threads(|mut comm| match comm.rank() {
        1 => Ok(String::new()),
        _ => Ok(sum(&mut comm, 1)?.wait().expect_err("rank 1 left").to_string()),
    });
    let said = said.expect("the team runs");
    assert!(said[0].contains("rank 1") && said[2].contains("rank 1"), "{said:?}");
}

#[test]
fn a_panic_with_calls_under_way_ends_them_everywhere() {
    let start = Instant::now();
    let outcome = team::threads(3, |mut comm| {
        if comm.rank() == 1 {
            let mut word = [0u64];
            comm.scope(|scope| -> Result<(), Error> {
                scope.start(Operation::bcast(&mut word, 0))?.wait()?;
                let _request = scope.start(Operation::barrier())?;
                panic!("on purpose");
            })?;
        }
        let mut word = [comm.rank() as u64];
        comm.bcast(&mut word, 0)?;
        comm.barrier()?;
        comm.barrier()
    });
    assert!(matches!(outcome, Err(Error::Panicked { rank: 1, .. })), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn prepared_calls_use_the_buffers_that_they_have_now() {
    let settings = Settings { check: false, ..Settings::default() };
    let team = Team::with(TeamConfig::new(2, &settings).expect("a configuration")).expect("a team");
    let n = 20_000;
    let outcome = team.threads(|mut comm| {
        let buffers = (vec![1u8; n], vec![0u8; n]);
        let mut sum = comm.init(buffers, |(a, b)| Operation::allreduce(a, b, Operator::Sum))?;
        sum.start(&mut comm)?;
        sum.wait()?;
        // Another one of the same length, while the first one still exists.
        let first = std::mem::replace(&mut sum.buffers()?.1, vec![7; n]);
        sum.buffers()?.0.fill(2);
        sum.start(&mut comm)?;
        sum.wait()?;
        assert!(first.iter().all(|&x| x == 2), "written after it was replaced");
        assert!(sum.buffers()?.1.iter().all(|&x| x == 4), "the new one has the result");
        sum.buffers()?.1.truncate(n / 2);
        let length = sum.start(&mut comm).expect_err("too short for the result").to_string();
        let (a, b) = sum.buffers()?;
        a.truncate(n / 2);
        assert_eq!(a.len(), b.len());
        let changed = sum.start(&mut comm).expect_err("another call").to_string();
        comm.barrier()?;
        Ok((length, changed))
    });
    for (length, changed) in outcome.expect("the communicator stays usable") {
        assert!(length.contains("output is 10000 bytes long and 20000 were expected"), "{length}");
        assert!(changed.contains("other lengths than when it was prepared"), "{changed}");
    }
}
