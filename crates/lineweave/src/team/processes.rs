//! Teams of processes whose ranks inherit the segment's descriptor.

use super::{join, Charter, Team};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::segment::Segment;
use crate::settings::LAUNCHERS;
use rustix::io::FdFlags;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;

/// The environment variable that names a rank's descriptor of the segment.
pub const TEAM_VARIABLE: &str = LAUNCHERS[0];
/// The environment variable that numbers a rank.
pub const RANK_VARIABLE: &str = LAUNCHERS[1];

impl Team {
    /// Starts one process a rank; `command` makes each. In it, [`from_environment`] joins the team.
    ///
    /// Processes that were started before one failed to start are killed.
    ///
    /// # Errors
    /// [`Error::System`] when a process cannot be started.
    pub fn spawn(&self, mut command: impl FnMut(usize) -> Command) -> Result<Vec<Child>, Error> {
        let fd = self.segment.fd().as_raw_fd();
        let mut children: Vec<Child> = Vec::new();
        for rank in 0..self.charter.ranks() {
            let mut command = command(rank);
            command.env(TEAM_VARIABLE, fd.to_string()).env(RANK_VARIABLE, rank.to_string());
            // SAFETY: between fork and exec only fcntl is called, which is async-signal-safe; the
            // descriptor is open in this process, and so in the child.
            unsafe {
                command.pre_exec(move || {
                    let fd = std::os::fd::BorrowedFd::borrow_raw(fd);
                    rustix::io::fcntl_setfd(fd, FdFlags::empty()).map_err(Into::into)
                });
            }
            match command.spawn() {
                Ok(child) => children.push(child),
                Err(e) => {
                    for child in &mut children {
                        // It may have ended by itself already.
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                    return Err(Error::system(format!("starting rank {rank}"), e, ""));
                }
            }
        }
        Ok(children)
    }
}

impl Team {
    /// The descriptor that processes started by other means than [`Team::spawn`] have to inherit, for [`from_environment`].
    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        self.segment.fd()
    }

    /// Makes this process one rank of a team of processes.
    ///
    /// # Errors
    /// [`Error::Environment`] when there is no such rank; those of joining.
    pub fn join(&self, rank: usize) -> Result<Communicator, Error> {
        let fd = rustix::io::dup(self.segment.fd())
            .map_err(|e| Error::system("copying the team's descriptor", e, "; check `ulimit -n`"))?;
        attach(fd, rank)
    }
}

/// Joins the team whose descriptor this process inherited, with the rank it was given.
///
/// # Errors
/// [`Error::Environment`] when either variable is missing or malformed; [`Error::Foreign`] when the descriptor
/// is something else; those of joining.
pub fn from_environment() -> Result<Communicator, Error> {
    let number = |name: &'static str, expected: &'static str| -> Result<usize, Error> {
        let value = std::env::var(name);
        value.as_ref().ok().and_then(|text| text.parse().ok()).ok_or_else(|| Error::Environment {
            name,
            expected,
            found: value.map_or_else(|_| "not set".into(), |text| format!("`{text}`")),
        })
    };
    let fd = number(TEAM_VARIABLE, "the number of an open descriptor")?;
    let rank = number(RANK_VARIABLE, "a rank")?;
    let environment =
        |expected: &'static str, found: String| Error::Environment { name: TEAM_VARIABLE, expected, found };
    // SAFETY: only asked about before it is owned; a closed descriptor answers with an error.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd as RawFd) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)
        .map_err(|e| environment("an open descriptor", format!("{fd} ({e})")))?;
    // SAFETY: open, as just seen, and inherited for this purpose: nobody else in this process owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    attach(fd, rank)
}

/// Joins the team of a descriptor as `rank`.
pub(super) fn attach(fd: OwnedFd, rank: usize) -> Result<Communicator, Error> {
    let segment = Segment::attach(fd)?;
    if rank >= segment.ranks() {
        return Err(Error::Environment {
            name: RANK_VARIABLE,
            expected: "a rank of the team",
            found: format!("{rank} of {}", segment.ranks()),
        });
    }
    let charter = Charter::from_bytes(segment.blob())?;
    join(Arc::new(segment), &charter, rank, Arc::default())
}
