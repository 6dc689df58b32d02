//! Calls whose plans are not chosen yet. They are run by a provisional plan, while a thread chooses and proves.
//!
//! Choosing takes from a fraction of a millisecond to seconds; a provisional plan is there in the time that it takes to prove a simple one. All ranks
//! change over from it to the chosen plan at one call: `engine/change_over.rs`. Calls are counted by size class, as plans are kept.
//!
//! Calls of few ranks with short messages wait, since choosing for them is quicker. Sums of floating-point numbers among more than two ranks wait, too, unless
//! they are reproducible: the order in which numbers are added depends on the plan, and results must not depend on when a thread was done.

use super::once::Source;
use super::planner::Planner;
use super::proven::{Key, Outcome, Proven};
use super::record::Proofs;
use super::resolved::PlanSequence;
use super::selector::{CachedPlans, PlanBudget, PlanSelector};
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
    /// Returns the key under which a call's plans are kept: its size class, or the call itself.
    fn plans_key(&self, key: &Key) -> Key {
        let class = key.class().filter(|class| !self.pending.without_plans.contains(class));
        class.unwrap_or(Key { cut: false, ..*key })
    }

    /// Returns whether the plans of a call, which are not known, may be chosen beside it: choosing is a long search, and results do not depend on the plan.
    pub(crate) fn defers(&self, call: &CallSpec, key: &Key, room: &PlanBudget<'_>) -> bool {
        let search = || self.tuning.searches(&self.question(&self.plans_key(key), room), key.access.team());
        let ranks = self.shape.ranks();
        self.pending.on
            && ranks > 1
            && (ranks >= MANY || ranks * key.bytes > SHORT)
            && self.is_exact(call, key)
            && (self.has_provisional(key) || search())
    }

    /// Returns whether all plans give the same bits.
    fn is_exact(&self, call: &CallSpec, key: &Key) -> bool {
        match call.operator {
            Some(Operator::User(_)) => key.association == Association::Fixed,
            Some(_) if call.collective.folds() => {
                key.association == Association::Fixed || call.element.is_exact() || self.shape.ranks() == 2
            }
            Some(_) | None => true,
        }
    }

    /// Counts a call whose plans are not chosen yet. Returns whether ranks are to agree before it: at the first, second, fourth, eighth, and so on.
    pub(crate) fn count_pending(&mut self, key: &Key) -> bool {
        let plans_of = self.plans_key(key);
        let Some(cached) = self.history.known.get_mut(&plans_of) else { return true };
        cached.provisional_calls += 1;
        cached.provisional_calls.is_power_of_two()
    }

    /// Returns the provisional plans of a call, if it has some.
    pub(crate) fn provisional(&self, call: &CallSpec, key: &Key) -> Option<PlanSequence> {
        let cached =
            self.history.known.peek(&self.plans_key(key)).filter(|cached| cached.is_provisional())?;
        self.is_exact(call, key).then_some(cached.sequence)
    }

    /// Returns whether a call has provisional plans.
    pub(crate) fn has_provisional(&self, key: &Key) -> bool {
        self.history.known.peek(&self.plans_key(key)).is_some_and(CachedPlans::is_provisional)
    }

    /// Ends the time of a call's provisional plans, which are returned.
    pub(crate) fn end_provisional(&mut self, key: &Key) -> Option<PlanSequence> {
        let plans_of = self.plans_key(key);
        self.history.known.remove(&plans_of).map(|cached| cached.sequence)
    }

    /// Notes that plans were chosen for a call under `taken`: another key than its size class if that has no plans.
    pub(crate) fn note_class(&mut self, key: &Key, taken: &Key) {
        self.pending.without_plans.extend(key.class().filter(|class| class != taken));
    }

    /// Has the plans of a call chosen and proved beside it. Returns false where no thread can be started.
    pub(crate) fn plan_beside(&self, key: &Key, planner: impl FnOnce() -> Planner) -> bool {
        self.pending.background.plan(*key, || {
            let planner = planner();
            // An error is kept where the plans would be, for the call that needs them.
            Box::new(move |key| drop(planner.plan_key(key)))
        })
    }

    /// Proves provisional plans of a call, or of its size class; `None` if there are none.
    pub(crate) fn prove_provisional(
        &self,
        key: &Key,
        room: &PlanBudget<'_>,
    ) -> Result<Option<(Key, Arc<Proven>)>, Error> {
        let plans_of = self.plans_key(key);
        let question = self.question(&plans_of, room);
        let outcome = self.proven.provisional.get_or_make(&(plans_of, room.counter_bytes, room.rank), || {
            let about = (plans_of, room.counter_bytes, "provisional");
            let made =
                self.once(&about, &question, Source::Simple, room, |chosen, proofs: &mut Proofs<'_>| {
                    PlanSelector::plans(&plans_of, &question, chosen, proofs, room.rank)
                });
            let made: Outcome = made.map(Arc::new);
            let weight = made.as_ref().map_or(1, |proven| proven.held());
            (made, weight)
        });
        match outcome {
            Ok(proven) => {
                let fits = proven.shortens() || !plans_of.cut;
                Ok(fits.then_some((plans_of, proven)))
            }
            // All ranks come to the same.
            Err(Error::NoPlan { .. } | Error::Plan(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns whether this process has the chosen plans of a call, or knows that there are none.
    pub(crate) fn has_chosen(&self, key: &Key, room: &PlanBudget<'_>) -> bool {
        let known = |key: &Key| {
            let (place, _) = self.place_of(key, room);
            self.proven.even.known(&place)
        };
        let whole = || known(&Key { cut: false, ..*key }).is_some();
        match key.class().map(|class| known(&class)) {
            None => whole(),
            Some(None) => false,
            Some(Some(Ok(proven))) => proven.shortens() || whole(),
            Some(Some(Err(Error::NoPlan { .. } | Error::Plan(_)))) => whole(),
            Some(Some(Err(_))) => true,
        }
    }

    /// Returns whether an earlier program kept the chosen plans of a call.
    pub(crate) fn has_kept(&self, key: &Key, room: &PlanBudget<'_>) -> bool {
        let (first, _) = self.first(&self.plans_key(key));
        let question = self.question(&first, room);
        self.tuning.record(self.kept_name(&(first, room.counter_bytes), &question)).is_some()
    }
}
