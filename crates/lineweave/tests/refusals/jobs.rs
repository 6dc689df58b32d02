//! What teams do while a system call fails: they are formed, in each way, and make calls of every kind.

use lineweave::settings::{Attach, Settings, Wait};
use lineweave::sync::{AtomicBool, Ordering};
use lineweave::team::{self, Host, Meeting, Team, TeamConfig};
use lineweave::{Communicator, Error, Operator};
use std::path::PathBuf;
use std::time::Duration;

/// Set for the program as a rank.
pub const RANK: &str = "REFUSALS_TEST_RANK";

/// A way to form a team.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Job {
    Threads,
    Processes,
    /// Guests that come to a host.
    Door,
    /// Ranks of which the first to come is the host.
    Meeting,
}

impl Job {
    pub const ALL: &[Job] = &[Job::Threads, Job::Processes, Job::Door, Job::Meeting];

    /// Does it; what every rank said that failed.
    pub fn perform(self) -> Result<(), String> {
        match self {
            Job::Threads => threads().map_err(|e| e.to_string()),
            Job::Processes => processes(),
            Job::Door => door(),
            Job::Meeting => meeting(),
        }
    }
}

fn settings() -> Settings {
    Settings { wait: Wait::Sleep, attach: Attach::On, ..Settings::from_environment().expect("settings").0 }
}

fn config(ranks: usize) -> Result<TeamConfig, Error> {
    TeamConfig::new(ranks, &settings())
}

/// What ranks do: short and long messages in collectives and between two ranks, a window, buffers that they share, communicators.
fn calls(comm: &mut Communicator) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut long = vec![rank as u64; 40_000];
    comm.bcast(&mut long, 0)?;
    if rank == 1 {
        // So long that the others sleep, and look for it.
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let mut sum = [0u64];
    comm.allreduce(&[1u64], &mut sum, Operator::Sum)?;
    assert_eq!((long[7], sum[0]), (0, ranks as u64));
    let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    comm.sendrecv(&vec![rank as u64; 40_000], next, 1, &mut long, last, 1)?;
    assert_eq!(long[39_999], last as u64);
    comm.window_create(100)?;
    let mut shared = comm.alloc::<u64>(1000)?;
    shared.fill(rank as u64);
    comm.bcast(&mut shared, 1)?;
    assert_eq!(shared[999], 1);
    drop(shared);
    let mut twin = comm.dup()?;
    twin.barrier()?;
    comm.create_group(&(0..ranks).rev().collect::<Vec<_>>())?.barrier()?;
    twin.barrier()
}

fn threads() -> Result<(), Error> {
    Team::with(config(3)?)?.threads(|mut comm| calls(&mut comm)).map(drop)
}

/// The part of a rank that is a process; its status.
pub fn rank() -> i32 {
    let done = team::from_environment().and_then(|mut comm| calls(&mut comm));
    if let Err(e) = &done {
        println!("{e}");
    }
    i32::from(done.is_err())
}

fn processes() -> Result<(), String> {
    let command = |_| {
        let mut command = crate::harness::again();
        command.env(RANK, "");
        command
    };
    let start = || Team::with(config(2)?)?.spawn(command);
    let children = start().map_err(|e| e.to_string())?;
    let ended = children.into_iter().map(|child| child.wait_with_output().expect("a rank ends"));
    let failed = ended.filter(|o| !o.status.success());
    all(failed.map(|o| format!("{}: {}", o.status, String::from_utf8_lossy(&o.stdout))))
}

/// What was said by those that failed.
fn all(said: impl Iterator<Item = String>) -> Result<(), String> {
    let said: Vec<String> = said.collect();
    match said.is_empty() {
        true => Ok(()),
        false => Err(said.join("; ")),
    }
}

/// A socket's name that no other process takes.
pub fn socket() -> PathBuf {
    std::env::temp_dir().join(format!("lineweave-refusals-{}", std::process::id()))
}

/// Who hosts lets others wait no longer when one of them has failed.
fn door() -> Result<(), String> {
    let name = socket().into_os_string().into_string().expect("a temporary folder with a plain name");
    let start = || Ok::<_, Error>((Host::bind(&name)?, Team::with(config(2)?)?));
    let (host, team) = start().map_err(|e| e.to_string())?;
    let failed = AtomicBool::new(false);
    let give_up = |rank: usize| {
        // Relaxed: nothing depends on when it is seen.
        failed.store(true, Ordering::Relaxed);
        team.give_up(rank);
    };
    std::thread::scope(|scope| {
        let guest = |rank: usize| {
            let comm = team::connect(&name, Some(rank)).inspect_err(|_| give_up(rank));
            comm.and_then(|mut comm| calls(&mut comm))
        };
        let guests = [0, 1].map(|rank| scope.spawn(move || guest(rank)));
        let mut free = vec![0, 1];
        let mut served = Ok(());
        // Relaxed: as above.
        while !free.is_empty() && served.is_ok() && !failed.load(Ordering::Relaxed) {
            let taken: Vec<usize> = (0..2).filter(|rank| !free.contains(rank)).collect();
            served = host
                .serve_while(&team, &taken, Duration::from_millis(50), &mut || Ok(()))
                .map(|left| free = left);
        }
        free.into_iter().for_each(give_up);
        drop(host);
        let joined = guests.map(|guest| guest.join().expect("no panic"));
        all(std::iter::once(served).chain(joined).filter_map(Result::err).map(|e| e.to_string()))
    })
}

fn meeting() -> Result<(), String> {
    let name = socket().into_os_string().into_string().expect("a temporary folder with a plain name");
    let failed = AtomicBool::new(false);
    let come = || {
        let (ranks, rank, patience, bind) = (2, None, Duration::from_secs(60), None);
        let meeting = Meeting { name: &name, ranks, rank, patience, bind };
        // Relaxed: nothing depends on when it is seen.
        let mut look = || match failed.load(Ordering::Relaxed) {
            true => Err(Error::Failed("the other one does not come".to_owned())),
            false => Ok(()),
        };
        let met = team::meet(&meeting, &mut look);
        // Relaxed: as above.
        let met = met.inspect_err(|_| failed.store(true, Ordering::Relaxed));
        met.and_then(|mut comm| calls(&mut comm))
    };
    std::thread::scope(|scope| {
        let ranks = [(); 2].map(|()| scope.spawn(come));
        let outcomes = ranks.map(|rank| rank.join().expect("no panic"));
        all(outcomes.into_iter().filter_map(Result::err).map(|e| e.to_string()))
    })
}
