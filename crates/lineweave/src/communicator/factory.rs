//! Communicators of a team's ranks, made without the team's communicator: by several threads at once, whatever that one does meanwhile, and
//! after it is gone.
//!
//! 1. One rank takes a place for each new communicator ([`CommunicatorFactory::found`]) and tells the other members, by means of its own.
//! 2. Each member enters it: maps it, reserves its control page, says who it is, and counts itself in.
//! 3. Each waits until all have come ([`CommunicatorFactory::join`]). Who cannot enter says so before it counts itself in, so all members fail or none does.

use super::Communicator;
use crate::choose::PlanSelector;
use crate::engine::{enter, Engine, ProcessGroup, TransportConfig};
use crate::error::{Error, Loss};
use crate::process;
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::wait::{Interrupted, ProgressHook, WaitMonitor, Waiter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Name of the object that is made, for errors.
const WHAT: &str = "a communicator";
/// Longest time that a member waits for the others.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which a waiting member checks that the processes of the others are there.
const LOOK: Duration = Duration::from_millis(100);

/// Factory with which ranks of a team make communicators. Every rank has its own; threads may share one.
#[derive(Debug)]
pub struct CommunicatorFactory {
    segment: Arc<Segment>,
    group: Arc<ProcessGroup>,
    rank: usize,
    /// Each rank's process: as the kernel numbers it, and as nobody else is numbered.
    processes: Vec<(u32, u64)>,
    selector: Mutex<PlanSelector>,
    transport_config: TransportConfig,
    helped: bool,
}

impl Communicator {
    /// Returns a factory that makes further communicators of this one's ranks without this communicator.
    pub fn factory(&self) -> CommunicatorFactory {
        let engine = self.engine_ref();
        let everybody: Vec<usize> = (0..self.ranks()).collect();
        let of = |&r: &usize| (self.segment.pid(r), self.segment.process(r));
        CommunicatorFactory {
            segment: Arc::clone(&self.segment),
            group: Arc::clone(&engine.group),
            rank: self.rank,
            processes: everybody.iter().map(of).collect(),
            selector: Mutex::new(engine.selector.of_members(&everybody, engine.selector.direct())),
            transport_config: engine.transport.transport_config(),
            // Relaxed: a preference.
            helped: self.shared.helped.load(Ordering::Relaxed),
        }
    }
}

impl CommunicatorFactory {
    /// The number of ranks of the team.
    pub fn ranks(&self) -> usize {
        self.processes.len()
    }

    /// A place for one communicator of these ranks of the team. It is told to each of them, and to nobody else.
    ///
    /// # Errors
    /// [`Error::Group`] when it is not a list of ranks of the team; [`Error::Memory`], [`Error::System`].
    pub fn found(&self, members: &[usize]) -> Result<u64, Error> {
        self.expect_ranks(members)?;
        let places = self.selector().places_of(members);
        self.segment.found(members.len(), places).map(|segment| segment.at())
    }

    fn selector(&self) -> MutexGuard<'_, PlanSelector> {
        // A thread that panicked here left it as it was.
        self.selector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declines to join; called in place of joining. The other members' [`CommunicatorFactory::join`] fails.
    ///
    /// # Errors
    /// [`Error::Group`]; [`Error::System`] when a place cannot be mapped, in which case the other members' joining fails as well.
    ///
    /// # Safety
    /// That of [`CommunicatorFactory::join`].
    pub unsafe fn decline(&self, places: &[u64], members: &[usize]) -> Result<(), Error> {
        let rank = self.number_in(members)?;
        let waiter = Waiter::new(self.transport_config.budget, self.transport_config.order);
        places.iter().try_for_each(|&at| {
            let child = self.segment.open_as(rank, at, members.len())?;
            child.set_failed(rank, Loss::Failed);
            waiter.add(child.joined_word(), 1, child.header_sleepers());
            child.depart(None, 0);
            Ok(())
        })
    }

    /// The number of this rank among the members.
    fn number_in(&self, members: &[usize]) -> Result<usize, Error> {
        self.expect_ranks(members)?;
        let number = members.iter().position(|&r| r == self.rank);
        number
            .ok_or_else(|| refused(format!("rank {} is not a member, and only members may join", self.rank)))
    }

    fn expect_ranks(&self, members: &[usize]) -> Result<(), Error> {
        match members.iter().find(|&&r| r >= self.ranks()) {
            Some(r) => Err(refused(format!("rank {r} is not one of 0 to {}", self.ranks() - 1))),
            None => Ok(()),
        }
    }

    /// Joins a communicator at each place, of these ranks of the team in this order. They, and nobody else, call it, with equal places and
    /// lists. `hook` is called while this rank waits, here and in the communicators.
    ///
    /// # Errors
    /// [`Error::Group`] when it is not a list of ranks with this one; [`Error::NotMade`] when a rank does not come.
    ///
    /// # Safety
    /// Each place must come from [`CommunicatorFactory::found`] of a rank of this team, for these members, and each of them must join it
    /// once: what else lies there in the team's memory would be taken for the communicator's.
    pub unsafe fn join(
        &self,
        places: &[u64],
        members: &[usize],
        hook: impl Fn() -> Option<ProgressHook>,
    ) -> Result<Vec<Communicator>, Error> {
        let rank = self.number_in(members)?;
        let mut waiter = Waiter::new(self.transport_config.budget, self.transport_config.order);
        waiter.set_hook(hook());
        let own = self.group.process;
        let (mut made, mut outcome) = (Vec::with_capacity(places.len()), Ok(()));
        // All are entered before one is waited for.
        for &at in places {
            match enter(&self.segment, own, at, rank, members, &waiter) {
                Ok((child, entered)) => {
                    made.push(child);
                    outcome = outcome.and(entered);
                }
                Err(why) => outcome = Err(why),
            }
        }
        let pids: Vec<u32> = members.iter().map(|&r| self.processes[r].0).collect();
        let all_came = |child: &Arc<Segment>| {
            let mut coming = Coming { child, rank, pids: &pids, asked: Duration::ZERO };
            let (joined, sleepers) = (child.joined_word(), child.header_sleepers());
            let waited = waiter.wait(joined, members.len() as u64, sleepers, &mut coming);
            match (child.failed(), waited) {
                (Some((rank, _)), _) => Err(Error::NotMade { what: WHAT, rank }),
                (None, Err(Interrupted)) => Err(Error::NotMade { what: WHAT, rank }),
                (None, Ok(())) => Ok(()),
            }
        };
        if let Err(why) = outcome.and_then(|()| made.iter().try_for_each(all_came)) {
            made.iter().for_each(|child| child.depart(None, 0));
            return Err(why);
        }
        let here = |&r: &usize| self.processes[r].1 == own;
        let direct = members.len() > 1 && members.iter().all(here);
        let communicator = |child: Arc<Segment>| {
            let template = self.selector();
            let selector = template.of_members(members, direct || template.direct());
            drop(template);
            let group = Arc::clone(&self.group);
            let mut engine = Engine::of_child(child, rank, self.transport_config, selector, group);
            engine.transport.waiter.set_hook(hook());
            Communicator::of(engine, self.helped)
        };
        Ok(made.into_iter().map(communicator).collect())
    }
}

fn refused(why: String) -> Error {
    Error::Group { what: WHAT, why }
}

/// Watches over members that have not come yet.
struct Coming<'a> {
    child: &'a Segment,
    rank: usize,
    pids: &'a [u32],
    /// Time of the last check of the processes, since the start of the wait.
    asked: Duration,
}

impl WaitMonitor for Coming<'_> {
    fn check(&mut self, waited: Duration) -> Result<(), Interrupted> {
        if self.child.failed().is_none() && waited >= self.asked + LOOK {
            self.asked = waited;
            if let Some(gone) = self.pids.iter().position(|&pid| process::how(pid) == process::How::Ended) {
                self.child.set_failed(gone, Loss::Died);
            } else if waited >= PATIENCE {
                self.child.set_failed(self.rank, Loss::Failed);
            }
        }
        match self.child.failed() {
            Some(_) => Err(Interrupted),
            None => Ok(()),
        }
    }
}
