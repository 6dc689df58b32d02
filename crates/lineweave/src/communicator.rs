//! One rank's end of a team: plans are proven and compiled here, and run.

use crate::check::CallSpec;
use crate::choose::Book;
use crate::compile::{self, Compiled, Home, Swap, ACC, BANK, IN, OUT};
use crate::error::{Error, Loss};
use crate::execute::{execute, Frame};
use crate::flag::WakeFence;
use crate::kernel::{load_words, store_words, Copier, CopyPolicy, FoldFn};
use crate::ring::{self, Ring};
use crate::scratch::Scratch;
use crate::segment::{BankClass, Geometry, RankState, Segment};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::{Budget, Interrupted, ProgressHook, Waiter};
use crate::watch::Watch;
use lineweave_core::plan::Plan;
use lineweave_core::verify::{self, Proof};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A plan that was proven and compiled on this communicator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlanId(pub(crate) u32);

/// Where one call's data is. Null and 0 where a rank has none.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Start of `in`.
    pub input: *const u8,
    /// Start of `out`.
    pub output: *mut u8,
    /// Combines elements, for plans that fold.
    pub fold: FoldFn,
}

impl Buffers {
    /// No data: for a barrier.
    pub const NONE: Buffers =
        Buffers { input: std::ptr::null(), output: std::ptr::null_mut(), fold: no_fold };
}

/// For plans without folds.
///
/// # Safety
/// None: it does nothing.
unsafe fn no_fold(_: *const u8, _: *const u8, _: *mut u8, _: usize) {}

/// The bank that the last plan ran in, while it may be run there again.
#[derive(Clone, Copy, Debug)]
struct Stay {
    plan: PlanId,
    class: BankClass,
    /// Uses of the ring up to and including this one.
    uses: u64,
    bank: *mut u8,
    /// Runs in this bank so far.
    runs: u64,
}

/// An exchange of two flags in the bank where it ran last: with nothing else to decide, a two-rank barrier is one
/// store and one wait. The line must go back to the peer at once: a few nanoseconds between leaving one barrier and entering
/// the next let the peer's poll take the line, which costs a transfer more (75-85 ns instead of 42-48 on a
/// 2-CPU Zen 3 VM).
#[derive(Clone, Copy, Debug)]
struct Hot {
    plan: PlanId,
    /// Whether it is what `barrier` runs.
    barrier: bool,
    mine: *const AtomicU64,
    home: Home,
    value: u64,
    theirs: *const AtomicU64,
    their_home: Home,
    wanted: u64,
    span: u64,
}

/// A small allreduce of two ranks in the bank where it ran last: as for [`Hot`], what lies between two calls
/// decides whether one costs one line transfer or two.
#[derive(Clone, Copy, Debug)]
struct HotSwap {
    call: CallSpec,
    plan: PlanId,
    swap: Swap,
    fold: FoldFn,
    generation: usize,
    span: u64,
}

/// A payload of one word, aligned for every element type.
#[repr(align(8))]
struct Word([u8; 8]);

/// How a communicator is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How to wait.
    pub budget: Budget,
    /// The longest wait, if there is a limit.
    pub timeout: Option<Duration>,
    /// How to copy.
    pub copy: CopyPolicy,
}

/// One rank's end of a team of threads or processes. It belongs to the thread that uses it.
#[derive(Debug)]
pub struct Communicator {
    segment: Arc<Segment>,
    rank: usize,
    plans: Vec<Compiled>,
    /// Ids of plans that were given up.
    vacant: Vec<PlanId>,
    rings: [Ring; 2],
    /// Rank 0's part of every bank, by class.
    banks: [Vec<*mut u8>; 2],
    counters_start: *mut u8,
    /// This rank's `left` of each class, and the home that waits for it.
    left: [*const AtomicU64; 2],
    home: Home,
    stay: Option<Stay>,
    /// Set while the plan that stays is a two-rank barrier, last called as such.
    hot: Option<Hot>,
    /// Set while the last allreduce was a swap of payloads.
    hot_swap: Option<HotSwap>,
    /// Every flag set by earlier runs is at most this.
    base: u64,
    counters: usize,
    bases: Vec<*mut u8>,
    scratch: Scratch,
    /// A copy of `in`, when a plan cannot run in place and the caller does.
    shadow: Scratch,
    waiter: Waiter,
    watch: Watch,
    copy: Copier,
    sequence: u64,
    /// Where peers read it.
    sequence_word: *const AtomicU64,
    book: Book,
    /// In a call; dropping the communicator now is a failure that peers are told of.
    busy: bool,
    failed: Option<String>,
}

// SAFETY: the raw pointers point into the segment, which the communicator keeps alive, or are scratch of a
// run under way; nothing in it is tied to the thread that made it.
unsafe impl Send for Communicator {}

impl Communicator {
    /// Joins a segment as `rank`, once every other rank has.
    ///
    /// # Errors
    /// [`Error::Memory`] when the rank's area cannot be reserved; [`Error::Timeout`] when other ranks have not
    /// joined within `patience`.
    pub(crate) fn join(
        segment: Arc<Segment>,
        rank: usize,
        options: Options,
        book: Book,
        patience: Duration,
    ) -> Result<Communicator, Error> {
        let claimed = segment.claim(rank);
        let able = crate::sync::register_membarrier();
        if claimed.is_err() {
            segment.set_failed(rank, Loss::Failed);
        }
        segment.join(rank, able);
        claimed?;
        let start = Instant::now();
        while segment.joined() < segment.ranks() {
            if let Some((lost, _)) = segment.failed() {
                return Err(Error::Failed(format!("rank {lost} could not join")));
            }
            if start.elapsed() > patience {
                let absent: Vec<String> = (0..segment.ranks())
                    .filter(|&q| segment.state(q) == RankState::Absent)
                    .map(|q| q.to_string())
                    .collect();
                return Err(Error::Timeout {
                    waiting: rank,
                    operation: "joining the team".into(),
                    sequence: 0,
                    missing: format!("rank {}", absent.join(", ")),
                    seconds: patience.as_secs_f64(),
                });
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        let order = if segment.all_able() { WakeFence::Membarrier } else { WakeFence::Full };
        Ok(Communicator {
            rank,
            plans: Vec::new(),
            vacant: Vec::new(),
            banks: [BankClass::Small, BankClass::Large]
                .map(|c| (0..Geometry::banks(c)).map(|b| segment.bank(c, b)).collect()),
            counters_start: segment.counters(),
            left: [BankClass::Small, BankClass::Large].map(|c| std::ptr::from_ref(segment.left(rank, c))),
            home: Home::of(&segment, rank),
            rings: [BankClass::Small, BankClass::Large].map(|c| Ring::new(Geometry::banks(c) as u64)),
            stay: None,
            hot: None,
            hot_swap: None,
            base: 0,
            counters: 0,
            bases: vec![std::ptr::null_mut(); compile::PEERS as usize],
            scratch: Scratch::default(),
            shadow: Scratch::default(),
            waiter: Waiter::new(options.budget, order),
            watch: Watch::new(Arc::clone(&segment), rank, options.timeout),
            copy: Copier::new(options.copy),
            sequence: 0,
            sequence_word: segment.sequence(rank),
            book,
            busy: false,
            failed: None,
            segment,
        })
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.segment.ranks()
    }

    /// Sets a function to be called while this rank waits, so that a host library can progress.
    pub fn set_progress_hook(&mut self, hook: Option<ProgressHook>) {
        self.waiter.set_hook(hook);
    }

    /// Changes how this rank waits.
    pub fn set_wait_budget(&mut self, budget: Budget) {
        self.waiter.set_budget(budget);
    }

    /// How this rank waits.
    pub fn wait_budget(&self) -> Budget {
        self.waiter.budget()
    }

    /// Changes how this rank copies.
    pub fn set_copy_policy(&mut self, copy: CopyPolicy) {
        self.copy = Copier::new(copy);
    }

    /// The memory that the team shares.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

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
        let no_plan = |why: String| Error::NoPlan {
            collective: plan.collective,
            bytes: plan.bytes,
            ranks: plan.ranks,
            why: format!("{}: {why}", plan.name()),
        };
        if plan.ranks != self.ranks() {
            return Err(no_plan(format!("it is for {} ranks and the team has {}", plan.ranks, self.ranks())));
        }
        let compiled = compile::compile(plan, proof, self.rank, &self.segment, &mut self.counters)
            .map_err(|unfit| no_plan(unfit.to_string()))?;
        self.scratch.grow(compiled.acc)?;
        if self.bases.len() < compiled.bases {
            self.bases.resize(compiled.bases, std::ptr::null_mut());
        }
        if let Some(id) = self.vacant.pop() {
            self.plans[id.0 as usize] = compiled;
            return Ok(id);
        }
        self.plans.push(compiled);
        Ok(PlanId(self.plans.len() as u32 - 1))
    }

    /// Gives plans up that will not be run again. Every rank must give up the same between the same calls.
    pub(crate) fn give_up(&mut self, plans: impl Iterator<Item = PlanId>) {
        self.cool();
        for id in plans {
            if let Some(stay) = self.stay.filter(|stay| stay.plan == id) {
                self.stay = None;
                self.publish_left(stay.class, stay.uses);
            }
            self.plans[id.0 as usize].steps = Box::new([]);
            self.vacant.push(id);
        }
    }

    /// Makes room for running a plan of `bytes` bytes in place although it cannot.
    pub(crate) fn reserve_shadow(&mut self, bytes: usize) -> Result<(), Error> {
        self.shadow.grow(bytes)
    }

    /// Whether `in` and `out` of a plan may be one buffer.
    pub(crate) fn runs_in_place(&self, plan: PlanId) -> bool {
        self.plans[plan.0 as usize].in_place
    }

    /// A private copy of `bytes` bytes of input.
    ///
    /// # Safety
    /// `input` must be valid for `bytes` bytes.
    pub(crate) unsafe fn shadow_copy(&mut self, input: *const u8, bytes: usize) -> *const u8 {
        debug_assert!(bytes <= self.shadow.len());
        // SAFETY: the caller vouches for the source; the shadow was grown to `bytes` and is private.
        unsafe { std::ptr::copy_nonoverlapping(input, self.shadow.start(), bytes) };
        self.shadow.start()
    }

    /// Begins a call: numbers it and lets peers see the number.
    #[inline(always)]
    pub(crate) fn begin(&mut self, operation: &'static str) -> Result<(), Error> {
        if let Some(why) = &self.failed {
            return Err(Error::Failed(why.clone()));
        }
        self.hot = None;
        self.sequence += 1;
        self.busy = true;
        self.watch.operation = operation;
        // Relaxed: peers read it only for messages, or after the acquire of this rank's final state.
        self.own_sequence().store(self.sequence, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets how to repeat the last call, because another plan is to carry it out.
    pub(crate) fn cool(&mut self) {
        self.hot = None;
        self.hot_swap = None;
    }

    /// Runs the barrier that was called last once more, if that is all there is to do.
    #[inline(always)]
    pub(crate) fn repeat_barrier(&mut self) -> Option<Result<(), Error>> {
        if !self.hot.as_ref()?.barrier {
            return None;
        }
        self.repeat_exchange()
    }

    /// By reference throughout: copying the addresses about costs as much as the barrier may.
    #[inline(always)]
    fn repeat_exchange(&mut self) -> Option<Result<(), Error>> {
        let hot = self.hot.as_ref()?;
        self.sequence += 1;
        // SAFETY: the sequence word, and flags of the bank that the plan stays in, in the segment that this
        // communicator keeps mapped.
        let (published, mine, theirs) = unsafe { (&*self.sequence_word, &*hot.mine, &*hot.theirs) };
        // Relaxed: as in `begin`.
        published.store(self.sequence, Ordering::Relaxed);
        let (value, wanted) = (self.base + hot.value, self.base + hot.wanted);
        let sleepers = hot.their_home.sleepers();
        self.base += hot.span;
        self.waiter.raise(mine, value, hot.home.sleepers());
        match self.waiter.wait(theirs, wanted, sleepers, &mut self.watch) {
            Ok(()) => Some(Ok(())),
            Err(interrupted) => Some(Err(self.interrupted(interrupted))),
        }
    }

    /// Prepares [`Communicator::repeat_exchange`] after a run; `barrier` when it was called as one.
    #[inline(always)]
    pub(crate) fn keep_exchange(&mut self, barrier: bool) {
        let Some(stay) = self.stay else { return };
        let plan = &self.plans[stay.plan.0 as usize];
        let flag = |at: usize| stay.bank.wrapping_add(at).cast_const().cast::<AtomicU64>();
        self.hot = plan.exchange().map(|e| Hot {
            plan: stay.plan,
            barrier,
            mine: flag(e.at),
            home: e.home,
            value: u64::from(e.value),
            theirs: flag(e.other),
            their_home: e.theirs,
            wanted: u64::from(e.wanted),
            span: plan.span,
        });
    }

    /// Runs the allreduce that ran last once more, if it is a swap of payloads and its bank is free.
    ///
    /// # Safety
    /// As for [`Communicator::call`].
    #[inline(always)]
    pub(crate) unsafe fn repeat_swap(
        &mut self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
    ) -> Option<Result<(), Error>> {
        let hot = self.hot_swap.as_ref().filter(|hot| hot.call == *call)?;
        let stay = self.stay.as_mut().filter(|stay| stay.plan == hot.plan)?;
        let swap = &hot.swap;
        let apart = (input as usize).abs_diff(output as usize);
        if apart != 0 && apart < swap.bytes {
            return None;
        }
        self.sequence += 1;
        self.watch.operation = call.collective.name();
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        let published = unsafe { &*self.sequence_word };
        // Relaxed: as in `begin`.
        published.store(self.sequence, Ordering::Relaxed);
        let bank = stay.bank.wrapping_add((stay.runs % 2) as usize * hot.generation);
        stay.runs += 1;
        // SAFETY: flags, and the payload word beside each, of the bank that the plan stays in, in the segment
        // that this communicator keeps mapped.
        let words = |at: usize| unsafe { std::slice::from_raw_parts(bank.add(at).cast::<AtomicU64>(), 2) };
        let (mine, theirs) = (words(swap.at), words(swap.other));
        // SAFETY: the caller vouches for `input`.
        store_words(&mine[1..], unsafe { std::slice::from_raw_parts(input, swap.bytes) });
        self.waiter.raise(&mine[0], self.base + u64::from(swap.value), swap.home.sleepers());
        let wanted = self.base + u64::from(swap.wanted);
        self.base += hot.span;
        let waited = self.waiter.wait(&theirs[0], wanted, swap.theirs.sleepers(), &mut self.watch);
        if let Err(interrupted) = waited {
            return Some(Err(self.interrupted(interrupted)));
        }
        let mut taken = Word([0; 8]);
        load_words(&theirs[1..], &mut taken.0[..swap.bytes]);
        let taken = taken.0.as_ptr();
        let (a, b) = if swap.left { (input, taken) } else { (taken, input) };
        // SAFETY: the caller vouches for both buffers, and they are disjoint or one; the operands are at least
        // as long as the message, and a `Word` is aligned for every element type.
        unsafe { (hot.fold)(a, b, output, swap.elements) };
        Some(Ok(()))
    }

    /// Prepares [`Communicator::repeat_swap`] after a call that ran `plan` alone.
    pub(crate) fn keep_swap(&mut self, call: &CallSpec, plan: PlanId, fold: FoldFn) {
        let compiled = &self.plans[plan.0 as usize];
        let (generation, span) = (compiled.generations, compiled.span);
        self.hot_swap =
            compiled.swap().map(|swap| HotSwap { call: *call, plan, swap, fold, generation, span });
    }

    #[inline(always)]
    fn own_sequence<'a>(&self) -> &'a AtomicU64 {
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        unsafe { &*self.sequence_word }
    }

    /// Ends a call that [`Communicator::begin`] began.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.busy = false;
    }

    pub(crate) fn book(&self) -> &Book {
        &self.book
    }

    pub(crate) fn book_mut(&mut self) -> &mut Book {
        &mut self.book
    }

    /// The number of the call under way.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits on a flag word that this communicator's peers write outside plans.
    pub(crate) fn wait_word(
        &mut self,
        word: impl Fn(&Segment) -> &crate::sync::AtomicU64,
        home: usize,
        value: u64,
    ) -> Result<(), Error> {
        let segment = Arc::clone(&self.segment);
        self.waiter
            .wait(word(&segment), value, segment.sleepers(home), &mut self.watch)
            .map_err(|i| self.interrupted(i))
    }

    /// Raises a flag word that peers wait for outside plans.
    pub(crate) fn raise_word(
        &self,
        word: impl Fn(&Segment) -> &crate::sync::AtomicU64,
        home: usize,
        value: u64,
    ) {
        self.waiter.raise(word(&self.segment), value, self.segment.sleepers(home));
    }

    /// Runs a prepared plan once, as a call of its own.
    ///
    /// # Errors
    /// [`Error::PeerLost`] or [`Error::Timeout`]; the communicator cannot be used after one.
    ///
    /// # Safety
    /// The buffers must be valid for the lengths the plan gives this rank and not be used by anybody else
    /// meanwhile, `fold` must fit the plan's grain, and every rank must run the same plans in the same order.
    #[inline]
    pub unsafe fn run(&mut self, plan: PlanId, buffers: Buffers) -> Result<(), Error> {
        if self.hot.as_ref().is_some_and(|hot| hot.plan == plan) {
            if let Some(done) = self.repeat_exchange() {
                return done;
            }
        }
        self.begin("a plan")?;
        // SAFETY: passed on.
        unsafe { self.run_window(plan, buffers) }?;
        self.end();
        self.keep_exchange(false);
        Ok(())
    }

    /// Runs a plan within a call.
    ///
    /// # Safety
    /// As for [`Communicator::run`].
    #[inline(always)]
    pub(crate) unsafe fn run_window(&mut self, id: PlanId, buffers: Buffers) -> Result<(), Error> {
        let (bank, earlier) = match &mut self.stay {
            Some(stay) if stay.plan == id => {
                let earlier = stay.runs;
                stay.runs += 1;
                let generation = (earlier % 2) as usize * self.plans[id.0 as usize].generations;
                (stay.bank.wrapping_add(generation), earlier)
            }
            _ => (self.enter(id)?, 0),
        };
        let Communicator { plans, bases, waiter, watch, .. } = self;
        let plan = &plans[id.0 as usize];
        bases[IN as usize] = buffers.input.cast_mut();
        bases[OUT as usize] = buffers.output;
        bases[ACC as usize] = self.scratch.start();
        bases[BANK as usize] = bank;
        let mut frame = Frame {
            bases,
            bank,
            counters: self.counters_start,
            base: self.base,
            earlier,
            fold: buffers.fold,
            copy: self.copy,
        };
        // SAFETY: proven when prepared; the caller vouches for the buffers and the order of runs.
        let outcome = unsafe { execute(plan, &mut frame, waiter, watch) };
        if let Err(interrupted) = outcome {
            return Err(self.interrupted(interrupted));
        }
        self.leave(id, earlier);
        Ok(())
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
    fn publish_left(&self, class: BankClass, uses: u64) {
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        let left = unsafe { &*self.left[class.index()] };
        // The waking form of `ring::leave`: peers may sleep until this rank has left.
        self.waiter.raise(left, uses, self.home.sleepers());
    }

    /// Leaves the last plan's bank and takes the next one for `id`.
    #[inline(always)]
    fn enter(&mut self, id: PlanId) -> Result<*mut u8, Error> {
        self.hot = None;
        if let Some(stay) = self.stay.take() {
            self.publish_left(stay.class, stay.uses);
        }
        let (class, stays) = {
            let plan = &self.plans[id.0 as usize];
            (plan.class, plan.stays)
        };
        if let Some(need) = self.rings[class.index()].needs() {
            self.await_left(class, need)?;
        }
        let ring = &mut self.rings[class.index()];
        let bank = ring.enter();
        let uses = ring.uses();
        let bank = self.banks[class.index()][bank as usize];
        if stays {
            self.stay = Some(Stay { plan: id, class, uses, bank, runs: 1 });
        }
        Ok(bank)
    }

    /// Waits until every rank has left all uses below `need`.
    #[cold]
    fn await_left(&mut self, class: BankClass, need: u64) -> Result<(), Error> {
        let mut least = u64::MAX;
        for q in 0..self.ranks() {
            if q == self.rank {
                continue;
            }
            let (segment, waiter, watch) = (&self.segment, &mut self.waiter, &mut self.watch);
            let left = segment.left(q, class);
            if let Err(interrupted) = waiter.wait(left, need, segment.sleepers(q), watch) {
                return Err(self.interrupted(interrupted));
            }
            least = least.min(ring::left(left));
        }
        self.rings[class.index()].learn(least.min(self.rings[class.index()].uses()));
        Ok(())
    }

    #[cold]
    fn interrupted(&mut self, _: Interrupted) -> Error {
        self.hot = None;
        self.hot_swap = None;
        let error = self.watch.take_failure();
        self.failed = Some(error.to_string());
        error
    }

    /// Marks this communicator as unusable. Peers find out by themselves: they compare the same calls, or miss
    /// this rank when it drops the communicator.
    pub(crate) fn poison(&mut self, why: &Error) {
        self.failed = Some(why.to_string());
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if let Some(stay) = self.stay.take() {
            self.publish_left(stay.class, stay.uses);
        }
        let gone = if self.busy || self.failed.is_some() || std::thread::panicking() {
            RankState::Failed
        } else {
            RankState::Left
        };
        self.segment.set_state(self.rank, gone);
    }
}
