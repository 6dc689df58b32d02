//! Plans become part of an engine, proved and compiled, and are given up again.

use super::state::Engine;
use crate::compile::{self, PlanId, RankPlacement};
use crate::error::Error;
use lineweave_core::collective::Association;
use lineweave_core::plan::{Part, Plan};
use lineweave_core::verify::{self, Proof};

impl Engine {
    /// Proves a plan and compiles it. Every rank must prepare the same plans in the same order.
    ///
    /// # Errors
    /// [`Error::Refuted`] with the counter-example, or [`Error::NoPlan`] when it does not fit this team.
    pub fn prepare(&mut self, plan: &Plan) -> Result<PlanId, Error> {
        let proof = verify::verify(plan)
            .map_err(|violation| Error::Refuted { plan: plan.name(), violation: Box::new(violation) })?;
        self.prepare_proven(plan, &proof)
    }

    /// Compiles a plan whose proof is at hand.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when it does not fit this team.
    pub fn prepare_proven(&mut self, plan: &Plan, proof: &Proof) -> Result<PlanId, Error> {
        let part = Part::whole(plan.clone(), self.selector.shape().oversubscription() > 1);
        let association = Association::wanted(true, self.reproducible());
        self.prepare_part(&part, proof, plan.bytes, association, false)
    }

    /// Compiles this rank's part of a plan for a window of a message, or of blocks, of `message` bytes, and of what the call asks of the
    /// association; to be cut for shorter ones if asked.
    ///
    /// # Errors
    /// The errors of [`Engine::prepare_proven`].
    pub(crate) fn prepare_part(
        &mut self,
        part: &Part,
        proof: &Proof,
        message: usize,
        association: Association,
        cut: bool,
    ) -> Result<PlanId, Error> {
        let plan = &part.plan;
        let no_plan = |why: String| Error::NoPlan {
            collective: plan.collective,
            bytes: plan.bytes,
            ranks: plan.ranks,
            why: format!("{}: {why}", plan.name()),
        };
        if plan.ranks != self.ranks() {
            return Err(no_plan(format!("it is for {} ranks and the team has {}", plan.ranks, self.ranks())));
        }
        let places = !self.selector.direct();
        let (model, shape, held) = (self.selector.model(), self.selector.shape(), self.selector.held());
        let ahead = self.selector.ahead;
        let rounds_once = association != Association::Fixed;
        let seat = RankPlacement {
            rank: self.rank,
            segment: &self.segment,
            model,
            shape,
            held,
            places,
            ahead,
            rounds_once,
        };
        let compiled = compile::compile(part, message, proof, seat, &mut self.plans.counter_bytes)
            .map_err(|unfit| no_plan(unfit.to_string()))?;
        if compiled.lends() {
            self.transport.watch.lends();
        }
        self.plans.scratch.grow(compiled.acc)?;
        self.plans.reach_room.grow(3 * compiled.piece)?;
        Ok(self.plans.add(if cut { compiled.with_cuts(plan, self.rank) } else { compiled }))
    }

    /// Gives plans up that will not be run again. Every rank must give up the same between the same calls.
    pub(crate) fn give_up(&mut self, plans: impl Iterator<Item = PlanId>) {
        self.cool();
        for id in plans {
            if self.banks.residency.is_some_and(|residency| residency.plan == id) {
                self.banks.end_residency(&self.transport.waiter);
            }
            self.plans.remove(id);
        }
    }
}
