//! The plans of calls whose blocks have different lengths.
//!
//! A plan fits one set of lengths. So each set that comes is chosen for, proven and compiled once, and kept for when it
//! comes again, as it does in most programs; of many sets the older ones are forgotten. The blocks go window by window
//! like others. A window covers less of them as the shorter ones end: windows that cover the same are runs of one plan.

use super::book::{Book, Room};
use super::record::Proofs;
use super::sets::{Outcome, Prepared, Proven, Set};
use super::shelf::Key;
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
    pub(crate) fn keep_set(
        &mut self,
        set: Set,
        prepared: &Arc<Prepared>,
        weight: usize,
    ) -> Vec<Arc<Prepared>> {
        self.past.sets.0.insert(set, Arc::clone(prepared), weight)
    }

    fn uneven_question(&self, key: &Set, room: &Room<'_>) -> Question {
        let bytes = key.counts.iter().copied().max().unwrap_or(0);
        let even = Key {
            collective: key.collective,
            bytes,
            grain: key.grain,
            association: key.association,
            root: key.root,
            reach: key.reach,
            cut: false,
        };
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
