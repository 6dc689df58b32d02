//! Agenda of events: a heap of (time, agent), so that ties are broken alike everywhere.

use super::program::FlagAt;
use lineweave_core::trace::Picos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Target of an event: a lane of a rank, or, from [`Agenda::resources`] on, a resource of the fabric.
pub type Agent = u32;

/// Events to come.
#[derive(Debug)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(Picos, Agent, u8)>>,
    lanes: u32,
    resources: Agent,
    handled: u64,
    /// Posted sets that others can see, with the time from which they do.
    landed: Vec<(FlagAt, Picos)>,
}

impl Agenda {
    /// Nothing to do yet, for `ranks` ranks of `lanes` lanes each.
    pub(super) fn new(ranks: u32, lanes: u32) -> Agenda {
        Agenda { heap: BinaryHeap::new(), lanes, resources: ranks * lanes, handled: 0, landed: Vec::new() }
    }

    /// The lane `lane` of `rank`.
    pub(super) fn agent(&self, rank: u32, lane: u32) -> Agent {
        rank * self.lanes + lane
    }

    /// The rank that an agent belongs to.
    pub fn rank(&self, agent: Agent) -> u32 {
        agent / self.lanes
    }

    /// Returns the lane of its rank that an agent is.
    pub(super) fn lane(&self, agent: Agent) -> u32 {
        agent % self.lanes
    }

    /// The agent of resource 0.
    pub fn resources(&self) -> Agent {
        self.resources
    }

    /// An access that was [parked](super::Step::Parked) goes on at `at`, in `stage`.
    pub fn resume(&mut self, at: Picos, agent: Agent, stage: u8) {
        self.heap.push(Reverse((at, agent, stage)));
    }

    /// Calls [`Fabric::alarm`](super::Fabric::alarm) for `resource` at `at`.
    pub fn alarm(&mut self, at: Picos, resource: u32) {
        self.heap.push(Reverse((at, self.resources + resource, 0)));
    }

    /// The oldest [posted](super::Step::Posted) set of `flag` is visible from `visible` on.
    pub fn land(&mut self, flag: FlagAt, visible: Picos) {
        self.landed.push((flag, visible));
    }

    /// A set that has landed and is not known to the ranks that wait for it.
    pub(super) fn landed(&mut self) -> Option<(FlagAt, Picos)> {
        match self.landed.is_empty() {
            true => None,
            false => Some(self.landed.remove(0)),
        }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Option<(Picos, Agent, u8)> {
        let Reverse(event) = self.heap.pop()?;
        self.handled += 1;
        Some(event)
    }

    /// Returns whether nothing comes before `agent` at `at`, which may then go on at once.
    pub(super) fn is_next(&mut self, at: Picos, agent: Agent) -> bool {
        let next = self.heap.peek().is_none_or(|Reverse(top)| (at, agent) < (top.0, top.1));
        self.handled += u64::from(next);
        next
    }

    /// Events handled so far.
    pub(super) fn handled(&self) -> u64 {
        self.handled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_lower_agent() {
        let mut agenda = Agenda::new(4, 1);
        for (at, agent) in [(5, 3), (5, 1), (2, 2), (5, 2)] {
            agenda.resume(Picos(at), agent, 0);
        }
        agenda.alarm(Picos(5), 0);
        assert!(agenda.is_next(Picos(1), 3) && !agenda.is_next(Picos(2), 3) && agenda.is_next(Picos(2), 1));
        let order: Vec<(u64, Agent)> =
            std::iter::from_fn(|| agenda.next()).map(|(at, agent, _)| (at.0, agent)).collect();
        assert_eq!(order, [(2, 2), (5, 1), (5, 2), (5, 3), (5, 4)]);
    }
}
