//! Peers that are killed, stopped, or end early at random points of random calls, many times: every survivor returns an
//! error that names the lost rank and its process within a second, writes nothing it may not write, and nothing is left
//! behind. The test starts itself once a rank, so it has no harness but prints what one would.
//!
//! `LINEWEAVE_TEST_FAULTS` says how many teams, 200 if it is not set; `LINEWEAVE_TEST_SEED` repeats a run.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

#[path = "../common/harness.rs"]
mod harness;
mod losing;

use lineweave::team::{self, Team};
use lineweave::{Communicator, Error, Operation, Operator};
use lineweave_core::collective::Collective;
use losing::{Random, JOB};
use std::sync::Mutex;
use std::time::Duration;

/// Elements of a message: within a flag's line, a slot, and several windows.
const COUNTS: [usize; 3] = [1, 3000, 60_000];
/// Guard elements around each buffer, and what they hold.
const GUARD: usize = 8;
const MARK: u32 = 0xdead_beef;

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(rank(&job));
    }
    harness::main(&[
        ("every_survivor_names_the_lost_rank", || losing::teams(200, &harness::again)),
        ("threads_name_the_lost_rank", threads),
        ("ranks_that_leave_at_different_times_are_not_missed", leaving),
        ("nothing_is_left_behind", harness::nothing_is_left_behind),
    ]);
}

/// The part of one process: it says that it is ready, and calls until that fails.
fn rank(job: &str) -> i32 {
    let mut words = job.split(' ');
    let does = words.next().expect("what to do");
    let mut number = || words.next().and_then(|w| w.parse::<u64>().ok()).expect("a number");
    let (when, seed, calls) = (number(), number(), number() as usize);
    if does == "part" {
        return match team::from_environment().and_then(|comm| part(comm, seed)) {
            Ok(()) => 0,
            Err(e) => {
                println!("{e}");
                1
            }
        };
    }
    let joined = team::from_environment().and_then(|mut comm| {
        let flags = prepare(&mut comm, calls)?;
        Ok((comm, flags))
    });
    let (mut comm, flags) = match joined {
        Ok(joined) => joined,
        Err(e) => {
            println!("{e}");
            return 1;
        }
    };
    println!("ready");
    if does == "exit" {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(when));
            std::process::exit(0);
        });
    }
    let failed = calls_until_one_fails(&mut comm, seed, calls, flags, |_, i| {
        assert!(does != "panic" || i != when, "on purpose");
        does != "leave" || i != when
    });
    let Some(e) = failed else { return 0 };
    println!("{e}");
    i32::from(!matches!(e, Error::PeerLost { .. }))
}

/// How a thread fails its team.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Ends {
    Panics,
    Leaves,
    /// Its call runs out of time.
    GivesUp,
}

/// Teams of threads that lose one: the others name it.
fn threads() {
    let (seed, teams) = losing::asked(100);
    for seed in seed..seed + teams {
        let mut random = Random(seed);
        let ranks = 2 + random.below(4);
        let victim = random.below(ranks);
        let ends = random.of(&[Ends::Panics, Ends::Leaves, Ends::GivesUp]);
        let when = 1 + random.below(50) as u64;
        let case = format!("seed {seed}: of {ranks} threads {victim} {ends:?} at call {when}");
        let kinds = losing::kinds(ends == Ends::Leaves, ranks);
        let ended = Mutex::new(vec![None; ranks]);
        let outcome = team::threads(ranks, |mut comm| {
            let flags = prepare(&mut comm, kinds)?;
            let rank = comm.rank();
            let failed = calls_until_one_fails(&mut comm, seed, kinds, flags, |comm, i| {
                if rank != victim && i >= when && ends == Ends::GivesUp {
                    // Whatever the victim waits for comes late: a wait asks for the time only now and then.
                    std::thread::sleep(Duration::from_millis(20));
                }
                if rank != victim || i != when {
                    return true;
                }
                match ends {
                    // As a panic does, without a word on the terminal.
                    Ends::Panics => std::panic::resume_unwind(Box::new("on purpose")),
                    Ends::Leaves => return false,
                    Ends::GivesUp => comm.set_timeout(Some(Duration::from_nanos(1))),
                }
                true
            });
            ended.lock().expect("nobody panics with it")[rank] = failed;
            Ok(())
        });
        match (ends, outcome) {
            (Ends::Panics, Err(Error::Panicked { rank, .. })) => assert_eq!(rank, victim, "{case}"),
            (Ends::Leaves | Ends::GivesUp, Ok(_)) => {}
            (_, other) => panic!("{case}: the team ended with {other:?}"),
        }
        for (rank, e) in ended.into_inner().expect("nobody panicked with it").into_iter().enumerate() {
            match e {
                Some(Error::PeerLost { rank: lost, .. }) if rank != victim => {
                    assert_eq!(lost, victim, "{case}")
                }
                Some(Error::Timeout { .. }) if rank == victim && ends == Ends::GivesUp => {}
                None if rank == victim && ends != Ends::GivesUp => {}
                other => panic!("{case}: rank {rank} ended with {other:?}"),
            }
        }
    }
    println!("tally: faults survived {teams}");
}

/// A right program whose ranks leave one after the other, reaped at once, while those behind them still call: nobody is missed.
fn leaving() {
    let (seed, teams) = losing::asked(100);
    losing::at_once(seed, teams, &|seed| {
        let ranks = 2 + Random(seed).below(4);
        let team = Team::new(ranks).expect("a team");
        let children = harness::start(&team, 1, |command| {
            command.env(JOB, format!("part 0 {seed} 0"));
        });
        drop(team);
        std::thread::scope(|scope| {
            for (rank, child) in children.into_iter().enumerate() {
                scope.spawn(move || {
                    let out = child.wait_with_output().expect("a rank can be awaited");
                    let said = String::from_utf8_lossy(&out.stdout);
                    assert!(out.status.success(), "seed {seed}: rank {rank} of {ranks} said `{said}`");
                });
            }
        });
        team::threads(ranks, |comm| part(comm, seed))
            .unwrap_or_else(|e| panic!("seed {seed}: {ranks} threads: {e}"));
    });
    println!("tally: teams whose ranks left at different times {}", 2 * teams);
}

/// A rank of it: some calls of all, then messages around the ranks that are left, whose first leaves after each turn.
fn part(mut comm: Communicator, seed: u64) -> Result<(), Error> {
    let mut random = Random(seed);
    let mut late = Random(seed ^ comm.rank() as u64);
    let mut flags = 0;
    comm.window_create(64)?;
    for _ in 0..random.below(6) {
        let root = random.below(comm.ranks());
        let count = random.of(&COUNTS);
        call(&mut comm, random.below(losing::kinds(false, 2)), root, count, &mut flags)?;
    }
    let mut left: Vec<usize> = (0..comm.ranks()).collect();
    left.rotate_left(random.below(comm.ranks()));
    while let Some(own) = left.iter().position(|&rank| rank == comm.rank()) {
        let (next, last) = (left[(own + 1) % left.len()], left[(own + left.len() - 1) % left.len()]);
        for _ in 0..random.below(4) {
            let input = vec![comm.rank() as u32; random.of(&COUNTS)];
            let mut output = vec![0; input.len()];
            if left.len() > 1 {
                comm.sendrecv(&input, next, 1, &mut output, last, 1)?;
                assert!(output.iter().all(|&from| from as usize == last), "a message of another rank");
            }
        }
        std::thread::sleep(Duration::from_micros((late.below(3) * late.below(2000)) as u64));
        left.remove(0);
    }
    Ok(())
}

/// What comes before time is taken: each kind of call once at every length and root, as making and proving plans takes longer on a
/// loaded machine than noticing a loss. Returns the value of the last flag.
fn prepare(comm: &mut Communicator, calls: usize) -> Result<u64, Error> {
    comm.window_create(64)?;
    let mut flags = 0;
    for which in 0..calls {
        for root in [0, comm.ranks() - 1] {
            for count in COUNTS {
                call(comm, which, root, count, &mut flags)?;
            }
        }
    }
    Ok(flags)
}

/// Random calls, the same at every rank, until `before` one of them says that it is enough, or one fails, with its error.
fn calls_until_one_fails(
    comm: &mut Communicator,
    seed: u64,
    calls: usize,
    mut flags: u64,
    mut before: impl FnMut(&mut Communicator, u64) -> bool,
) -> Option<Error> {
    let mut random = Random(seed ^ 0x5eed);
    for i in 0.. {
        if !before(comm, i) {
            return None;
        }
        let root = (comm.ranks() - 1) * random.below(2);
        let count = random.of(&COUNTS);
        if let Err(e) = call(comm, random.below(calls), root, count, &mut flags) {
            return Some(e);
        }
    }
    unreachable!("calls do not end by themselves")
}

/// A buffer between guards.
struct Guarded(Vec<u32>);

impl Guarded {
    fn new(elements: usize, value: u32) -> Guarded {
        let mut all = vec![MARK; elements + 2 * GUARD];
        all[GUARD..GUARD + elements].fill(value);
        Guarded(all)
    }

    fn inner(&mut self) -> &mut [u32] {
        let end = self.0.len() - GUARD;
        &mut self.0[GUARD..end]
    }

    fn check(&self) {
        let end = self.0.len() - GUARD;
        assert!(self.0[..GUARD].iter().chain(&self.0[end..]).all(|&g| g == MARK), "written beyond a buffer");
    }
}

/// One of the calls. `flags` is the value of the last flag.
fn call(
    comm: &mut Communicator,
    which: usize,
    root: usize,
    count: usize,
    flags: &mut u64,
) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    let mut input = Guarded::new(count, 1);
    let mut output = Guarded::new(count, 0);
    let mut all = Guarded::new(count * ranks, 2);
    let outcome = match which {
        0 => comm.barrier(),
        1 => comm.bcast(input.inner(), root),
        2 => comm.allreduce(input.inner(), output.inner(), Operator::Sum),
        3 => {
            let to = if comm.rank() == root { output.inner() } else { &mut [] };
            comm.reduce(input.inner(), to, Operator::Sum, root)
        }
        4 => comm.allgather(input.inner(), all.inner()),
        5 => comm.alltoall_in_place(all.inner()),
        6 => comm.sendrecv(input.inner(), next, 1, output.inner(), last, 1).map(drop),
        7 => {
            // Two at once, one of which is waited for by tests.
            let mut request = comm.start(vec![1u32; count], |b| {
                Operation::in_place(Collective::Allreduce, Some(Operator::Sum), b, 0)
            })?;
            let other = comm.start(vec![0u32; count], |b| Operation::bcast(b, root))?;
            while !request.test()? {
                std::thread::yield_now();
            }
            other.wait().map(drop)
        }
        _ => {
            *flags += 1;
            comm.flag_set(next, 0, *flags).and_then(|()| comm.flag_wait(0, *flags))
        }
    };
    for buffer in [&input, &output, &all] {
        buffer.check();
    }
    if outcome.is_ok() && which == 2 {
        assert!(output.inner().iter().all(|&sum| sum as usize == ranks), "a wrong sum before the loss");
    }
    outcome
}
