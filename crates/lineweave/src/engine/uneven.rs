//! The plans of calls whose blocks have different lengths.
//!
//! They are carried out by the plans for even blocks of the longest length's class, cut for each block (`compile/truncation.rs`). Sets with far
//! shorter blocks than the longest, and those with operators of the program, have plans of their own.

use super::call_plan::Windows;
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::{CachedPlans, Lengths, PeerAccess, PlanRequest, UnevenSequence};
use crate::error::Error;
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
        let mut request = self.selector.request_for(call, Lengths::Uneven(counts.into()));
        if shared {
            request.access = PeerAccess::SharedHeap;
        }
        let longest = request.bytes();
        if let Some(class) = request.class() {
            if let Some(sequence) = self.class_sequence(call, class)? {
                if let Some(blocks) = self.plans[sequence.plan].blocks_of(counts) {
                    // Two buffers are one, block by block, where each gives as much as it takes.
                    let in_place = self.all_in_place(&sequence) && self.gives_what_it_takes(call, counts);
                    let windows = Windows::TruncatedStep { sequence, blocks, at: 0, longest };
                    return Ok(Uneven { windows, in_place });
                }
            }
        }
        let request = request.whole();
        let sequence = match self.selector.cache.chosen(&request) {
            Some(CachedPlans::Uneven(sequence)) => Arc::clone(sequence),
            _ => self.set_up(|engine| engine.make_uneven(request))?,
        };
        let in_place = sequence.in_place;
        Ok(Uneven { windows: Windows::Uneven { sequence, stretch: 0, turn: 0 }, in_place })
    }

    /// Returns whether any two ranks give each other as much, where all have blocks for all.
    fn gives_what_it_takes(&self, call: &CallSpec, counts: &[usize]) -> bool {
        let ranks = self.ranks();
        let even = |i: usize| (0..i).all(|j| counts[i * ranks + j] == counts[j * ranks + i]);
        call.collective != Collective::Alltoall || (0..ranks).all(even)
    }

    fn make_uneven(&mut self, request: PlanRequest) -> Result<Arc<UnevenSequence>, Error> {
        let (request, proven) = self.selector.proven_for(&request, &self.room())?;
        let runs = self.compile_runs(&request, &proven)?;
        let sequence = Arc::new(UnevenSequence { runs, in_place: proven.in_place() });
        self.remember(request, CachedPlans::Uneven(Arc::clone(&sequence)), &proven);
        Ok(sequence)
    }
}
