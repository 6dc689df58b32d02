//! Starting a program once for each rank, and staying until all have ended.
//!
//! Whatever ends the launcher ends the ranks. Signals that it gets go on to them; when it is killed, the kernel kills them; when
//! one fails, the others end soon after. What ranks leave running is ended with them: whose parent is gone becomes the launcher's child.

mod lines;
mod signals;

use super::Team;
use crate::error::Error;
use crate::process;
use lines::Lines;
use rustix::process::{kill_process, Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus};
use signals::Signals;
use std::collections::HashMap;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time that ranks may take to end by themselves once one has failed, and once more when they were sent `SIGTERM`.
const GRACE: Duration = Duration::from_secs(5);
/// Between two times that what does not end is killed: its children come to light when it is gone.
const AGAIN: Duration = Duration::from_millis(20);
/// Descriptors of a launcher besides the pipes of its ranks.
const OTHER_DESCRIPTORS: u64 = 64;
/// The variable by which Python prints to a pipe at once, and not when it has much to print.
const UNBUFFERED: &str = "PYTHONUNBUFFERED";

/// The rank that a launched team failed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Number of the rank.
    pub rank: usize,
    /// Exit status of the rank's process.
    pub status: ExitStatus,
}

impl Failed {
    /// The status that the launcher should end with: the rank's, or 128 and the number of the signal that ended it, as in a shell.
    pub fn code(&self) -> u8 {
        let code = self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

impl std::error::Error for Failed {}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} ended with {}", self.rank, self.status)
    }
}

impl Team {
    /// Starts one process a rank; `command` makes each. Returns when all have ended: nothing, or the rank that failed first.
    ///
    /// The calling process is a launcher meanwhile, and should have no other children: it passes `SIGTERM`, `SIGINT`, `SIGHUP`,
    /// `SIGQUIT`, `SIGUSR1` and `SIGUSR2` on, and the ranks are killed when the calling thread ends in whatever way. Of several ranks each
    /// line of standard output and standard error is passed on as a whole. When a rank fails, the others have 5 s to end; then they get `SIGTERM`,
    /// and 5 s later `SIGKILL`. `remark` gets a line that says that a rank was stopped.
    ///
    /// # Errors
    /// [`Error::System`] when a process cannot be started. Nothing is left running then, either.
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
    /// let failed = Team::new(2)?.launch(|_rank| Command::new(&program), |remark| eprintln!("{remark}"))?;
    /// assert_eq!(failed, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn launch(
        &self,
        mut command: impl FnMut(usize) -> Command,
        mut remark: impl FnMut(&str),
    ) -> Result<Option<Failed>, Error> {
        let signals = Signals::catch()?;
        let own = rustix::process::getpid();
        let _adopts = Adopts::orphans_of(own);
        // One rank alone keeps the caller's terminal.
        let by_line = self.config.ranks() > 1;
        let limit = if by_line { room_for_pipes(self.config.ranks()) } else { None };
        let children = self.spawn(|rank| {
            let mut command = command(rank);
            if by_line {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                if std::env::var_os(UNBUFFERED).is_none() {
                    command.env(UNBUFFERED, "1");
                }
            }
            ends_with(own, limit, &mut command);
            command
        })?;
        let mut ranks = Ranks::of(&children);
        let lines = Lines::start(children)?;
        ranks.watch(&signals, &mut remark);
        // From here on signals end this process again: who reads the lines may take as long as it likes.
        drop(signals);
        lines.finish();
        Ok(ranks.cause(self.segment.failed().map(|(rank, _)| rank)))
    }
}

/// While it lives, descendants whose parent ends are children of this process.
struct Adopts;

impl Adopts {
    fn orphans_of(own: Pid) -> Adopts {
        // Where the system refuses, orphans go on as they would without a launcher.
        let _ = rustix::process::set_child_subreaper(Some(own));
        Adopts
    }
}

impl Drop for Adopts {
    fn drop(&mut self) {
        let _ = rustix::process::set_child_subreaper(None);
    }
}

/// Has the process that `command` starts killed when the calling thread ends, and gives it back the limit on descriptors.
fn ends_with(parent: Pid, limit: Option<Rlimit>, command: &mut Command) {
    // SAFETY: between fork and exec only prctl, getppid and setrlimit are called, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            process::end_with_parent()?;
            // It may have been gone before that.
            if rustix::process::getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
            limit.map_or(Ok(()), |limit| Ok(rustix::process::setrlimit(Resource::Nofile, limit)?))
        });
    }
}

/// Raises the limit on descriptors if two pipes a rank need more, and returns what it was. Where it cannot be raised far enough, a rank cannot
/// be started, and the system says why.
fn room_for_pipes(ranks: usize) -> Option<Rlimit> {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let need = 2 * ranks as u64 + OTHER_DESCRIPTORS;
    let most = before.maximum.unwrap_or(u64::MAX);
    let raised = Rlimit { current: Some(need.min(most)), ..before };
    let low = before.current.is_some_and(|current| current < need);
    (low && rustix::process::setrlimit(Resource::Nofile, raised).is_ok()).then_some(before)
}

/// The processes that were started, and what became of them.
struct Ranks {
    /// The running processes, and their ranks.
    running: HashMap<Pid, usize>,
    /// The processes that failed before they were told to end, in order.
    failed: Vec<Failed>,
    /// Next signal to those that still run, and its time.
    next: Option<(Instant, Signal)>,
    /// True if they were told to end.
    told: bool,
    /// Since when they are killed.
    killed: Option<Instant>,
}

impl Ranks {
    fn of(children: &[Child]) -> Ranks {
        let pid = |child: &Child| Pid::from_raw(child.id() as i32);
        let running = children.iter().enumerate().filter_map(|(rank, c)| Some((pid(c)?, rank))).collect();
        Ranks { running, failed: Vec::new(), next: None, told: false, killed: None }
    }

    /// Until no process is left.
    fn watch(&mut self, signals: &Signals, remark: &mut dyn FnMut(&str)) {
        while self.reap(remark) {
            if self.running.is_empty() && !self.told {
                // Orphans only.
                self.next = Some((Instant::now(), Signal::TERM));
            }
            self.end_rest();
            if self.killed.is_some_and(|since| since.elapsed() > GRACE) {
                // The kernel does not let go of it.
                return;
            }
            let patience = self.next.map(|(when, _)| when.saturating_duration_since(Instant::now()));
            for signal in signals.next(patience) {
                self.running.keys().for_each(|&pid| send(pid, signal));
            }
        }
    }

    /// Looks who has ended; false when nobody is left.
    fn reap(&mut self, remark: &mut dyn FnMut(&str)) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) => self.note(pid, status, remark),
                Ok(None) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn note(&mut self, pid: Pid, status: WaitStatus, remark: &mut dyn FnMut(&str)) {
        if status.stopped() {
            if let Some(rank) = self.running.get(&pid) {
                let pid = pid.as_raw_nonzero();
                remark(&format!("rank {rank} (pid {pid}) is stopped, and others may wait for it; `kill -CONT {pid}` lets it go on"));
            }
            return;
        }
        let status = ExitStatus::from_raw(status.as_raw());
        let Some(rank) = self.running.remove(&pid) else { return };
        if !status.success() && !self.told {
            self.failed.push(Failed { rank, status });
            self.next.get_or_insert((Instant::now() + GRACE, Signal::TERM));
        }
    }

    /// Sends those that still run, and what they left, the next signal when it is time.
    fn end_rest(&mut self) {
        let Some((_, signal)) = self.next.filter(|&(when, _)| when <= Instant::now()) else { return };
        let orphans = process::children().into_iter().filter(|pid| !self.running.contains_key(pid));
        self.running.keys().copied().chain(orphans).for_each(|pid| send(pid, signal));
        let now = Instant::now();
        if signal == Signal::KILL {
            self.killed.get_or_insert(now);
        }
        self.next = Some((now + if self.told { AGAIN } else { GRACE }, Signal::KILL));
        self.told = true;
    }

    /// Of those that failed the one that the team lost first, if it lost any of them; else the first to end. Others may be
    /// sooner to end by its failure than it is.
    fn cause(&self, lost: Option<usize>) -> Option<Failed> {
        let lost = self.failed.iter().find(|failed| Some(failed.rank) == lost);
        lost.or(self.failed.first()).copied()
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        // None, unless something failed before they were watched.
        for &pid in self.running.keys() {
            send(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
        }
    }
}

fn send(pid: Pid, signal: Signal) {
    // It may be a zombie by now.
    let _ = kill_process(pid, signal);
}
