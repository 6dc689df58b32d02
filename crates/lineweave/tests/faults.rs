//! Peers that are killed, stopped, or end early at random points of random calls, many times: every survivor returns an
//! error that names the lost rank and its process within a second, writes nothing it may not write, and nothing is left
//! behind. The test starts itself once a rank, so it has no harness but prints what one would.
//!
//! `LINEWEAVE_TEST_FAULTS` says how many teams, 200 if it is not set; `LINEWEAVE_TEST_SEED` repeats a run.

use lineweave::error::Loss;
use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Charter, Team};
use lineweave::who::{self, Missing};
use lineweave::{Communicator, Error, Operation, Operator};
use lineweave_core::collective::Collective;
use rustix::process::{kill_process, Pid, Signal};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const JOB: &str = "FAULTS_TEST_JOB";
/// Teams under way at once, so that waiting for the grace of a stopped rank costs no time.
const AT_ONCE: usize = 3;
/// Kinds of calls, and elements of a message: within a flag's line, a slot, and several windows.
const CALLS: u64 = 9;
/// The one that any rank may end, and for which none is missed that left as one may.
const FLAGS: u64 = 8;
const COUNTS: [usize; 3] = [1, 3000, 60_000];
/// Guard elements around each buffer, and what they hold.
const GUARD: usize = 8;
const MARK: u32 = 0xdead_beef;

/// A generator that repeats: the multiplier and increment of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Kill,
    Stop,
    /// The process ends by itself in the middle of a call, from another thread.
    Exit,
    /// The rank panics between two calls.
    Panic,
    /// The rank leaves between two calls.
    Leave,
}

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(rank(&job));
    }
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let seed = number("LINEWEAVE_TEST_SEED", u64::from(std::process::id()));
    let teams = number("LINEWEAVE_TEST_FAULTS", 200);
    println!("\nrunning 1 test\nseed {seed}");
    let next = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| loop {
                let i = {
                    let mut next = next.lock().expect("nobody panics with it");
                    *next += 1;
                    *next - 1
                };
                if i >= teams {
                    break;
                }
                one(seed.wrapping_add(i));
            });
        }
    });
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors");
    let ours = descriptors.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
    assert_eq!(ours.filter(|l| l.to_string_lossy().contains("memfd:lineweave")).count(), 0);
    println!("tally: faults survived {teams}");
    println!("test every_survivor_names_the_lost_rank ... ok");
    println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
}

/// A team that loses one rank.
fn one(seed: u64) {
    let mut random = Random(seed);
    let ranks = 2 + random.below(4) as usize;
    let victim = random.below(ranks as u64) as usize;
    let faults = [Fault::Kill, Fault::Stop, Fault::Exit, Fault::Panic, Fault::Leave];
    let fault = faults[random.below(5) as usize];
    let wait = [Wait::Auto, Wait::Sleep, Wait::Yield][random.below(3) as usize];
    let after = Duration::from_micros(random.below(30_000));
    let case = format!(
        "seed {seed}: {ranks} ranks, {fault:?} of rank {victim} after {after:?}, waiting by {wait:?}"
    );

    let calls = if fault == Fault::Leave && ranks > 2 { FLAGS } else { CALLS };
    let (mut settings, _) = Settings::from_environment().expect("settings");
    settings.wait = wait;
    settings.stop_timeout = Some(Duration::from_millis(250));
    let team = Team::with(Charter::new(ranks, &settings).expect("a charter")).expect("a team");
    let program = std::env::current_exe().expect("this program has a path");
    let command = |rank: usize| {
        let does = match (rank == victim, fault) {
            (true, Fault::Exit) => format!("exit {}", after.as_micros()),
            (true, Fault::Panic) => format!("panic {}", 1 + seed % 50),
            (true, Fault::Leave) => format!("leave {}", 1 + seed % 50),
            _ => "endure 0".to_owned(),
        };
        let mut command = Command::new(&program);
        command.env(JOB, format!("{does} {seed} {calls}")).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    let mut children = team.spawn(command).expect("ranks start");
    drop(team);
    let mut outputs: Vec<_> =
        children.iter_mut().map(|c| BufReader::new(c.stdout.take().expect("a pipe"))).collect();
    for output in &mut outputs {
        let mut line = String::new();
        output.read_line(&mut line).expect("a rank says that it is ready");
        assert_eq!(line.trim(), "ready", "{case}");
    }
    let pid = children[victim].id();
    let process = Pid::from_raw(pid as i32).expect("a process");
    std::thread::sleep(after);
    match fault {
        Fault::Kill => kill_process(process, Signal::KILL).expect("a rank can be killed"),
        Fault::Stop => kill_process(process, Signal::STOP).expect("a rank can be stopped"),
        // It does so by itself; its pipe is closed when it has.
        Fault::Exit | Fault::Panic | Fault::Leave => {
            outputs[victim].read_to_string(&mut String::new()).map(drop).expect("the end of a rank's words");
        }
    }
    let lost = Instant::now();
    for rank in (0..ranks).filter(|&r| r != victim) {
        let mut said = String::new();
        outputs[rank].read_to_string(&mut said).expect("a rank's words");
        let waited = lost.elapsed();
        let status = children[rank].wait().expect("a rank can be awaited");
        assert!(status.success(), "{case}: rank {rank} ended with {status} and said `{said}`");
        assert!(said.contains(&format!("rank {victim} (pid {pid})")), "{case}: rank {rank} said `{said}`");
        assert!(waited < Duration::from_secs(1), "{case}: rank {rank} noticed after {waited:?}");
    }
    // One that was stopped in the middle of a copy is not there any more.
    if fault == Fault::Stop && lineweave::process::how(pid) == lineweave::process::How::Stopped {
        // What a person sees who looks for the reason.
        let seen = who::teams(Some(pid)).expect("a stopped process can be looked at");
        assert_eq!(seen.len(), 1, "{case}");
        assert_eq!(seen[0].missing(), [Missing::Stopped(vec![victim])], "{case}");
        assert_eq!(seen[0].failed, Some((victim, Loss::Stopped)), "{case}");
    }
    end(&mut children[victim], process);
}

fn end(child: &mut Child, process: Pid) {
    // It may have ended already.
    let _ = kill_process(process, Signal::KILL);
    child.wait().expect("the lost rank can be awaited");
}

/// The part of one rank: it says that it is ready, and calls until that fails.
fn rank(job: &str) -> i32 {
    let mut words = job.split(' ');
    let does = words.next().expect("what to do");
    let mut number = || words.next().and_then(|w| w.parse::<u64>().ok()).expect("a number");
    let (when, seed, calls) = (number(), number(), number());
    let mut comm = match team::from_environment() {
        Ok(comm) => comm,
        Err(e) => {
            println!("{e}");
            return 1;
        }
    };
    comm.window_create(64).expect("everybody is still there");
    let mut flags = 0;
    // Making and proving plans is over before time is taken: on a loaded machine it takes longer than noticing a loss.
    for which in 0..calls {
        for (root, count) in
            [0, comm.ranks() - 1].into_iter().flat_map(|root| COUNTS.map(|count| (root, count)))
        {
            call(&mut comm, which, root, count, &mut flags).expect("everybody is still there");
        }
    }
    println!("ready");
    if does == "exit" {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(when));
            std::process::exit(0);
        });
    }
    let mut random = Random(seed ^ 0x5eed);
    for i in 0.. {
        if does == "panic" && i == when {
            panic!("on purpose");
        }
        if does == "leave" && i == when {
            return 0;
        }
        let root = (comm.ranks() - 1) * random.below(2) as usize;
        let count = COUNTS[random.below(COUNTS.len() as u64) as usize];
        if let Err(e) = call(&mut comm, random.below(calls), root, count, &mut flags) {
            println!("{e}");
            return i32::from(!matches!(e, Error::PeerLost { .. }));
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
    which: u64,
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
