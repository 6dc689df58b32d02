//! Running one window: banks are entered and left here.

use super::banks::{BankPlace, BankResidency};
use super::call_plan::{Left, MessageWindow, Run};
use super::run::{Buffers, Mode, Stop};
use super::state::Engine;
use super::transport::Transport;
use crate::compile::{MessageSpan, PlanId, ACC, BANK, IN, OUT};
use crate::error::Error;
use crate::execute::{execute, Blocking, Frame, Polling};
use crate::ring;
use crate::segment::{BankClass, Unwinding};
use crate::signature::CallKey;

impl Engine {
    /// Runs a plan within a call.
    ///
    /// # Safety
    /// The conditions of [`Engine::run`].
    #[inline(always)]
    pub(crate) unsafe fn run_window(
        &mut self,
        id: PlanId,
        span: MessageSpan,
        buffers: Buffers,
    ) -> Result<(), Error> {
        let mut run = match self.begin_run(id, span, Mode::Block) {
            Ok(run) => run,
            Err(stop) => return Err(stop.into_error()),
        };
        // SAFETY: passed on.
        match unsafe { self.go_on(&mut run, buffers, Mode::Block) } {
            Ok(()) => Ok(()),
            Err(stop) => Err(stop.into_error()),
        }
    }

    /// Runs what is left of a call's windows: to the end, or to where it would have to wait, from where it goes on the next time.
    ///
    /// # Safety
    /// The caller vouches for `input` and `output` of the whole call until it is over. All ranks carry out the same calls in the same order.
    #[inline(always)]
    pub(super) unsafe fn run_windows(
        &mut self,
        left: &mut Left,
        input: *const u8,
        output: *mut u8,
        mode: Mode,
    ) -> Result<(), Stop> {
        loop {
            if left.run.is_none() {
                let Some(MessageWindow { plan, at, span }) = left.windows.now() else { return Ok(()) };
                if let Some((blocks, window)) = left.windows.blocks() {
                    self.plans[plan].cut_to(blocks, window);
                }
                let run = self.begin_run(plan, span, mode)?;
                // A null buffer is one that the plan does not touch.
                let (mut input, output) = (input.wrapping_add(at), output.wrapping_add(at));
                if left.aliased && !self.runs_in_place(plan) {
                    // SAFETY: windows lie within the input, which the caller vouches for.
                    input = unsafe { self.shadow_copy(input, span.bytes) };
                }
                left.run = Some((run, Buffers { input, output, fold: left.fold }));
            }
            if let Some((run, buffers)) = &mut left.run {
                let step = run.step;
                // SAFETY: as above, for the output too; nothing else is run before this window is over.
                let outcome = unsafe { self.go_on(run, *buffers, mode) };
                if mode == Mode::Poll && (outcome.is_ok() || run.step != step) {
                    self.started.rounds.go_on();
                }
                outcome?;
            }
            left.run = None;
            left.windows.advance();
        }
    }

    /// Takes a bank for a run that [`Engine::go_on`] carries out, as soon as there is one.
    #[inline(always)]
    pub(super) fn begin_run(&mut self, id: PlanId, span: MessageSpan, mode: Mode) -> Result<Run, Stop> {
        let plan = &mut self.plans[id];
        plan.cut(span);
        let key = self.calls.key(plan.digest);
        let (place, earlier) = match self.banks.resume_in_bank(id, key, plan.need.generations) {
            Some(there) => there,
            None => (self.enter(id, key, mode)?, 0),
        };
        Ok(Run { plan: id, place, earlier, step: 0, key, visits: false })
    }

    /// Carries a run on: to its end, or to where it would have to wait. Nothing else may be run in between.
    ///
    /// # Safety
    /// The conditions of [`Engine::run`] hold until the run is over.
    #[inline(always)]
    pub(super) unsafe fn go_on(&mut self, run: &mut Run, buffers: Buffers, mode: Mode) -> Result<(), Stop> {
        if run.visits {
            self.transport
                .watch
                .visit()
                .map_err(|interrupted| Stop::Failed(self.interrupted(interrupted)))?;
        }
        let Engine { plans, banks, heaps, calls, transport, segment, rank, .. } = self;
        let Transport { waiter, watch, copy } = transport;
        let unwinding = Unwinding { segment, rank: *rank, order: waiter.order() };
        let (acc, room) = (plans.scratch.start(), plans.reach_room.start());
        let (plan, bases) = plans.at_work(run.plan);
        bases[IN as usize] = buffers.input.cast_mut();
        bases[OUT as usize] = buffers.output;
        bases[ACC as usize] = acc;
        bases[BANK as usize] = run.place.slots;
        let mut frame = Frame {
            bases,
            bank: run.place.bank,
            next: run.place.next,
            counters: banks.counters.wrapping_add(plan.word()),
            heaps: &heaps.known,
            base: calls.base + run.key.of_flags(),
            key: run.key,
            earlier: run.earlier,
            fold: buffers.fold,
            copy: copy.for_message(plan.message),
            room,
            unreached: None,
        };
        // SAFETY: proven when prepared; the caller vouches for the buffers and the order of runs; peers' bases are those that
        // this run has taken so far.
        let outcome = unsafe {
            match mode {
                Mode::Block => execute(plan, run.step, &mut frame, &mut Blocking { waiter, monitor: watch })
                    .map_err(|(step, interrupted)| (step, Some(interrupted))),
                Mode::Poll => execute(plan, run.step, &mut frame, &mut Polling { waiter, watch }),
            }
        };
        std::mem::forget(unwinding);
        run.visits = watch.end_visit();
        let Err((step, interrupted)) = outcome else {
            self.leave(run);
            return Ok(());
        };
        run.step = step;
        let Some(interrupted) = interrupted else { return Err(Stop::NotYet) };
        Err(Stop::Failed(match frame.unreached {
            Some((peer, why)) => self.unreached(peer, why),
            None => self.interrupted(interrupted),
        }))
    }

    /// Counts a run that has ended, and gives up the bank unless the plan stays.
    #[inline(always)]
    fn leave(&mut self, run: &Run) {
        let plan = &mut self.plans[run.plan];
        if plan.need.counts {
            plan.count(run.key);
        }
        self.calls.base += plan.span;
        if plan.synchronizing && run.earlier == 0 {
            self.banks.observe_all_entered(plan.need.class);
        }
        if !plan.need.stays {
            self.banks.leave(plan.need.class, &self.transport.waiter);
        }
    }

    /// Leaves the last plan's bank and takes the next one for `id`.
    #[inline(always)]
    fn enter(&mut self, id: PlanId, key: CallKey, mode: Mode) -> Result<BankPlace, Stop> {
        self.cool();
        self.banks.end_residency(&self.transport.waiter);
        let (class, stays, own, slots, counts) = {
            let need = &self.plans[id].need;
            (need.class, need.stays, need.extent, need.walks, need.counts)
        };
        let walks = slots > 0 && self.selector.walk && self.banks.walk.bytes > slots;
        let bank = self.banks.rings[class.index()].next();
        let extent = if walks { own - slots + self.banks.walk.stretch(bank, slots) } else { own };
        if !self.banks.reserved.covers(class, bank, extent, counts) {
            self.reserve(class, bank, extent, counts, mode)?;
        }
        if let Some(need) = self.banks.rings[class.index()].needs() {
            self.await_left(class, need, mode)?;
        }
        let ring = &mut self.banks.rings[class.index()];
        let bank = ring.enter();
        let uses = ring.uses();
        let next = self.banks.starts[class.index()][ring.next() as usize];
        let step = if walks { self.banks.walk.step(bank, slots) } else { 0 };
        if !self.plans[id].need.mapped.covers(class, bank, own + step) {
            self.map_ahead(id, bank, own + step);
        }
        let bank = self.banks.starts[class.index()][bank as usize];
        if stays {
            let key = Some(key).filter(|_| self.plans[id].need.generations == 0);
            self.banks.residency = Some(BankResidency { plan: id, class, uses, bank, runs: 1, key });
        }
        Ok(BankPlace { bank, slots: bank.wrapping_add(step), next })
    }

    /// Waits until every rank has left all uses below `need`. Ranks that share CPUs wait for half of the ring once they have to wait
    /// at all: who has run so far ahead holds nobody up, and a CPU that is handed over in every call costs more than the calls.
    #[cold]
    fn await_left(&mut self, class: BankClass, need: u64, mode: Mode) -> Result<(), Stop> {
        let me = self.rank;
        let others = (0..self.ranks()).filter(move |&q| q != me);
        let lag = others.clone().any(|q| ring::left(self.segment.left(q, class)) < need);
        let ahead = self.banks.rings[class.index()].half();
        let need = if lag && mode == Mode::Block && self.transport.waiter.budget().crowded {
            need + ahead
        } else {
            need
        };
        let mut least = u64::MAX;
        for q in others {
            self.await_word(|s| s.left(q, class), q, need, mode)?;
            least = least.min(ring::left(self.segment.left(q, class)));
        }
        self.banks.rings[class.index()].learn(least.min(self.banks.rings[class.index()].uses()));
        Ok(())
    }
}
