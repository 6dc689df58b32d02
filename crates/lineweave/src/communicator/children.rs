//! Communicators made from others: duplicates, parts by colour or by level of the machine, and lists of ranks.
//!
//! 1. The ranks agree on who is in which new communicator: by an allgather of colours and keys, or because all know it.
//! 2. The first rank of each makes its segment, in the memory that the whole family shares, and tells where it begins: all ranks
//!    of the parent by an allgather, or the members of a list by an announcement (`segment::announce`).
//! 3. Each member maps it, reserves its control page, says who it is, and waits for the others, watching over them as a
//!    member of the parent.
//!
//! Nothing but that is reserved: memory comes with use (`memory`). The new communicator chooses plans by the parent's
//! tuning for where its own ranks sit, and shares proofs with every other one of that shape in the process.

use super::join::Ways;
use super::memory::Reserved;
use super::{Communicator, Engine};
use crate::error::{Error, Loss};
use crate::post::OnPeer;
use crate::segment::announce::{self, Found};
use crate::segment::{RankState, Segment};
use crate::sync::Ordering;
use crate::wait::{Interrupted, Vigil, Waiter};
use crate::watch::Watch;
use lineweave_core::topology::Level;
use lineweave_core::units::fnv1a;
use std::sync::Arc;
use std::time::Duration;

/// Told instead of a place when there is none.
const NOWHERE: u64 = u64::MAX;

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

impl Communicator {
    /// A communicator of the same ranks, whose calls have nothing to do with this one's. Every rank must call it.
    ///
    /// # Errors
    /// [`Error::Memory`], [`Error::System`], [`Error::NotMade`] when another rank has one of these; those of
    /// [`Communicator::barrier`].
    ///
    /// ```
    /// lineweave::team::threads(3, |mut comm| {
    ///     let mut other = comm.dup()?;
    ///     drop(comm);
    ///     other.barrier()
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn dup(&mut self) -> Result<Communicator, Error> {
        let everybody = (0..self.ranks()).collect();
        self.divide("dup", Some(everybody))?.ok_or_else(|| Error::Failed("a duplicate has all ranks".into()))
    }

    /// One communicator for each colour, of the ranks that give it, in the order of their keys; ranks with equal keys in
    /// their order here. `None` makes no communicator for this rank. Every rank must call it.
    ///
    /// # Errors
    /// Those of [`Communicator::dup`].
    ///
    /// ```
    /// let ranks = lineweave::team::threads(4, |mut comm| {
    ///     let (parity, last_first) = (comm.rank() as u64 % 2, -(comm.rank() as i64));
    ///     Ok(comm.split(Some(parity), last_first)?.map(|part| part.rank()))
    /// })?;
    /// assert_eq!(ranks, [Some(1), Some(1), Some(0), Some(0)]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn split(&mut self, colour: Option<u64>, key: i64) -> Result<Option<Communicator>, Error> {
        let mine = [u64::from(colour.is_some()), colour.unwrap_or(0), key as u64];
        let mut all = vec![0; 3 * self.ranks()];
        self.allgather(&mine, &mut all).map_err(|e| e.during("split"))?;
        let members = colour.map(|_| {
            let alike = |r: &usize| all[3 * r..3 * r + 2] == mine[..2];
            let mut members: Vec<usize> = (0..self.ranks()).filter(alike).collect();
            members.sort_by_key(|r| all[3 * r + 2] as i64);
            members
        });
        self.divide("split", members)
    }

    /// One communicator for each core, last-level cache, NUMA node or package, of the ranks that were placed there, in their
    /// order here. Every rank must call it.
    ///
    /// # Errors
    /// Those of [`Communicator::dup`].
    pub fn split_level(&mut self, level: Level) -> Result<Communicator, Error> {
        let rank = self.rank();
        let members = self.shape().groups(level).into_iter().find(|group| group.contains(&rank));
        self.divide("split by level", members)?
            .ok_or_else(|| Error::Failed("every rank sits somewhere".into()))
    }

    /// A communicator of these ranks, in this order. They, and nobody else, must call it, with equal lists.
    ///
    /// # Errors
    /// [`Error::Group`] when it is not a list of ranks with this one; those of [`Communicator::dup`].
    ///
    /// ```
    /// lineweave::team::threads(3, |mut comm| match comm.rank() {
    ///     1 => Ok(()),
    ///     _ => comm.create_group(&[2, 0])?.barrier(),
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn create_group(&mut self, members: &[usize]) -> Result<Communicator, Error> {
        const WHAT: &str = "create_group";
        let refused = |why: String| Err(Error::Group { what: WHAT, why });
        if let Some(r) = members.iter().find(|&&r| r >= self.ranks()) {
            return refused(format!("rank {r} is not one of 0 to {}", self.ranks() - 1));
        }
        if let Some(i) = (1..members.len()).find(|&i| members[..i].contains(&members[i])) {
            return refused(format!("rank {} is named twice", members[i]));
        }
        let rank = self.rank;
        if !members.contains(&rank) {
            return refused(format!("rank {rank} is not a member, and only members may call it"));
        }
        let (leader, mark) = (members[0], mark_of(members));
        let helped = self.is_helped();
        let engine = self.engine();
        engine.usable()?;
        let segment = Arc::clone(&engine.segment);
        // The others wait for what will not come, and know of no other call to hear of it.
        let give_up = |engine: &mut Engine, why: &Error| {
            engine.segment.set_failed(rank, Loss::Failed);
            engine.failed = Some(why.to_string());
        };
        if leader != rank {
            let at = engine.await_announcement(leader, mark).map_err(|e| e.during(WHAT))?;
            let number = members.iter().position(|&r| r == rank).unwrap_or(0);
            let _mapped = segment.open_as(number, at, members.len()).inspect_err(|e| give_up(engine, e))?;
            return Ok(Communicator::of(engine.join_child(WHAT, at, members, false)?, helped));
        }
        let line = segment.announcements(rank);
        let made = segment.found(members.len()).inspect_err(|e| give_up(engine, e))?;
        let open = announce::prepare(line, mark, made.at());
        engine.waiter.raise(line[0], open, segment.sleepers(rank));
        let joined = engine.join_child(WHAT, made.at(), members, true);
        if let Some(why) = joined.as_ref().err().filter(|_| engine.failed.is_some()) {
            give_up(engine, why);
        }
        engine.waiter.raise(line[0], open + 1, segment.sleepers(rank));
        Ok(Communicator::of(joined?, helped))
    }

    fn is_helped(&self) -> bool {
        // Relaxed: a preference.
        self.shared.helped.load(Ordering::Relaxed)
    }

    /// Makes the communicators of which each member has given the list, all ranks of the parent taking part.
    fn divide(
        &mut self,
        what: &'static str,
        members: Option<Vec<usize>>,
    ) -> Result<Option<Communicator>, Error> {
        let rank = self.rank;
        let leads = members.as_ref().filter(|members| members[0] == rank);
        let found = leads.map(|members| self.segment.found(members.len())).transpose();
        let told = [match &found {
            Ok(made) => made.as_ref().map_or(0, |made| made.at()),
            Err(_) => NOWHERE,
        }];
        let mut places = vec![0; self.ranks()];
        self.allgather(&told, &mut places).map_err(|e| e.during(what))?;
        let _mapped = found?;
        let Some(members) = members else { return Ok(None) };
        match places[members[0]] {
            NOWHERE => Err(Error::NotMade { what, rank: 0 }),
            at => {
                let engine = self.engine().join_child(what, at, &members, false)?;
                Ok(Some(Communicator::of(engine, self.is_helped())))
            }
        }
    }
}

impl Engine {
    fn usable(&self) -> Result<(), Error> {
        match &self.failed {
            _ if self.is_inherited() => Err(Error::Forked),
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// Where the memory of the group with this mark begins, when its first rank tells.
    fn await_announcement(&mut self, leader: usize, mark: u64) -> Result<u64, Error> {
        let segment = Arc::clone(&self.segment);
        let line = segment.announcements(leader);
        let last = self.announced.get(&leader).copied().unwrap_or(0);
        self.watch.operation = "create_group";
        loop {
            match announce::look(line, mark, last) {
                Found::Taken { count, number } => {
                    self.announced.insert(leader, count);
                    return Ok(number);
                }
                Found::Later(count) => {
                    self.watch.forget();
                    let mut vigil = OnPeer { watch: &mut self.watch, peer: Some(leader) };
                    let waited = self.waiter.wait(line[0], count, segment.sleepers(leader), &mut vigil);
                    waited.map_err(|i| self.interrupted(i))?;
                }
            }
        }
    }

    /// Joins the segment at `at` together with these ranks (step 3). Who `leads` has announced it, and stays until all have come also when
    /// it cannot be made: they find what they wait for, and with it the failure.
    fn join_child(
        &mut self,
        what: &'static str,
        at: u64,
        members: &[usize],
        leads: bool,
    ) -> Result<Engine, Error> {
        let rank = members.iter().position(|&r| r == self.rank).unwrap_or(0);
        let (child, entered) =
            enter(&self.segment, self.family.process, at, rank, members.len(), &self.waiter)?;
        self.watch.operation = what;
        if let Err(why) = entered.and_then(|()| self.await_members(what, &child, members)) {
            if leads && self.failed.is_none() {
                if let Err(interrupted) = self.wait_joined(&child, members, true) {
                    self.interrupted(interrupted);
                }
            }
            child.depart();
            return Err(why);
        }
        let here = |&r: &usize| self.segment.is_here(r);
        let direct = self.book.direct() || (members.len() > 1 && members.iter().all(here));
        let book = self.book.of_members(members, direct);
        let family = Arc::clone(&self.family);
        let mut engine = Engine::assemble(child, rank, self.ways(), book, family, Reserved::new(false));
        engine.heaps = self.heaps.inherited();
        Ok(engine)
    }

    /// Waits until all have come that are to join a communicator, `despite` the failure of one if they are to hear of it.
    fn wait_joined(&mut self, child: &Segment, members: &[usize], despite: bool) -> Result<(), Interrupted> {
        self.watch.forget();
        let (joined, sleepers) = (child.joined_word(), child.header_sleepers());
        let mut vigil = Joining { watch: &mut self.watch, parent: &self.segment, child, members, despite };
        self.waiter.wait(joined, members.len() as u64, sleepers, &mut vigil)
    }

    /// Waits until all have come, or one could not.
    fn await_members(&mut self, what: &'static str, child: &Segment, members: &[usize]) -> Result<(), Error> {
        let waited = self.wait_joined(child, members, false);
        match child.failed() {
            Some((rank, _)) => Err(Error::NotMade { what, rank }),
            None => waited.map_err(|i| self.interrupted(i)),
        }
    }

    /// How communicators that are made from this one wait and copy.
    pub(super) fn ways(&self) -> Ways {
        Ways {
            budget: self.waiter.budget(),
            order: self.waiter.order(),
            limits: self.watch.limits(),
            copy: self.copy,
        }
    }
}

/// Maps the segment at `at` as `rank` of its ranks, which says who it is, or that it cannot join, and is counted in (step 3). Returns
/// whether it can; the caller departs when that comes to nothing.
///
/// # Errors
/// When it cannot be mapped: then it is not counted.
pub(super) fn enter(
    parent: &Segment,
    process: u64,
    at: u64,
    rank: usize,
    ranks: usize,
    waiter: &Waiter,
) -> Result<(Arc<Segment>, Result<(), Error>), Error> {
    let child = parent.open_as(rank, at, ranks)?;
    let claimed = child.claim_part(rank, child.geometry().control());
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
