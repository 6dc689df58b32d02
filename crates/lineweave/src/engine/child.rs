//! Engines of communicators that are made from one: finding the memory of a new one, and joining it.

use super::banks::Reserved;
use super::state::Engine;
use super::wire::{Family, Ways};
use crate::choose::Book;
use crate::error::{Error, Loss};
use crate::post::OnPeer;
use crate::segment::announce::{self, Found};
use crate::segment::{RankState, Segment};
use crate::wait::{Interrupted, Vigil, Waiter};
use crate::watch::Watch;
use lineweave_core::units::fnv1a;
use std::sync::Arc;
use std::time::Duration;

/// Watches over ranks of the parent that join a new communicator.
struct Joining<'a> {
    watch: &'a mut Watch,
    parent: &'a Segment,
    child: &'a Segment,
    members: &'a [usize],
    /// Whether the wait goes on when the communicator cannot be made.
    despite: bool,
}

impl Vigil for Joining<'_> {
    fn check(&mut self, waited: Duration) -> Result<(), Interrupted> {
        let failed = self.child.failed().map(|(rank, _)| rank);
        if failed.is_some() && !self.despite {
            return Err(Interrupted);
        }
        // One that has left the parent does not come any more.
        let has_left = |&(rank, &member): &(usize, &usize)| {
            self.parent.state(member) == RankState::Left
                && failed != Some(rank)
                && !self.child.has_signed(rank)
        };
        match self.members.iter().enumerate().find(has_left) {
            Some((_, &member)) => self.watch.check_peer(Some(member), waited),
            None => self.watch.check(waited),
        }
    }

    fn begin(&mut self) {
        self.watch.begin();
    }

    fn end(&mut self) {
        self.watch.end();
    }

    fn forgives(&mut self, raised: impl Fn() -> bool) -> bool {
        self.watch.forgives(raised)
    }
}

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
        let made =
            segment.found(members.len(), self.book.places_of(members)).inspect_err(|e| self.turn_away(e))?;
        let open = announce::prepare(line, mark, made.at());
        self.wire.waiter.raise(line[0], open, segment.sleepers(rank));
        let joined = self.join_child(what, made.at(), members, true);
        if let Some(why) = joined.as_ref().err().filter(|_| self.health.failed.is_some()) {
            self.turn_away(why);
        }
        self.wire.waiter.raise(line[0], open + 1, segment.sleepers(rank));
        joined
    }

    /// Fails, and has the others know: they wait for what will not come, and there is no other call to hear of it.
    fn turn_away(&mut self, why: &Error) {
        self.segment.set_failed(self.rank, Loss::Failed);
        self.poison(why);
    }

    /// Where the memory of the group with this mark begins, when its first rank tells.
    fn await_announcement(&mut self, leader: usize, mark: u64) -> Result<u64, Error> {
        let segment = Arc::clone(&self.segment);
        let line = segment.announcements(leader);
        let last = self.announced.get(&leader).copied().unwrap_or(0);
        self.wire.watch.operation = "create_group";
        loop {
            match announce::look(line, mark, last) {
                Found::Taken { count, number } => {
                    self.announced.insert(leader, count);
                    return Ok(number);
                }
                Found::Later(count) => {
                    self.wire.watch.forget();
                    let mut vigil = OnPeer { watch: &mut self.wire.watch, peer: Some(leader) };
                    let waited = self.wire.waiter.wait(line[0], count, segment.sleepers(leader), &mut vigil);
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
            enter(&self.segment, self.family.process, at, rank, members.len(), &self.wire.waiter)?;
        self.wire.watch.operation = what;
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
        let direct = self.book.direct() || (members.len() > 1 && members.iter().all(here));
        let book = self.book.of_members(members, direct);
        let family = Arc::clone(&self.family);
        let mut engine = Engine::of_child(child, rank, self.wire.ways(), book, family);
        engine.heaps = self.heaps.inherited();
        Ok(engine)
    }

    /// One rank's end of a communicator made from another one, that every rank has joined: what is backed of its memory goes on to be used.
    pub(crate) fn of_child(
        segment: Arc<Segment>,
        rank: usize,
        ways: Ways,
        book: Book,
        family: Arc<Family>,
    ) -> Engine {
        let rest = segment.rest();
        let base = rest.base;
        Engine::assemble(segment, rank, ways, book, family, Reserved::of_rest(rest), base)
    }

    /// Waits until all have come that are to join a communicator, `despite` the failure of one if they are to hear of it.
    fn wait_joined(&mut self, child: &Segment, members: &[usize], despite: bool) -> Result<(), Interrupted> {
        self.wire.watch.forget();
        let (joined, sleepers) = (child.joined_word(), child.header_sleepers());
        let mut vigil =
            Joining { watch: &mut self.wire.watch, parent: &self.segment, child, members, despite };
        self.wire.waiter.wait(joined, members.len() as u64, sleepers, &mut vigil)
    }

    /// Waits until all have come, or one could not.
    fn await_members(&mut self, what: &'static str, child: &Segment, members: &[usize]) -> Result<(), Error> {
        let waited = self.wait_joined(child, members, false);
        match child.failed() {
            Some((rank, _)) => Err(Error::NotMade { what, rank }),
            None => waited.map_err(|i| self.interrupted(i)),
        }
    }
}

/// Maps the segment at `at` as `rank` of its ranks, which says who it is, or that it cannot join, and is counted in (step 3). Returns
/// whether it can; the caller departs when that comes to nothing.
///
/// # Errors
/// When it cannot be mapped: then it is not counted.
pub(crate) fn enter(
    parent: &Segment,
    process: u64,
    at: u64,
    rank: usize,
    ranks: usize,
    waiter: &Waiter,
) -> Result<(Arc<Segment>, Result<(), Error>), Error> {
    let child = parent.open_as(rank, at, ranks)?;
    let claimed = child.admit(rank);
    match &claimed {
        Ok(()) => {
            child.settle_here(rank);
            child.sign(rank, process);
        }
        Err(_) => child.set_failed(rank, Loss::Failed),
    }
    waiter.add(child.joined_word(), child.header_sleepers());
    Ok((child, claimed))
}

/// A number that differs for different lists.
fn mark_of(members: &[usize]) -> u64 {
    fnv1a(members.iter().flat_map(|&r| (r as u32).to_le_bytes()))
}
