//! Sets of lengths, and the plans that are known for them.

use super::reach::{Reach, ShelfKey};
use super::recent::{Limits, Recent};
use super::record::Proved;
use super::shelf::Key;
use crate::compile::PlanId;
use crate::error::Error;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Uneven;
use std::sync::{Arc, Mutex};

/// How many sets of lengths, and plans of them, all ranks keep, and ops of their plans: of a rank, on average of all, since ranks have to forget the same.
const KEPT: Limits = Limits { entries: 32, weight: 1 << 18 };
/// What all processes keep for their ranks; ops of all ranks.
const ON_SHELF: Limits = Limits { entries: 64, weight: 1 << 20 };

/// What a choice depends on, besides the team.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Set {
    pub collective: Collective,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub reach: Reach,
    /// In bytes: one for each rank, or for each pair of them.
    pub counts: Arc<[usize]>,
}

/// Windows that follow each other and are runs of one plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub plan: PlanId,
    /// Where the first starts in every block.
    pub from: usize,
    /// Bytes of each.
    pub window: usize,
    /// How many they are.
    pub times: usize,
}

impl Set {
    /// The call with even blocks of so many bytes, which is not to be cut.
    pub fn even(&self, bytes: usize) -> Key {
        let Set { collective, grain, association, root, reach, .. } = *self;
        Key { collective, bytes, grain, association, root, reach, cut: false }
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
    pub stretches: Vec<Stretch>,
    /// Every plan is right when input and output are one buffer.
    pub in_place: bool,
}

/// One rank's.
#[derive(Debug)]
pub(super) struct Known(pub Recent<Set, Arc<Prepared>>);

impl Known {
    /// Of one of so many ranks.
    pub fn of_one(ranks: usize) -> Known {
        Known(Recent::new(KEPT.shared_by(ranks)))
    }

    /// Keeps one more; those that are forgotten for it are returned.
    pub fn keep(&mut self, set: Set, prepared: Arc<Prepared>, weight: usize) -> Vec<Arc<Prepared>> {
        let mut gone = self.0.insert(set, prepared, weight);
        while self.plans() > KEPT.entries && self.0.values().count() > 1 {
            gone.extend(self.0.forget());
        }
        gone
    }

    /// How many plans they have.
    pub fn plans(&self) -> usize {
        self.0.values().map(|prepared| prepared.stretches.len()).sum()
    }
}

/// A stretch with its proven plan.
#[derive(Debug)]
pub(crate) struct Proven {
    pub proved: Proved,
    pub from: usize,
    pub window: usize,
    pub times: usize,
}

/// Every stretch of a call, or why there is none.
pub(crate) type Outcome = Result<Arc<Vec<Proven>>, Error>;

/// What ranks and communicators of one process share, by lengths and room for counters.
#[derive(Debug)]
pub(super) struct Shelf(pub Mutex<Recent<ShelfKey<Set>, Outcome>>);

impl Shelf {
    /// Of one of so many processes.
    pub fn of_one(processes: usize) -> Shelf {
        Shelf(Mutex::new(Recent::new(ON_SHELF.shared_by(processes))))
    }
}
