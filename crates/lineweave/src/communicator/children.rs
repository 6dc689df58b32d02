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

use super::Communicator;
use crate::error::Error;
use crate::sync::Ordering;
use lineweave_core::topology::Level;

/// Told instead of a place when there is none.
const NOWHERE: u64 = u64::MAX;

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
    /// The errors of [`Communicator::dup`].
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
        self.tell_all(&mine, &mut all).map_err(|e| e.during("split"))?;
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
    /// The errors of [`Communicator::dup`].
    ///
    /// ```
    /// use lineweave::Level;
    /// let sizes = lineweave::team::threads(3, |mut comm| Ok(comm.split_level(Level::Machine)?.ranks()))?;
    /// assert_eq!(sizes, [3; 3]); // All ranks of a team are on one machine.
    /// # Ok::<(), lineweave::Error>(())
    /// ```
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
        let helped = self.is_helped();
        Ok(Communicator::of(self.engine().join_group(WHAT, members)?, helped))
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
        let found = |members: &Vec<usize>| {
            let places = self.engine_ref().selector.places_of(members);
            self.segment.found(members.len(), places)
        };
        let found = leads.map(found).transpose();
        let told = [match &found {
            Ok(made) => made.as_ref().map_or(0, |made| made.at()),
            Err(_) => NOWHERE,
        }];
        let mut places = vec![0; self.ranks()];
        self.tell_all(&told, &mut places).map_err(|e| e.during(what))?;
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
