//! Liveness of peers in other processes.
//!
//! What a look costs does not grow with the team: if each of 512 ranks asked for 511 others, two CPUs would do nothing else. A look is at
//! [`AT_ONCE`] ranks at most, and the next look at those after them. Every rank begins with the one after itself, so that ranks that wait together
//! see all others together at each look; who waits alone has seen all of them after some looks.

use crate::process;
use crate::segment::{RankState, Segment};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of ranks that one look is at.
pub(super) const AT_ONCE: usize = 64;
/// Time between two questions of a wait to `/proc`, which take a file for each peer; and peers of a question in a team that no single look
/// covers.
const PROC_LOOK: Duration = Duration::from_millis(50);
const ASKED: usize = 16;

/// Descriptors of processes, opened at the first look: one each, however many communicators watch it.
#[derive(Debug, Default)]
pub struct Processes(Mutex<HashMap<i32, Arc<OwnedFd>>>);

impl Processes {
    fn open(&self, pid: Pid) -> rustix::io::Result<Arc<OwnedFd>> {
        // A thread that panicked here left the map as it was.
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = open.get(&pid.as_raw_nonzero().get()) {
            return Ok(Arc::clone(fd));
        }
        let fd = Arc::new(rustix::process::pidfd_open(pid, PidfdFlags::empty())?);
        open.insert(pid.as_raw_nonzero().get(), Arc::clone(&fd));
        Ok(fd)
    }

    /// Closes those that no communicator uses.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// One rank's look at the others.
pub(super) struct Peers {
    segment: Arc<Segment>,
    rank: usize,
    opened: Arc<Processes>,
    /// The ranks after this one, as far as they are other processes; known from the first look on.
    near: Option<Vec<(usize, Arc<OwnedFd>)>>,
    /// Number of ranks beyond the next one at which the next look, and the next question to `/proc`, begin.
    looked: usize,
    asked: usize,
    /// Time of this wait at which `/proc` was asked last, the rank whose process had ended, and the rank whose process is stopped, with the
    /// time of this wait since when.
    asked_at: Duration,
    ended: Option<usize>,
    stopped: Option<(usize, Duration)>,
}

/// `count` of the ranks after `rank`, in a circle without it, from the one `skip` after the next.
fn after(ranks: usize, rank: usize, skip: usize, count: usize) -> impl Iterator<Item = usize> + Clone {
    let others = ranks - 1;
    (0..count.min(others)).map(move |i| (rank + 1 + (skip + i) % others) % ranks)
}

impl Peers {
    pub fn new(segment: Arc<Segment>, rank: usize, opened: Arc<Processes>) -> Peers {
        Peers {
            segment,
            rank,
            opened,
            near: None,
            looked: 0,
            asked: 0,
            asked_at: Duration::ZERO,
            ended: None,
            stopped: None,
        }
    }

    /// The ranks of the next look.
    pub fn next(&mut self) -> impl Iterator<Item = usize> + Clone + use<> {
        let ranks = self.segment.ranks();
        let skip = self.looked;
        self.looked = (skip + AT_ONCE.min(ranks - 1)) % (ranks - 1).max(1);
        after(ranks, self.rank, skip, AT_ONCE)
    }

    /// A peer whose process was seen to be stopped, and since when of this wait.
    pub fn stopped(&self) -> Option<(usize, Duration)> {
        self.stopped
    }

    /// A peer whose process has ended without leaving the team.
    pub fn ended(&mut self, waited: Duration) -> Option<usize> {
        self.ask_proc(waited);
        self.near_ended().or(self.ended)
    }

    /// The descriptors of the processes of the ranks after this one; a process that is gone already has none to open.
    fn open(&self) -> (Vec<(usize, Arc<OwnedFd>)>, Option<usize>) {
        let mut open = Vec::new();
        let mut gone = None;
        for q in self.elsewhere(0, AT_ONCE) {
            let Some(pid) = Pid::from_raw(self.segment.pid(q) as i32) else { continue };
            match self.opened.open(pid) {
                Ok(fd) => open.push((q, fd)),
                // One that has left, and was reaped, is not lost.
                Err(rustix::io::Errno::SRCH) if self.segment.state(q) != RankState::Active => {}
                Err(rustix::io::Errno::SRCH) => gone = Some(q),
                // The program needs descriptors more: `/proc` tells as well, somewhat later.
                Err(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                    self.opened.close();
                    return (Vec::new(), None);
                }
                // No pidfds (old kernel, seccomp): as above.
                Err(_) => {}
            }
        }
        (open, gone)
    }

    /// As [`after`], without the ranks of this process.
    fn elsewhere(&self, skip: usize, count: usize) -> impl Iterator<Item = usize> + '_ {
        let me = std::process::id();
        after(self.segment.ranks(), self.rank, skip, count).filter(move |&q| self.segment.pid(q) != me)
    }

    fn near_ended(&mut self) -> Option<usize> {
        if self.near.is_none() {
            let (open, gone) = self.open();
            if gone.is_some() {
                return gone;
            }
            self.near = Some(open);
        }
        let near = self.near.as_ref()?;
        if near.is_empty() {
            return None;
        }
        let mut polled: Vec<PollFd<'_>> =
            near.iter().map(|(_, fd)| PollFd::new(&**fd, PollFlags::IN)).collect();
        let at_once = rustix::thread::Timespec { tv_sec: 0, tv_nsec: 0 };
        if rustix::event::poll(&mut polled, Some(&at_once)).unwrap_or(0) == 0 {
            return None;
        }
        let ended = |i: &usize| !polled[*i].revents().is_empty();
        (0..polled.len())
            .filter(ended)
            .map(|i| near[i].0)
            .find(|&q| self.segment.state(q) == RankState::Active)
    }

    /// Asks `/proc`, every so often, which peers' processes have ended or are stopped.
    fn ask_proc(&mut self, waited: Duration) {
        if waited < self.asked_at {
            self.asked_at = Duration::ZERO; // Another wait than the one that asked.
            self.stopped = None;
        }
        if waited < self.asked_at + PROC_LOOK {
            return;
        }
        self.asked_at = waited;
        let ranks = self.segment.ranks();
        let count = if ranks <= AT_ONCE { ranks } else { ASKED };
        let seen = [self.ended, self.stopped.map(|(q, _)| q)];
        let (mut ended, mut stopped) = (None, None);
        // Those that were seen so are asked for again.
        for q in seen.into_iter().flatten().chain(self.elsewhere(self.asked, count)) {
            let found = match process::how(self.segment.pid(q)) {
                process::How::Runs => continue,
                process::How::Ended => &mut ended,
                process::How::Stopped => &mut stopped,
            };
            // Asked after: a rank says that it has left before its process ends.
            if found.is_none() && self.segment.state(q) == RankState::Active {
                *found = Some(q);
            }
        }
        self.asked = (self.asked + count) % (ranks - 1).max(1);
        self.ended = ended;
        self.stopped = match (stopped, self.stopped) {
            (Some(q), Some((seen, since))) if q == seen => Some((q, since)),
            (found, _) => found.map(|q| (q, waited)),
        };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_is_looked_at_by_somebody_at_each_look_and_by_each_after_some() {
        for ranks in [1, 2, 3, 64, 65, 66, 128, 512] {
            let segment = Arc::new(Segment::create(ranks, 4096, b"").expect("memory"));
            let mut peers: Vec<Peers> =
                (0..ranks).map(|rank| Peers::new(Arc::clone(&segment), rank, Arc::default())).collect();
            let looks = (ranks - 1).div_ceil(AT_ONCE);
            let mut seen = vec![BTreeSet::new(); ranks];
            for _ in 0..looks {
                let mut by_all = BTreeSet::new();
                for (rank, peers) in peers.iter_mut().enumerate() {
                    let at: Vec<usize> = peers.next().collect();
                    assert!(at.len() <= AT_ONCE && !at.contains(&rank), "rank {rank} of {ranks}: {at:?}");
                    by_all.extend(at.iter().copied());
                    seen[rank].extend(at);
                }
                assert_eq!(by_all.len(), ranks, "{ranks} ranks");
            }
            assert!(seen.iter().all(|seen| seen.len() == ranks - 1), "{ranks} ranks");
        }
    }
}
