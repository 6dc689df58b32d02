//! Watching over a wait: are the awaited ranks still there, and is the time limit kept?

use crate::error::{Error, Loss};
use crate::segment::{RankState, Segment};
use crate::sync::Ordering;
use crate::wait::{Interrupted, Vigil};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// After a peer's process is seen dead, how long a flag that it may have raised before is still awaited.
const GRACE: Duration = Duration::from_millis(100);

/// The vigil of one rank.
#[derive(Debug)]
pub struct Watch {
    segment: Arc<Segment>,
    rank: usize,
    limit: Option<Duration>,
    /// Descriptors of peers in other processes, opened at the first look.
    processes: Option<Vec<(usize, OwnedFd)>>,
    first_seen_dead: Option<(usize, Duration)>,
    /// The call under way, for messages.
    pub operation: &'static str,
    failure: Option<Error>,
}

impl Watch {
    /// For `rank` of a team; a wait may last `limit`.
    pub fn new(segment: Arc<Segment>, rank: usize, limit: Option<Duration>) -> Watch {
        Watch { segment, rank, limit, processes: None, first_seen_dead: None, operation: "", failure: None }
    }

    /// Forgets whom an earlier wait saw gone.
    pub fn forget(&mut self) {
        self.first_seen_dead = None;
    }

    /// Why the last wait was interrupted.
    pub fn take_failure(&mut self) -> Error {
        self.failure.take().unwrap_or_else(|| Error::Failed("interrupted without a reason".into()))
    }

    fn sequence(&self, rank: usize) -> u64 {
        // Relaxed: read for a message, or after the acquire of the rank's final state.
        self.segment.sequence(rank).load(Ordering::Relaxed)
    }

    fn lost(&mut self, rank: usize, how: Loss) -> Interrupted {
        self.segment.set_failed(rank, how);
        self.failure = Some(Error::PeerLost {
            rank,
            pid: self.segment.pid(rank),
            how,
            waiting: self.rank,
            operation: self.operation.to_owned(),
            sequence: self.sequence(self.rank),
        });
        Interrupted
    }

    /// A peer whose published state says that it will not take part in this call.
    fn departed(&self) -> Option<(usize, Loss)> {
        let mine = self.sequence(self.rank);
        (0..self.segment.ranks()).filter(|&q| q != self.rank).find_map(|q| match self.segment.state(q) {
            RankState::Failed => Some((q, Loss::Failed)),
            RankState::Left if self.sequence(q) < mine => Some((q, Loss::Left)),
            RankState::Left | RankState::Active | RankState::Absent => None,
        })
    }

    /// The descriptors of the peers' processes; a process that is gone already has none to open.
    fn open_processes(&self) -> (Vec<(usize, OwnedFd)>, Option<usize>) {
        let mut open = Vec::new();
        let mut gone = None;
        let me = std::process::id();
        for q in (0..self.segment.ranks()).filter(|&q| q != self.rank && self.segment.pid(q) != me) {
            let Some(pid) = Pid::from_raw(self.segment.pid(q) as i32) else { continue };
            match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
                Ok(fd) => open.push((q, fd)),
                Err(rustix::io::Errno::SRCH) => gone = Some(q),
                // No pidfds (old kernel, seccomp): then only departures and time limits are noticed.
                Err(_) => {}
            }
        }
        (open, gone)
    }

    /// A peer whose process has ended without leaving the team.
    fn dead(&mut self) -> Option<usize> {
        if self.processes.is_none() {
            let (open, gone) = self.open_processes();
            if gone.is_some() {
                return gone;
            }
            self.processes = Some(open);
        }
        let processes = self.processes.as_ref()?;
        if processes.is_empty() {
            return None;
        }
        let mut polled: Vec<PollFd<'_>> =
            processes.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        let at_once = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 0 };
        if rustix::event::poll(&mut polled, Some(&at_once)).unwrap_or(0) == 0 {
            return None;
        }
        let ended = |i: &usize| !polled[*i].revents().is_empty();
        (0..polled.len())
            .filter(ended)
            .map(|i| processes[i].0)
            .find(|&q| self.segment.state(q) == RankState::Active)
    }

    /// Whether a rank that one message is awaited from, or has to be taken by, is gone.
    pub fn check_peer(&mut self, peer: usize, waited: Duration) -> Result<(), Interrupted> {
        self.check(waited)?;
        if self.segment.state(peer) != RankState::Left {
            return Ok(());
        }
        // What it did before it left is still seen.
        match self.first_seen_dead {
            Some((seen, since)) if seen == peer && waited >= since + GRACE => {
                Err(self.lost(peer, Loss::Left))
            }
            Some((seen, since)) if seen == peer && waited >= since => Ok(()),
            _ => {
                self.first_seen_dead = Some((peer, waited));
                Ok(())
            }
        }
    }

    fn missing(&self) -> String {
        let mine = self.sequence(self.rank);
        let missing: Vec<String> = (0..self.segment.ranks())
            .filter(|&q| self.sequence(q) < mine)
            .map(|q| format!("rank {q} (pid {}, at call {})", self.segment.pid(q), self.sequence(q)))
            .collect();
        if missing.is_empty() {
            "ranks that are all within this call".to_owned()
        } else {
            missing.join(", ")
        }
    }
}

impl Vigil for Watch {
    fn check(&mut self, waited: Duration) -> Result<(), Interrupted> {
        if let Some((rank, how)) = self.segment.failed() {
            return Err(self.lost(rank, how));
        }
        if let Some((rank, how)) = self.departed() {
            return Err(self.lost(rank, how));
        }
        if let Some(rank) = self.dead() {
            match self.first_seen_dead {
                Some((seen, since)) if seen == rank && waited >= since + GRACE => {
                    return Err(self.lost(rank, Loss::Died));
                }
                Some((seen, since)) if seen == rank && waited >= since => {}
                _ => self.first_seen_dead = Some((rank, waited)),
            }
        }
        if let Some(limit) = self.limit.filter(|&limit| waited >= limit) {
            self.failure = Some(Error::Timeout {
                waiting: self.rank,
                operation: self.operation.to_owned(),
                sequence: self.sequence(self.rank),
                missing: self.missing(),
                seconds: limit.as_secs_f64(),
            });
            return Err(Interrupted);
        }
        Ok(())
    }
}
