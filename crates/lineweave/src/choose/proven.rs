//! Proven plans, and the cache of them that ranks and communicators of one process share.

use super::lru::Limits;
use super::record::Proved;
use super::request::PlanRequest;
use super::single_flight::SingleFlight;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::plan::FlagKind;
use std::sync::Arc;

/// Origin of a choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Source {
    /// A choice that an earlier program kept, else the tuning's.
    Tuning,
    /// A simple algorithm, without a search. It is not kept.
    Simple,
}

/// The key of proven plans.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct ProvenKey {
    pub request: PlanRequest,
    pub source: Source,
    /// Communicators differ in the memory that they have for counters.
    pub counter_bytes: usize,
    /// The rank, if plans are one rank's parts alone.
    pub rank: Option<usize>,
}

/// Proven plans that ranks and communicators of one process share, so that each is chosen and proven once.
pub(crate) type ProvenPlanCache = Arc<ProvenPlans>;

/// Limits of the caches of all processes of a team together, in requests and in ops of some 64 bytes: without them, sizes that come once would
/// fill the memory.
const CACHED: Limits = Limits { entries: 256, weight: 1 << 20 };

/// Limits of the cache of size classes' choices.
const ALIKE: Limits = Limits { entries: 4096, weight: 4096 };

/// The caches behind a [`ProvenPlanCache`].
#[derive(Debug)]
pub(crate) struct ProvenPlans {
    pub(super) plans: SingleFlight<ProvenKey, Outcome>,
    /// Choices of size classes, by bytes for counters and of boxes, or nothing where there is none.
    pub(super) alike: SingleFlight<(PlanRequest, usize, usize), Option<Chosen>>,
}

impl ProvenPlans {
    /// Makes the caches of one of `processes` processes that cache the same plans.
    pub fn of_one(processes: usize) -> ProvenPlans {
        ProvenPlans { plans: SingleFlight::new(CACHED.shared_by(processes)), alike: SingleFlight::new(ALIKE) }
    }
}

/// A choice with its proven plans, or why there is none.
pub(super) type Outcome = Result<Arc<Proven>, Error>;

/// Windows that follow each other and are runs of one plan: a `Proved` one, or a compiled one's `PlanId`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRun<P> {
    pub plan: P,
    /// Offset of the first window in the message, or in every block, in bytes.
    pub from: usize,
    /// Length of each window in bytes; of a single one, it may be less.
    pub window: usize,
    /// The number of windows.
    pub times: usize,
}

impl<P> WindowRun<P> {
    /// Returns the run with another plan.
    pub fn with<Q>(&self, plan: Q) -> WindowRun<Q> {
        let WindowRun { from, window, times, .. } = *self;
        WindowRun { plan, from, window, times }
    }
}

/// A choice's proven plans for a request, in the order in which they run: over a message, or over blocks of one length, one plan, and another one for
/// what its windows leave, if they leave something.
#[derive(Debug)]
pub(crate) struct Proven(pub Vec<WindowRun<Proved>>);

impl Proven {
    pub(super) fn plans(&self) -> impl Iterator<Item = &Proved> {
        self.0.iter().map(|run| &run.plan)
    }

    /// Returns whether every plan may be cut for shorter messages.
    pub fn shortens(&self) -> bool {
        self.plans().all(|proved| proved.proof.shortens)
    }

    /// Returns whether every plan is right when input and output are one buffer.
    pub fn in_place(&self) -> bool {
        self.plans().all(|proved| proved.proof.in_place)
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
