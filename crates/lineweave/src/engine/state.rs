//! An engine, and what every other file of it builds on: its parts, the beginning and end of a call, and waiting outside plans.

use super::banks::{Banks, Reserved};
use super::calls::Calls;
use super::fast_path::FastPath;
use super::health::Health;
use super::heaps::Heaps;
use super::nonblocking::Started;
use super::plans::{Plans, HELD_UP};
use super::run::{Memory, Mode, Stop};
use super::transport::{ProcessGroup, Transport, TransportConfig};
use crate::choose::{PlanBudget, PlanSelector};
use crate::compile::PlanId;
use crate::error::{Error, Loss};
use crate::flag;
use crate::kernel::take_panic;
use crate::p2p::P2pEngine;
use crate::segment::{RankState, Segment, Setup, COUNTER_BYTES};
use crate::signature::CallSignature;
use crate::sync::AtomicU64;
use crate::wait::{Between, Interrupted};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Engine of one rank, and all that it needs.
pub(crate) struct Engine {
    pub(crate) segment: Arc<Segment>,
    pub(super) rank: usize,
    pub(crate) group: Arc<ProcessGroup>,
    /// Count of the last announcement that was taken from each rank that made any for this one.
    pub(super) announced: HashMap<usize, u64>,
    pub(crate) transport: Transport,
    pub(super) banks: Banks,
    pub(super) plans: Plans,
    /// Heaps with shared buffers, and the number of times that ranks asked each other for them.
    pub(super) heaps: Heaps,
    pub(crate) selector: PlanSelector,
    pub(super) calls: Calls,
    pub(super) repeat: FastPath,
    pub(super) health: Health,
    pub(super) started: Started,
    /// Messages between two ranks.
    pub(crate) p2p: P2pEngine,
}

// SAFETY: the raw pointers point into the segment, which the communicator keeps alive, or are scratch of a
// run under way; nothing in it is tied to the thread that made it.
unsafe impl Send for Engine {}

impl Engine {
    /// One rank's end of a segment that every rank has joined.
    pub(crate) fn assemble(
        segment: Arc<Segment>,
        rank: usize,
        transport_config: TransportConfig,
        selector: PlanSelector,
        group: Arc<ProcessGroup>,
        reserved: Reserved,
        base: u64,
    ) -> Engine {
        let processes = Arc::clone(&group.processes);
        Engine {
            rank,
            group,
            announced: HashMap::new(),
            transport: Transport::new(&segment, rank, transport_config, processes),
            banks: Banks::new(&segment, rank, reserved),
            plans: Plans::new(),
            heaps: Heaps::default(),
            selector,
            calls: Calls::new(&segment, rank, base),
            repeat: FastPath::default(),
            health: Health::new(),
            started: Started::default(),
            p2p: P2pEngine::default(),
            segment,
        }
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.segment.ranks()
    }

    /// Leaves the team as one who failed, see `Communicator::abandon`.
    pub(crate) fn give_up_team(&mut self, why: &str) {
        self.cool();
        self.health.failed.get_or_insert_with(|| why.to_owned());
        self.segment.set_failed(self.rank, Loss::Failed);
    }

    /// Returns the reason why this communicator cannot be used any more, or `None`.
    pub fn failure(&self) -> Option<&str> {
        self.health.failed.as_deref()
    }

    /// Returns the instruction between two looks of an exchange that is compiled into its caller.
    #[inline(always)]
    pub(crate) fn between(&self) -> Between {
        self.transport.waiter.between()
    }

    /// Returns the memory that this rank's communicator takes.
    pub fn memory(&self) -> Memory {
        Memory {
            shared_bytes: self.banks.reserved.bytes(self.segment.geometry())
                + self.segment.extra_bytes()
                + self.heaps.bytes(),
            address_bytes: self.segment.geometry().total(),
            private_bytes: self.plans.private_bytes(),
        }
    }

    /// Returns the costs of plans so far.
    pub fn setup(&self) -> Setup {
        self.plans.setup()
    }

    /// Adds what `make` takes to the time that plans have cost, and tells whoever looks from outside.
    #[cold]
    pub(crate) fn set_up<T>(&mut self, make: impl FnOnce(&mut Engine) -> T) -> T {
        let began = Instant::now();
        let made = make(self);
        let took = began.elapsed();
        self.plans.took += took;
        self.plans.held_up += usize::from(took >= HELD_UP);
        self.segment.note_setup(self.rank, &self.setup());
        made
    }

    /// Returns the budget that is left for plans.
    pub(crate) fn room(&self) -> PlanBudget<'_> {
        let counter_bytes = COUNTER_BYTES.saturating_sub(self.plans.counter_bytes);
        // Ranks that are threads of one process share what they prove anyway.
        let several = !self.selector.direct() && self.ranks() > 1;
        let records = several.then(|| (self.segment.pool().as_ref(), self.transport.waiter.order()));
        let rank = several.then_some(self.rank);
        PlanBudget { geometry: self.segment.geometry(), counter_bytes, records, rank }
    }

    /// Makes room for running a plan of `bytes` bytes in place although it cannot.
    pub(crate) fn reserve_shadow(&mut self, bytes: usize) -> Result<(), Error> {
        self.plans.shadow.grow(bytes)
    }

    /// Returns whether `in` and `out` of a plan may be one buffer.
    pub(crate) fn runs_in_place(&self, plan: PlanId) -> bool {
        self.plans[plan].in_place
    }

    /// A private copy of `bytes` bytes of input.
    ///
    /// # Safety
    /// `input` must be valid for `bytes` bytes.
    pub(crate) unsafe fn shadow_copy(&mut self, input: *const u8, bytes: usize) -> *const u8 {
        debug_assert!(bytes <= self.plans.shadow.bytes());
        // SAFETY: the caller vouches for the source; the shadow was grown to `bytes` and is private.
        unsafe { std::ptr::copy_nonoverlapping(input, self.plans.shadow.start(), bytes) };
        self.plans.shadow.start()
    }

    /// Begins a call: numbers it and lets peers see the number.
    #[inline(always)]
    pub(crate) fn begin(&mut self, operation: &'static str, signature: CallSignature) -> Result<(), Error> {
        self.health.expect_usable()?;
        if self.health.busy {
            return Err(self.cut_off());
        }
        self.repeat.exchange = None;
        self.calls.count();
        self.health.busy = true;
        self.transport.watch.operation = operation;
        if self.calls.take(signature) {
            self.repeat.swap = None;
        }
        self.calls.publish(signature);
        Ok(())
    }

    /// Returns whether it belongs to the process that this one was forked from.
    #[inline(always)]
    pub(super) fn is_inherited(&self) -> bool {
        self.health.is_inherited()
    }

    /// The error of a call after one that neither ended nor failed: something that the program gave to be called while it waits panicked.
    #[cold]
    fn cut_off(&mut self) -> Error {
        self.segment.set_failed(self.rank, Loss::Failed);
        let why = "a call was left by a panic or for lack of memory";
        self.health.failed = Some(why.to_owned());
        Error::Failed(why.to_owned())
    }

    /// Forgets how to repeat the last call, because another plan is to carry it out.
    pub(crate) fn cool(&mut self) {
        self.repeat = FastPath::default();
    }

    /// Ends a call that [`Engine::begin`] began.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.health.busy = false;
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
        self.calls.sequence
    }

    /// Waits on a flag word that this communicator's peers write outside plans.
    pub(crate) fn wait_word(
        &mut self,
        word: impl Fn(&Segment) -> &crate::sync::AtomicU64,
        home: usize,
        value: u64,
    ) -> Result<(), Error> {
        let segment = Arc::clone(&self.segment);
        self.transport
            .waiter
            .wait(word(&segment), value, segment.sleepers(home), &mut self.transport.watch)
            .map_err(|i| self.interrupted(i))
    }

    /// Raises a flag word that peers wait for outside plans.
    pub(crate) fn raise_word(
        &self,
        word: impl Fn(&Segment) -> &crate::sync::AtomicU64,
        home: usize,
        value: u64,
    ) {
        self.transport.waiter.raise(word(&self.segment), value, self.segment.sleepers(home));
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn interrupted(&mut self, _: Interrupted) -> Error {
        self.cool();
        // Others may still be at buffers that are the caller's again in a moment.
        self.transport.watch.close();
        let error = match take_panic() {
            // Nobody waits any longer for what this rank cannot do.
            Some(message) => {
                self.segment.set_failed(self.rank, Loss::Failed);
                Error::Panicked { rank: self.rank, message }
            }
            None => self.transport.watch.take_failure(),
        };
        self.health.failed = Some(error.to_string());
        error
    }

    /// Marks this communicator as unusable. Peers find out by themselves: they compare the same calls, or miss
    /// this rank when it drops the communicator.
    pub(crate) fn poison(&mut self, why: &Error) {
        self.health.failed = Some(why.to_string());
    }
}

impl Engine {
    /// Leaves the team: peers that wait for this rank will not do so for long.
    pub(crate) fn depart(&mut self) {
        if std::mem::replace(&mut self.health.gone, true) || self.is_inherited() {
            return;
        }
        self.banks.end_residency(&self.transport.waiter);
        let failed = self.health.busy || self.health.failed.is_some() || std::thread::panicking();
        self.segment.set_state(self.rank, if failed { RankState::Failed } else { RankState::Left });
        self.segment.set_mapped(std::mem::take(&mut self.banks.mapped));
        let rest = self.banks.reserved.rest(self.calls.base);
        let bytes = self.banks.reserved.bytes(self.segment.geometry());
        self.segment.depart((!failed && !self.has_started()).then_some(&rest), bytes);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.depart();
    }
}
