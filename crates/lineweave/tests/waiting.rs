//! Waiting in anger: 1 to 32 ranks beside a competing load, at a low priority, with little time on a CPU, stopped now and then;
//! and what ranks cost that wait for one who does not come. The test starts itself once a rank, so it has no harness but prints
//! what one would.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

#[path = "common/harness.rs"]
mod harness;

use harness::{beside_a_load, finish};
use lineweave::settings::{Settings, Wait};
use lineweave::team::{self, Team, TeamConfig};
use lineweave::who::{self, Missing};
use lineweave::{process, Communicator, Error, Operation, Operator};
use rustix::process::{kill_process, Pid, Signal};
use rustix::time::{clock_gettime, ClockId};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const JOB: &str = "WAITING_TEST_JOB";
/// A rank that hears nothing for so long is an error, and no hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    if std::env::var(JOB).is_ok() {
        std::process::exit(rank());
    }
    harness::main(&[
        ("teams_of_1_to_32_ranks_go_on_beside_a_load", teams_of_1_to_32_ranks_go_on_beside_a_load),
        ("a_team_goes_on_at_a_low_priority", a_team_goes_on_at_a_low_priority),
        ("a_team_goes_on_with_little_cpu_time", a_team_goes_on_with_little_cpu_time),
        ("a_team_goes_on_whose_ranks_are_stopped_now_and_then", a_team_goes_on_whose_ranks_are_stopped),
        ("a_team_outlives_a_long_stop_and_tells_of_it", a_team_outlives_a_long_stop_and_tells_of_it),
        ("ranks_that_wait_long_cost_little", ranks_that_wait_long_cost_little),
    ]);
}

fn config(ranks: usize, wait: Wait) -> TeamConfig {
    let settings = Settings { wait, timeout: Some(PATIENCE), ..Settings::default() };
    TeamConfig::new(ranks, &settings).expect("a configuration")
}

/// Calls of three kinds, with right results.
fn calls(comm: &mut Communicator, turns: usize) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    for turn in 0..turns {
        comm.barrier()?;
        let mut sum = [0];
        comm.allreduce(&[(rank + turn) as u64], &mut sum, Operator::Sum)?;
        assert_eq!(sum[0] as usize, ranks * turn + ranks * (ranks - 1) / 2, "rank {rank} of {ranks}");
        let mut message = vec![if rank == turn % ranks { turn as u32 } else { u32::MAX }; 1000];
        comm.bcast(&mut message, turn % ranks)?;
        assert!(message.iter().all(|&m| m == turn as u32), "rank {rank} of {ranks}");
    }
    Ok(())
}

/// The part of one rank that is a process.
fn rank() -> i32 {
    let stops = std::env::var(JOB).is_ok_and(|job| job == "stop");
    let outcome = team::from_environment().and_then(|mut comm| {
        calls(&mut comm, 20)?;
        if stops && comm.rank() == 1 {
            kill_process(rustix::process::getpid(), Signal::STOP).expect("a process can stop itself");
        }
        calls(&mut comm, 20)
    });
    match outcome {
        Ok(()) => 0,
        Err(e) => {
            println!("{e}");
            1
        }
    }
}

fn start(ranks: usize, wait: Wait, mut with: impl FnMut(&mut Command)) -> Vec<Child> {
    let team = Team::with(config(ranks, wait)).expect("a team");
    harness::start(&team, 1, |command| {
        command.env(JOB, "calls");
        with(command);
    })
}

fn teams_of_1_to_32_ranks_go_on_beside_a_load() {
    beside_a_load(|| {
        for ranks in (1..=9).chain([13, 16, 17, 24, 32]) {
            let wait = [Wait::Auto, Wait::Auto, Wait::Sleep, Wait::Yield][ranks % 4];
            let team = Team::with(config(ranks, wait)).expect("a team");
            team.threads(|mut comm| calls(&mut comm, 6))
                .unwrap_or_else(|e| panic!("{ranks} ranks, {wait:?}: {e}"));
        }
        for (ranks, wait) in [(2, Wait::Auto), (8, Wait::Auto), (8, Wait::Sleep), (32, Wait::Auto)] {
            finish(start(ranks, wait, |_| {}), &format!("{ranks} processes, {wait:?}"));
        }
    });
}

fn a_team_goes_on_at_a_low_priority() {
    beside_a_load(|| {
        let nice = |command: &mut Command| {
            // SAFETY: sets the priority of the process that is about to begin, by a system call alone.
            unsafe {
                std::os::unix::process::CommandExt::pre_exec(command, || {
                    rustix::process::nice(15).map(drop).map_err(Into::into)
                })
            };
        };
        finish(start(4, Wait::Auto, nice), "4 processes of low priority");
    });
}

/// A group of processes with a share of one CPU, removed in the end.
struct Throttled(PathBuf);

impl Throttled {
    /// A fifth of one CPU, in pieces of 100 ms; or why there can be none.
    fn new() -> Result<Throttled, String> {
        let name = format!("lineweave-test-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let v2 = Path::new("/sys/fs/cgroup");
        let (parent, settings): (&Path, &[(&str, &str)]) = if v1.join("cpu.cfs_quota_us").exists() {
            (v1, &[("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "20000")])
        } else if std::fs::read_to_string(v2.join("cgroup.subtree_control")).is_ok_and(|c| c.contains("cpu"))
        {
            (v2, &[("cpu.max", "20000 100000")])
        } else {
            return Err("no control group can hand out CPU time here".into());
        };
        let group = Throttled(parent.join(name));
        std::fs::create_dir(&group.0).map_err(|e| format!("making {}: {e}", group.0.display()))?;
        for (file, value) in settings {
            std::fs::write(group.0.join(file), value).map_err(|e| format!("setting {file}: {e}"))?;
        }
        Ok(group)
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn a_team_goes_on_with_little_cpu_time() {
    let group = match Throttled::new() {
        Ok(group) => group,
        Err(why) => return println!("SKIPPED: throttling: {why}"),
    };
    let mut children = start(3, Wait::Auto, |_| {});
    for child in &mut children {
        std::fs::write(group.0.join("cgroup.procs"), child.id().to_string()).expect("a child can be moved");
    }
    finish(children, "3 processes with a fifth of a CPU");
}

fn a_team_goes_on_whose_ranks_are_stopped() {
    // Not all at once, and each for less than what counts as stopped.
    let children = start(4, Wait::Auto, |_| {});
    let pids: Vec<Pid> = children.iter().filter_map(|c| Pid::from_raw(c.id() as i32)).collect();
    for turn in 0..12 {
        let pid = pids[turn % pids.len()];
        // It may have ended by now.
        let _ = kill_process(pid, Signal::STOP);
        std::thread::sleep(Duration::from_millis(40));
        let _ = kill_process(pid, Signal::CONT);
    }
    finish(children, "processes that are stopped now and then");
}

/// As at a debugger's breakpoint, or in a laptop that sleeps.
fn a_team_outlives_a_long_stop_and_tells_of_it() {
    let children = start(3, Wait::Auto, |command| {
        command.env(JOB, "stop");
    });
    let stopped = children[1].id();
    while process::how(stopped) != process::How::Stopped {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_secs(2));
    let seen = who::teams(Some(stopped)).expect("a stopped process can be looked at");
    assert_eq!((seen[0].missing(), seen[0].failed), (vec![Missing::Stopped(vec![1])], None));
    let stopped = Pid::from_raw(stopped as i32).expect("a process");
    kill_process(stopped, Signal::CONT).expect("it goes on");
    finish(children, "a team with a rank that was stopped for long");
}

/// Time of this thread on a CPU.
fn busy() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time of this process on CPUs.
fn busy_together() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn ranks_that_wait_long_cost_little() {
    // What a rank may take of a CPU while it waits for a second: spinning and yielding at first, and looks around.
    const AWAY: Duration = Duration::from_millis(1000);
    const MOST: Duration = Duration::from_millis(60);
    type Waits = fn(&mut Communicator) -> Result<(), Error>;
    // With rank 0, which comes late.
    let waits: [(&str, bool, Waits); 6] = [
        ("a barrier", false, |comm| comm.barrier()),
        ("a message", false, |comm| match comm.rank() {
            0 => (1..comm.ranks()).try_for_each(|to| comm.send(&[1u8], to, 0)),
            _ => comm.recv(&mut [0u8], 0, 0).map(drop),
        }),
        ("an exchange of long messages", false, |comm| {
            let (rank, ranks) = (comm.rank(), comm.ranks());
            let (message, mut got) = (vec![1u8; 100_000], vec![0u8; 100_000]);
            comm.sendrecv(&message, (rank + 1) % ranks, 0, &mut got, (rank + ranks - 1) % ranks, 0).map(drop)
        }),
        ("a started call", false, |comm| {
            comm.start(vec![1u64], |b| Operation::bcast(b, 0))?.wait().map(drop)
        }),
        ("a message beside a started call", false, |comm| {
            let call = comm.start((), |()| Operation::barrier())?;
            match comm.rank() {
                0 => (1..comm.ranks()).try_for_each(|to| comm.send(&[1u8], to, 0))?,
                _ => comm.recv(&mut [0u8], 0, 0).map(drop)?,
            }
            call.wait()
        }),
        ("a started call with a helper", true, |comm| {
            comm.start(vec![1u64], |b| Operation::bcast(b, 0))?.wait().map(drop)
        }),
    ];
    for (turn, (what, helped, wait)) in waits.iter().enumerate() {
        // A CPU each, and more ranks than most machines of tests have.
        let ranks = [4, 2][turn % 2];
        let before = busy_together();
        let team = Team::with(config(ranks, Wait::Auto)).expect("a team");
        let times = team.threads(|mut comm| {
            comm.set_progress_thread(*helped);
            calls(&mut comm, 2)?;
            if comm.rank() == 0 {
                std::thread::sleep(AWAY);
            }
            let before = busy();
            wait(&mut comm)?;
            Ok(busy() - before)
        });
        for (rank, time) in times.expect("the team runs").into_iter().enumerate().skip(1) {
            assert!(time < MOST, "{what}: rank {rank} of {ranks} took {time:?} of {AWAY:?}");
        }
        // With what it takes to make plans, and the helper.
        let together = busy_together() - before;
        assert!(together < MOST * ranks as u32 + 2 * MOST, "{what}: {ranks} ranks took {together:?}");
    }
}
