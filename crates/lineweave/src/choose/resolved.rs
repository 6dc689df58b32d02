//! Resolved calls: a call with its plans and everything else that running it needs.

use crate::call::CallSpec;
use crate::compile::PlanId;
use crate::kernel::{Fold, ScaleFn};
use crate::signature::CallSignature;

/// The plans of one call, or of all calls of a class of lengths: `plan` over windows of `window` bytes, then `tail`, if it is long enough, for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanSequence {
    pub plan: PlanId,
    pub window: usize,
    /// The tail's plan, and the most bytes that it is for.
    pub tail: Option<(PlanId, usize)>,
}

impl PlanSequence {
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
