//! Shelves by tuning and by where ranks sit: a process chooses and proves a plan once, however many communicators and teams it has of one
//! shape, one after the other or at the same time.

use super::shelf::{Shelf, Shelves};
use crate::tuning::Tuning;
use lineweave_core::topology::Shape;
use std::sync::{Arc, Mutex, PoisonError};

/// How many shapes are remembered. Beyond that those are forgotten that no communicator has, which only costs proving again.
const KEPT: usize = 32;

struct Entry {
    tuning: Arc<Tuning>,
    shape: Shape,
    direct: bool,
    shelf: Shelf,
}

static LIBRARY: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The tuning that others equal to it are known by.
pub(super) fn tuning(tuning: &Tuning) -> Arc<Tuning> {
    let library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let known = library.iter().find(|entry| *entry.tuning == *tuning);
    known.map_or_else(|| Arc::new(tuning.clone()), |entry| Arc::clone(&entry.tuning))
}

/// The shelf for ranks that sit so, do or do not reach each other's buffers, and choose by this tuning.
pub(super) fn shelf(tuning: &Arc<Tuning>, shape: &Shape, direct: bool) -> Shelf {
    // A thread that panicked here left the list as it was.
    let mut library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |e: &&Entry| Arc::ptr_eq(&e.tuning, tuning) && e.direct == direct && e.shape == *shape;
    if let Some(entry) = library.iter().find(is_it) {
        return Shelf::clone(&entry.shelf);
    }
    if library.len() >= KEPT {
        library.retain(|entry| Arc::strong_count(&entry.shelf) > 1);
    }
    let shelf = Shelf::new(Shelves::of_one(if direct { 1 } else { shape.ranks() }));
    let (tuning, shape, entry) = (Arc::clone(tuning), shape.clone(), Shelf::clone(&shelf));
    library.push(Entry { tuning, shape, direct, shelf: entry });
    shelf
}
