//! An engine's choices: from a call to the plans that carry it out, looked up when the call was made before, else chosen, proven
//! and compiled.

use super::run::fold_and_scale;
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::{
    has_two_buffers, CachedPlans, ChoiceOverride, PeerAccess, PlanBudget, PlanRequest, PlanSelector,
    PlanSequence, Planner, Proofs, Proved, Proven, ResolvedCall, WindowRun,
};
use crate::compile::PlanId;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use std::sync::Arc;

impl Engine {
    /// Returns the shape of the communicator: the CPU of each rank.
    pub fn shape(&self) -> &Shape {
        self.selector.shape()
    }

    /// See [`crate::Communicator::reproducible`].
    pub fn reproducible(&self) -> bool {
        self.selector.reproducible
    }

    /// See [`crate::Communicator::set_reproducible`].
    pub fn set_reproducible(&mut self, reproducible: bool) -> bool {
        if self.selector.reproducible != reproducible {
            self.cool();
        }
        std::mem::replace(&mut self.selector.reproducible, reproducible)
    }

    /// The algorithm that a call of this size runs, and why.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen(&self, call: &CallSpec) -> Result<Chosen, Error> {
        self.chosen_for(&self.selector.request_of(call))
    }

    /// As [`Engine::chosen`], for a call whose buffers are shared at all ranks.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen_shared(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let selector = &self.selector;
        if selector.direct() || call.bytes() < selector.ask_from() {
            return self.chosen(call);
        }
        self.chosen_for(&self.request_of(call, true))
    }

    fn chosen_for(&self, request: &PlanRequest) -> Result<Chosen, Error> {
        let selector = &self.selector;
        let (first, _) = selector.first(&request.class().unwrap_or_else(|| request.clone()));
        selector.choose(&first, &selector.question(&first, &self.room()))
    }

    /// Everything a call needs, from the last call of this collective if that was equal; or `None` while its plans are chosen beside it. By
    /// reference: copying it about costs more than a small call itself.
    ///
    /// # Errors
    /// The errors of choosing a plan, and [`Error::Operator`] when the type has no such operator.
    #[inline(always)]
    pub(crate) fn ready(&mut self, call: &CallSpec) -> Result<Option<&ResolvedCall>, Error> {
        if !self.selector.is_last(call) {
            let Some(ready) = self.make_ready(call)? else { return Ok(None) };
            return Ok(Some(self.selector.cache.set_last(ready)));
        }
        Ok(self.selector.cache.last(call.collective))
    }

    #[cold]
    fn make_ready(&mut self, call: &CallSpec) -> Result<Option<ResolvedCall>, Error> {
        let (fold, scale) = fold_and_scale(call.operator, call.element)?;
        let request = self.selector.request_of(call);
        let sequence = match self.selector.cache.sequence(&request) {
            Some(sequence) => sequence,
            None if self.selector.defers(call, &request, &self.room()) => return Ok(None),
            None => self.set_up(|engine| engine.make_sequence(&request))?,
        };
        let (plan, bytes) = sequence.next(call.bytes());
        let simple = bytes == call.bytes() && !self.asks(call);
        let in_place = !has_two_buffers(call.collective) || self.runs_in_place(plan);
        let reproducible = self.selector.reproducible;
        let signature = call.signature(reproducible);
        Ok(Some(ResolvedCall {
            call: *call,
            reproducible,
            sequence,
            fold,
            scale,
            signature,
            simple,
            in_place,
        }))
    }

    /// Chooses, proves and compiles the plans of a call.
    pub(super) fn make_sequence(&mut self, request: &PlanRequest) -> Result<PlanSequence, Error> {
        let (taken, proven) = self.selector.proven_for(request, &self.room())?;
        self.selector.note_class(request, &taken);
        self.take_in(taken, &proven)
    }

    /// The plans of a class of calls, to be cut for each; nothing if it has none.
    pub(super) fn class_sequence(
        &mut self,
        call: &CallSpec,
        class: PlanRequest,
    ) -> Result<Option<PlanSequence>, Error> {
        let known = self.selector.cache.chosen(&class).and_then(CachedPlans::sequence);
        if let Some(sequence) = known.or_else(|| self.selector.provisional(call, &class)) {
            return Ok(Some(sequence));
        }
        self.set_up(|engine| match engine.selector.proven_class(&class, &engine.room())? {
            Some(proven) => engine.take_in(class, &proven).map(Some),
            None => Ok(None),
        })
    }

    fn take_in(&mut self, request: PlanRequest, proven: &Proven) -> Result<PlanSequence, Error> {
        let sequence = self.compile(&request, proven)?;
        self.remember(request, CachedPlans::Chosen(sequence), proven);
        Ok(sequence)
    }

    /// Caches the plans of a call, and gives up those that are evicted for them. The memory of counters is not given back, so their plans stay.
    pub(super) fn remember(&mut self, request: PlanRequest, plans: CachedPlans, proven: &Proven) {
        if proven.has_counters() {
            return self.selector.cache.keep(request, plans);
        }
        let old = self.selector.remember(request, plans, proven.ops() / self.ranks());
        self.give_up(old.into_iter());
    }

    /// Compiles the plans of a request with even blocks.
    pub(super) fn compile(&mut self, request: &PlanRequest, proven: &Proven) -> Result<PlanSequence, Error> {
        let sequence = PlanSequence::of(&self.compile_runs(request, proven)?);
        // Where ranks exchange blocks, the copy is of the whole input, and made room for when first needed.
        let copies_windows = request.collective.folds() && !request.collective.has_blocks();
        if copies_windows && !self.runs_in_place(sequence.plan) {
            self.reserve_shadow(sequence.window)?;
        }
        Ok(sequence)
    }

    /// Compiles the plan of each run of windows.
    pub(super) fn compile_runs(
        &mut self,
        request: &PlanRequest,
        proven: &Proven,
    ) -> Result<Vec<WindowRun<PlanId>>, Error> {
        let bytes = request.bytes();
        let mut compile = |run: &WindowRun<Proved>| {
            let Proved { part, proof } = &run.plan;
            let plan = self.prepare_part(part, proof, bytes, request.association, request.cut)?;
            Ok(run.with(plan))
        };
        proven.0.iter().map(&mut compile).collect()
    }

    /// See [`crate::Communicator::planner`].
    pub fn planner(&self) -> Planner {
        let PlanBudget { counter_bytes, records, rank, .. } = self.room();
        let everybody: Vec<usize> = (0..self.ranks()).collect();
        let selector = self.selector.of_members(&everybody, self.selector.direct());
        Planner {
            segment: Arc::clone(&self.segment),
            selector,
            records: records.map(|(_, order)| order),
            rank,
            counter_bytes,
        }
    }

    /// The question that a call of this size poses to whoever chooses.
    pub fn question(&self, call: &CallSpec) -> Question {
        self.selector.question(&self.selector.request_of(call), &self.room())
    }

    /// Proves and compiles a choice for a call, to be used by [`Engine::adopt`]. Every rank must prepare the
    /// same choices in the same order.
    ///
    /// # Errors
    /// [`Error::Plan`] or [`Error::NoPlan`] when it does not apply, [`Error::Refuted`].
    pub fn prepare_choice(&mut self, call: &CallSpec, chosen: &Chosen) -> Result<ChoiceOverride, Error> {
        let request = self.selector.request_of(call).whole();
        let room = self.room();
        let question = self.selector.question(&request, &room);
        let mut proofs = Proofs::Made(&mut Vec::new());
        let proven = PlanSelector::plans(&request, &question, chosen, &mut proofs, room.rank)?;
        Ok(ChoiceOverride { sequence: self.compile(&request, &proven)?, request })
    }

    /// Returns whether long calls go by cross-memory attach where the model says so: see [`crate::Communicator::set_cross_memory`].
    pub fn set_cross_memory(&mut self, on: bool) -> bool {
        self.cool();
        self.selector.cache.forget_last();
        self.selector.set_attach(on)
    }

    /// The best choice by the model among plans that reach other ranks' buffers.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when ranks do not reach them for a call of this length, or no plan does.
    pub fn best_direct(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let selector = &self.selector;
        let request = selector.request_of(call);
        let question = selector.question(&request, &self.room());
        let no_plan = |why: &str| Error::NoPlan {
            collective: question.collective,
            bytes: question.bytes,
            ranks: question.shape.ranks(),
            why: why.to_owned(),
        };
        if request.access == PeerAccess::None {
            return Err(no_plan("ranks do not reach each other's buffers for messages of this length"));
        }
        selector
            .best_direct(&question)
            .ok_or_else(|| no_plan("no plan that reaches other ranks' buffers applies"))
    }

    /// Calls of this size run this choice from now on, whatever the tuning says, until
    /// [`Engine::forget`]. Every rank must adopt the same.
    pub fn adopt(&mut self, choice: &ChoiceOverride) {
        self.cool();
        self.selector.cache.keep(choice.request.clone(), CachedPlans::Chosen(choice.sequence));
    }

    /// Prepares and adopts what would be chosen for a call if nothing were forced, until [`Engine::give_up_choice`].
    ///
    /// # Errors
    /// [`Error::NoPlan`] and [`Error::Plan`] where none can be had.
    pub(crate) fn adopt_unforced(&mut self, call: &CallSpec) -> Result<ChoiceOverride, Error> {
        let request = self.selector.request_of(call);
        let question = self.selector.question(&request, &self.room());
        let chosen = self.selector.choose_unforced(&question, request.access)?;
        let choice = self.prepare_choice(call, &chosen)?;
        self.adopt(&choice);
        Ok(choice)
    }

    /// Forgets a choice, and drops the plans that were made for it.
    pub(crate) fn give_up_choice(&mut self, choice: &ChoiceOverride) {
        self.forget(choice);
        self.give_up(choice.sequence.plans());
    }

    /// Calls of this size run what the tuning says again.
    pub fn forget(&mut self, choice: &ChoiceOverride) {
        self.cool();
        self.selector.cache.unkeep(&choice.request);
    }
}
