//! The plan caches of this process, by tuning and placement of ranks: a plan is chosen and proven once for all communicators and teams of
//! one shape, at the same time or one after the other.

use super::proven::{ProvenPlanCache, ProvenPlans};
use crate::tuning::Tuning;
use lineweave_core::topology::Shape;
use std::sync::{Arc, Mutex, PoisonError};

/// Shapes whose caches are kept. Beyond that, caches without a communicator are dropped, which costs only proving again.
const KEPT: usize = 32;

struct Entry {
    tuning: Arc<Tuning>,
    shape: Shape,
    direct: bool,
    proven: ProvenPlanCache,
}

static CACHES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Returns the one copy of this tuning that equal ones share.
pub(super) fn tuning(tuning: &Tuning) -> Arc<Tuning> {
    let process_cache = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = process_cache.iter().find(|entry| *entry.tuning == *tuning);
    known.map_or_else(|| Arc::new(tuning.clone()), |entry| Arc::clone(&entry.tuning))
}

/// Returns the plan cache for this tuning and placement, and for ranks that do (`direct`) or do not read each other's buffers.
pub(super) fn plans(tuning: &Arc<Tuning>, shape: &Shape, direct: bool) -> ProvenPlanCache {
    // A thread that panicked here left the list as it was.
    let mut process_cache = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |e: &&Entry| Arc::ptr_eq(&e.tuning, tuning) && e.direct == direct && e.shape == *shape;
    if let Some(entry) = process_cache.iter().find(is_it) {
        return ProvenPlanCache::clone(&entry.proven);
    }
    if process_cache.len() >= KEPT {
        process_cache.retain(|entry| Arc::strong_count(&entry.proven) > 1);
    }
    let proven = ProvenPlanCache::new(ProvenPlans::of_one(if direct { 1 } else { shape.ranks() }));
    let (tuning, shape, entry) = (Arc::clone(tuning), shape.clone(), ProvenPlanCache::clone(&proven));
    process_cache.push(Entry { tuning, shape, direct, proven: entry });
    proven
}
