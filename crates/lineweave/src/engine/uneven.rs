//! The plans of calls whose blocks have different lengths.

use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::{Prepared, Reach, Set, Stretch};
use crate::error::Error;
use std::sync::Arc;

impl Engine {
    /// The plans for blocks of these lengths in bytes; `shared` if all buffers of all ranks lie in heaps.
    ///
    /// # Errors
    /// Those of choosing a plan.
    pub(crate) fn uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        shared: bool,
    ) -> Result<Arc<Prepared>, Error> {
        let collective = call.collective;
        let longest = counts.iter().copied().max().unwrap_or(0);
        let set = Set {
            collective,
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.book.association(call),
            root: if collective.rooted() { call.root } else { 0 },
            reach: if shared { Reach::Heap } else { self.book.reach(longest) },
            counts: counts.into(),
        };
        if let Some(known) = self.book.known_set(&set) {
            return Ok(known);
        }
        self.set_up(|engine| engine.make_uneven(set, longest))
    }

    fn make_uneven(&mut self, set: Set, longest: usize) -> Result<Arc<Prepared>, Error> {
        let proven = self.book.proven_uneven(&set, &self.room())?;
        let mut stretches = Vec::with_capacity(proven.len());
        for p in proven.iter() {
            let plan = self.prepare_part(&p.proved.part, &p.proved.proof, longest, set.association, false)?;
            stretches.push(Stretch { plan, from: p.from, window: p.window, times: p.times });
        }
        let prepared =
            Arc::new(Prepared { stretches, in_place: proven.iter().all(|p| p.proved.proof.in_place) });
        let ops: usize = proven.iter().map(|p| p.proved.part.ops).sum();
        let weight = ops / self.ranks();
        let old = self.book.keep_set(set, &prepared, weight);
        self.give_up(old.iter().flat_map(|p| p.stretches.iter().map(|s| s.plan)));
        Ok(prepared)
    }
}
