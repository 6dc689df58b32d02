//! Agenda of events: a heap of (time, agent), so that ties are broken alike everywhere.

use super::choices::Choices;
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
    /// The order of what competes, where it is free.
    choices: Option<Choices>,
    /// Time of the last event.
    now: Picos,
}

impl Agenda {
    /// Nothing to do yet, for `ranks` ranks of `lanes` lanes each.
    pub(super) fn new(ranks: u32, lanes: u32) -> Agenda {
        Agenda {
            heap: BinaryHeap::new(),
            lanes,
            resources: ranks * lanes,
            handled: 0,
            landed: Vec::new(),
            choices: None,
            now: Picos(0),
        }
    }

    /// Nothing to do yet, in an order that these choices say.
    pub(super) fn free(ranks: u32, lanes: u32, choices: Choices) -> Agenda {
        Agenda { choices: Some(choices), ..Agenda::new(ranks, lanes) }
    }

    /// Returns the choices of a free order, with those that were made.
    pub(super) fn choices(&self) -> Option<&Choices> {
        self.choices.as_ref()
    }

    /// Returns one of so many options where the order is free, else the first.
    pub(super) fn choose(&mut self, options: usize) -> usize {
        self.choices.as_mut().map_or(0, |choices| choices.choose(options))
    }

    /// Returns whether a rank comes late to a wait, where that is free.
    pub(super) fn late(&mut self) -> bool {
        self.choices.as_mut().is_some_and(Choices::late)
    }

    /// Events to come: time, agent and stage.
    pub(super) fn to_come(&self) -> impl Iterator<Item = (Picos, Agent, u8)> + '_ {
        self.heap.iter().map(|&Reverse(event)| event)
    }

    /// Returns the time of the next event.
    pub(super) fn due(&self) -> Option<Picos> {
        self.heap.peek().map(|Reverse(event)| event.0)
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

    /// The next event; of simultaneous ones any, where the order is free.
    pub(super) fn next(&mut self) -> Option<(Picos, Agent, u8)> {
        let Reverse(mut event) = self.heap.pop()?;
        if self.choices.is_some() {
            let mut alike = vec![event];
            while let Some(&Reverse(other)) = self.heap.peek().filter(|Reverse(other)| other.0 == event.0) {
                self.heap.pop();
                alike.push(other);
            }
            event = alike.swap_remove(self.choose(alike.len()));
            self.heap.extend(alike.into_iter().map(Reverse));
        }
        (self.now, self.handled) = (event.0, self.handled + 1);
        Some(event)
    }

    /// Returns whether nothing comes before `agent` at `at`, which may then go on at once. Where the order is free an agent also goes on
    /// after what takes no time: that concerns nobody else.
    pub(super) fn is_next(&mut self, at: Picos, agent: Agent) -> bool {
        let first = |top: &(Picos, Agent, u8)| match self.choices {
            None => (at, agent) < (top.0, top.1),
            Some(_) => at == self.now || at < top.0,
        };
        let next = self.heap.peek().is_none_or(|Reverse(top)| first(top));
        if next {
            (self.now, self.handled) = (at, self.handled + 1);
        }
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
