//! A team of processes that loses one rank at a random point of random calls: what its program has to do, and what must hold.
//!
//! A rank's program gets `FAULTS_TEST_JOB`: what it does to itself (`endure`, `exit`, `panic`, `leave`), when (microseconds for
//! `exit`, which call for the others), a seed, and how many kinds of calls it may make. It prints `ready` when its plans are made,
//! makes calls until one fails, prints that error, and ends with status 0 if the error says that a peer is lost.

#[path = "../common/random.rs"]
mod random;
#[path = "../common/starved.rs"]
mod starved;

use lineweave::error::Loss;
use lineweave::settings::{Settings, Wait};
use lineweave::team::{Team, TeamConfig};
use lineweave::who::{self, Missing};
pub use random::Random;
use rustix::process::{kill_process, Pid, Signal};
use starved::starved;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub const JOB: &str = "FAULTS_TEST_JOB";
/// Teams under way at once, so that waiting for the grace of a stopped rank costs no time.
const AT_ONCE: usize = 3;
/// Kinds of calls.
const CALLS: usize = 9;
/// The one that any rank may end, and for which none is missed that left as one may. The last of them.
const FLAGS: usize = 8;

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

/// The seed (`LINEWEAVE_TEST_SEED` repeats a run) and how many teams (`LINEWEAVE_TEST_FAULTS`, or `teams`).
pub fn asked(teams: u64) -> (u64, u64) {
    let number =
        |name: &str, default: u64| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let seed = number("LINEWEAVE_TEST_SEED", u64::from(std::process::id()));
    println!("seed {seed}");
    (seed, number("LINEWEAVE_TEST_FAULTS", teams))
}

/// Which kinds of calls show the loss: a rank that left is not missed by flags that others set.
pub fn kinds(leaves: bool, ranks: usize) -> usize {
    if leaves && ranks > 2 {
        FLAGS
    } else {
        CALLS
    }
}

/// Teams of ranks that run `program` and lose one of them, as many as are asked for.
pub fn teams(teams: u64, program: &(dyn Fn() -> Command + Sync)) {
    let (seed, teams) = asked(teams);
    at_once(seed, teams, &|seed| one(seed, program));
    println!("tally: faults survived {teams}");
}

/// `each` with as many seeds as there are teams, a few at once.
pub fn at_once(seed: u64, teams: u64, each: &(dyn Fn(u64) + Sync)) {
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
                each(seed.wrapping_add(i));
            });
        }
    });
}

/// A team that loses one rank.
fn one(seed: u64, program: &dyn Fn() -> Command) {
    let mut random = Random(seed);
    let ranks = 2 + random.below(4);
    let victim = random.below(ranks);
    let fault = random.of(&[Fault::Kill, Fault::Stop, Fault::Exit, Fault::Panic, Fault::Leave]);
    let wait = random.of(&[Wait::Auto, Wait::Sleep, Wait::Yield]);
    let after = Duration::from_micros(random.below(30_000) as u64);
    let case = format!(
        "seed {seed}: {ranks} ranks, {fault:?} of rank {victim} after {after:?}, waiting by {wait:?}"
    );

    let calls = kinds(fault == Fault::Leave, ranks);
    let (mut settings, _) = Settings::from_environment().expect("settings");
    settings.wait = wait;
    settings.stop_timeout = Some(Duration::from_millis(250));
    let team = Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team");
    let command = |rank: usize| {
        let does = match (rank == victim, fault) {
            (true, Fault::Exit) => format!("exit {}", after.as_micros()),
            (true, Fault::Panic) => format!("panic {}", 1 + seed % 50),
            (true, Fault::Leave) => format!("leave {}", 1 + seed % 50),
            _ => "endure 0".to_owned(),
        };
        let mut command = program();
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
    lineweave::sync::sleep(after);
    match fault {
        Fault::Kill => kill_process(process, Signal::KILL).expect("a rank can be killed"),
        Fault::Stop => kill_process(process, Signal::STOP).expect("a rank can be stopped"),
        // It does so by itself; its pipe is closed when it has.
        Fault::Exit | Fault::Panic | Fault::Leave => {
            outputs[victim].read_to_string(&mut String::new()).map(drop).expect("the end of a rank's words");
        }
    }
    let lost = Instant::now();
    let survivors = || (0..ranks).filter(|&r| r != victim);
    let before: Vec<Duration> = children.iter().map(|child| starved(child.id())).collect();
    // Each is read by itself: the time of one that waits for a CPU is not that of the next.
    let said: Vec<_> = std::thread::scope(|scope| {
        let survivors = outputs.iter_mut().enumerate().filter(|&(rank, _)| rank != victim);
        let reading = survivors.map(|(_, output)| {
            scope.spawn(move || {
                let mut said = String::new();
                output.read_to_string(&mut said).expect("a rank's words");
                (said, lost.elapsed())
            })
        });
        let reading: Vec<_> = reading.collect();
        reading.into_iter().map(|read| read.join().expect("a reader ends")).collect()
    });
    for (rank, (words, waited)) in survivors().zip(&said) {
        // It has ended, and is not awaited yet.
        let noticed = waited.saturating_sub(starved(children[rank].id()).saturating_sub(before[rank]));
        let status = children[rank].wait().expect("a rank can be awaited");
        assert!(status.success(), "{case}: rank {rank} ended with {status}: {said:?}");
        assert!(words.contains(&format!("rank {victim} (pid {pid})")), "{case}: rank {rank}: {said:?}");
        assert!(
            noticed < Duration::from_secs(1),
            "{case}: rank {rank} noticed after {waited:?}, {noticed:?} of them not spent waiting for a CPU"
        );
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
