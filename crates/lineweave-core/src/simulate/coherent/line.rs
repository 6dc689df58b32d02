//! One cache line: who has it, who waits for it, and when it can be asked for again.

use super::super::{Agent, FlagAt};
use crate::machine::State;
use crate::trace::Picos;
use std::collections::VecDeque;

/// What somebody wants of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    /// A rank's load misses; `nth` counts the op's misses in a row, from 1.
    Read { rank: u32, agent: Agent, nth: u64 },
    /// A rank's store misses and the rank waits for it.
    Write { rank: u32, agent: Agent, nth: u64 },
    /// A store from a rank's buffer.
    Store { rank: u32, flag: FlagAt },
    /// Ranks of a core poll the line and have lost it.
    Poll { core: u32 },
    /// The prefetcher of a core.
    Prefetch { core: u32 },
}

impl Want {
    /// Whether others lose the line.
    pub(super) fn is_write(self) -> bool {
        match self {
            Want::Write { .. } | Want::Store { .. } => true,
            Want::Read { .. } | Want::Poll { .. } | Want::Prefetch { .. } => false,
        }
    }
}

/// A line that somebody has touched.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Cores that have it, or to which it is on its way, and when it arrives there.
    pub(super) holders: Vec<(u32, Picos)>,
    /// The core that may write it: the line is modified or exclusive there.
    pub(super) owner: Option<u32>,
    /// Whether memory is out of date: modified rather than exclusive.
    pub(super) modified: bool,
    /// The core that answers for a shared line, where the protocol names one.
    pub(super) answers: Option<u32>,
    /// From when the next request is served.
    pub(super) free: Picos,
    /// When all that was served has arrived. A line is taken away only then.
    pub(super) settled: Picos,
    /// Requests in the order of their arrival.
    pub(super) queue: VecDeque<Want>,
    /// When its queue is looked at next.
    pub(super) alarm: Option<Picos>,
    /// Ranks that poll it.
    pub(super) watchers: Vec<u32>,
    /// The NUMA node of its memory.
    pub(super) node: u32,
}

impl Line {
    /// A line that is in memory only, or exclusive in a cache.
    pub(super) fn new(node: u32, owner: Option<u32>) -> Line {
        Line {
            holders: owner.into_iter().map(|core| (core, Picos(0))).collect(),
            owner,
            modified: false,
            answers: owner,
            free: Picos(0),
            settled: Picos(0),
            queue: VecDeque::new(),
            alarm: None,
            watchers: Vec::new(),
            node,
        }
    }

    /// Whether a core can read it.
    pub(super) fn held_by(&self, core: u32) -> bool {
        self.arrives(core).is_some()
    }

    /// When it arrives, or arrived, at a core that has it.
    pub(super) fn arrives(&self, core: u32) -> Option<Picos> {
        self.holders.iter().find(|h| h.0 == core).map(|h| h.1)
    }

    /// Whether a core can write it.
    pub(super) fn owned_by(&self, core: u32) -> bool {
        self.owner == Some(core)
    }

    /// Its state in the caches that have it.
    pub(super) fn state(&self) -> State {
        match (self.owner, self.modified) {
            (Some(_), true) => State::M,
            (Some(_), false) => State::E,
            (None, _) => State::S,
        }
    }

    /// Whether it answers at once.
    pub(super) fn is_idle(&self, now: Picos) -> bool {
        self.queue.is_empty() && self.free <= now
    }

    /// From when a request is served, others not counted.
    pub(super) fn serves(&self, want: Want) -> Picos {
        match want.is_write() {
            true => self.free.max(self.settled),
            false => self.free,
        }
    }

    /// Whether ranks of `core` have asked for it on their own.
    pub(super) fn polled_for(&self, core: u32) -> bool {
        self.queue.contains(&Want::Poll { core })
    }
}
