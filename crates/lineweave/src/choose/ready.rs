//! Calls with all that was resolved for them.

use crate::call::CallSpec;
use crate::called::Called;
use crate::compile::PlanId;
use crate::kernel::{Fold, ScaleFn};

/// The plans of one call: `plan` over windows of `window` bytes `whole` times, then `tail` for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub plan: PlanId,
    pub window: usize,
    pub whole: usize,
    pub tail: Option<PlanId>,
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
    /// One window does, it may run in place, and nothing is asked before.
    pub simple: bool,
}
