//! Engines of communicators that are made from one: finding the memory of a new one, and joining it.

use super::banks::Reserved;
use super::state::Engine;
use super::transport::{ProcessGroup, TransportConfig};
use crate::choose::PlanSelector;
use crate::error::{Error, Loss};
use crate::failure_detector::FailureDetector;
use crate::flag;
use crate::p2p::{on_peer, Watching};
use crate::segment::announce::{self, Found};
use crate::segment::{RankState, Segment};
use crate::wait::{Interrupted, WaitMonitor, Waiter};
use lineweave_core::units::fnv1a;
use std::sync::Arc;
use std::time::Duration;

impl Engine {
    /// Joins a communicator of these of the ranks, of whom this is one; they, and nobody else, call it with equal lists.
    pub(crate) fn join_group(&mut self, what: &'static str, members: &[usize]) -> Result<Engine, Error> {
        self.health.expect_usable()?;
        let (leader, mark, rank) = (members[0], mark_of(members), self.rank);
        let segment = Arc::clone(&self.segment);
        if leader != rank {
            let at = self.await_announcement(leader, mark).map_err(|e| e.during(what))?;
            let number = members.iter().position(|&r| r == rank).unwrap_or(0);
            let _mapped = segment.open_as(number, at, members.len()).inspect_err(|e| self.turn_away(e))?;
            return self.join_child(what, at, members, false);
        }
        let line = segment.announcements(rank);
        let made = segment
            .found(members.len(), self.selector.places_of(members))
            .inspect_err(|e| self.turn_away(e))?;
        let open = announce::prepare(line, mark, made.at());
        self.transport.waiter.raise(line[0], open, segment.sleepers(rank));
        let joined = self.join_child(what, made.at(), members, true);
        if let Some(why) = joined.as_ref().err().filter(|_| self.health.failed.is_some()) {
            self.turn_away(why);
        }
        self.transport.waiter.raise(line[0], open + 1, segment.sleepers(rank));
        joined
    }

    /// Fails, and has the others know: they wait for what will not come, and there is no other call to hear of it.
    fn turn_away(&mut self, why: &Error) {
        self.segment.set_failed(self.rank, Loss::Failed);
        self.poison(why);
    }

    /// Waits until the first rank of the group with this mark announces the group's memory, and returns the place where it begins.
    fn await_announcement(&mut self, leader: usize, mark: u64) -> Result<u64, Error> {
        let segment = Arc::clone(&self.segment);
        let line = segment.announcements(leader);
        let last = self.announced.get(&leader).copied().unwrap_or(0);
        self.transport.watch.operation = "create_group";
        loop {
            match announce::look(line, mark, last) {
                Found::Taken { count, number } => {
                    self.announced.insert(leader, count);
                    return Ok(number);
                }
                Found::Later(count) => {
                    self.transport.watch.forget();
                    let mut monitor = on_peer(&mut self.transport.watch, Some(leader));
                    let waited =
                        self.transport.waiter.wait(line[0], count, segment.sleepers(leader), &mut monitor);
                    waited.map_err(|i| self.interrupted(i))?;
                }
            }
        }
    }

    /// Joins the segment at `at` together with these ranks (step 3). Who `leads` has announced it, and stays until all have come also when
    /// it cannot be made: they find what they wait for, and with it the failure.
    pub(crate) fn join_child(
        &mut self,
        what: &'static str,
        at: u64,
        members: &[usize],
        leads: bool,
    ) -> Result<Engine, Error> {
        let rank = members.iter().position(|&r| r == self.rank).unwrap_or(0);
        let (child, entered) =
            enter(&self.segment, self.group.process, at, rank, members, &self.transport.waiter)?;
        self.transport.watch.operation = what;
        if let Err(why) = entered.and_then(|()| self.await_members(what, &child, members)) {
            if leads && self.health.failed.is_none() {
                if let Err(interrupted) = self.wait_joined(&child, members, true) {
                    self.interrupted(interrupted);
                }
            }
            child.depart(None, 0);
            return Err(why);
        }
        let here = |&r: &usize| self.segment.is_here(r);
        let direct = self.selector.direct() || (members.len() > 1 && members.iter().all(here));
        let selector = self.selector.of_members(members, direct);
        let group = Arc::clone(&self.group);
        let mut engine = Engine::of_child(child, rank, self.transport.transport_config(), selector, group);
        engine.heaps = self.heaps.inherited();
        Ok(engine)
    }

    /// One rank's end of a communicator made from another one, that every rank has joined: what is backed of its memory goes on to be used.
    pub(crate) fn of_child(
        segment: Arc<Segment>,
        rank: usize,
        transport_config: TransportConfig,
        selector: PlanSelector,
        group: Arc<ProcessGroup>,
    ) -> Engine {
        let rest = segment.rest();
        let base = rest.base;
        Engine::assemble(segment, rank, transport_config, selector, group, Reserved::of_rest(rest), base)
    }

    /// Waits until all have come that are to join a communicator, `despite` the failure of one if they are to hear of it.
    fn wait_joined(&mut self, child: &Segment, members: &[usize], despite: bool) -> Result<(), Interrupted> {
        self.transport.watch.forget();
        let (joined, sleepers) = (child.joined_word(), child.header_sleepers());
        let parent = &self.segment;
        let check = |watch: &mut FailureDetector, waited: Duration| {
            let failed = child.failed().map(|(rank, _)| rank);
            if failed.is_some() && !despite {
                return Err(Interrupted);
            }
            // One that has left the parent does not come any more.
            let has_left = |&(rank, &member): &(usize, &usize)| {
                parent.state(member) == RankState::Left && failed != Some(rank) && !child.has_signed(rank)
            };
            match members.iter().enumerate().find(has_left) {
                Some((_, &member)) => watch.check_peer(Some(member), waited),
                None => watch.check(waited),
            }
        };
        let mut monitor = Watching { watch: &mut self.transport.watch, check };
        self.transport.waiter.wait(joined, members.len() as u64, sleepers, &mut monitor)
    }

    /// Waits until all have come, or one could not.
    fn await_members(&mut self, what: &'static str, child: &Segment, members: &[usize]) -> Result<(), Error> {
        let waited = self.wait_joined(child, members, false);
        match child.failed() {
            // One that has joined fails once all have: the next call tells of it.
            Some((rank, _))
                if child.has_signed(rank) && flag::reached(child.joined_word(), members.len() as u64) =>
            {
                Ok(())
            }
            Some((rank, _)) => Err(Error::NotMade { what, rank }),
            None => waited.map_err(|i| self.interrupted(i)),
        }
    }
}

/// Maps the segment at `at` as `rank` of its `members`, ranks of the parent, which says who it is, or that it cannot join, and is counted in (step 3). Returns
/// whether it can; the caller departs when that comes to nothing.
///
/// # Errors
/// When it cannot be mapped: then it is not counted.
pub(crate) fn enter(
    parent: &Segment,
    process: u64,
    at: u64,
    rank: usize,
    members: &[usize],
    waiter: &Waiter,
) -> Result<(Arc<Segment>, Result<(), Error>), Error> {
    let child = parent.open_as(rank, at, members.len())?;
    let claimed = child.admit(rank);
    match &claimed {
        Ok(()) => {
            child.settle_here(rank);
            child.set_in_team(rank, parent.in_team(members[rank]));
            child.sign(rank, process);
        }
        Err(_) => child.set_failed(rank, Loss::Failed),
    }
    waiter.add(child.joined_word(), 1, child.header_sleepers());
    Ok((child, claimed))
}

/// A number that differs for different lists.
fn mark_of(members: &[usize]) -> u64 {
    fnv1a(members.iter().flat_map(|&r| (r as u32).to_le_bytes()))
}
