//! Calls whose plans are not chosen yet. They are run by a provisional plan, while a thread chooses and proves.
//!
//! Choosing takes from a fraction of a millisecond to seconds; a provisional plan is there in the time that it takes to prove a simple one. All ranks
//! change over from it to the chosen plan at one call: `engine/change_over.rs`. Calls are counted by size class, as plans are kept.
//!
//! Calls of few ranks with short messages wait, since choosing for them is quicker. Sums of floating-point numbers among more than two ranks wait, too, unless
//! they are reproducible: the order in which numbers are added depends on the plan, and results must not depend on when a thread was done.

use super::planner::Planner;
use super::proven::{Proven, Source};
use super::request::PlanRequest;
use super::resolved::{CachedPlans, PlanSequence};
use super::selector::{PlanBudget, PlanSelector};
use crate::call::CallSpec;
use crate::error::Error;
use crate::kernel::Operator;
use lineweave_core::collective::Association;
use std::sync::Arc;

/// Choices for fewer ranks than `MANY`, and at most so many bytes of all ranks' messages, took 0.06 to 18 ms (`lineweave bench first`). A thread
/// beside takes some milliseconds from ranks that use all CPUs, so calls wait for these choices.
const SHORT: usize = 4 << 10;
const MANY: usize = 16;

impl PlanSelector {
    /// Returns the request under which a call's plans are kept: its size class, or the call itself.
    fn kept_under(&self, request: &PlanRequest) -> PlanRequest {
        let class = request.class().filter(|class| !self.pending.without_plans.contains(class));
        class.unwrap_or_else(|| request.whole())
    }

    /// Returns whether the plans of a call, which are not known, may be chosen beside it: choosing is a long search, and results do not depend on the plan.
    pub(crate) fn defers(&self, call: &CallSpec, request: &PlanRequest, room: &PlanBudget<'_>) -> bool {
        let search = || {
            let question = self.question(&self.kept_under(request), room);
            self.tuning.searches(&question, request.access.team())
        };
        let ranks = self.shape.ranks();
        self.pending.on
            && ranks > 1
            && (ranks >= MANY || ranks * request.bytes() > SHORT)
            && self.is_exact(call, request)
            && (self.has_provisional(request) || search())
    }

    /// Returns whether all plans give the same bits.
    fn is_exact(&self, call: &CallSpec, request: &PlanRequest) -> bool {
        match call.operator {
            Some(Operator::User(_)) => request.association == Association::Fixed,
            Some(_) if call.collective.folds() => {
                request.association == Association::Fixed
                    || call.element.is_exact()
                    || self.shape.ranks() == 2
            }
            Some(_) | None => true,
        }
    }

    /// Counts a call whose plans are not chosen yet. Returns whether ranks are to agree before it: at the first, second, fourth, eighth, and so on.
    pub(crate) fn count_pending(&mut self, request: &PlanRequest) -> bool {
        let kept_under = self.kept_under(request);
        self.cache.count_provisional(&kept_under).is_none_or(u64::is_power_of_two)
    }

    /// Returns the provisional plans of a call, if it has some.
    pub(crate) fn provisional(&self, call: &CallSpec, request: &PlanRequest) -> Option<PlanSequence> {
        let sequence = self.cache.provisional(&self.kept_under(request))?;
        self.is_exact(call, request).then_some(sequence)
    }

    /// Returns whether a call has provisional plans.
    pub(crate) fn has_provisional(&self, request: &PlanRequest) -> bool {
        self.cache.provisional(&self.kept_under(request)).is_some()
    }

    /// Ends the time of a call's provisional plans, which are returned.
    pub(crate) fn end_provisional(&mut self, request: &PlanRequest) -> Option<CachedPlans> {
        let kept_under = self.kept_under(request);
        self.cache.remove(&kept_under)
    }

    /// Notes that plans were chosen for a call under `taken`: another request than its size class if that has no plans.
    pub(crate) fn note_class(&mut self, request: &PlanRequest, taken: &PlanRequest) {
        self.pending.without_plans.extend(request.class().filter(|class| class != taken));
    }

    /// Has the plans of a call chosen and proved beside it. Returns false where no thread can be started.
    pub(crate) fn plan_beside(&self, request: &PlanRequest, planner: impl FnOnce() -> Planner) -> bool {
        self.pending.background.plan(request.clone(), || {
            let planner = planner();
            // An error is kept where the plans would be, for the call that needs them.
            Box::new(move |request| drop(planner.plan_request(request)))
        })
    }

    /// Proves provisional plans of a call, or of its size class; `None` if there are none.
    pub(crate) fn prove_provisional(
        &self,
        request: &PlanRequest,
        room: &PlanBudget<'_>,
    ) -> Result<Option<(PlanRequest, Arc<Proven>)>, Error> {
        let kept_under = self.kept_under(request);
        match self.proven(&kept_under, Source::Simple, room) {
            Ok(proven) => {
                let fits = proven.shortens() || !kept_under.cut;
                Ok(fits.then_some((kept_under, proven)))
            }
            // All ranks come to the same.
            Err(Error::NoPlan { .. } | Error::Plan(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns whether this process has the chosen plans of a call, or knows that there are none.
    pub(crate) fn has_chosen(&self, request: &PlanRequest, room: &PlanBudget<'_>) -> bool {
        let known = |request: &PlanRequest| {
            let (key, _) = self.proven_key(request, Source::Tuning, room);
            self.proven.plans.known(&key)
        };
        let whole = || known(&request.whole()).is_some();
        match request.class().map(|class| known(&class)) {
            None => whole(),
            Some(None) => false,
            Some(Some(Ok(proven))) => proven.shortens() || whole(),
            Some(Some(Err(Error::NoPlan { .. } | Error::Plan(_)))) => whole(),
            Some(Some(Err(_))) => true,
        }
    }

    /// Returns whether an earlier program kept the chosen plans of a call.
    pub(crate) fn has_kept(&self, request: &PlanRequest, room: &PlanBudget<'_>) -> bool {
        let (first, _) = self.first(&self.kept_under(request));
        let question = self.question(&first, room);
        self.tuning.record(self.kept_name(&first, &question, room)).is_some()
    }
}
