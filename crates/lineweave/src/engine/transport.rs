//! Transport of an engine: waiting for other ranks, watching over them, and copying.

use crate::failure_detector::{FailureDetector, Limits, Processes};
use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::segment::Segment;
use crate::wait::{Budget, Waiter};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// State that the ranks of one process and all communicators made from their team share.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    pub processes: Arc<Processes>,
    /// This process, as no other is numbered: the kernel's numbers are not unique across its namespaces.
    pub process: u64,
}

impl Default for ProcessGroup {
    fn default() -> ProcessGroup {
        // The standard library's hashes start at random, and nothing else here needs random numbers.
        let process = RandomState::new().hash_one(std::process::id()).max(1);
        ProcessGroup { processes: Arc::default(), process }
    }
}

/// Settings by which a rank waits and copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransportConfig {
    pub budget: Budget,
    pub order: WakeFence,
    pub limits: Limits,
    pub copy: Copier,
}

/// One rank's ways to the others.
pub(crate) struct Transport {
    pub waiter: Waiter,
    pub watch: FailureDetector,
    pub copy: Copier,
}

impl Transport {
    pub fn new(
        segment: &Arc<Segment>,
        rank: usize,
        transport_config: TransportConfig,
        processes: Arc<Processes>,
    ) -> Transport {
        Transport {
            waiter: Waiter::new(transport_config.budget, transport_config.order),
            watch: FailureDetector::new(
                Arc::clone(segment),
                rank,
                transport_config.limits,
                processes,
                transport_config.order,
            ),
            copy: transport_config.copy,
        }
    }

    /// Returns the settings by which this rank waits and copies.
    pub fn transport_config(&self) -> TransportConfig {
        let Transport { waiter, watch, copy } = self;
        TransportConfig {
            budget: waiter.budget(),
            order: waiter.order(),
            limits: watch.limits(),
            copy: *copy,
        }
    }
}
