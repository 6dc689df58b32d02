//! Teams of processes whose ranks inherit the segment's descriptor.

use super::{join, local, Members, Team, TeamConfig};
use crate::communicator::Communicator;
use crate::error::{Error, Loss};
use crate::segment::Segment;
use crate::settings::LAUNCHERS;
use lineweave_core::names::shortened;
use rustix::io::{Errno, FdFlags};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// The environment variable that names a rank's descriptor of the segment.
pub const TEAM_VARIABLE: &str = LAUNCHERS[0];
/// The environment variable that numbers a rank.
pub const RANK_VARIABLE: &str = LAUNCHERS[1];

impl Team {
    /// Starts one process a rank; `command` makes each. In it, [`from_environment`] joins the team.
    ///
    /// Processes that were started before one failed to start are killed. A process that another thread of the program starts
    /// meanwhile may inherit the team's descriptor, and holds its memory until it ends.
    ///
    /// # Errors
    /// [`Error::System`] when a process cannot be started.
    ///
    /// ```
    /// use lineweave::team::{self, Team};
    /// use std::process::Command;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// if std::env::var_os(team::RANK_VARIABLE).is_some() {
    ///     team::from_environment()?.barrier()?; // What each rank does.
    ///     return Ok(());
    /// }
    /// // The program starts itself, once a rank.
    /// let program = std::env::current_exe()?;
    /// for mut process in Team::new(2)?.spawn(|_rank| Command::new(&program))? {
    ///     assert!(process.wait()?.success());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn(&self, command: impl FnMut(usize) -> Command) -> Result<Vec<Child>, Error> {
        self.spawn_mixed(1, command)
    }

    /// Starts processes of `threads` ranks each, the last of which may have fewer; `command` makes each, and gets its number. In
    /// it, threads join the team by [`members_from_environment`], which has an example, or its one rank by [`from_environment`].
    ///
    /// # Errors
    /// The errors of [`Team::spawn`], and [`Error::TeamSize`] for processes without ranks.
    pub fn spawn_mixed(
        &self,
        threads: usize,
        mut command: impl FnMut(usize) -> Command,
    ) -> Result<Vec<Child>, Error> {
        let ranks = self.config.ranks();
        if threads == 0 {
            return Err(Error::TeamSize { ranks: 0, most: ranks });
        }
        let processes = (0..ranks).step_by(threads).enumerate().map(|(process, first)| {
            let last = ranks.min(first + threads) - 1;
            let mine = if first == last { first.to_string() } else { format!("{first}-{last}") };
            (mine, command(process))
        });
        // Made before: a caller's code does not run behind the lock, which keeps nothing.
        let processes: Vec<_> = processes.collect();
        let _alone = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        let fd = inheritable(self.segment.fd())?;
        let mut children: Vec<Child> = Vec::new();
        for (mine, mut command) in processes {
            command.env(TEAM_VARIABLE, fd.as_raw_fd().to_string()).env(RANK_VARIABLE, &mine);
            match command.spawn() {
                Ok(child) => children.push(child),
                Err(e) => {
                    for child in &mut children {
                        // It may have ended by itself already.
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                    let advice = match e.raw_os_error() {
                        Some(libc::EMFILE | libc::ENFILE) => "; raise `ulimit -n`, or start fewer ranks",
                        Some(libc::EAGAIN) => {
                            "; raise `ulimit -u` or the container's limit, or start fewer ranks"
                        }
                        _ => "",
                    };
                    return Err(Error::system(format!("starting rank {mine} (clone, execve)"), e, advice));
                }
            }
        }
        Ok(children)
    }
}

/// Held while processes are started, so that those of one team do not inherit the descriptor of another.
static STARTING: Mutex<()> = Mutex::new(());

/// A copy of the team's descriptor that children inherit while it is open. To have each child change its own would take a `fork`, which copies the
/// tables of all memory of this process: 60 ms for each of 512 ranks after as many threads had run in it.
fn inheritable(team: BorrowedFd<'_>) -> Result<OwnedFd, Error> {
    let copied =
        rustix::io::dup(team).and_then(|fd| rustix::io::fcntl_setfd(&fd, FdFlags::empty()).map(|()| fd));
    copied.map_err(|e| Error::system("copying the team's descriptor (dup)", e, "; check `ulimit -n`"))
}

impl Team {
    /// The descriptor that processes started by other means than [`Team::spawn`] have to inherit, for [`from_environment`].
    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Tells those that have joined, and wait for this rank, that it does not come.
    pub fn give_up(&self, rank: usize) {
        self.segment.set_failed(rank, Loss::Failed);
    }

    /// Makes this process one rank of a team of processes.
    ///
    /// # Errors
    /// [`Error::Environment`] when there is no such rank; those of joining.
    pub fn join(&self, rank: usize) -> Result<Communicator, Error> {
        let fd = rustix::io::dup(self.segment.fd()).map_err(|e| {
            // The others do not wait for it.
            self.give_up(rank);
            Error::system("copying the team's descriptor (dup)", e, "; check `ulimit -n`")
        })?;
        attach(fd, rank)
    }
}

/// The value of a variable, as `read` has it.
fn value<T>(
    name: &'static str,
    expected: &'static str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let value = std::env::var(name);
    value.as_ref().ok().and_then(|text| read(text)).ok_or_else(|| Error::Environment {
        name,
        expected,
        found: value.map_or_else(|_| "not set".into(), |text| format!("`{}`", shortened(&text))),
    })
}

/// Joins the team whose descriptor this process inherited, with the rank it was given: [`Team::spawn`] has an example.
///
/// # Errors
/// [`Error::Environment`] when either variable is missing or malformed; [`Error::Foreign`] when the descriptor
/// is something else; those of joining.
pub fn from_environment() -> Result<Communicator, Error> {
    let fd = inherited()?;
    attach(fd, value(RANK_VARIABLE, "a rank", |text| text.parse().ok())?)
}

/// The part of a team of several processes that this process was started for by [`Team::spawn_mixed`], or by [`Team::spawn`]: its ranks,
/// which its threads then join.
///
/// # Errors
/// The errors of [`from_environment`].
///
/// ```
/// use lineweave::team::{self, Team};
/// use std::process::Command;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// if std::env::var_os(team::RANK_VARIABLE).is_some() {
///     let members = &team::members_from_environment()?;
///     std::thread::scope(|scope| {
///         let rank = |rank| scope.spawn(move || members.join(rank)?.barrier());
///         let ranks: Vec<_> = members.mine().map(rank).collect();
///         ranks.into_iter().try_for_each(|rank| rank.join().expect("no rank panics"))
///     })?;
///     return Ok(());
/// }
/// // The program starts itself twice, for two ranks each.
/// let program = std::env::current_exe()?;
/// for mut process in Team::new(4)?.spawn_mixed(2, |_process| Command::new(&program))? {
///     assert!(process.wait()?.success());
/// }
/// # Ok(())
/// # }
/// ```
pub fn members_from_environment() -> Result<Members, Error> {
    let fd = inherited()?;
    let ranks = value(RANK_VARIABLE, "a rank, or the first and the last of some, such as 3-5", |text| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..last.checked_add(1)?)
    })?;
    let (segment, group) = local::share(fd)?;
    expect_ranks(&ranks, segment.ranks())?;
    let config = TeamConfig::from_bytes(segment.blob())?;
    Ok(Members::of(segment, TeamConfig { bind: false, ..config }, group, ranks))
}

/// The team's descriptor that this process inherited.
fn inherited() -> Result<OwnedFd, Error> {
    let fd: usize = value(TEAM_VARIABLE, "the number of an open descriptor", |text| text.parse().ok())?;
    // SAFETY: only asked about before it is owned; a closed descriptor answers with an error.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd as RawFd) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC).map_err(|e| match e {
        Errno::BADF => {
            let found = format!("{fd} ({e})");
            Error::Environment { name: TEAM_VARIABLE, expected: "an open descriptor", found }
        }
        e => Error::system("having the team's descriptor close at exec (fcntl)", e, ""),
    })?;
    // SAFETY: open, as just seen, and inherited for this purpose: nobody else in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

fn expect_ranks(given: &Range<usize>, ranks: usize) -> Result<(), Error> {
    if given.end <= ranks {
        return Ok(());
    }
    Err(Error::Environment {
        name: RANK_VARIABLE,
        expected: "a rank of the team",
        found: format!("{} of {ranks}", given.end - 1),
    })
}

/// Joins the team of a descriptor as `rank`.
pub(super) fn attach(fd: OwnedFd, rank: usize) -> Result<Communicator, Error> {
    let twin = rustix::io::dup(&fd);
    let (segment, group) = local::share(fd).inspect_err(|_| {
        // The others do not wait for it; without a descriptor to tell them by, their patience ends it.
        twin.iter().for_each(|fd| Segment::give_up(fd.as_fd(), rank));
    })?;
    let end = rank.checked_add(1).unwrap_or(rank);
    expect_ranks(&(rank..end), segment.ranks())?;
    let config = TeamConfig::from_bytes(segment.blob())?;
    join(segment, &config, rank, group)
}
