//! The change-over of a call from provisional plans to the chosen ones, by all ranks at one call.
//!
//! A thread of each process chooses and proves (`choose/background.rs`), and is done at a time of its own. So before the first, second, fourth, eighth
//! call, and so on, that needs these plans, each rank says whether its process has them ([`super::agreement`]); rank 0 says before the first one whether
//! an earlier program kept them. If all have them, or they were kept, this call and those after it run the chosen plans. As many agreements as the number
//! of calls has bits is all that this costs, and no call waits for a thread.

use super::course::Course;
use super::nonblocking::{Agreement, ChangeOver};
use super::run::{Mode, Stop};
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::{CachedPlans, PeerAccess, PlanRequest, PlanSequence};
use crate::error::Error;

/// Part of what a rank says: its process has not got the chosen plans.
const MISSING: u64 = 1;
/// Part of what rank 0 says: an earlier program kept them.
const KEPT: u64 = 2;

impl Engine {
    /// Returns the request of a call, with `shared` buffers of all ranks or not.
    pub(super) fn request_of(&self, call: &CallSpec, shared: bool) -> PlanRequest {
        let request = self.selector.request_of(call);
        if shared {
            PlanRequest { access: PeerAccess::SharedHeap, ..request }
        } else {
            request
        }
    }

    /// Returns the plans of a call: known ones, else provisional ones, else those that are chosen now.
    ///
    /// # Errors
    /// The errors of choosing a plan.
    pub(super) fn sequence_for(
        &mut self,
        call: &CallSpec,
        request: &PlanRequest,
    ) -> Result<PlanSequence, Error> {
        match self.selector.cache.sequence(request).or_else(|| self.selector.provisional(call, request)) {
            Some(sequence) => Ok(sequence),
            None => self.set_up(|engine| engine.make_sequence(request)),
        }
    }

    /// Settles which plans a call runs, whose blocks have one length: it agrees with the other ranks where that is due.
    pub(super) fn settle(&mut self, course: &mut Course, shared: bool, mode: Mode) -> Result<(), Stop> {
        if matches!(course.change_over, ChangeOver::New) {
            let request = self.undecided(&course.call, shared);
            let due = request.filter(|request| self.selector.count_pending(request));
            course.change_over = due.map_or(ChangeOver::Settled, |request| ChangeOver::Agrees(request, None));
        }
        if matches!(course.change_over, ChangeOver::Agrees(..)) {
            let call = course.call;
            self.begin_once(course, &call, &[], mode)?;
            let ChangeOver::Agrees(request, agreement) = &mut course.change_over else { return Ok(()) };
            let agreement = agreement.get_or_insert_with(|| self.say_chosen(request));
            let said = self.hear(agreement, mode)?;
            let request = request.clone();
            course.change_over = ChangeOver::Settled;
            let there = said & MISSING == 0 || said & KEPT != 0;
            let made = self.set_up(|engine| engine.carry_over(&request, there));
            if made.is_err() {
                self.end();
            }
            made?;
        }
        Ok(())
    }

    /// Returns the request of a call whose plans are not known and may be chosen beside it.
    fn undecided(&mut self, call: &CallSpec, shared: bool) -> Option<PlanRequest> {
        let nothing = call.count == 0 && call.collective.moves_data();
        if nothing || call.root >= self.ranks() || (!shared && self.selector.is_last(call)) {
            return None;
        }
        let request = self.request_of(call, shared);
        let unknown = self.selector.cache.sequence(&request).is_none();
        (unknown && self.selector.defers(call, &request, &self.room())).then_some(request)
    }

    fn say_chosen(&mut self, request: &PlanRequest) -> Agreement {
        let room = self.room();
        let missing = if self.selector.has_chosen(request, &room) { 0 } else { MISSING };
        let first = !self.selector.has_provisional(request);
        let kept = self.rank == 0 && first && missing != 0 && self.selector.has_kept(request, &room);
        self.say(missing | if kept { KEPT } else { 0 })
    }

    /// Takes the chosen plans of a call if they are `there`, or if it has no provisional ones; else takes these, and has its own chosen.
    fn carry_over(&mut self, request: &PlanRequest, there: bool) -> Result<(), Error> {
        if there {
            return self.change_over(request);
        }
        if !self.selector.has_provisional(request) {
            let Some((kept_under, proven)) = self.selector.prove_provisional(request, &self.room())? else {
                return self.change_over(request);
            };
            let sequence = self.compile(&kept_under, &proven)?;
            self.remember(kept_under, CachedPlans::Provisional(sequence, 1), &proven);
        }
        // Of threads of one process, one rank's has the plans chosen for all.
        let others = self.selector.direct() && self.rank != 0;
        if !others && !self.selector.has_chosen(request, &self.room()) {
            let begun = self.selector.plan_beside(request, || self.planner());
            if !begun {
                self.selector.proven_for(request, &self.room()).map(drop)?;
            }
        }
        Ok(())
    }

    /// Takes the chosen plans of a call in place of provisional ones.
    fn change_over(&mut self, request: &PlanRequest) -> Result<(), Error> {
        let old = self.selector.end_provisional(request);
        self.give_up(old.iter().flat_map(CachedPlans::plans));
        self.make_sequence(request).map(drop)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::communicator::Communicator;
    use crate::settings::Settings;
    use crate::team::{Team, TeamConfig};
    use crate::{ElementType, Operator};
    use lineweave_core::collective::Collective;

    fn team(ranks: usize, settings: &Settings) -> Team {
        let mut config = TeamConfig::new(ranks, settings).expect("a configuration");
        // Nothing was measured or kept for it.
        config.tuning.choices = None;
        config.tuning.kept = None;
        Team::with(config).expect("a team")
    }

    /// Returns whether the last call of a communicator ran provisional plans.
    fn is_provisional(comm: &Communicator, call: &CallSpec) -> bool {
        let selector = &comm.engine_ref().selector;
        selector.has_provisional(&selector.request_of(call))
    }

    #[test]
    fn all_ranks_change_over_at_one_call_whose_number_is_a_power_of_two() {
        let call = CallSpec {
            collective: Collective::Allgather,
            element: ElementType::U32,
            count: 1751,
            operator: None,
            root: 0,
        };
        let calls = team(3, &Settings::default()).threads(|mut comm| {
            let mut all = vec![0; 3 * call.count];
            for number in 1_u32.. {
                comm.allgather(&vec![number + comm.rank() as u32; call.count], &mut all)?;
                assert!(all.iter().enumerate().all(|(i, &n)| n == number + (i / call.count) as u32));
                if !is_provisional(&comm, &call) {
                    return Ok(number);
                }
            }
            unreachable!("there are more numbers than calls");
        });
        let calls = calls.expect("a team");
        assert!(
            calls[0] > 1 && calls[0].is_power_of_two() && calls.iter().all(|&n| n == calls[0]),
            "{calls:?}"
        );
    }

    #[test]
    fn sums_that_depend_on_their_order_wait_for_their_choice() {
        // Counts differ, so that no case has another one's plans.
        for (ranks, element, reproducible, deferred, count) in [
            (3, ElementType::F64, false, false, 1753),
            (3, ElementType::F64, true, true, 2753),
            (3, ElementType::I64, false, true, 3753),
            (2, ElementType::F64, false, true, 4753),
        ] {
            let settings = Settings { reproducible, ..Settings::default() };
            let found = team(ranks, &settings).threads(|mut comm| {
                let collective = Collective::Allreduce;
                let call = CallSpec { collective, element, count, operator: Some(Operator::Sum), root: 0 };
                let (input, mut output) = (vec![0_u64; call.count], vec![0_u64; call.count]);
                // SAFETY: so many elements of 8 bytes each.
                unsafe { comm.call(&call, input.as_ptr().cast(), output.as_mut_ptr().cast())? };
                Ok(is_provisional(&comm, &call))
            });
            assert_eq!(
                found.expect("a team"),
                vec![deferred; ranks],
                "{ranks} ranks, {element:?}, {reproducible}"
            );
        }
    }
}
