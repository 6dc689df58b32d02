//! Calls with all that was resolved for them.

use crate::call::CallSpec;
use crate::called::Called;
use crate::compile::PlanId;
use crate::kernel::{Fold, ScaleFn};

/// The plans of one call, or of all calls of a class of lengths: `plan` over windows of `window` bytes, then `tail`, if it is long enough, for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub plan: PlanId,
    pub window: usize,
    /// With the most bytes that it is for.
    pub tail: Option<(PlanId, usize)>,
}

impl Sequence {
    /// The plan of the next window, and its bytes, if so many are left.
    #[inline(always)]
    pub fn next(&self, left: usize) -> (PlanId, usize) {
        match self.tail {
            Some((tail, most)) if left <= most => (tail, left),
            _ => (self.plan, self.window.min(left)),
        }
    }

    /// Every plan of it.
    pub fn plans(&self) -> impl Iterator<Item = PlanId> {
        [Some(self.plan), self.tail.map(|(tail, _)| tail)].into_iter().flatten()
    }
}

/// A call with everything it needs resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub call: CallSpec,
    /// Whether it was asked to be reproducible.
    pub reproducible: bool,
    pub sequence: Sequence,
    pub fold: Fold,
    pub scale: Option<ScaleFn>,
    /// By which ranks know it.
    pub called: Called,
    /// One window does, and nothing is asked before.
    pub simple: bool,
    /// That window's plan may run on one buffer.
    pub in_place: bool,
}
