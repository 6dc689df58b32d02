//! Resolved calls: a call with its plans and everything else that running it needs.

use super::proven::WindowRun;
use crate::call::CallSpec;
use crate::compile::PlanId;
use crate::kernel::{Fold, ScaleFn};
use crate::signature::CallSignature;
use std::sync::Arc;

/// The plans of one call, or of all calls of a class of lengths: `plan` over windows of `window` bytes, then `tail`, if it is long enough, for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanSequence {
    pub plan: PlanId,
    pub window: usize,
    /// The tail's plan, and the most bytes that it is for.
    pub tail: Option<(PlanId, usize)>,
}

impl PlanSequence {
    /// Returns the plans of a message or of blocks of one length, of which there are runs of one or two plans.
    pub fn of(runs: &[WindowRun<PlanId>]) -> PlanSequence {
        let WindowRun { plan, window, .. } = runs[0];
        PlanSequence { plan, window, tail: runs.get(1).map(|run| (run.plan, run.window)) }
    }

    /// Returns the plan and the bytes of the next window when `left` bytes remain.
    #[inline(always)]
    pub fn next(&self, left: usize) -> (PlanId, usize) {
        match self.tail {
            Some((tail, most)) if left <= most => (tail, left),
            _ => (self.plan, self.window.min(left)),
        }
    }

    /// Returns every plan of the sequence.
    pub fn plans(&self) -> impl Iterator<Item = PlanId> {
        [Some(self.plan), self.tail.map(|(tail, _)| tail)].into_iter().flatten()
    }
}

/// The plans of one call whose blocks differ in length.
#[derive(Debug)]
pub(crate) struct UnevenSequence {
    pub runs: Vec<WindowRun<PlanId>>,
    /// Every plan is right when input and output are one buffer.
    pub in_place: bool,
}

/// Compiled plans that are cached for a request.
#[derive(Clone, Debug)]
pub(crate) enum CachedPlans {
    Chosen(PlanSequence),
    /// Simple plans of a call whose own are not chosen yet, and the number of calls that ran them.
    Provisional(PlanSequence, u64),
    Uneven(Arc<UnevenSequence>),
}

impl CachedPlans {
    /// Returns the plans of calls whose blocks have one length.
    pub fn sequence(&self) -> Option<PlanSequence> {
        match self {
            CachedPlans::Chosen(sequence) | CachedPlans::Provisional(sequence, _) => Some(*sequence),
            CachedPlans::Uneven(_) => None,
        }
    }

    /// Returns whether the plans are provisional.
    pub fn is_provisional(&self) -> bool {
        matches!(self, CachedPlans::Provisional(..))
    }

    /// Returns every plan.
    pub fn plans(&self) -> Vec<PlanId> {
        match self {
            CachedPlans::Chosen(sequence) | CachedPlans::Provisional(sequence, _) => {
                sequence.plans().collect()
            }
            CachedPlans::Uneven(uneven) => uneven.runs.iter().map(|run| run.plan).collect(),
        }
    }
}

/// A call with everything that it needs to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedCall {
    pub call: CallSpec,
    /// True if it was asked to be reproducible.
    pub reproducible: bool,
    pub sequence: PlanSequence,
    pub fold: Fold,
    pub scale: Option<ScaleFn>,
    /// The signature by which ranks recognise the call.
    pub signature: CallSignature,
    /// True if one window suffices and no agreement comes before it.
    pub simple: bool,
    /// True if that window's plan may run in place.
    pub in_place: bool,
}
