//! How an engine waits for other ranks, watches over them and copies.

use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::segment::Segment;
use crate::wait::{Budget, Waiter};
use crate::watch::{Limits, Processes, Watch};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// What the ranks of one process and all communicators made from their team share.
#[derive(Debug)]
pub(crate) struct Family {
    pub processes: Arc<Processes>,
    /// This process, as no other is numbered: the kernel's numbers are not unique across its namespaces.
    pub process: u64,
}

impl Default for Family {
    fn default() -> Family {
        // The standard library's hashes start at random, and nothing else here needs random numbers.
        let process = RandomState::new().hash_one(std::process::id()).max(1);
        Family { processes: Arc::default(), process }
    }
}

/// How a rank waits and copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    pub budget: Budget,
    pub order: WakeFence,
    pub limits: Limits,
    pub copy: Copier,
}

/// One rank's ways to the others.
pub(super) struct Wire {
    pub waiter: Waiter,
    pub watch: Watch,
    pub copy: Copier,
}

impl Wire {
    pub fn new(segment: &Arc<Segment>, rank: usize, ways: Ways, processes: Arc<Processes>) -> Wire {
        Wire {
            waiter: Waiter::new(ways.budget, ways.order),
            watch: Watch::new(Arc::clone(segment), rank, ways.limits, processes, ways.order),
            copy: ways.copy,
        }
    }

    /// How it does.
    pub fn ways(&self) -> Ways {
        let Wire { waiter, watch, copy } = self;
        Ways { budget: waiter.budget(), order: waiter.order(), limits: watch.limits(), copy: *copy }
    }
}
