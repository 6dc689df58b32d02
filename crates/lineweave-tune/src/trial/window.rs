//! A trial: one collective of one size, checked and then timed by every rank of a team for one window.
//!
//! What is timed is the very call that a program makes; a trial may only say which algorithm answers it.

use super::request::{Buffers, DataPath, Outcome, Trial, Way};
use crate::measure::timing::{collect_elapsed, Rules, Samples};
use crate::measure::{MachineStateProbe, StateSample, COPIED};
use lineweave::communicator::{self, PlanId};
use lineweave::internal::Budget;
use lineweave::internal::ChoiceOverride;
use lineweave::settings::Wait;
use lineweave::tuning::{Because, Chosen};
use lineweave::CallSpec;
use lineweave::Communicator;
use lineweave::Error;
use lineweave::SharedBuffer;
use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::select::Question;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Memory that the fresh buffers of one team take together: larger than the last-level cache of most machines,
/// small enough to be there on all. As much as the peers of `lineweave bench` take.
const FRESH_BYTES: usize = 256 << 20;

/// Ranks leave the barrier before a batch some 100 ns apart, which must vanish in it.
const BATCH: Duration = Duration::from_micros(50);

/// A page, so that buffers start on one.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub(super) struct Page([u64; 512]);

/// Collective, length, root, lengths that differ, algorithm and way of the bytes of a trial that names an algorithm.
type Subject = (Collective, usize, usize, Vec<usize>, Way, Option<DataPath>);

/// The preparation of a named algorithm.
#[derive(Clone)]
pub(super) enum Ready {
    /// Calls run it.
    Choice(ChoiceOverride),
    /// It is run as the plan that it is: blocks differ, and such calls name no algorithm.
    Plan(PlanId),
}

/// One rank's buffers and prepared choices, kept from trial to trial.
#[derive(Default)]
pub struct Bench {
    input: Vec<Page>,
    output: Vec<Page>,
    /// Input and output in memory that all ranks share, made for trials that ask for such and kept for those that follow at once.
    shared: Option<[SharedBuffer<u64>; 2]>,
    prepared: HashMap<Subject, Ready>,
    /// Made when it is first read, with buffers of its own.
    gauge: Option<(MachineStateProbe, [Vec<Page>; 2])>,
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("pages", &self.input.len())
            .field("prepared", &self.prepared.len())
            .finish()
    }
}

/// Why a trial was not carried out. All ranks refuse alike, so that the team can go on.
#[derive(Debug)]
pub enum Refused {
    /// The plan does not apply, or the answer was wrong; the communicator is sound.
    Trial(String),
    /// The communicator cannot be used any more.
    Team(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Team(error)
    }
}

impl Bench {
    /// Carries out a trial; every rank of the team must be given the same.
    pub fn run(&mut self, comm: &mut Communicator, trial: &Trial) -> Result<Outcome, Refused> {
        let could = comm.cross_memory();
        if trial.path == Some(DataPath::Attach) && !could {
            let why = "ranks do not reach each other's memory: the kernel refuses, LINEWEAVE_CMA is off, or the profile has no \
                       probe attach (run `lineweave measure`)";
            return Err(Refused::Trial(why.to_owned()));
        }
        if trial.path != Some(DataPath::Shared) {
            self.shared = None;
        }
        let before = matches!(trial.path, Some(DataPath::Boxes)).then(|| comm.set_cross_memory(false));
        let outcome = self.run_on_path(comm, trial);
        if let Some(before) = before {
            comm.set_cross_memory(before);
        }
        comm.set_shared_buffers(false);
        Ok(Outcome { cross_memory: could, ..outcome? })
    }

    /// Reads the gauge; every rank of the team must do so at once.
    pub fn gauge(&mut self, comm: &mut Communicator) -> Result<StateSample, Refused> {
        if self.gauge.is_none() {
            let buffers = [0, 1].map(|_| vec![Page([0; 512]); COPIED / size_of::<Page>()]);
            self.gauge = Some((MachineStateProbe::of(comm)?, buffers));
        }
        let Some((gauge, [input, output])) = &mut self.gauge else { return Ok(StateSample::default()) };
        // SAFETY: buffers of `COPIED` bytes that are this rank's alone; all ranks were asked for it.
        Ok(unsafe { gauge.read(comm, input.as_mut_ptr().cast(), output.as_mut_ptr().cast()) }?)
    }

    fn run_on_path(&mut self, comm: &mut Communicator, trial: &Trial) -> Result<Outcome, Refused> {
        let call = trial.call();
        let refuse = |e: Error| Refused::Trial(e.to_string());
        let way = match (&trial.way, trial.path) {
            (Some(way), _) => Some(way.clone()),
            (None, Some(DataPath::Attach)) => Some(Way::of(comm.best_direct(&call).map_err(refuse)?)),
            (None, _) => None,
        };
        let adopted = match &way {
            None => None,
            Some(way) => Some(self.prepared(comm, trial, &call, way)?),
        };
        let slots = self.reserve(comm, trial)?;
        let (way, because) = match (way, trial.path) {
            (Some(way), _) => (way, "forced"),
            (None, Some(DataPath::Shared)) => described(comm.chosen_shared(&call).map_err(refuse)?),
            (None, _) => described(comm.chosen(&call).map_err(refuse)?),
        };
        if let Some(Ready::Choice(choice)) = &adopted {
            comm.adopt(choice);
        }
        let plan = match &adopted {
            Some(Ready::Plan(plan)) => Some(*plan),
            Some(Ready::Choice(_)) | None => None,
        };
        let budget = comm.wait_budget();
        if let Some(wait) = trial.wait {
            comm.set_wait_budget(Budget { exchange: budget.exchange, ..budget_of(wait, comm) });
        }
        let outcome = self.timed(comm, trial, &call, plan, slots);
        comm.set_wait_budget(budget);
        if let Some(Ready::Choice(choice)) = &adopted {
            comm.forget(choice);
        }
        let samples = outcome?;
        let algorithm =
            algorithm::find(trial.collective, &way.algorithm).map_err(|e| Refused::Trial(e.to_string()))?;
        let mut question = comm.question(&call);
        question.direct |= trial.path == Some(DataPath::Shared);
        let plan = algorithm.plan(&question.window(way.window), &way.params);
        Ok(Outcome {
            batches_ns: samples.values,
            disturbed: samples.disturbed,
            way,
            because: because.to_owned(),
            direct: plan.is_ok_and(|plan| plan.direct),
            cross_memory: false,
        })
    }

    fn prepared(
        &mut self,
        comm: &mut Communicator,
        trial: &Trial,
        call: &CallSpec,
        way: &Way,
    ) -> Result<Ready, Refused> {
        let Trial { collective, bytes, root, .. } = *trial;
        let key = (collective, bytes, root, trial.lengths.clone(), way.clone(), trial.path);
        if let Some(ready) = self.prepared.get(&key) {
            return Ok(ready.clone());
        }
        let refuse = |e: &dyn std::fmt::Display| Refused::Trial(e.to_string());
        let algorithm = algorithm::find(collective, &way.algorithm).map_err(|e| refuse(&e))?;
        // Deterministic, so that every rank fails or none does.
        let ready = if trial.lengths.is_empty() {
            let params = way.params.clone();
            let chosen = Chosen { algorithm, params, window: way.window, because: Because::Forced };
            Ready::Choice(comm.prepare_choice(call, &chosen).map_err(|e| refuse(&e))?)
        } else {
            let uneven = Some(Arc::new(trial.blocks(comm.ranks())));
            let question = Question { uneven, ..comm.question(call) };
            let plan = algorithm.plan(&question.window(bytes), &way.params).map_err(|e| refuse(&e))?;
            Ready::Plan(comm.prepare(&plan).map_err(|e| refuse(&e))?)
        };
        self.prepared.insert(key, ready.clone());
        Ok(ready)
    }

    /// Makes room, touched by this rank first, and says how many buffers there are in it.
    fn reserve(&mut self, comm: &mut Communicator, trial: &Trial) -> Result<usize, Refused> {
        let ranks = comm.ranks();
        let pages = trial.buffer_bytes(ranks).div_ceil(size_of::<Page>());
        let slots = match trial.buffers {
            Buffers::Reuse => 1,
            Buffers::Fresh => (FRESH_BYTES / 2 / ranks / (pages * size_of::<Page>()).max(1)).max(2),
        };
        if trial.path == Some(DataPath::Shared) {
            let words = pages * slots * (size_of::<Page>() / size_of::<u64>());
            if self.shared.as_ref().is_none_or(|[input, _]| input.len() < words) {
                self.shared = None;
                // Every rank hears of what cannot be had, and goes on.
                let mut alloc = || comm.alloc::<u64>(words).map_err(|e| Refused::Trial(e.to_string()));
                self.shared = Some([alloc()?, alloc()?]);
            }
            comm.set_shared_buffers(true);
            return Ok(slots);
        }
        for pool in [&mut self.input, &mut self.output] {
            if pool.len() < pages * slots {
                *pool = Vec::new();
                *pool = vec![Page([0; 512]); pages * slots];
            }
        }
        Ok(slots)
    }

    /// Returns the starts of the buffers of a trial: pages, as many as were reserved.
    pub(super) fn pools(&mut self) -> [*mut Page; 2] {
        match &mut self.shared {
            Some(shared) => shared.each_mut().map(|buffer| buffer.as_mut_ptr().cast()),
            None => [self.input.as_mut_ptr(), self.output.as_mut_ptr()],
        }
    }

    fn timed(
        &mut self,
        comm: &mut Communicator,
        trial: &Trial,
        call: &CallSpec,
        plan: Option<PlanId>,
        slots: usize,
    ) -> Result<Samples, Refused> {
        let pages = trial.buffer_bytes(comm.ranks()).div_ceil(size_of::<Page>());
        if trial.check && trial.collective.moves_data() {
            self.check(comm, trial, call, plan)?;
        }
        let [input, output] = self.pools();
        let buffers = |slot: usize| {
            // Within the pools: `reserve` made `slots` times `pages` pages.
            let [from, to] = [input, output].map(|pool| pool.wrapping_add(slot * pages).cast::<u8>());
            (if trial.collective == Collective::Bcast { to.cast_const() } else { from.cast_const() }, to)
        };
        let mut at = 0;
        let mut operation = |comm: &mut Communicator, count: usize| {
            if trial.collective == Collective::Barrier {
                return (0..count).try_for_each(|_| comm.barrier());
            }
            if let Some(plan) = plan {
                let (input, output) = buffers(0);
                let buffers = communicator::Buffers { input, output, ..communicator::Buffers::NONE };
                // SAFETY: as below, with a first buffer alone; every rank has prepared the same plans.
                return (0..count).try_for_each(|_| unsafe { comm.run(plan, buffers) });
            }
            if trial.apart {
                return (0..count).try_for_each(|_| {
                    let (from, to) = buffers(0);
                    // SAFETY: as below, with a first buffer alone.
                    unsafe { comm.call(call, from, to) }?;
                    comm.barrier()
                });
            }
            if slots == 1 {
                // What finds the next buffers would count as part of the call, and a call of a word is not longer than that.
                let (from, to) = buffers(0);
                // SAFETY: as below, with a first buffer alone.
                return (0..count).try_for_each(|_| unsafe { comm.call(call, from, to) });
            }
            (0..count).try_for_each(|_| {
                let (from, to) = buffers(at);
                at = if at + 1 == slots { 0 } else { at + 1 };
                // SAFETY: both pools are this rank's own, exclusively borrowed and live for the call,
                // page-aligned, and hold the longest buffer of the call from there on.
                unsafe { comm.call(call, from, to) }
            })
        };
        let rules = Rules {
            precision: trial.precision,
            least: trial.least,
            most: trial.most,
            budget: Duration::from_nanos(trial.window_ns),
            batch: BATCH,
            ..Rules::default()
        };
        Ok(collect_elapsed(comm, &rules, &mut operation)?)
    }
}

/// The budget of a policy for a team where it is.
fn budget_of(wait: Wait, comm: &Communicator) -> Budget {
    let ranks = comm.ranks();
    Budget::of(wait, ranks, ranks / comm.shape().oversubscription().max(1))
}

/// Returns the library's own choice, and the reason for it.
fn described(chosen: Chosen) -> (Way, &'static str) {
    let because = match chosen.because {
        Because::Forced => "forced",
        Because::Measured => "measured",
        Because::Simulated => "simulated",
        Because::Predicted => "predicted",
    };
    (Way::of(chosen), because)
}
