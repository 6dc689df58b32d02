//! Proven plans, by what a choice depends on, and how long they are kept.

use super::reach::{Reach, ShelfKey};
use super::recent::{Limits, Recent};
use super::record::Proved;
use super::sets;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::FlagKind;
use std::sync::{Arc, Mutex};

/// What a choice depends on, besides the team.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub collective: Collective,
    pub bytes: usize,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub reach: Reach,
    /// Whether its plans may be cut for shorter ones, or it may be carried out by such a plan.
    pub cut: bool,
}

/// Proven plans that ranks and communicators of one process share, so that each is chosen and proven once. Some of them
/// may have less room than others.
pub(crate) type Shelf = Arc<Shelves>;

/// How much is on the shelves of all processes of a team: of sizes that come once and never again there would be more and more. Ops, which
/// are some 64 bytes each.
const ON_SHELF: Limits = Limits { entries: 64, weight: 1 << 20 };

/// How many choices for lengths that stand for others.
const ALIKE: Limits = Limits { entries: 4096, weight: 4096 };

/// What is on it.
#[derive(Debug)]
pub(crate) struct Shelves {
    pub(super) even: Mutex<Recent<ShelfKey<Key>, Outcome>>,
    /// Choices for lengths that stand for others.
    pub(super) alike: Mutex<Recent<(Key, usize), Chosen>>,
    pub(super) sets: sets::Shelf,
}

impl Shelves {
    /// Of one of so many processes that keep the same.
    pub fn of_one(processes: usize) -> Shelves {
        Shelves {
            even: Mutex::new(Recent::new(ON_SHELF.shared_by(processes))),
            alike: Mutex::new(Recent::new(ALIKE)),
            sets: sets::Shelf::of_one(processes),
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

    /// Whether every plan may be cut for shorter messages.
    pub fn shortens(&self) -> bool {
        self.plans().all(|proved| proved.proof.shortens)
    }

    /// Whether a plan counts arrivals.
    pub fn has_counters(&self) -> bool {
        let counts =
            |proved: &Proved| proved.part.plan.flags.iter().any(|array| array.kind == FlagKind::Counter);
        self.plans().any(counts)
    }

    /// Of all ranks.
    pub fn ops(&self) -> usize {
        self.plans().map(|proved| proved.part.ops).sum()
    }

    /// Of those that are held here.
    pub fn held(&self) -> usize {
        self.plans().map(|proved| proved.part.held()).sum()
    }
}
