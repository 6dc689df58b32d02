//! The plans of calls whose blocks have different lengths.

use super::call_plan::Windows;
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::{CountVector, PeerAccess, Prepared, WindowRun};
use crate::error::Error;
use crate::kernel::Operator;
use lineweave_core::collective::Collective;
use std::sync::Arc;

/// Windows by which a call goes through blocks of different lengths.
pub(super) struct Uneven {
    pub windows: Windows,
    /// Every plan is right when input and output are one buffer.
    pub in_place: bool,
}

impl Engine {
    /// The plans for blocks of these lengths in bytes; `shared` if all buffers of all ranks lie in heaps.
    ///
    /// # Errors
    /// The errors of choosing a plan.
    pub(super) fn uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        shared: bool,
    ) -> Result<Uneven, Error> {
        let collective = call.collective;
        let longest = counts.iter().copied().max().unwrap_or(0);
        let set = CountVector {
            collective,
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.selector.association(call),
            root: call.effective_root(),
            access: if shared { PeerAccess::SharedHeap } else { self.selector.access(longest) },
            counts: counts.into(),
        };
        let user_operator = matches!(call.operator, Some(Operator::User(_)));
        if let Some(class) = set.class(user_operator) {
            if let Some(sequence) = self.class_sequence(call, class)? {
                if let Some(blocks) = self.plans[sequence.plan].blocks_of(counts) {
                    // Two buffers are one, block by block, where each gives as much as it takes.
                    let in_place = self.all_in_place(&sequence) && self.gives_what_it_takes(&set);
                    let windows = Windows::TruncatedStep { sequence, blocks, at: 0, longest };
                    return Ok(Uneven { windows, in_place });
                }
            }
        }
        let prepared = match self.selector.known_set(&set) {
            Some(known) => known,
            None => self.set_up(|engine| engine.make_uneven(set, longest))?,
        };
        let in_place = prepared.in_place;
        Ok(Uneven { windows: Windows::Uneven { prepared, stretch: 0, turn: 0 }, in_place })
    }

    /// Returns whether any two ranks give each other as much, where all have blocks for all.
    fn gives_what_it_takes(&self, set: &CountVector) -> bool {
        let ranks = self.ranks();
        let even = |i: usize| (0..i).all(|j| set.counts[i * ranks + j] == set.counts[j * ranks + i]);
        set.collective != Collective::Alltoall || (0..ranks).all(even)
    }

    fn make_uneven(&mut self, set: CountVector, longest: usize) -> Result<Arc<Prepared>, Error> {
        let proven = self.selector.proven_uneven(&set, &self.room())?;
        let mut runs = Vec::with_capacity(proven.len());
        for p in proven.iter() {
            let plan = self.prepare_part(&p.proved.part, &p.proved.proof, longest, set.association, false)?;
            runs.push(WindowRun { plan, from: p.from, window: p.window, times: p.times });
        }
        let prepared = Arc::new(Prepared { runs, in_place: proven.iter().all(|p| p.proved.proof.in_place) });
        let ops: usize = proven.iter().map(|p| p.proved.part.ops).sum();
        let weight = ops / self.ranks();
        let old = self.selector.keep_set(set, &prepared, weight);
        self.give_up(old.into_iter());
        Ok(prepared)
    }
}
