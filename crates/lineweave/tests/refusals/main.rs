//! System calls that fail: each that a team makes, at its first use, its second, and so on to its last. Either the job is done all
//! the same, or there is an error that names the call and the system's reason; nobody waits for ever, and nothing stays behind.
//!
//! A job is done in a thread below a filter that asks another thread what to answer. Each call has a process of its own, so that one
//! that hangs can be ended; the test starts itself, so it has no harness but prints what one would.
//!
//! `LINEWEAVE_TEST_REFUSALS` names the calls to try, all if it is not set.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

mod filter;
#[path = "../common/harness.rs"]
mod harness;
mod jobs;

use filter::{Listener, Only};
use jobs::Job;
use std::path::Path;
use std::sync::{mpsc, Mutex};
use std::time::{Duration, Instant};

/// Set for the program that tries one call.
const CASE: &str = "REFUSALS_TEST_CASE";
/// Calls that are tried at once: most of the time they wait.
const AT_ONCE: usize = 4;
/// A job that takes as long as this hangs: it is one of tens of milliseconds.
const HANGS: Duration = Duration::from_secs(40);
/// How long what a job leaves may take to be gone: a thread that was joined still has to end.
const GONE: Duration = Duration::from_secs(5);

/// What comes of a refusal.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Then {
    /// The job is done.
    Done,
    /// The job is done, or the error says this.
    Says(&'static str),
}

/// A call, as which errno it fails, in what jobs, and what comes of it.
struct Case {
    name: &'static str,
    calls: &'static [libc::c_long],
    only: Only,
    errno: i32,
    jobs: &'static [Job],
    then: Then,
    /// Up to which use it fails: of a call that is made hundreds of times, all for the same.
    most: usize,
}

const fn case(name: &'static str, calls: &'static [libc::c_long], errno: i32, then: Then) -> Case {
    Case { name, calls, only: Only::All, errno, jobs: Job::ALL, then, most: usize::MAX }
}

/// `fcntl` that seals.
const SEALS: Only = Only::Values(1, &[libc::F_ADD_SEALS as u32]);
/// `fcntl` that asks for the seals.
const SEALED: Only = Only::Values(1, &[libc::F_GET_SEALS as u32]);
/// In one process: what starts another program asks as well.
const WITHIN: &[Job] = &[Job::Threads, Job::Door, Job::Meeting];
const SOCKETS: &[Job] = &[Job::Door, Job::Meeting];
/// `FUTEX_WAIT` and `FUTEX_WAKE` between processes: what ranks sleep by, and neither the standard library nor the C library.
const RANKS_FUTEX: Only = Only::Values(1, &[libc::FUTEX_WAIT as u32, libc::FUTEX_WAKE as u32]);
/// Memory that is shared: any other is the allocator's, which ends the process, or a thread's (see `clone`).
const SHARED: Only = Only::Bits(3, libc::MAP_SHARED as u32);

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("memfd_create", &[libc::SYS_memfd_create], libc::EPERM, Then::Says("memfd_create")),
    case("ftruncate", &[libc::SYS_ftruncate], libc::EFBIG, Then::Says("ftruncate")),
    Case { only: SEALS, ..case("fcntl", &[libc::SYS_fcntl], libc::EPERM, Then::Says("fcntl")) },
    Case { only: SEALED, jobs: &[Job::Processes, Job::Door], ..case("fcntl", &[libc::SYS_fcntl], libc::EPERM, Then::Says("fcntl")) },
    Case { jobs: WITHIN, ..case("fstat", &[libc::SYS_fstat], libc::ENOMEM, Then::Says("fstat")) },
    case("dup", &[libc::SYS_dup], libc::EMFILE, Then::Says("dup")),
    case("fallocate", &[libc::SYS_fallocate], libc::ENOSPC, Then::Says("fallocate")),
    // Pages are touched instead.
    case("fallocate", &[libc::SYS_fallocate], libc::EPERM, Then::Done),
    case("fallocate", &[libc::SYS_fallocate], libc::ENOSYS, Then::Done),
    case("fallocate", &[libc::SYS_fallocate], libc::EIO, Then::Says("fallocate")),
    Case { most: 24, ..case("nanosleep", &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep], libc::EPERM, Then::Done) },
    Case { only: SHARED, ..case("mmap", &[libc::SYS_mmap], libc::ENOMEM, Then::Says("mmap")) },
    Case { only: RANKS_FUTEX, most: 24, ..case("futex", &[libc::SYS_futex], libc::EPERM, Then::Done) },
    case("membarrier", &[libc::SYS_membarrier], libc::ENOMEM, Then::Done),
    case("madvise", &[libc::SYS_madvise], libc::EINVAL, Then::Done),
    case("sched_getaffinity", &[libc::SYS_sched_getaffinity], libc::EPERM, Then::Done),
    case("sched_setaffinity", &[libc::SYS_sched_setaffinity], libc::EPERM, Then::Done),
    Case { jobs: &[Job::Processes], ..case("pidfd_open", &[libc::SYS_pidfd_open], libc::EMFILE, Then::Done) },
    Case { jobs: &[Job::Processes], ..case("process_vm_readv", &[libc::SYS_process_vm_readv], libc::EPERM, Then::Says("process_vm_readv")) },
    Case { jobs: &[Job::Processes], ..case("process_vm_writev", &[libc::SYS_process_vm_writev], libc::EPERM, Then::Says("process_vm_writev")) },
    Case { jobs: SOCKETS, ..case("socket", &[libc::SYS_socket], libc::EMFILE, Then::Says("socket")) },
    Case { jobs: SOCKETS, ..case("bind", &[libc::SYS_bind], libc::EACCES, Then::Says("bind")) },
    Case { jobs: SOCKETS, ..case("listen", &[libc::SYS_listen], libc::EADDRINUSE, Then::Says("listen")) },
    Case { jobs: SOCKETS, ..case("connect", &[libc::SYS_connect], libc::EACCES, Then::Says("connect")) },
    Case { jobs: SOCKETS, ..case("accept", &[libc::SYS_accept, libc::SYS_accept4], libc::ENOMEM, Then::Says("accept")) },
    Case { jobs: SOCKETS, ..case("getsockopt", &[libc::SYS_getsockopt], libc::ENOMEM, Then::Says("getsockopt")) },
    Case { jobs: SOCKETS, ..case("ppoll", &[libc::SYS_ppoll], libc::ENOMEM, Then::Done) },
    Case { jobs: SOCKETS, ..case("sendto", &[libc::SYS_sendto], libc::ENOBUFS, Then::Says("send")) },
    Case { jobs: SOCKETS, ..case("sendmsg", &[libc::SYS_sendmsg], libc::ENOBUFS, Then::Says("sendmsg")) },
    Case { jobs: SOCKETS, ..case("recvmsg", &[libc::SYS_recvmsg], libc::ENOMEM, Then::Done) },
    Case { jobs: &[Job::Threads, Job::Processes], ..case("clone", &[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN, Then::Says("clone")) },
];

fn main() {
    if std::env::var(jobs::RANK).is_ok() {
        std::process::exit(jobs::rank());
    }
    if let Ok(index) = std::env::var(CASE) {
        return refuse(&CASES[index.parse::<usize>().expect("the number of a case")]);
    }
    harness::main(&[("what_the_system_refuses_is_done_otherwise_or_named", every_refusal)]);
}

fn every_refusal() {
    let wanted = std::env::var("LINEWEAVE_TEST_REFUSALS").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(' ').filter(|name| !name.is_empty()).collect();
    let is_wanted = |case: &Case| wanted.is_empty() || wanted.contains(&case.name);
    let left = Mutex::new((0..CASES.len()).filter(|&index| is_wanted(&CASES[index])));
    let said = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| loop {
                let next = left.lock().expect("nobody panics with it").next();
                let Some(index) = next else { break };
                let lines = run_case(index);
                said.lock().expect("nobody panics with it").extend(lines);
            });
        }
    });
    let said = said.into_inner().expect("nobody panicked with it");
    if let Some(why) = said.iter().find(|line| line.starts_with("SKIPPED")) {
        println!("{why}");
    } else {
        let wrong: Vec<&String> = said.iter().filter(|line| line.starts_with("wrong")).collect();
        let refused = said.iter().filter(|line| line.starts_with("refused")).count();
        assert!(wrong.is_empty(), "{wrong:#?}");
        println!("tally: system calls refused {refused}");
    }
}

/// What the process says that tries a call.
fn run_case(index: usize) -> Vec<String> {
    let mut command = harness::again();
    // By published costs, whatever this machine was found to cost: which calls are made hangs on what is chosen.
    let nowhere = std::env::temp_dir().join(format!("lineweave-refusals-no-cache-{}", std::process::id()));
    // A choice from outside could leave calls of the system unused.
    command.env("XDG_CACHE_HOME", nowhere).env_remove("LINEWEAVE_PROFILE").env_remove("LINEWEAVE_ALGORITHM");
    let output = command.env(CASE, index.to_string()).output().expect("this program starts");
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    if !output.status.success() {
        let name = CASES[index].name;
        let why = String::from_utf8_lossy(&output.stderr);
        lines.push(format!("wrong: {name}: it ended with {} after {:?}: {why}", output.status, lines.last()));
    }
    lines
}

/// All jobs of a case: with no use of the call refused, with its first, its second, and so on.
fn refuse(case: &Case) {
    let mut occurs = false;
    for &job in case.jobs {
        let mut before = None;
        for nth in 0..=case.most {
            let Some((outcome, seen)) = below_filter(case, nth, job) else {
                return println!("SKIPPED: refused system calls: the kernel has no filter that asks, or does not permit it");
            };
            let what = format!("{} {nth} in {job:?}", case.name);
            let reason = format!("(os error {})", case.errno);
            match (&outcome, case.then) {
                (Ok(()), _) => {}
                (Err(said), Then::Says(word)) if nth > 0 && said.contains(word) && said.contains(&reason) => {
                }
                (Err(said), then) => println!("wrong: {what} of {seen}: expected {then:?}, found {said}"),
            }
            match before {
                // What is made once and kept is there after the first job, and no thread that chooses plans.
                None => before = Some(left_behind_once(|left| left.threads == 1)),
                Some(before) => {
                    let after = left_behind_once(|left| *left == before);
                    if after != before {
                        println!("wrong: {what}: there were {before:?}, and then {after:?}");
                    }
                }
            }
            occurs |= seen > 0;
            if seen < nth {
                break;
            }
            if nth > 0 {
                println!("refused {what}");
            }
        }
    }
    if !occurs {
        println!("wrong: {}: no job makes it", case.name);
    }
}

/// What a job might leave.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(dead_code, reason = "for the message")]
struct Left {
    descriptors: usize,
    mappings: usize,
    threads: usize,
    children: bool,
    /// Of the socket, and in the folder of shared memory.
    files: usize,
}

/// Returns what is left once that is as `awaited`, or after the longest time that it may take.
fn left_behind_once(awaited: impl Fn(&Left) -> bool) -> Left {
    let begun = Instant::now();
    loop {
        let left = left_behind();
        if awaited(&left) || begun.elapsed() > GONE {
            return left;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn left_behind() -> Left {
    let entries = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process sees its mappings");
    let own = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let own = own.filter(|file| file.file_name().to_string_lossy().contains("lineweave"));
    // SAFETY: asks, and awaits nobody but a child that has ended and that nobody else awaits any more.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    Left {
        descriptors: entries("/proc/self/fd"),
        mappings: maps.matches("memfd:lineweave").count(),
        threads: entries("/proc/self/task"),
        children: child >= 0,
        files: own.count() + usize::from(jobs::socket().exists()),
    }
}

/// Does a job below a filter that has the `nth` use of a call fail. Returns what came of it, and how often the call was made; nothing
/// where there are no such filters.
fn below_filter(case: &Case, nth: usize, job: Job) -> Option<(Result<(), String>, usize)> {
    let (ready, filter) = mpsc::channel();
    let (calls, only, errno) = (case.calls, case.only, case.errno);
    let subject = std::thread::spawn(move || {
        let filter = Listener::install(calls, only);
        let installed = filter.is_some();
        ready.send((filter, rustix::thread::gettid())).expect("the other end waits");
        installed.then(|| job.perform())
    });
    let (listener, thread) = filter.recv().expect("a thread says whether it has a filter");
    let listener = listener?;
    // Also what a thread does at its end is asked for.
    let thread = format!("/proc/self/task/{thread}");
    let begun = Instant::now();
    let mut seen = 0;
    while Path::new(&thread).exists() || listener.is_asked() {
        if listener.is_asked() {
            seen += usize::from(listener.answer((seen + 1 == nth).then_some(errno)));
        }
        if begun.elapsed() > HANGS {
            println!("wrong: {} {nth} of {seen} in {job:?}: it hangs", case.name);
            std::process::exit(1);
        }
    }
    let outcome = subject.join().unwrap_or_else(|_| Some(Err("a panic".to_owned())));
    outcome.map(|outcome| (outcome, seen))
}
