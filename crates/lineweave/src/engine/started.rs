//! Calls that were started: what is left to do of each, and doing it.
//!
//! They are carried out one after the other in the order in which they were started, which is the same on all ranks. Each goes
//! through the stages of a call that blocks: plans are looked up or made, calls are compared if checks are on, windows are run,
//! averages are divided. A stage stops where it would have to wait, and goes on from there the next time.

use super::call_plan::Preface;
use super::course::contributions;
use super::nonblocking::{Agreed, Lengths, NonblockingCall, Prologue, RemainingSteps, RequestState};
use super::run::{Mode, Stop};
use super::state::Engine;
use crate::error::Error;
use crate::wait::{Interrupted, Rounds, WaitMonitor};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

impl Engine {
    /// Carries the started calls on in their order: to their end, up to `until`, or to where one would have to wait.
    pub(crate) fn carry_on(&mut self, mode: Mode, until: Option<&RequestState>, wakers: &mut Vec<Waker>) {
        if self.is_inherited() {
            // The parent carries them on.
            std::mem::take(&mut self.started.queue)
                .iter()
                .for_each(|job| job.ticket.finish(Err(Error::Forked), wakers));
            return;
        }
        while let Some(mut job) = self.started.queue.pop_front() {
            let mut outcome = self.advance(&mut job, mode);
            if matches!(outcome, Err(Stop::NotYet)) {
                let Err(interrupted) = self.look_around() else { return self.started.queue.push_front(job) };
                // What a rank did before it was lost counts.
                if self.transport.watch.gives_way() {
                    outcome = self.advance(&mut job, mode);
                }
                match outcome {
                    Err(Stop::NotYet) => outcome = Err(Stop::Failed(self.interrupted(interrupted))),
                    Ok(()) | Err(Stop::Failed(_)) => self.transport.watch.forgive(),
                }
            }
            self.started.rounds = Rounds::default();
            self.transport.watch.settle();
            let NonblockingCall { ticket, keep, work, lengths, .. } = job;
            // Before anybody hears of it: who does takes the buffers back.
            drop((keep, work, lengths));
            ticket.finish(outcome.map_err(Stop::into_error), wakers);
            if until.is_some_and(RequestState::is_done) {
                return;
            }
        }
    }

    /// Ends all started calls with an error: this rank will not carry them on.
    pub(crate) fn abandon(&mut self, why: &str, wakers: &mut Vec<Waker>) {
        self.health.busy |= !self.started.queue.is_empty();
        if self.health.busy {
            self.transport.watch.close();
        }
        self.health.failed.get_or_insert_with(|| why.to_owned());
        for job in std::mem::take(&mut self.started.queue) {
            let NonblockingCall { ticket, keep, .. } = job;
            drop(keep);
            ticket.finish(Err(Error::Failed(why.to_owned())), wakers);
        }
    }

    /// Looks after the peers of a call that is only polled, now and then.
    fn look_around(&mut self) -> Result<(), Interrupted> {
        match self.started.rounds.due_of_test(Instant::now()) {
            Some(waited) => self.transport.watch.check(waited),
            None => Ok(()),
        }
    }

    fn advance(&mut self, job: &mut NonblockingCall, mode: Mode) -> Result<(), Stop> {
        if job.work.is_none() {
            // Not what a call left undone that failed: counts may not have been gathered.
            self.expect_usable()?;
            let counts = self.counts_of(job)?;
            let asks = match &counts {
                None => self.asks(&job.call),
                Some(counts) => self.asks_uneven(&job.call, counts),
            };
            let agreed = if asks { self.open(job, counts.as_deref(), mode)? } else { Agreed::NOTHING };
            let work = self.make_work(job, counts.as_deref(), agreed)?;
            job.work = Some(RemainingSteps { begun: asks, ..work });
        }
        let Some(work) = &mut job.work else { return Ok(()) };
        if !work.begun {
            let signature = work.signature;
            self.begin(work.call.collective.name(), signature)?;
            work.begun = true;
            if self.selector().check {
                work.comparison = Some(self.announce(&work.call, &work.lengths));
            }
        }
        if let Some(comparison) = &mut work.comparison {
            self.compare_on(comparison, mode)?;
            work.comparison = None;
        }
        if let Some(bytes) = work.copied.take() {
            self.reserve_shadow(bytes)?;
            // SAFETY: who started the call vouches for the input.
            job.input = unsafe { self.shadow_copy(job.input, bytes) };
        }
        // SAFETY: who started the call vouches for the buffers.
        unsafe { self.run_windows(&mut work.left, job.input, job.output, mode) }?;
        if let Some((scale, elements, by)) = work.scale {
            // SAFETY: the output holds that many elements of the call's type.
            unsafe { scale(job.output, elements, by) };
        }
        self.end();
        Ok(())
    }

    /// Begins a call that asks, compares it, and hears what the others say of their buffers.
    fn open(
        &mut self,
        job: &mut NonblockingCall,
        counts: Option<&[usize]>,
        mode: Mode,
    ) -> Result<Agreed, Stop> {
        let (input, output) = (job.input, job.output);
        let preface = self.preface(&job.call, counts, input, output)?;
        let opening = match &mut job.opening {
            Some(opening) => opening,
            None => {
                let Preface { call, lengths, .. } = &preface;
                let signature = call.signature(self.reproducible()).of_blocks(lengths);
                self.begin(call.collective.name(), signature)?;
                let comparison = self.selector().check.then(|| self.announce(call, lengths));
                job.opening.insert(Prologue { comparison, agreement: None })
            }
        };
        if let Some(comparison) = &mut opening.comparison {
            self.compare_on(comparison, mode)?;
            opening.comparison = None;
        }
        let agreement = match &mut opening.agreement {
            Some(agreement) => agreement,
            None => opening.agreement.insert(self.ask(&preface, input, output)),
        };
        self.hear(agreement, mode)
    }

    /// The lengths of a call's blocks, in elements, where they are given one by one.
    fn counts_of(&self, job: &NonblockingCall) -> Result<Option<Arc<[usize]>>, Error> {
        match &job.lengths {
            Lengths::Even => Ok(None),
            Lengths::Uneven(counts) => Ok(Some(Arc::clone(counts))),
            Lengths::Gathered(pairs) => {
                let counts = pairs.counts();
                self.expect_taken(&counts, &pairs.taken, job.call.element.size())?;
                Ok(Some(counts.into()))
            }
        }
    }

    fn make_work(
        &mut self,
        job: &NonblockingCall,
        counts: Option<&[usize]>,
        agreed: Agreed,
    ) -> Result<RemainingSteps, Error> {
        let (input, output) = (job.input, job.output);
        let plan = match counts {
            None => self.plan_call(&job.call, input, output, agreed)?,
            Some(counts) => self.plan_uneven(&job.call, counts, input, output, agreed)?,
        };
        let by = contributions(job.call.collective, self.rank(), self.ranks());
        let scale = plan.scale.map(|(scale, elements)| (scale, elements, by));
        Ok(RemainingSteps::of(plan, scale))
    }

    /// Takes calls up that were started.
    pub(crate) fn enqueue(&mut self, jobs: impl IntoIterator<Item = NonblockingCall>) {
        self.started.queue.extend(jobs);
    }

    /// Returns whether started calls are not over.
    pub(crate) fn has_started(&self) -> bool {
        !self.started.queue.is_empty()
    }

    /// Returns how far the started calls are: the runs of plans so far, and the next step of the one under way.
    pub(crate) fn position(&self) -> (u64, Option<usize>) {
        let work = self.started.queue.front().and_then(|job| job.work.as_ref());
        (self.calls.base, work.and_then(|work| work.left.run.as_ref()).map(|(run, _)| run.step))
    }
}
