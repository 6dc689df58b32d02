//! Running one window: banks are entered and left here.

use super::{Buffers, Engine, Mode, PlanId, Stop};
use crate::called::Key;
use crate::compile::{ACC, BANK, IN, OUT};
use crate::error::Error;
use crate::execute::{execute, Blocking, Frame, Polling};
use crate::ring;
use crate::segment::{BankClass, Unwinding};

/// The bank that the last plan ran in, while it may be run there again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub plan: PlanId,
    pub class: BankClass,
    /// Uses of the ring up to and including this one.
    pub uses: u64,
    pub bank: *mut u8,
    /// Runs in this bank so far.
    pub runs: u64,
    /// Of the call that runs there, where ranks may be in several runs at once.
    key: Option<Key>,
}

impl Stay {
    /// Whether a run of a call with this key goes on in the bank. A plan whose ranks may be some runs apart waits for flags of
    /// several runs, which must have one key.
    #[inline(always)]
    fn is_for(&self, plan: PlanId, key: Key) -> bool {
        self.plan == plan && self.key.is_none_or(|of| of == key)
    }
}

/// Where a run has its flags and its slots.
#[derive(Clone, Copy, Debug)]
struct Place {
    bank: *mut u8,
    /// The bank as slots are counted from.
    slots: *mut u8,
    /// The bank of the next run, where runs take turns.
    next: *mut u8,
}

impl Place {
    fn fixed(bank: *mut u8) -> Place {
        Place { bank, slots: bank, next: bank }
    }
}

/// A run that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    plan: PlanId,
    place: Place,
    /// Runs of the plan in this bank before it.
    earlier: u64,
    /// The next step.
    step: usize,
    /// The mark of its flags.
    key: Key,
    /// It has taken addresses of other ranks' buffers.
    visits: bool,
}

impl Engine {
    /// Runs a plan within a call.
    ///
    /// # Safety
    /// As for [`Engine::run`].
    #[inline(always)]
    pub(crate) unsafe fn run_window(&mut self, id: PlanId, buffers: Buffers) -> Result<(), Error> {
        let key = Key::new(self.history, self.plans[id.0 as usize].digest);
        let (Place { bank, slots, next }, earlier) = match &mut self.stay {
            Some(stay) if stay.is_for(id, key) => {
                let earlier = stay.runs;
                stay.runs += 1;
                let generation = (earlier % 2) as usize * self.plans[id.0 as usize].generations;
                (Place::fixed(stay.bank.wrapping_add(generation)), earlier)
            }
            _ => match self.enter(id, key, Mode::Block) {
                Ok(place) => (place, 0),
                Err(stop) => return Err(stop.into_error()),
            },
        };
        let Engine { plans, bases, waiter, watch, segment, rank, .. } = self;
        let unwinding = Unwinding { segment, rank: *rank, order: waiter.order() };
        let plan = &plans[id.0 as usize];
        bases[IN as usize] = buffers.input.cast_mut();
        bases[OUT as usize] = buffers.output;
        bases[ACC as usize] = self.scratch.start();
        bases[BANK as usize] = slots;
        let mut frame = Frame {
            bases,
            bank,
            next,
            counters: self.counters_start,
            heaps: &self.heaps.known,
            base: self.base + key.of_flags(),
            key,
            earlier,
            fold: buffers.fold,
            copy: self.copy.for_message(plan.message),
            room: self.reach_room.start(),
            unreached: None,
        };
        // SAFETY: proven when prepared; the caller vouches for the buffers and the order of runs.
        let outcome = unsafe { execute(plan, 0, &mut frame, &mut Blocking { waiter, vigil: watch }) };
        std::mem::forget(unwinding);
        watch.end_visit();
        if let Err((_, interrupted)) = outcome {
            if let Some((peer, why)) = frame.unreached {
                return Err(self.unreached(peer, why));
            }
            return Err(self.interrupted(interrupted));
        }
        self.leave(id, earlier);
        Ok(())
    }

    /// Takes a bank for a run that [`Engine::go_on`] carries out, as soon as there is one.
    pub(super) fn begin_run(&mut self, id: PlanId, mode: Mode) -> Result<Run, Stop> {
        let key = Key::new(self.history, self.plans[id.0 as usize].digest);
        if let Some(stay) = self.stay.as_mut().filter(|stay| stay.is_for(id, key)) {
            let earlier = stay.runs;
            stay.runs += 1;
            let generation = (earlier % 2) as usize * self.plans[id.0 as usize].generations;
            let place = Place::fixed(stay.bank.wrapping_add(generation));
            return Ok(Run { plan: id, place, earlier, step: 0, key, visits: false });
        }
        Ok(Run { plan: id, place: self.enter(id, key, mode)?, earlier: 0, step: 0, key, visits: false })
    }

    /// Carries a run on: to its end, or to where it would have to wait. Nothing else may be run in between.
    ///
    /// # Safety
    /// As for [`Engine::run`], until the run is over.
    pub(super) unsafe fn go_on(&mut self, run: &mut Run, buffers: Buffers, mode: Mode) -> Result<(), Stop> {
        if run.visits {
            self.watch.visit().map_err(|interrupted| Stop::Failed(self.interrupted(interrupted)))?;
        }
        let Engine { plans, bases, waiter, watch, segment, rank, .. } = self;
        let unwinding = Unwinding { segment, rank: *rank, order: waiter.order() };
        let plan = &plans[run.plan.0 as usize];
        bases[IN as usize] = buffers.input.cast_mut();
        bases[OUT as usize] = buffers.output;
        bases[ACC as usize] = self.scratch.start();
        bases[BANK as usize] = run.place.slots;
        let mut frame = Frame {
            bases,
            bank: run.place.bank,
            next: run.place.next,
            counters: self.counters_start,
            heaps: &self.heaps.known,
            base: self.base + run.key.of_flags(),
            key: run.key,
            earlier: run.earlier,
            fold: buffers.fold,
            copy: self.copy.for_message(plan.message),
            room: self.reach_room.start(),
            unreached: None,
        };
        // SAFETY: proven when prepared; the caller vouches for the buffers and the order of runs; peers' bases are those that
        // this run has taken so far.
        let outcome = unsafe {
            match mode {
                Mode::Block => execute(plan, run.step, &mut frame, &mut Blocking { waiter, vigil: watch })
                    .map_err(|(step, interrupted)| (step, Some(interrupted))),
                Mode::Poll => execute(plan, run.step, &mut frame, &mut Polling { waiter, watch }),
            }
        };
        std::mem::forget(unwinding);
        run.visits = watch.end_visit();
        let unreached = frame.unreached;
        match outcome {
            Ok(()) => {
                self.leave(run.plan, run.earlier);
                self.waited = std::time::Duration::ZERO;
                Ok(())
            }
            Err((_, Some(interrupted))) => Err(Stop::Failed(match unreached {
                Some((peer, why)) => self.unreached(peer, why),
                None => self.interrupted(interrupted),
            })),
            Err((step, None)) => {
                if run.step != step {
                    self.waited = std::time::Duration::ZERO;
                }
                run.step = step;
                Err(Stop::NotYet)
            }
        }
    }

    /// After a run: counts it, and gives up the bank unless the plan stays.
    #[inline(always)]
    fn leave(&mut self, id: PlanId, earlier: u64) {
        let plan = &mut self.plans[id.0 as usize];
        plan.runs += 1;
        self.base += plan.span;
        let class = plan.class;
        if plan.synchronizing && earlier == 0 {
            // Everybody has entered this plan, so everybody has left all that came before it.
            for other in [BankClass::Small, BankClass::Large] {
                let ring = &mut self.rings[other.index()];
                ring.learn(ring.uses().saturating_sub(u64::from(other == class)));
            }
        }
        if !plan.stays {
            self.publish_left(class, self.rings[class.index()].uses());
        }
    }

    #[inline(always)]
    pub(super) fn publish_left(&self, class: BankClass, uses: u64) {
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        let left = unsafe { &*self.left[class.index()] };
        // The waking form of `ring::leave`: peers may sleep until this rank has left.
        self.waiter.raise(left, uses, self.home.sleepers());
    }

    /// Leaves the last plan's bank and takes the next one for `id`.
    #[inline(always)]
    fn enter(&mut self, id: PlanId, key: Key, mode: Mode) -> Result<Place, Stop> {
        self.cool();
        if let Some(stay) = self.stay.take() {
            self.publish_left(stay.class, stay.uses);
        }
        let (class, stays, own, slots, counts) = {
            let plan = &self.plans[id.0 as usize];
            (plan.class, plan.stays, plan.extent, plan.walks, plan.counts)
        };
        let walk = if slots > 0 && self.book.walk { self.walk.bytes } else { 0 };
        let extent = if walk > slots { own - slots + walk } else { own };
        let bank = self.rings[class.index()].next();
        if !self.reserved.covers(class, bank, extent, counts) {
            self.reserve(class, bank, extent, counts, mode)?;
        }
        if let Some(need) = self.rings[class.index()].needs() {
            self.await_left(class, need, mode)?;
        }
        let ring = &mut self.rings[class.index()];
        let bank = ring.enter();
        let uses = ring.uses();
        let next = self.banks[class.index()][ring.next() as usize];
        let step = if walk > slots { self.walk.step(bank, slots) } else { 0 };
        if !self.plans[id.0 as usize].mapped.covers(class, bank, own + step) {
            self.map_ahead(id, bank, own + step);
        }
        let bank = self.banks[class.index()][bank as usize];
        if stays {
            let key = Some(key).filter(|_| self.plans[id.0 as usize].generations == 0);
            self.stay = Some(Stay { plan: id, class, uses, bank, runs: 1, key });
        }
        Ok(Place { bank, slots: bank.wrapping_add(step), next })
    }

    /// Waits until every rank has left all uses below `need`. Ranks that share CPUs wait for half of the ring once they have to wait
    /// at all: who has run so far ahead holds nobody up, and a CPU that is handed over in every call costs more than the calls.
    #[cold]
    fn await_left(&mut self, class: BankClass, need: u64, mode: Mode) -> Result<(), Stop> {
        let me = self.rank;
        let others = (0..self.ranks()).filter(move |&q| q != me);
        let lag = others.clone().any(|q| ring::left(self.segment.left(q, class)) < need);
        let ahead = self.rings[class.index()].half();
        let need =
            if lag && mode == Mode::Block && self.waiter.budget().crowded { need + ahead } else { need };
        let mut least = u64::MAX;
        for q in others {
            self.await_word(|s| s.left(q, class), q, need, mode)?;
            least = least.min(ring::left(self.segment.left(q, class)));
        }
        self.rings[class.index()].learn(least.min(self.rings[class.index()].uses()));
        Ok(())
    }
}
