//! Cache of proven plans, keyed by what a choice depends on.

use super::lru::Limits;
use super::peer_access::{CacheKey, PeerAccess};
use super::record::Proved;
use super::single_flight::SingleFlight;
use super::uneven_counts::{self, CountVector, ProvenRuns};
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::FlagKind;
use std::sync::Arc;

/// The key of a choice: all that it depends on besides the team.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub collective: Collective,
    pub bytes: usize,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub access: PeerAccess,
    /// True if its plans may be cut for shorter ones, or it may be carried out by such a plan.
    pub cut: bool,
}

/// Proven plans that ranks and communicators of one process share, so that each is chosen and proven once. Communicators
/// differ in the memory that they have for plans, which is part of the key.
pub(crate) type ProvenPlanCache = Arc<ProvenPlans>;

/// Limits of the caches of all processes of a team together, in plans and in ops of some 64 bytes: without them, sizes that come once would
/// fill the memory.
const CACHED: Limits = Limits { entries: 256, weight: 1 << 20 };

/// Limits of the cache of size classes' choices.
const ALIKE: Limits = Limits { entries: 4096, weight: 4096 };

/// The caches behind a [`ProvenPlanCache`].
#[derive(Debug)]
pub(crate) struct ProvenPlans {
    pub(super) even: SingleFlight<CacheKey<Key>, Outcome>,
    /// Simple plans, for calls whose own are not chosen yet.
    pub(super) provisional: SingleFlight<CacheKey<Key>, Outcome>,
    /// Choices of size classes, by bytes for counters and of boxes, or nothing where there is none.
    pub(super) alike: SingleFlight<(Key, usize, usize), Option<Chosen>>,
    pub(super) uneven_counts: SingleFlight<CacheKey<CountVector>, ProvenRuns>,
}

impl ProvenPlans {
    /// Makes the caches of one of `processes` processes that cache the same plans.
    pub fn of_one(processes: usize) -> ProvenPlans {
        ProvenPlans {
            even: SingleFlight::new(CACHED.shared_by(processes)),
            provisional: SingleFlight::new(CACHED.shared_by(processes)),
            alike: SingleFlight::new(ALIKE),
            uneven_counts: SingleFlight::new(uneven_counts::CACHED.shared_by(processes)),
        }
    }
}

/// A choice with its proven plans, or why there is none.
pub(super) type Outcome = Result<Arc<Proven>, Error>;

/// A choice with its proven plans.
#[derive(Debug)]
pub(crate) struct Proven {
    pub window: usize,
    pub plan: Proved,
    pub tail: Option<Proved>,
}

impl Proven {
    pub fn plans(&self) -> impl Iterator<Item = &Proved> {
        [Some(&self.plan), self.tail.as_ref()].into_iter().flatten()
    }

    /// Returns whether every plan may be cut for shorter messages.
    pub fn shortens(&self) -> bool {
        self.plans().all(|proved| proved.proof.shortens)
    }

    /// Returns whether a plan counts arrivals.
    pub fn has_counters(&self) -> bool {
        let counts =
            |proved: &Proved| proved.part.plan.flags.iter().any(|array| array.kind == FlagKind::Counter);
        self.plans().any(counts)
    }

    /// Returns the number of ops of all ranks.
    pub fn ops(&self) -> usize {
        self.plans().map(|proved| proved.part.ops).sum()
    }

    /// Returns the number of ops that are held in this process.
    pub fn held(&self) -> usize {
        self.plans().map(|proved| proved.part.held()).sum()
    }
}
