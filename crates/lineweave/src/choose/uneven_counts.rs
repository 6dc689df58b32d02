//! Vectors of counts, and the cached plans for them.

use super::lru::{Limits, LruCache};
use super::peer_access::PeerAccess;
use super::proven::Key;
use super::record::Proved;
use crate::compile::PlanId;
use crate::error::Error;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Uneven;
use std::sync::Arc;

/// Limits of a rank's cache, in count vectors, in plans, and in ops (a rank's, on average of all ranks): all ranks have to evict the same.
const KEPT: Limits = Limits { entries: 32, weight: 1 << 18 };
/// Limits of the caches of all processes of a team together; ops of all ranks.
pub(super) const CACHED: Limits = Limits { entries: 64, weight: 1 << 20 };

/// A call with uneven blocks: all that its choice depends on besides the team.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct CountVector {
    pub collective: Collective,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub access: PeerAccess,
    /// Counts in bytes: one for each rank, or for each pair of ranks.
    pub counts: Arc<[usize]>,
}

/// Windows that follow each other and are runs of one plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRun {
    pub plan: PlanId,
    /// Offset of the first window in every block, in bytes.
    pub from: usize,
    /// Length of each window in bytes.
    pub window: usize,
    /// The number of windows.
    pub times: usize,
}

impl CountVector {
    /// The call with even blocks of so many bytes, which is not to be cut.
    pub fn even(&self, bytes: usize) -> Key {
        let CountVector { collective, grain, association, root, access, .. } = *self;
        Key { collective, bytes, grain, association, root, access, cut: false }
    }

    /// The class whose plans carry out blocks of these lengths: whatever passes through boxes may do so as if all were as long as the longest,
    /// so at least half of that has to be there. None for an operator of the program.
    pub fn class(&self, user_operator: bool) -> Option<Key> {
        let longest = self.counts.iter().copied().max().unwrap_or(0);
        let cut = Uneven::fill_half(&self.counts) && !user_operator;
        Key { cut, ..self.even(longest) }.class_of_uneven()
    }
}

/// A call with uneven blocks, ready to be run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub runs: Vec<WindowRun>,
    /// Every plan is right when input and output are one buffer.
    pub in_place: bool,
}

/// One rank's cache of calls with uneven blocks.
#[derive(Debug)]
pub(super) struct UnevenCalls(pub LruCache<CountVector, Arc<Prepared>>);

impl UnevenCalls {
    /// Makes the cache of one of `ranks` ranks.
    pub fn of_one(ranks: usize) -> UnevenCalls {
        UnevenCalls(LruCache::new(KEPT.shared_by(ranks)))
    }

    /// Caches one more call, and returns the evicted ones.
    pub fn keep(&mut self, set: CountVector, prepared: Arc<Prepared>, weight: usize) -> Vec<Arc<Prepared>> {
        let mut gone = self.0.insert(set, prepared, weight);
        while self.plans() > KEPT.entries && self.0.values().count() > 1 {
            gone.extend(self.0.forget());
        }
        gone
    }

    /// Returns the number of plans of all cached calls.
    pub fn plans(&self) -> usize {
        self.0.values().map(|prepared| prepared.runs.len()).sum()
    }
}

/// A run of windows with its proven plan.
#[derive(Debug)]
pub(crate) struct ProvenRun {
    pub proved: Proved,
    pub from: usize,
    pub window: usize,
    pub times: usize,
}

/// All runs of windows of a call, or why there is none.
pub(crate) type ProvenRuns = Result<Arc<Vec<ProvenRun>>, Error>;
