//! Plans: those that calls run, and those that a program or a measurement brings.

use super::{Buffers, Communicator, PlanId, Planner};
use crate::call::CallSpec;
use crate::error::Error;
use crate::kernel::{Copier, CopyPolicy, Element};
use crate::tuning::Chosen;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Plan;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;

impl Communicator {
    /// Changes how this rank copies.
    pub fn set_copy_policy(&mut self, copy: CopyPolicy) {
        self.engine().transport.copy = Copier::new(copy);
    }

    /// Proves a plan and compiles it. Every rank must prepare the same plans in the same order.
    ///
    /// # Errors
    /// [`Error::Refuted`] with the counter-example, or [`Error::NoPlan`] when it does not fit this team.
    pub fn prepare(&mut self, plan: &Plan) -> Result<PlanId, Error> {
        self.engine().prepare(plan)
    }

    /// Returns a planner for the calls that follow.
    pub fn planner(&self) -> Planner {
        self.engine_ref().planner()
    }

    /// Runs a prepared plan once, as a call of its own.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`]; the communicator cannot be used after one.
    ///
    /// # Safety
    /// The buffers must be valid for the lengths the plan gives this rank and not be used by anybody else
    /// meanwhile, `fold` must fit the plan's grain, and every rank must run the same plans in the same order.
    ///
    /// ```
    /// use lineweave::communicator::Buffers;
    /// use lineweave_core::algorithm::{self, Problem};
    /// use lineweave_core::{collective::Collective, plan::Params};
    /// let problem = Problem::flat(Collective::Barrier, 3, 0);
    /// let plan = algorithm::find(Collective::Barrier, "dissemination")?.plan(&problem, &Params::new())?;
    /// lineweave::team::threads(3, |mut comm| {
    ///     let barrier = comm.prepare(&plan)?;
    ///     // SAFETY: a barrier has no buffers, and all ranks run this plan.
    ///     unsafe { comm.run(barrier, Buffers::NONE) }
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    #[inline]
    pub unsafe fn run(&mut self, plan: PlanId, buffers: Buffers) -> Result<(), Error> {
        // SAFETY: passed on.
        unsafe { self.engine().run(plan, buffers) }
    }

    /// Returns the shape of the communicator: the CPU of each rank.
    ///
    /// ```
    /// let known = lineweave::team::threads(2, |comm| Ok(comm.shape().ranks()))?;
    /// assert_eq!(known, [2, 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn shape(&self) -> &Shape {
        self.engine_ref().shape()
    }

    /// The algorithm that a call of this size runs, and why.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    ///
    /// ```
    /// use lineweave::{CallSpec, Collective, ElementType, Operator};
    /// let (element, operator) = (ElementType::F64, Some(Operator::Sum));
    /// let call = CallSpec { collective: Collective::Allreduce, element, count: 1000, operator, root: 0 };
    /// let chosen = lineweave::team::threads(2, |comm| comm.chosen(&call))?;
    /// println!("{} in windows of {} bytes: {:?}", chosen[0].algorithm.name, chosen[0].window, chosen[0].because);
    /// assert_eq!(chosen[0].algorithm.name, chosen[1].algorithm.name);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn chosen(&self, call: &CallSpec) -> Result<Chosen, Error> {
        self.engine_ref().chosen(call)
    }

    /// The algorithm that a call of this size runs when all ranks give it shared buffers, and why.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen_shared(&self, call: &CallSpec) -> Result<Chosen, Error> {
        self.engine_ref().chosen_shared(call)
    }

    /// The best by the model of the plans that reach other ranks' buffers.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when ranks do not reach each other's for a call of this length, or no such plan applies.
    pub fn best_direct(&self, call: &CallSpec) -> Result<Chosen, Error> {
        self.engine_ref().best_direct(call)
    }

    /// Gathers what ranks need to know of each other at all of them, also where the algorithm that is forced has no plan for it.
    pub(crate) fn tell_all<T: Element>(&mut self, mine: &[T], all: &mut [T]) -> Result<(), Error> {
        self.with_any_plan::<T>(Collective::Allgather, mine.len(), |comm| comm.allgather(mine, all))
    }

    /// Broadcasts from rank 0 what ranks need to know, also where the algorithm that is forced has no plan for it.
    pub(crate) fn tell_of_first<T: Element>(&mut self, told: &mut [T]) -> Result<(), Error> {
        self.with_any_plan::<T>(Collective::Bcast, told.len(), |comm| comm.bcast(told, 0))
    }

    /// Makes a call that is part of another one. If the algorithm that is forced has no plan for it, the call is made by what would be chosen.
    pub(crate) fn with_any_plan<T: Element>(
        &mut self,
        collective: Collective,
        count: usize,
        mut make: impl FnMut(&mut Communicator) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let made = make(self);
        // All ranks come to the same, before they have begun.
        if !matches!(made, Err(Error::NoPlan { .. } | Error::Plan(_))) {
            return made;
        }
        let call = CallSpec { collective, element: T::TYPE, count, operator: None, root: 0 };
        let own = self.engine().adopt_unforced(&call)?;
        let made = make(self);
        self.engine().give_up_choice(&own);
        made
    }

    /// The question that a call of this size poses to whoever chooses.
    pub fn question(&self, call: &CallSpec) -> Question {
        self.engine_ref().question(call)
    }
}
