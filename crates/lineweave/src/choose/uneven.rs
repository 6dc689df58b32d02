//! The plans of calls whose blocks have different lengths.
//!
//! They are carried out by the plans for even blocks of the longest length's class, cut for each block (`compile/cut.rs`). Sets with far
//! shorter blocks than the longest, and those with operators of the program, have plans of their own: each such set that comes is chosen for,
//! proven and compiled once, and kept for when it comes again; of many sets the older ones are forgotten. The blocks go window by window
//! like others. A window covers less of them as the shorter ones end: windows that cover the same are runs of one plan.

use super::book::{Book, Room};
use super::record::Proofs;
use super::sets::{Outcome, Prepared, Proven, Set};
use crate::compile::PlanId;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Uneven;
use lineweave_core::select::Question;
use std::sync::{Arc, PoisonError};

fn held(proven: &[Proven]) -> usize {
    proven.iter().map(|p| p.proved.part.held()).sum()
}

fn blocks(key: &Set, ranks: usize) -> Uneven {
    match key.collective {
        Collective::Alltoall => Uneven::by_pair(ranks, key.counts.to_vec()),
        _ => Uneven::by_rank(key.counts.to_vec()),
    }
}

impl Book {
    /// The plans for a set of lengths that came before.
    pub(crate) fn known_set(&mut self, set: &Set) -> Option<Arc<Prepared>> {
        self.past.sets.0.get(set).map(Arc::clone)
    }

    /// Takes the plans for a set of lengths in; those that are forgotten for them are returned.
    pub(crate) fn keep_set(&mut self, set: Set, prepared: &Arc<Prepared>, weight: usize) -> Vec<PlanId> {
        let gone = self.past.sets.keep(set, Arc::clone(prepared), weight);
        let plans = gone.iter().flat_map(|prepared| &prepared.stretches).map(|stretch| stretch.plan);
        plans.chain(self.forget_beyond()).collect()
    }

    fn uneven_question(&self, key: &Set, room: &Room<'_>) -> Question {
        let bytes = key.counts.iter().copied().max().unwrap_or(0);
        let even = key.even(bytes);
        let uneven = Some(Arc::new(blocks(key, self.shape.ranks())));
        Question { uneven, ..self.question(&even, room) }
    }

    /// Chooses and proves, or takes what is proven already.
    pub(crate) fn proven_uneven(&self, key: &Set, room: &Room<'_>) -> Outcome {
        // A thread that panicked while proving left the map as it was.
        let mut shelf = self.shelf.sets.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (key.clone(), room.counter_bytes, room.rank);
        if let Some(known) = shelf.get(&place) {
            return known.clone();
        }
        let outcome = self.prove_uneven(key, room).map(Arc::new);
        shelf.insert(place, outcome.clone(), outcome.as_ref().map_or(1, |proven| held(proven)));
        outcome
    }

    fn prove_uneven(&self, key: &Set, room: &Room<'_>) -> Result<Vec<Proven>, Error> {
        let question = self.uneven_question(key, room);
        self.once(&(key, room.counter_bytes), &question, key.reach, room, |chosen, proofs| {
            stretches(key, &question, chosen, proofs, room.rank)
        })
    }
}

/// The stretches of a choice for a call.
fn stretches(
    key: &Set,
    question: &Question,
    chosen: &Chosen,
    proofs: &mut Proofs<'_>,
    rank: Option<usize>,
) -> Result<Vec<Proven>, Error> {
    let window = chosen.window.max(key.grain);
    let mut stretches: Vec<Proven> = Vec::new();
    for from in (0..question.bytes).step_by(window) {
        let window = window.min(question.bytes - from);
        let problem = question.stretch(from..from + window);
        match stretches.last_mut() {
            Some(last) if last.proved.part.plan.blocks == problem.blocks => last.times += 1,
            _ => {
                let proved = proofs.of(chosen, &problem, key.association, rank)?;
                stretches.push(Proven { proved, from, window, times: 1 });
            }
        }
    }
    Ok(stretches)
}
