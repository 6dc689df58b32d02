//! Ranks that come to a call after another rank's call has failed, or are in the middle of it: they reach no buffer whose owner has
//! taken it back. Among threads, whose plans reach each other's buffers, without comparing calls first.
//!
//! `LINEWEAVE_TEST_LATE` says how many times each case runs, once if it is not set.

use lineweave::settings::Settings;
use lineweave::sync::{AtomicBool, Ordering};
use lineweave::team::{Team, TeamConfig};
use lineweave::{Communicator, Error, Operation, Operator, WaitCallback};
use lineweave_core::collective::Collective;
use std::cell::Cell;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::Barrier;
use std::time::Duration;

/// What an owner writes to a buffer that is its own again.
const MARK: u8 = 0xEE;

fn team<T: Send>(ranks: usize, f: impl Fn(Communicator) -> Result<T, Error> + Sync) -> Result<Vec<T>, Error> {
    let settings = Settings { check: false, ..Settings::default() };
    Team::with(TeamConfig::new(ranks, &settings)?)?.threads(f)
}

/// How the first rank's call fails.
#[derive(Clone, Copy, Debug)]
enum End {
    Timeout,
    CalledOff,
    /// The program's hook panics while the rank waits.
    Hook,
    /// A scope panics in which the call was started.
    Scope,
    /// The rank panics and drops the future of a call with buffers of its own.
    Future,
}

const ENDS: [End; 5] = [End::Timeout, End::CalledOff, End::Hook, End::Scope, End::Future];

const CALLS: [Collective; 8] = [
    Collective::Bcast,
    Collective::Reduce,
    Collective::Allreduce,
    Collective::Gather,
    Collective::Scatter,
    Collective::Allgather,
    Collective::ReduceScatter,
    Collective::Alltoall,
];

struct Refuses;

impl WaitCallback for Refuses {
    fn begin(&mut self) {}
    fn look(&mut self) -> Result<(), String> {
        Err("enough".into())
    }
    fn end(&mut self) {}
}

/// A call with these buffers, which are as long as blocks of all ranks.
fn operation<'b>(
    call: Collective,
    n: usize,
    rank: usize,
    input: &'b mut [u8],
    output: &'b mut [u8],
) -> Operation<'b> {
    match call {
        Collective::Bcast => Operation::bcast(&mut output[..n], 0),
        Collective::Reduce => Operation::reduce(&input[..n], &mut output[..n], Operator::Max, 0),
        Collective::Allreduce => Operation::allreduce(&input[..n], &mut output[..n], Operator::Max),
        Collective::Gather => Operation::gather(&input[..n], output, 0),
        Collective::Scatter => Operation::scatter(if rank == 0 { input } else { &[] }, &mut output[..n], 0),
        Collective::Allgather => Operation::allgather(&input[..n], output),
        Collective::ReduceScatter => Operation::reduce_scatter_block(input, &mut output[..n], Operator::Max),
        Collective::Alltoall => Operation::alltoall(input, output),
        other => panic!("{other} has no buffers here"),
    }
}

/// Makes the call in the way that is to fail, and returns the buffers, if they are the caller's again, and whether it failed.
fn fail(comm: Communicator, end: End, call: Collective, n: usize) -> (Option<[Vec<u8>; 2]>, bool) {
    let (mut comm, rank, ranks) = (comm, 0, 2);
    let mut buffers = [vec![1u8; n * ranks], vec![1u8; n * ranks]];
    let [input, output] = &mut buffers;
    let blocking = |comm: &mut Communicator, input: &mut [u8], output: &mut [u8]| {
        comm.scope(|scope| scope.start(operation(call, n, rank, input, output))?.wait())
    };
    let failed = match end {
        End::Timeout => {
            comm.set_timeout(Some(Duration::from_millis(20)));
            blocking(&mut comm, input, output).is_err()
        }
        End::CalledOff => {
            comm.set_wait_callback(Some(Box::new(Refuses)));
            blocking(&mut comm, input, output).is_err()
        }
        End::Hook => {
            comm.set_progress_hook(Some(Box::new(|| resume_unwind(Box::new("on purpose")))));
            catch_unwind(AssertUnwindSafe(|| blocking(&mut comm, input, output))).is_err()
        }
        End::Scope => {
            let scope = AssertUnwindSafe(|| {
                comm.scope(|scope| {
                    let mut request = scope.start(operation(call, n, rank, input, output)).expect("started");
                    if !request.test().is_ok_and(|done| done) {
                        resume_unwind(Box::new("on purpose"));
                    }
                });
            });
            catch_unwind(scope).is_err()
        }
        End::Future => {
            let panics = AssertUnwindSafe(|| {
                let mut comm = comm;
                let request = comm.start(buffers, |[input, output]| operation(call, n, rank, input, output));
                let mut request = request.expect("started");
                if !request.test().is_ok_and(|done| done) {
                    resume_unwind(Box::new("on purpose"));
                }
            });
            return (None, catch_unwind(panics).is_err());
        }
    };
    (Some(buffers), failed)
}

/// Two ranks, the second of which is late.
fn late(end: End, call: Collective, n: usize) {
    let meet = Barrier::new(2);
    let case = format!("{call} of {n} bytes, {end:?}");
    // Nothing returns between the two meetings, or the other rank would wait for ever.
    team(2, |mut comm| {
        let met = comm.barrier();
        if comm.rank() == 0 {
            let (buffers, failed) = fail(comm, end, call, n);
            let buffers = buffers.map(|mut buffers| {
                buffers.iter_mut().for_each(|buffer| buffer.fill(MARK));
                buffers
            });
            meet.wait();
            meet.wait();
            let touched = buffers.iter().flatten().flatten().any(|&byte| byte != MARK);
            assert!(!touched, "{case}: a buffer was written after it was its owner's again");
            // A root may be done without the others, through boxes.
            assert!(failed || matches!(call, Collective::Bcast | Collective::Scatter), "{case}");
            return met;
        }
        meet.wait();
        let mut buffers = [vec![9u8; 2 * n], vec![9u8; 2 * n]];
        let [input, output] = &mut buffers;
        comm.set_timeout(Some(Duration::from_millis(200)));
        let outcome = comm.scope(|scope| scope.start(operation(call, n, 1, input, output))?.wait());
        meet.wait();
        assert!(!buffers.iter().flatten().any(|&byte| byte == MARK), "{case}: a late rank read {MARK:x}");
        let alone = matches!(call, Collective::Reduce | Collective::Gather);
        assert!(outcome.is_err() || alone, "{case}: {outcome:?}");
        met
    })
    .expect("a team");
}

#[test]
fn a_late_rank_reaches_no_buffer_of_a_call_that_failed() {
    let times: usize = std::env::var("LINEWEAVE_TEST_LATE").map_or(1, |v| v.parse().expect("a number"));
    let mut cases = 0;
    for _ in 0..times {
        for end in ENDS {
            for call in CALLS {
                for n in [20_000, 400_000] {
                    late(end, call, n);
                    cases += 1;
                }
            }
        }
    }
    println!("tally: late ranks after a failed call {cases}");
}

thread_local! {
    static RANK: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[test]
fn a_call_that_fails_returns_after_the_last_access_to_its_buffers() {
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static SAW: AtomicBool = AtomicBool::new(false);
    static WAITS: AtomicBool = AtomicBool::new(false);
    let slow = Operator::new(true, |left: &[u8], right: &mut [u8]| {
        if RANK.get() == 1 {
            INSIDE.store(true, Ordering::SeqCst);
            // For longer than the other rank waits from now on.
            while !WAITS.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(60));
            if left.iter().chain(&*right).any(|&byte| byte == MARK) {
                SAW.store(true, Ordering::SeqCst);
            }
            INSIDE.store(false, Ordering::SeqCst);
        }
        right.iter_mut().zip(left).for_each(|(r, l)| *r = (*r).max(*l));
    });
    let meet = Barrier::new(2);
    let inside = team(2, |mut comm| {
        RANK.set(comm.rank());
        let met = comm.barrier();
        let mut buffers = [vec![1u8; 1 << 17], vec![1u8; 1 << 17]];
        if comm.rank() == 0 {
            comm.set_timeout(Some(Duration::from_millis(20)));
            comm.set_progress_hook(Some(Box::new(|| WAITS.store(true, Ordering::SeqCst))));
        }
        let [input, output] = &mut buffers;
        let outcome = comm.allreduce(input, output, slow);
        let inside = comm.rank() == 0 && INSIDE.load(Ordering::SeqCst);
        if comm.rank() == 0 {
            buffers.iter_mut().for_each(|buffer| buffer.fill(MARK));
        }
        // The other rank may come to its end while this one waits for it to let go.
        meet.wait();
        met?;
        assert!(comm.rank() != 0 || matches!(outcome, Err(Error::Timeout { .. })), "{outcome:?}");
        Ok(inside || comm.rank() == 0 && buffers.iter().flatten().any(|&byte| byte != MARK))
    });
    assert_eq!(inside.expect("a team"), [false, false]);
    assert!(!SAW.load(Ordering::SeqCst), "a buffer was read after its owner had it again");
}
