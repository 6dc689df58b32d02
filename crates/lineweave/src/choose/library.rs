//! Shelves by where ranks sit: communicators of one shape choose and prove a plan once a process.

use super::book::Shelf;
use lineweave_core::topology::Shape;
use std::sync::{Mutex, PoisonError};

/// How many shapes are remembered. Beyond that all are forgotten, which only costs proving again.
const KEPT: usize = 64;

/// The shelves of the communicators that were made from one team.
#[derive(Debug, Default)]
pub(crate) struct Library(Mutex<Vec<(Shape, bool, Shelf)>>);

impl Library {
    /// The shelf for ranks that sit so and do or do not reach each other's buffers.
    pub fn shelf(&self, shape: &Shape, direct: bool) -> Shelf {
        // A thread that panicked here left the list as it was.
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, shelf)) = shelves.iter().find(|(s, d, _)| s == shape && *d == direct) {
            return Shelf::clone(shelf);
        }
        if shelves.len() >= KEPT {
            shelves.clear();
        }
        let shelf = Shelf::default();
        shelves.push((shape.clone(), direct, Shelf::clone(&shelf)));
        shelf
    }
}
