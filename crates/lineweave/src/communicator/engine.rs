//! What one rank of a team runs, and all that it needs for it.

use super::heaps::Heaps;
use super::join::Family;
use super::memory::{Memory, Reserved};
use super::queue::Job;
use super::run::{Buffers, Mode, PlanId, Stop};
use super::short::{Again, Hot, HotSwap};
use super::walk::Walk;
use super::windows::Stay;
use crate::called::{Called, SLOTS};
use crate::choose::{Book, Room};
use crate::compile::{Compiled, Home};
use crate::error::{Error, Loss};
use crate::flag;
use crate::kernel::{take_panic, Copier, CopyPolicy};
use crate::post::Post;
use crate::process;
use crate::ring::Ring;
use crate::scratch::Scratch;
use crate::segment::{Mapped, RankState, Segment, Setup, COUNTER_BYTES};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::{Between, Budget, Interrupted, ProgressHook, Waiter};
use crate::watch::{Attendant, Watch};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one rank runs, and all that it needs for it.
pub(crate) struct Engine {
    pub(super) segment: Arc<Segment>,
    pub(super) rank: usize,
    pub(super) family: Arc<Family>,
    /// What of the banks is backed by memory.
    pub(super) reserved: Reserved,
    /// What of each rank's banks is mapped in this process.
    pub(super) mapped: Vec<Mapped>,
    /// What was taken last of the announcements of each rank that made any for this one.
    pub(super) announced: HashMap<usize, u64>,
    pub(super) plans: Vec<Compiled>,
    /// Ids of plans that were given up.
    pub(super) vacant: Vec<PlanId>,
    /// How long plans took to choose, prove and compile.
    pub(super) setting_up: Duration,
    pub(super) rings: [Ring; 2],
    /// Rank 0's part of every bank, by class.
    pub(super) banks: [Vec<*mut u8>; 2],
    /// Where shared buffers are, and how often ranks asked each other for them.
    pub(super) heaps: Heaps,
    pub(super) agreements: u64,
    pub(super) counters_start: *mut u8,
    /// This rank's `left` of each class, and the home that waits for it.
    pub(super) left: [*const AtomicU64; 2],
    pub(super) home: Home,
    pub(super) stay: Option<Stay>,
    /// Where in large banks the slots of the next runs lie.
    pub(super) walk: Walk,
    /// Set while the plan that stays is a two-rank barrier, last called as such.
    pub(super) hot: Option<Hot>,
    /// Set while the last allreduce was a swap of payloads.
    pub(super) hot_swap: Option<HotSwap>,
    /// Every flag set by earlier runs is at most this.
    pub(super) base: u64,
    pub(super) counters: usize,
    pub(super) bases: Vec<*mut u8>,
    pub(super) scratch: Scratch,
    /// For operands that come from another process's memory.
    pub(super) reach_room: Scratch,
    /// A copy of `in`, when a plan cannot run in place and the caller does.
    pub(super) shadow: Scratch,
    pub(super) waiter: Waiter,
    pub(super) watch: Watch,
    pub(super) copy: Copier,
    pub(super) sequence: u64,
    /// Where peers read it.
    pub(super) sequence_word: *const AtomicU64,
    /// The call under way, or the last one; all up to it; and where peers read its words.
    pub(super) called: Called,
    pub(super) history: u64,
    pub(super) called_words: *const [AtomicU64; 2],
    pub(super) book: Book,
    /// In a call; dropping the communicator now is a failure that peers are told of.
    pub(super) busy: bool,
    pub(super) failed: Option<String>,
    /// See [`process::forks`].
    pub(super) forks: u64,
    /// Calls that were started and are not over, in their order.
    pub(super) queue: VecDeque<Job>,
    /// When a call that was only polled was last looked after, and for how long it has been waiting.
    pub(super) looked: Option<Instant>,
    pub(super) waited: Duration,
    /// It has told its peers that it is gone.
    pub(super) gone: bool,
    /// Messages between two ranks.
    pub(super) post: Post,
}

// SAFETY: the raw pointers point into the segment, which the communicator keeps alive, or are scratch of a
// run under way; nothing in it is tied to the thread that made it.
unsafe impl Send for Engine {}

impl Engine {
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

    /// Sets who is told when a wait lasts long, and may end it.
    pub fn set_attendant(&mut self, attendant: Option<Box<dyn Attendant>>) {
        self.watch.set_attendant(attendant);
    }

    /// Changes how long a wait may last; nothing for no limit.
    pub fn set_timeout(&mut self, limit: Option<Duration>) {
        self.watch.set_limit(limit);
    }

    /// Leaves the team as one who failed, see `Communicator::abandon`.
    pub(super) fn give_up_team(&mut self, why: &str) {
        self.cool();
        self.failed.get_or_insert_with(|| why.to_owned());
        self.segment.set_failed(self.rank, Loss::Failed);
    }

    /// Why this communicator cannot be used any more, if so.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Changes how this rank waits.
    pub fn set_wait_budget(&mut self, budget: Budget) {
        self.waiter.set_budget(budget);
    }

    /// How this rank waits.
    pub fn wait_budget(&self) -> Budget {
        self.waiter.budget()
    }

    /// What lies between the looks of an exchange that is compiled into its caller.
    #[inline(always)]
    pub(crate) fn between(&self) -> Between {
        self.waiter.between()
    }

    /// Changes how this rank copies.
    pub fn set_copy_policy(&mut self, copy: CopyPolicy) {
        self.copy = Copier::new(copy);
    }

    /// Changes whether plans that are prepared from now on take the lines of their next run ahead, for measuring; whether they did.
    pub(crate) fn set_ahead(&mut self, ahead: bool) -> bool {
        std::mem::replace(&mut self.book.ahead, ahead)
    }

    /// The memory that the team shares.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// What it takes of memory.
    pub fn memory(&self) -> Memory {
        let plans = self.setup().plan_bytes;
        Memory {
            shared_bytes: self.reserved.bytes(self.segment.geometry())
                + self.segment.extra_bytes()
                + self.heaps.bytes(),
            address_bytes: self.segment.geometry().total(),
            private_bytes: self.scratch.len() + self.reach_room.len() + self.shadow.len() + plans,
        }
    }

    /// What plans have cost so far.
    pub fn setup(&self) -> Setup {
        Setup {
            plans: self.plans.len() - self.vacant.len(),
            plan_bytes: self.plans.iter().map(Compiled::bytes).sum(),
            took: self.setting_up,
        }
    }

    /// Adds what `make` takes to the time that plans have cost, and tells whoever looks from outside.
    #[cold]
    pub(crate) fn set_up<T>(&mut self, make: impl FnOnce(&mut Engine) -> T) -> T {
        let began = Instant::now();
        let made = make(self);
        self.setting_up += began.elapsed();
        self.segment.note_setup(self.rank, &self.setup());
        made
    }

    /// What is left for plans.
    pub(crate) fn room(&self) -> Room<'_> {
        let counter_bytes = COUNTER_BYTES.saturating_sub(self.counters);
        // Ranks that are threads of one process share what they prove anyway.
        let several = !self.book.direct() && self.ranks() > 1;
        let records = several.then(|| (self.segment.pool().as_ref(), self.waiter.order()));
        let rank = several.then_some(self.rank);
        Room { geometry: self.segment.geometry(), counter_bytes, records, rank }
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
    pub(crate) fn begin(&mut self, operation: &'static str, called: Called) -> Result<(), Error> {
        if let Some(why) = &self.failed {
            return Err(Error::Failed(why.clone()));
        }
        if self.is_inherited() {
            return Err(Error::Forked);
        }
        if self.busy {
            return Err(self.cut_off());
        }
        self.hot = None;
        self.sequence += 1;
        self.busy = true;
        self.watch.operation = operation;
        // Relaxed: peers read it only for messages, or after the acquire of this rank's final state.
        self.own_sequence().store(self.sequence, Ordering::Relaxed);
        if called != self.called {
            (self.called, self.history, self.hot_swap) = (called, called.after(self.history), None);
        }
        // SAFETY: words of the segment, which this communicator keeps mapped.
        unsafe { publish(called, self.called_words, self.sequence) };
        Ok(())
    }

    /// Whether it belongs to the process that this one was forked from.
    #[inline(always)]
    pub(super) fn is_inherited(&self) -> bool {
        self.forks != process::forks()
    }

    /// The error of a call after one that neither ended nor failed: something that the program gave to be called while it waits panicked.
    #[cold]
    fn cut_off(&mut self) -> Error {
        self.segment.set_failed(self.rank, Loss::Failed);
        let why = "a call was left by a panic or for lack of memory";
        self.failed = Some(why.to_owned());
        Error::Failed(why.to_owned())
    }

    /// Forgets how to repeat the last call, because another plan is to carry it out.
    pub(crate) fn cool(&mut self) {
        self.hot = None;
        self.hot_swap = None;
    }

    #[inline(always)]
    pub(super) fn own_sequence<'a>(&self) -> &'a AtomicU64 {
        // SAFETY: a word of the segment, which this communicator keeps mapped.
        unsafe { &*self.sequence_word }
    }

    /// Ends a call that [`Engine::begin`] began.
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

    /// [`Engine::wait_word`], or only a look.
    pub(crate) fn await_word(
        &mut self,
        word: impl Fn(&Segment) -> &AtomicU64,
        home: usize,
        value: u64,
        mode: Mode,
    ) -> Result<(), Stop> {
        match mode {
            Mode::Block => self.wait_word(word, home, value).map_err(Stop::Failed),
            Mode::Poll if flag::reached(word(&self.segment), value) => Ok(()),
            Mode::Poll => Err(Stop::NotYet),
        }
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
            match self.repeat_exchange(self.between()) {
                Again::Done => return Ok(()),
                Again::Waits => return self.end_exchange(),
                Again::Other => {}
            }
        }
        let called = Called::plan(self.plans[plan.0 as usize].digest);
        self.begin("a plan", called)?;
        // SAFETY: passed on.
        unsafe { self.run_window(plan, buffers) }?;
        self.end();
        self.keep_exchange(false);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn interrupted(&mut self, _: Interrupted) -> Error {
        self.cool();
        // Others may still be at buffers that are the caller's again in a moment.
        self.watch.close();
        let error = match take_panic() {
            // Nobody waits any longer for what this rank cannot do.
            Some(message) => {
                self.segment.set_failed(self.rank, Loss::Failed);
                Error::Panicked { rank: self.rank, message }
            }
            None => self.watch.take_failure(),
        };
        self.failed = Some(error.to_string());
        error
    }

    /// Marks this communicator as unusable. Peers find out by themselves: they compare the same calls, or miss
    /// this rank when it drops the communicator.
    pub(crate) fn poison(&mut self, why: &Error) {
        self.failed = Some(why.to_string());
    }
}

/// Lets peers see the words of a rank's call number `number`.
///
/// # Safety
/// `slots` must be the rank's pairs of words, in a mapped segment.
#[inline(always)]
pub(super) unsafe fn publish(called: Called, slots: *const [AtomicU64; 2], number: u64) {
    // SAFETY: there are so many; they are only ever used as atomics.
    let words = unsafe { &*slots.add((number % SLOTS) as usize) };
    let [what, bytes] = called.words(number);
    // SYNC: called
    words[1].store(bytes, Ordering::Release);
    // SYNC: called
    words[0].store(what, Ordering::Release);
}

impl Engine {
    /// Leaves the team: peers that wait for this rank will not do so for long.
    pub(super) fn depart(&mut self) {
        if std::mem::replace(&mut self.gone, true) || self.is_inherited() {
            return;
        }
        if let Some(stay) = self.stay.take() {
            self.publish_left(stay.class, stay.uses);
        }
        let gone = if self.busy || self.failed.is_some() || std::thread::panicking() {
            RankState::Failed
        } else {
            RankState::Left
        };
        self.segment.set_state(self.rank, gone);
        self.segment.depart();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.depart();
    }
}
