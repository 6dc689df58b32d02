//! Calls that were started: what is left to do of each, and doing it.
//!
//! They are carried out one after the other in the order in which they were started, which is the same on all ranks. Each goes
//! through the stages of a call that blocks: plans are looked up or made, calls are compared if checks are on, windows are run,
//! averages are divided. A stage stops where it would have to wait, and goes on from there the next time.

use super::agreement::{Agreed, Agreement};
use super::run::{Buffers, Mode, PlanId, Stop};
use super::windows::Run;
use super::Engine;
use crate::called::Called;
use crate::calls::{contributions, CallPlan, Preface, Windows};
use crate::check::{CallSpec, Comparison};
use crate::error::Error;
use crate::kernel::{ElementType, Fold, ScaleFn};
use crate::sync::{AtomicBool, Ordering};
use crate::wait::{Interrupted, Vigil};
use lineweave_core::collective::Collective;
use std::any::Any;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The most that a look counts for as time waited: between tests a rank may have had other things to do.
const LONGEST_GAP: Duration = Duration::from_millis(50);
/// How often the peers of a call that is only polled are looked after.
const LOOK: Duration = Duration::from_millis(5);

/// How a call ended, once it has, and who is to be told.
type State = (Option<Result<(), Error>>, Option<Waker>);

/// How a started call ended, for whoever asks.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    done: AtomicBool,
    state: Mutex<State>,
}

impl Ticket {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that panics is done under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the call is over.
    pub fn is_done(&self) -> bool {
        // SYNC: ticket
        self.done.load(Ordering::Acquire)
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Result<(), Error>> {
        if !self.is_done() {
            return None;
        }
        self.state().0.clone()
    }

    /// Whom to call when it is over; whether it is not.
    pub fn wake(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        state.1 = Some(waker.clone());
        state.0.is_none()
    }

    /// For a call that is made again.
    pub fn reset(&self) {
        let mut state = self.state();
        state.0 = None;
        // Relaxed: the call is handed over after this.
        self.done.store(false, Ordering::Relaxed);
    }

    fn finish(&self, outcome: Result<(), Error>, wakers: &mut Vec<Waker>) {
        let mut state = self.state();
        state.0 = Some(outcome);
        wakers.extend(state.1.take());
        // SYNC: ticket
        self.done.store(true, Ordering::Release);
    }
}

/// The lengths of a call's blocks.
#[derive(Clone, Debug)]
pub(crate) enum Lengths {
    /// As the call says.
    Even,
    /// One number for each rank, or for each pair of them.
    Uneven(Arc<[usize]>),
    /// What every rank gives to every other is what the call before has gathered.
    Gathered(Arc<Pairs>),
}

impl Lengths {
    /// Whether both are the same lengths.
    pub fn equal(&self, other: &Lengths) -> bool {
        match (self, other) {
            (Lengths::Even, Lengths::Even) => true,
            (Lengths::Uneven(a), Lengths::Uneven(b)) => a == b,
            (Lengths::Gathered(a), Lengths::Gathered(b)) => a.given == b.given && a.taken == b.taken,
            (Lengths::Even | Lengths::Uneven(_) | Lengths::Gathered(_), _) => false,
        }
    }
}

/// What the ranks of an alltoall of different lengths tell each other.
#[derive(Debug)]
pub(crate) struct Pairs {
    given: Box<[u64]>,
    all: *mut u64,
    taken: Box<[usize]>,
}

// SAFETY: `all` belongs to it, and is touched by calls only, which are carried out by one thread at a time.
unsafe impl Send for Pairs {}
// SAFETY: as above.
unsafe impl Sync for Pairs {}

impl Pairs {
    pub fn new(given: &[usize], taken: &[usize]) -> Pairs {
        let all: Box<[u64]> = vec![0; given.len() * given.len()].into();
        Pairs {
            given: given.iter().map(|&n| n as u64).collect(),
            all: Box::into_raw(all).cast(),
            taken: taken.into(),
        }
    }

    /// Input and output of the call that gathers them.
    pub fn buffers(&self) -> (*const u8, *mut u8) {
        (self.given.as_ptr().cast(), self.all.cast())
    }

    /// That call.
    pub fn call(&self) -> CallSpec {
        let collective = Collective::Allgather;
        CallSpec { collective, element: ElementType::U64, count: self.given.len(), operator: None, root: 0 }
    }

    fn len(&self) -> usize {
        self.given.len() * self.given.len()
    }

    /// All lengths, once they are gathered.
    fn counts(&self) -> Vec<usize> {
        // SAFETY: as long as it was made, and nobody writes to it after the call that gathers.
        let all = unsafe { std::slice::from_raw_parts(self.all, self.len()) };
        all.iter().map(|&n| n as usize).collect()
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw` with this length.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.all, self.len())) });
    }
}

/// A call that was started.
pub(crate) struct Job {
    pub call: CallSpec,
    pub lengths: Lengths,
    pub input: *const u8,
    pub output: *mut u8,
    pub ticket: Arc<Ticket>,
    /// Buffers that must live until it is over.
    pub keep: Option<Arc<dyn Any + Send + Sync>>,
    opening: Option<Opening>,
    work: Option<Work>,
}

/// What comes before a call's plans are known, where that depends on what ranks agree on.
struct Opening {
    comparison: Option<Comparison>,
    agreement: Option<Agreement>,
}

/// What is left to do of it.
struct Work {
    call: CallSpec,
    called: Called,
    windows: Windows,
    fold: Fold,
    /// To divide by at the end, how many elements and by what.
    scale: Option<(ScaleFn, usize, NonZeroU32)>,
    /// Bytes of input of which a copy is to be made, because no plan may run in place.
    copied: Option<usize>,
    /// Windows run in place, with a copy of each where its plan cannot.
    aliased: bool,
    lengths: Vec<usize>,
    comparison: Option<Comparison>,
    begun: bool,
    run: Option<(Run, Buffers)>,
}

impl Job {
    pub fn new(
        call: CallSpec,
        lengths: Lengths,
        buffers: (*const u8, *mut u8),
        ticket: Arc<Ticket>,
        keep: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Job {
        Job { call, lengths, input: buffers.0, output: buffers.1, ticket, keep, opening: None, work: None }
    }
}

impl Work {
    fn of(plan: CallPlan, output_scaled: Option<(ScaleFn, usize, NonZeroU32)>) -> Work {
        let CallPlan { call, called, windows, fold, copied, aliased, lengths, .. } = plan;
        Work {
            call,
            called,
            windows,
            fold,
            scale: output_scaled,
            copied,
            aliased,
            lengths,
            comparison: None,
            begun: false,
            run: None,
        }
    }
}

impl Engine {
    /// Carries the started calls on in their order: to their end, up to `until`, or to where one would have to wait.
    pub(super) fn carry_on(&mut self, mode: Mode, until: Option<&Ticket>, wakers: &mut Vec<Waker>) {
        if self.is_inherited() {
            // The parent carries them on.
            std::mem::take(&mut self.queue)
                .iter()
                .for_each(|job| job.ticket.finish(Err(Error::Forked), wakers));
            return;
        }
        while let Some(mut job) = self.queue.pop_front() {
            let mut outcome = self.advance(&mut job, mode);
            if matches!(outcome, Err(Stop::NotYet)) {
                let Err(interrupted) = self.look_around() else { return self.queue.push_front(job) };
                // What a rank did before it was lost counts.
                if self.watch.gives_way() {
                    outcome = self.advance(&mut job, mode);
                }
                match outcome {
                    Err(Stop::NotYet) => outcome = Err(Stop::Failed(self.interrupted(interrupted))),
                    Ok(()) | Err(Stop::Failed(_)) => self.watch.forgive(),
                }
            }
            self.looked = None;
            self.waited = Duration::ZERO;
            self.watch.settle();
            let Job { ticket, keep, work, lengths, .. } = job;
            // Before anybody hears of it: who does takes the buffers back.
            drop((keep, work, lengths));
            ticket.finish(outcome.map_err(Stop::into_error), wakers);
            if until.is_some_and(Ticket::is_done) {
                return;
            }
        }
    }

    /// Ends all started calls with an error: this rank will not carry them on.
    pub(super) fn abandon(&mut self, why: &str, wakers: &mut Vec<Waker>) {
        self.busy |= !self.queue.is_empty();
        if self.busy {
            self.watch.close();
        }
        self.failed.get_or_insert_with(|| why.to_owned());
        for job in std::mem::take(&mut self.queue) {
            let Job { ticket, keep, .. } = job;
            drop(keep);
            ticket.finish(Err(Error::Failed(why.to_owned())), wakers);
        }
    }

    /// Looks after the peers of a call that is only polled, now and then.
    fn look_around(&mut self) -> Result<(), Interrupted> {
        let now = Instant::now();
        let gap = now - *self.looked.get_or_insert(now);
        if gap < LOOK {
            return Ok(());
        }
        self.looked = Some(now);
        self.waited += gap.min(LONGEST_GAP);
        let waited = self.waited;
        self.watch.check(waited)
    }

    fn advance(&mut self, job: &mut Job, mode: Mode) -> Result<(), Stop> {
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
            job.work = Some(Work { begun: asks, ..work });
        }
        let Some(work) = &mut job.work else { return Ok(()) };
        if !work.begun {
            let called = work.called;
            self.begin(work.call.collective.name(), called)?;
            work.begun = true;
            if self.book().check {
                work.comparison = Some(Comparison::announce(self, &work.call, &work.lengths));
            }
        }
        if let Some(comparison) = &mut work.comparison {
            comparison.go_on(self, mode)?;
            work.comparison = None;
        }
        if let Some(bytes) = work.copied.take() {
            self.reserve_shadow(bytes)?;
            // SAFETY: who started the call vouches for the input.
            job.input = unsafe { self.shadow_copy(job.input, bytes) };
        }
        loop {
            if work.run.is_none() {
                let Some(window) = work.windows.now() else { break };
                let run = self.begin_run(window.plan, mode)?;
                let mut input = job.input.wrapping_add(window.at);
                if work.aliased && !self.runs_in_place(window.plan) {
                    // SAFETY: as above; windows lie within the input.
                    input = unsafe { self.shadow_copy(input, window.bytes) };
                }
                let output = job.output.wrapping_add(window.at);
                work.run = Some((run, Buffers { input, output, fold: work.fold }));
            }
            if let Some((run, buffers)) = &mut work.run {
                // SAFETY: who started the call vouches for the buffers, within which windows stay; all ranks carry out the
                // same calls in the same order, and this one nothing else before this call is over.
                unsafe { self.go_on(run, *buffers, mode) }?;
            }
            work.run = None;
            work.windows.advance();
        }
        if let Some((scale, elements, by)) = work.scale {
            // SAFETY: the output holds that many elements of the call's type.
            unsafe { scale(job.output, elements, by) };
        }
        self.end();
        Ok(())
    }

    /// Begins a call that asks, compares it, and hears what the others say of their buffers.
    fn open(&mut self, job: &mut Job, counts: Option<&[usize]>, mode: Mode) -> Result<Agreed, Stop> {
        let (input, output) = (job.input, job.output);
        let preface = self.preface(&job.call, counts, input, output)?;
        let opening = match &mut job.opening {
            Some(opening) => opening,
            None => {
                let Preface { call, lengths, .. } = &preface;
                let called = call.called(self.reproducible()).of_blocks(lengths);
                self.begin(call.collective.name(), called)?;
                let comparison = self.book().check.then(|| Comparison::announce(self, call, lengths));
                job.opening.insert(Opening { comparison, agreement: None })
            }
        };
        if let Some(comparison) = &mut opening.comparison {
            comparison.go_on(self, mode)?;
            opening.comparison = None;
        }
        let agreement = match &mut opening.agreement {
            Some(agreement) => agreement,
            None => opening.agreement.insert(self.ask(&preface, input, output)),
        };
        self.hear(agreement, mode)
    }

    /// The lengths of a call's blocks, in elements, where they are given one by one.
    fn counts_of(&self, job: &Job) -> Result<Option<Arc<[usize]>>, Error> {
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

    fn make_work(&mut self, job: &Job, counts: Option<&[usize]>, agreed: Agreed) -> Result<Work, Error> {
        let (input, output) = (job.input, job.output);
        let plan = match counts {
            None => self.plan_call(&job.call, input, output, agreed)?,
            Some(counts) => self.plan_uneven(&job.call, counts, input, output, agreed)?,
        };
        let by = contributions(job.call.collective, self.rank(), self.ranks());
        let scale = plan.scale.map(|(scale, elements)| (scale, elements, by));
        Ok(Work::of(plan, scale))
    }
}

/// A window to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub plan: PlanId,
    /// Where it begins, in every block.
    pub at: usize,
    pub bytes: usize,
}
