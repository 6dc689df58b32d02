//! The plans of calls whose blocks have different lengths.
//!
//! They are carried out by the plans for even blocks of the longest length's class, cut for each block (`compile/truncation.rs`). Sets with far
//! shorter blocks than the longest, and those with operators of the program, have plans of their own: each such set that comes is chosen for,
//! proven and compiled once, and kept for when it comes again; of many sets the older ones are forgotten. The blocks go window by window
//! like others. A window covers less of them as the shorter ones end: windows that cover the same are runs of one plan.

use super::once::Source;
use super::record::Proofs;
use super::selector::{PlanBudget, PlanSelector};
use super::uneven_counts::{CountVector, Prepared, ProvenRun, ProvenRuns};
use crate::compile::PlanId;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Uneven;
use lineweave_core::select::Question;
use std::sync::Arc;

fn held(proven: &[ProvenRun]) -> usize {
    proven.iter().map(|p| p.proved.part.held()).sum()
}

fn blocks(key: &CountVector, ranks: usize) -> Uneven {
    match key.collective {
        Collective::Alltoall => Uneven::by_pair(ranks, key.counts.to_vec()),
        _ => Uneven::by_rank(key.counts.to_vec()),
    }
}

impl PlanSelector {
    /// The plans for a set of lengths that came before.
    pub(crate) fn known_set(&mut self, set: &CountVector) -> Option<Arc<Prepared>> {
        self.history.uneven_counts.0.get(set).map(Arc::clone)
    }

    /// Takes the plans for a set of lengths in; those that are forgotten for them are returned.
    pub(crate) fn keep_set(
        &mut self,
        set: CountVector,
        prepared: &Arc<Prepared>,
        weight: usize,
    ) -> Vec<PlanId> {
        let gone = self.history.uneven_counts.keep(set, Arc::clone(prepared), weight);
        let plans = gone.iter().flat_map(|prepared| &prepared.runs).map(|stretch| stretch.plan);
        plans.chain(self.forget_beyond()).collect()
    }

    fn uneven_question(&self, key: &CountVector, room: &PlanBudget<'_>) -> Question {
        let bytes = key.counts.iter().copied().max().unwrap_or(0);
        let even = key.even(bytes);
        let uneven = Some(Arc::new(blocks(key, self.shape.ranks())));
        Question { uneven, ..self.question(&even, room) }
    }

    /// Chooses and proves, or takes what is proven already.
    pub(crate) fn proven_uneven(&self, key: &CountVector, room: &PlanBudget<'_>) -> ProvenRuns {
        let place = (key.clone(), room.counter_bytes, room.rank);
        self.proven.uneven_counts.get_or_make(&place, || {
            let outcome = self.prove_uneven(key, room).map(Arc::new);
            let weight = outcome.as_ref().map_or(1, |proven| held(proven));
            (outcome, weight)
        })
    }

    fn prove_uneven(&self, key: &CountVector, room: &PlanBudget<'_>) -> Result<Vec<ProvenRun>, Error> {
        let question = self.uneven_question(key, room);
        self.once(
            &(key, room.counter_bytes),
            &question,
            Source::Tuning(key.access),
            room,
            |chosen, proofs| runs(key, &question, chosen, proofs, room.rank),
        )
    }
}

/// The stretches of a choice for a call.
fn runs(
    key: &CountVector,
    question: &Question,
    chosen: &Chosen,
    proofs: &mut Proofs<'_>,
    rank: Option<usize>,
) -> Result<Vec<ProvenRun>, Error> {
    let window = chosen.window.max(key.grain);
    let mut runs: Vec<ProvenRun> = Vec::new();
    for from in (0..question.bytes).step_by(window) {
        let window = window.min(question.bytes - from);
        let problem = question.stretch(from..from + window);
        match runs.last_mut() {
            Some(last) if last.proved.part.plan.blocks == problem.blocks => last.times += 1,
            _ => {
                let proved = proofs.of(chosen, &problem, key.association, rank)?;
                runs.push(ProvenRun { proved, from, window, times: 1 });
            }
        }
    }
    Ok(runs)
}
