//! Calls that were started: what is left to do of each, and doing it.
//!
//! They are carried out one after the other in the order in which they were started, which is the same on all ranks. Each goes
//! through the stages of a call that blocks: plans are looked up or made, calls are compared if checks are on, windows are run,
//! averages are divided. A stage stops where it would have to wait, and goes on from there the next time.

use super::nonblocking::{Lengths, NonblockingCall, RequestState};
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
            let mut outcome = self.advance_job(&mut job, mode);
            if matches!(outcome, Err(Stop::NotYet)) {
                let Err(interrupted) = self.look_around() else { return self.started.queue.push_front(job) };
                // What a rank did before it was lost counts.
                if self.transport.watch.gives_way() {
                    outcome = self.advance_job(&mut job, mode);
                }
                match outcome {
                    Err(Stop::NotYet) => outcome = Err(Stop::Failed(self.interrupted(interrupted))),
                    Ok(()) | Err(Stop::Failed(_)) => self.transport.watch.forgive(),
                }
            }
            self.started.rounds = Rounds::default();
            self.transport.watch.settle();
            let NonblockingCall { ticket, keep, course, lengths } = job;
            // Before anybody hears of it: who does takes the buffers back.
            drop((keep, course, lengths));
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

    fn advance_job(&mut self, job: &mut NonblockingCall, mode: Mode) -> Result<(), Stop> {
        let mut counts = None;
        if job.course.plan.is_none() {
            // Not what a call left undone that failed: counts may not have been gathered.
            self.expect_usable()?;
            counts = self.counts_of(job)?;
        }
        // SAFETY: who started the call vouches for the buffers.
        unsafe { self.advance(&mut job.course, counts.as_deref(), mode) }
    }

    /// The lengths of a call's blocks, in elements, where they are given one by one.
    fn counts_of(&self, job: &NonblockingCall) -> Result<Option<Arc<[usize]>>, Error> {
        match &job.lengths {
            Lengths::Even => Ok(None),
            Lengths::Uneven(counts) => Ok(Some(Arc::clone(counts))),
            Lengths::Gathered(pairs) => {
                let counts = pairs.counts();
                self.expect_taken(&counts, &pairs.taken, job.course.call.element.size())?;
                Ok(Some(counts.into()))
            }
        }
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
        let plan = self.started.queue.front().and_then(|job| job.course.plan.as_ref());
        (self.calls.base, plan.and_then(|plan| plan.left.run.as_ref()).map(|(run, _)| run.step))
    }
}
