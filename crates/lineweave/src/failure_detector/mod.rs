//! Watching over a wait: are the awaited ranks still there, and is the time limit kept?

mod missing;
mod peers;
mod visits;

pub use peers::Processes;

use crate::error::{Error, Loss};
use crate::flag::WakeFence;
use crate::process;
use crate::segment::{Awaited, RankState, Segment};
use crate::signature::SLOTS;
use crate::sync::Ordering;
use crate::wait::{Interrupted, WaitMonitor};
use peers::{Peers, AT_ONCE};
use std::sync::Arc;
use std::time::Duration;

/// After a peer's process is seen dead, how long a flag that it may have raised before is still awaited.
const GRACE: Duration = Duration::from_millis(100);
/// Calls that are compared with those of others at a look, by all of them together; and the fewest of each.
const COMPARED: usize = 1024;
const LEAST_COMPARED: usize = 8;

/// Longest time of a wait, and longest time that a peer may be stopped meanwhile, where there are limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub wait: Option<Duration>,
    pub stopped: Option<Duration>,
}

/// Callback for interpreters: releases their lock during long waits, and cancels a wait.
///
/// ```
/// use lineweave::{WaitCallback, Error};
/// struct Impatient;
/// impl WaitCallback for Impatient {
///     fn begin(&mut self) {}
///     fn look(&mut self) -> Result<(), String> {
///         Err("the user has called it off".to_owned())
///     }
///     fn end(&mut self) {}
/// }
/// let over = std::sync::Barrier::new(2);
/// let ends = lineweave::team::threads(2, |mut comm| {
///     let mut end = None;
///     if comm.rank() == 0 {
///         comm.set_wait_callback(Some(Box::new(Impatient)));
///         end = comm.barrier().err(); // Rank 1 does not come.
///     }
///     over.wait();
///     Ok(end)
/// })?;
/// assert!(ends[0].as_ref().is_some_and(|end| end.to_string().contains("called it off")));
/// # Ok::<(), lineweave::Error>(())
/// ```
pub trait WaitCallback: Send {
    /// A wait is not over at once: the place to let go of a lock.
    fn begin(&mut self);

    /// Called every few milliseconds of such a wait.
    ///
    /// # Errors
    /// Why the wait is to end, in words; the call then fails with them.
    fn look(&mut self) -> Result<(), String>;

    /// The wait is over, in whatever way.
    fn end(&mut self);
}

/// The monitor of one rank.
pub struct FailureDetector {
    segment: Arc<Segment>,
    rank: usize,
    limits: Limits,
    peers: Peers,
    first_seen_dead: Option<(usize, Duration)>,
    /// Since when of this wait the one rank that it is for has left.
    first_seen_left: Option<Duration>,
    /// For whom this rank is noted to wait, for others to read.
    noted: Option<Awaited>,
    /// The call under way, for messages.
    pub operation: &'static str,
    failure: Option<Error>,
    wait_callback: Option<Box<dyn WaitCallback>>,
    /// Order of visits of others' buffers, and true if one is under way.
    order: WakeFence,
    visiting: bool,
    /// True if this rank has a plan in which it tells others where its buffers are.
    lends: bool,
}

impl std::fmt::Debug for FailureDetector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch")
            .field("rank", &self.rank)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl FailureDetector {
    /// For `rank` of a team.
    pub fn new(
        segment: Arc<Segment>,
        rank: usize,
        limits: Limits,
        opened: Arc<Processes>,
        order: WakeFence,
    ) -> FailureDetector {
        FailureDetector {
            peers: Peers::new(Arc::clone(&segment), rank, opened),
            segment,
            rank,
            limits,
            first_seen_dead: None,
            first_seen_left: None,
            noted: None,
            operation: "",
            failure: None,
            wait_callback: None,
            order,
            visiting: false,
            lends: false,
        }
    }

    /// The error when one of these ranks called something else than this one, of the last calls of both.
    fn differing(&self, others: impl Iterator<Item = usize> + Clone) -> Option<Error> {
        let (rank, last) = (self.rank, self.sequence(self.rank));
        let compared = self.segment.ranks().min(AT_ONCE);
        let depth = (COMPARED / compared).clamp(LEAST_COMPARED, SLOTS as usize) as u64;
        let calls = (0..depth).map_while(|back| last.checked_sub(back));
        calls.filter_map(|number| Some((number, self.segment.signature(rank, number)?))).find_map(
            |(number, mine)| {
                let others = others.clone();
                others.filter_map(|other| Some((other, self.segment.signature(other, number)?))).find_map(
                    |(other, theirs)| {
                        (mine != theirs).then(|| Error::Mismatch {
                            sequence: number,
                            rank,
                            call: mine.to_string(),
                            other,
                            other_call: theirs.to_string(),
                        })
                    },
                )
            },
        )
    }

    /// Returns the limits on the time of a wait, and on the time that a peer may be stopped.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Changes how long a wait may last.
    pub fn set_limit(&mut self, limit: Option<Duration>) {
        self.limits.wait = limit;
    }

    /// Sets who attends long waits.
    pub fn set_wait_callback(&mut self, wait_callback: Option<Box<dyn WaitCallback>>) {
        self.wait_callback = wait_callback;
    }

    /// Forgets whom an earlier wait for one rank saw gone.
    pub fn forget(&mut self) {
        self.first_seen_left = None;
    }

    /// Returns the loss that ended the team, if there was one.
    pub fn loss(&mut self) -> Option<Error> {
        let (rank, how) = self.segment.failed().filter(|&(rank, _)| rank != self.rank)?;
        let Interrupted = self.lost(rank, how);
        self.failure.take()
    }

    /// [`WaitMonitor::check`], and whether a rank that a message is awaited from, or has to be taken by, is gone.
    pub fn check_peer(&mut self, peer: Option<usize>, waited: Duration) -> Result<(), Interrupted> {
        self.look(peer.map_or(Awaited::Flag, Awaited::Rank), waited)?;
        self.check_left(peer, waited)
    }

    fn check_left(&mut self, peer: Option<usize>, waited: Duration) -> Result<(), Interrupted> {
        let has_left = |&q: &usize| self.segment.state(q) == RankState::Left;
        let mut others = (0..self.segment.ranks()).filter(|&q| q != self.rank);
        let gone = match peer {
            Some(peer) => Some(peer).filter(has_left),
            // A flag that any of them may set: there must be one left.
            None => others.clone().next().filter(|_| others.all(|q| has_left(&q))),
        };
        let Some(peer) = gone else { return Ok(()) };
        // What it did before it left is still seen.
        let since = *self.first_seen_left.get_or_insert(waited);
        match waited >= since + GRACE {
            true => Err(self.lost(peer, Loss::Left)),
            false => Ok(()),
        }
    }

    fn check_limit(&mut self, waited: Duration) -> Result<(), Interrupted> {
        let Some(limit) = self.limits.wait.filter(|&limit| waited >= limit) else { return Ok(()) };
        self.failure = Some(Error::Timeout {
            waiting: self.rank,
            operation: self.operation.to_owned(),
            sequence: self.sequence(self.rank),
            missing: self.missing(),
            seconds: limit.as_secs_f64(),
        });
        Err(Interrupted)
    }

    /// Returns whether the last wait was interrupted for a reason that does not matter when what it was for has come meanwhile.
    pub fn gives_way(&self) -> bool {
        matches!(self.failure, Some(Error::PeerLost { .. } | Error::Timeout { .. }))
    }

    /// Forgets a suspicion: the awaited flag has come.
    pub fn forgive(&mut self) {
        self.failure = None;
    }

    /// Why the last wait was interrupted.
    pub fn take_failure(&mut self) -> Error {
        self.failure.take().unwrap_or_else(|| Error::Failed("interrupted without a reason".into()))
    }

    fn sequence(&self, rank: usize) -> u64 {
        // Relaxed: read for a message, or after the acquire of the rank's final state.
        self.segment.sequence(rank).load(Ordering::Relaxed)
    }

    /// The error of a peer that was seen to be gone otherwise.
    pub fn lose(&mut self, rank: usize, how: Loss) -> Error {
        let Interrupted = self.lost(rank, how);
        self.take_failure()
    }

    fn lost(&mut self, rank: usize, how: Loss) -> Interrupted {
        self.segment.set_failed(rank, how);
        // Another rank may have published another loss meanwhile, of which this one is a consequence. All name the same.
        let published = self.segment.failed().filter(|&(first, _)| first != self.rank);
        let (rank, how) = published.unwrap_or((rank, how));
        self.failure = Some(Error::PeerLost {
            rank,
            in_team: self.segment.in_team(rank),
            pid: self.segment.pid(rank),
            how,
            waiting: self.rank,
            operation: self.operation.to_owned(),
            sequence: self.sequence(self.rank),
        });
        Interrupted
    }

    /// One of these peers whose published state says that it will not take part in this call.
    fn departed(&self, mut others: impl Iterator<Item = usize>) -> Option<(usize, Loss)> {
        let mine = self.sequence(self.rank);
        others.find_map(|q| match self.segment.state(q) {
            RankState::Failed => Some((q, Loss::Failed)),
            RankState::Left if self.sequence(q) < mine => Some((q, Loss::Left)),
            RankState::Left | RankState::Active | RankState::Absent => None,
        })
    }

    /// A peer whose process has been stopped for too long.
    fn stopped(&self, waited: Duration) -> Option<usize> {
        let limit = self.limits.stopped?;
        self.peers.stopped().filter(|(_, since)| waited >= *since + limit).map(|(q, _)| q)
    }

    /// Tells whoever looks from outside that this rank waits.
    fn note(&mut self, awaited: Awaited, waited: Duration) {
        // The first note of a wait stays, so that its beginning does not move; but of a call that is only polled beside a wait
        // for one rank, the latter is what keeps this rank.
        let stays = self.noted.is_some_and(|noted| noted == awaited || awaited == Awaited::Call);
        if !stays {
            let since = process::monotonic_ns().saturating_sub(waited.as_nanos() as u64);
            self.noted = Some(awaited);
            self.segment.note_wait(self.rank, since, self.sequence(self.rank), awaited, self.operation);
        }
    }

    /// Clears the note of a wait that is over.
    pub fn settle(&mut self) {
        if self.noted.take().is_some() {
            self.segment.clear_wait(self.rank);
        }
    }
}

impl WaitMonitor for FailureDetector {
    fn begin(&mut self) {
        // A rank that fails waits for visitors, so these do not wait for others.
        if self.visiting {
            self.segment.end_visit(self.rank);
        }
        if let Some(wait_callback) = &mut self.wait_callback {
            wait_callback.begin();
        }
    }

    fn end(&mut self) {
        self.settle();
        if let Some(wait_callback) = &mut self.wait_callback {
            wait_callback.end();
        }
    }

    fn resume(&mut self) -> Result<(), Interrupted> {
        match self.visiting {
            true => self.visit(),
            false => Ok(()),
        }
    }

    fn check(&mut self, waited: Duration) -> Result<(), Interrupted> {
        self.look(Awaited::Call, waited)
    }

    fn suspects(&self) -> bool {
        self.first_seen_dead.is_some()
    }

    fn forgives(&mut self, raised: impl Fn() -> bool) -> bool {
        let forgives = self.gives_way() && raised();
        if forgives {
            self.forgive();
        }
        forgives
    }
}

impl FailureDetector {
    fn look(&mut self, awaited: Awaited, waited: Duration) -> Result<(), Interrupted> {
        let others = self.peers.next();
        if let Some(error) = self.differing(others.clone()) {
            self.failure = Some(error);
            return Err(Interrupted);
        }
        if let Some((rank, how)) = self.segment.failed() {
            return Err(self.lost(rank, how));
        }
        if let Some((rank, how)) = self.departed(others) {
            return Err(self.lost(rank, how));
        }
        if let Some(rank) = self.peers.ended(waited) {
            match self.first_seen_dead {
                Some((seen, since)) if seen == rank && waited >= since + GRACE => {
                    return Err(self.lost(rank, Loss::Died));
                }
                Some((seen, since)) if seen == rank && waited >= since => {}
                _ => self.first_seen_dead = Some((rank, waited)),
            }
        }
        if let Some(rank) = self.stopped(waited) {
            return Err(self.lost(rank, Loss::Stopped));
        }
        self.note(awaited, waited);
        self.check_limit(waited)?;
        if let Some(Err(why)) = self.wait_callback.as_mut().map(|wait_callback| wait_callback.look()) {
            self.segment.set_failed(self.rank, Loss::Failed);
            self.failure = Some(Error::CalledOff {
                waiting: self.rank,
                operation: self.operation.to_owned(),
                sequence: self.sequence(self.rank),
                why,
            });
            return Err(Interrupted);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
