//! How a call becomes windows of plans, and how it is carried out when it blocks.

use super::expect_length;
use super::uneven::Uneven;
use crate::check::{self, CallSpec};
use crate::choose::{has_two_buffers, Prepared, Ready, Sequence};
use crate::communicator::{Agreed, Buffers, Engine, Mode, Stop, Window};
use crate::error::Error;
use crate::kernel::{scale_fn, ElementType, Fold, ScaleFn};
use lineweave_core::collective::{Collective, Extent};
use lineweave_core::plan::{Blocks, Grid};
use std::num::NonZeroU32;
use std::sync::Arc;

/// The windows of a call that are left.
#[derive(Debug)]
pub(crate) enum Windows {
    /// None.
    Nothing,
    /// Over a message or over blocks of one length: from `at` on, of so many bytes.
    Even { sequence: Sequence, at: usize, bytes: usize },
    /// Over blocks of different lengths: from window `turn` of a stretch on.
    Uneven { prepared: Arc<Prepared>, stretch: usize, turn: usize },
}

impl Windows {
    /// The next one.
    pub fn now(&self) -> Option<Window> {
        match self {
            Windows::Nothing => None,
            Windows::Even { sequence, at, bytes } => {
                let (plan, window) = match sequence.tail {
                    Some(tail) if bytes - at < sequence.window => (tail, bytes - at),
                    _ => (sequence.plan, sequence.window.max(1)),
                };
                Some(Window { plan, at: *at, bytes: window })
            }
            Windows::Uneven { prepared, stretch, turn } => {
                let stretch = prepared.stretches.get(*stretch)?;
                let at = stretch.from + turn * stretch.window;
                Some(Window { plan: stretch.plan, at, bytes: stretch.window })
            }
        }
    }

    /// That one is over.
    pub fn advance(&mut self) {
        let window = self.now().map_or(0, |window| window.bytes);
        match self {
            Windows::Nothing => {}
            Windows::Even { at, bytes, .. } => {
                *at += window;
                if at >= bytes {
                    *self = Windows::Nothing;
                }
            }
            Windows::Uneven { prepared, stretch, turn } => {
                *turn += 1;
                if *turn == prepared.stretches[*stretch].times {
                    (*stretch, *turn) = (*stretch + 1, 0);
                }
            }
        }
    }
}

/// A call that is ready to be carried out.
pub(crate) struct CallPlan {
    /// What is compared and named.
    pub call: CallSpec,
    pub windows: Windows,
    pub fold: Fold,
    /// What divides this rank's output in the end, and how many elements of it.
    pub scale: Option<(ScaleFn, usize)>,
    /// Bytes of the input of which a copy must be made first.
    pub copied: Option<usize>,
    /// Input and output are one buffer: a window is copied if its plan cannot run in place.
    pub aliased: bool,
    /// Of uneven blocks, in bytes.
    pub lengths: Vec<usize>,
}

impl Engine {
    /// Returns when every rank has called it.
    #[inline(always)]
    pub fn barrier(&mut self) -> Result<(), Error> {
        if let Some(done) = self.repeat_barrier() {
            return done;
        }
        // SAFETY: a barrier touches no buffer.
        unsafe { self.call(&CallSpec::BARRIER, std::ptr::null(), std::ptr::null_mut()) }?;
        if !self.book().check {
            self.keep_exchange(true);
        }
        Ok(())
    }

    /// Any collective on raw buffers.
    ///
    /// # Safety
    /// As for [`crate::Communicator::call`].
    #[inline(always)]
    pub unsafe fn call(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Result<(), Error> {
        // SAFETY: passed on.
        if let Some(done) = unsafe { self.repeat_swap(call, input, output) } {
            return done;
        }
        // SAFETY: passed on.
        unsafe { self.call_anew(call, input, output) }
    }

    /// A call that is not the last one again.
    #[inline(never)]
    unsafe fn call_anew(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Result<(), Error> {
        let collective = call.collective;
        if call.root >= self.ranks() {
            return Err(Error::Root { collective, root: call.root, ranks: self.ranks() });
        }
        if call.count == 0 && collective.moves_data() {
            return self.nothing_to_do(call);
        }
        let Ready { ref sequence, fold, scale, simple, .. } = *self.ready(call)?;
        if !simple {
            if self.asks(call) {
                // SAFETY: passed on.
                return unsafe { self.call_asking(call, input, output) };
            }
            let plan = self.plan_call(call, input, output, Agreed::NOTHING)?;
            // SAFETY: passed on.
            return unsafe { self.run_plan(plan, input, output) };
        }
        let plan = sequence.plan;
        self.find_alias(call, input, output)?;
        self.begin(collective.name())?;
        if self.book().check {
            check::compare(self, call)?;
        }
        // SAFETY: passed on.
        unsafe { self.run_window(plan, Buffers { input, output, fold }) }?;
        if let Some(scale) = scale.filter(|_| self.has_output(call)) {
            // SAFETY: the output holds `count` elements of this type.
            unsafe { scale(output, call.count, contributions(collective, self.rank(), self.ranks())) };
        }
        self.end();
        if collective == Collective::Allreduce && scale.is_none() && !self.book().check {
            self.keep_swap(call, plan);
        }
        Ok(())
    }

    /// A call that goes by what buffers all ranks give.
    ///
    /// # Safety
    /// As for [`Engine::call`].
    #[cold]
    unsafe fn call_asking(
        &mut self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let in_place = self.find_alias(call, input, output)?;
        self.begin(call.collective.name())?;
        if self.book().check {
            check::compare(self, call)?;
        }
        let mut agreement = self.ask(call, input, output, in_place);
        let agreed = self.hear(&mut agreement, Mode::Block).map_err(Stop::into_error)?;
        let plan = self.plan_call(call, input, output, agreed).inspect_err(|_| self.end())?;
        // SAFETY: passed on.
        unsafe { self.carry_out(plan, input, output) }
    }

    /// A call without elements: checked and counted like any other.
    fn nothing_to_do(&mut self, call: &CallSpec) -> Result<(), Error> {
        self.begin(call.collective.name())?;
        if self.book().check {
            check::compare(self, call)?;
        }
        self.end();
        Ok(())
    }

    fn has_output(&self, call: &CallSpec) -> bool {
        call.collective.output(self.rank(), call.root) != Extent::Nothing
    }

    /// Whether input and output are one buffer in the way that calls in place have it; an error when they overlap in another.
    #[inline(always)]
    pub(crate) fn find_alias(
        &self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
    ) -> Result<bool, Error> {
        let (collective, rank, ranks) = (call.collective, self.rank(), self.ranks());
        if !has_two_buffers(collective) || !self.has_output(call) {
            return Ok(false);
        }
        if std::ptr::eq(input, call.input_in_place(rank, ranks, output)) {
            return Ok(true);
        }
        let (given, taken) = (call.input_bytes(rank, ranks), call.output_bytes(rank, ranks));
        match overlap(input, given, output, taken) {
            true => Err(Error::Overlap { collective }),
            false => Ok(false),
        }
    }

    /// Finds plans for a call, or makes them: for shared buffers, if all ranks agreed that theirs are.
    pub fn plan_call(
        &mut self,
        call: &CallSpec,
        input: *const u8,
        output: *mut u8,
        agreed: Agreed,
    ) -> Result<CallPlan, Error> {
        let collective = call.collective;
        if call.root >= self.ranks() {
            return Err(Error::Root { collective, root: call.root, ranks: self.ranks() });
        }
        let nothing = CallPlan {
            call: *call,
            windows: Windows::Nothing,
            fold: Buffers::NONE.fold,
            scale: None,
            copied: None,
            aliased: false,
            lengths: Vec::new(),
        };
        if call.count == 0 && collective.moves_data() {
            return Ok(nothing);
        }
        let Ready { mut sequence, fold, scale, .. } = *self.ready(call)?;
        if agreed.shared {
            let shared = self.shared_sequence(call)?;
            // Every rank takes the same: what a copy of the input was made for could not be reached.
            if !agreed.in_place || self.all_in_place(&shared) {
                sequence = shared;
            }
        }
        let aliased = self.find_alias(call, input, output)?;
        let scale = scale.filter(|_| self.has_output(call)).map(|scale| (scale, call.count));
        // A window of one block may be where another block of the input lies.
        let blocks = aliased && collective.has_blocks();
        let in_place = self.all_in_place(&sequence);
        let copied = (blocks && !in_place).then(|| call.input_bytes(self.rank(), self.ranks()));
        // A message without bytes is one window all the same: a barrier.
        let windows = Windows::Even { sequence, at: 0, bytes: call.bytes().max(1) };
        Ok(CallPlan { windows, fold, scale, copied, aliased: aliased && !blocks, ..nothing })
    }

    /// Whether the plans of a call may run on one buffer.
    fn all_in_place(&self, sequence: &Sequence) -> bool {
        self.runs_in_place(sequence.plan) && sequence.tail.is_none_or(|tail| self.runs_in_place(tail))
    }

    /// The same for blocks of these lengths, in elements.
    pub fn plan_uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        input: *const u8,
        output: *mut u8,
    ) -> Result<CallPlan, Error> {
        let CallSpec { collective, element, operator, root, .. } = *call;
        if counts.iter().all(|&n| n == counts[0]) {
            return self.plan_call(&CallSpec { count: counts[0], ..*call }, input, output, Agreed::NOTHING);
        }
        let call = CallSpec { count: counts.iter().sum(), ..*call };
        let undefined = |e: crate::kernel::Undefined| Error::Operator(e.to_string());
        let (fold, scale) = match operator {
            None => (Buffers::NONE.fold, None),
            Some(o) => (Fold::of(o, element).map_err(undefined)?, scale_fn(o, element)),
        };
        let (rank, ranks) = (self.rank(), self.ranks());
        let lengths: Vec<usize> = counts.iter().map(|n| n * element.size()).collect();
        let prepared = self.uneven(&call, &lengths)?;
        let blocks = Blocks::Uneven(Arc::clone(&prepared.blocks));
        let grid = Grid { collective, ranks, root, bytes: prepared.blocks.longest(), blocks: &blocks };
        let (given, taken) = (grid.input_bytes(rank), grid.output_bytes(rank));
        let [at, to, _] =
            Uneven { collective, operator, root, counts }.places(rank, ranks, element.size())?;
        let offset = |place: Option<(usize, usize)>| place.map_or(0, |(at, _)| at);
        let one_buffer = at.is_some()
            && to.is_some()
            && std::ptr::eq(input.wrapping_sub(offset(at)), output.wrapping_sub(offset(to)));
        if !one_buffer && overlap(input, given, output, taken) {
            return Err(Error::Overlap { collective });
        }
        // What a fold's window writes may be where another block of the input lies.
        let copied = (one_buffer && (collective.folds() || !prepared.in_place)).then_some(given);
        let windows = Windows::Uneven { prepared, stretch: 0, turn: 0 };
        let scale = scale.map(|scale| (scale, counts[rank]));
        Ok(CallPlan { call, windows, fold, scale, copied, aliased: false, lengths })
    }

    /// Whether the other ranks give what this one takes; `counts` is what all give to all.
    pub fn expect_taken(&self, counts: &[usize], taken: &[usize], element: usize) -> Result<(), Error> {
        for (i, &expected) in taken.iter().enumerate() {
            let found = counts[i * self.ranks() + self.rank()];
            expect_length(Collective::Alltoall, "a block", expected * element, found * element)?;
        }
        Ok(())
    }

    /// Runs a call with uneven blocks.
    ///
    /// # Safety
    /// `input` and `output` must be valid, as [`Uneven::places`] says, for the length of the call.
    pub unsafe fn run_uneven(
        &mut self,
        uneven: &Uneven<'_>,
        element: ElementType,
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let Uneven { collective, operator, root, counts } = *uneven;
        let call = CallSpec { collective, element, count: 0, operator, root };
        if counts.iter().all(|&n| n == counts[0]) {
            let call = CallSpec { count: counts[0], ..call };
            // SAFETY: passed on; the blocks are of one length.
            return unsafe { self.call(&call, input, output) };
        }
        let plan = self.plan_uneven(&call, counts, input, output)?;
        // SAFETY: passed on.
        unsafe { self.run_plan(plan, input, output) }
    }

    /// Carries a call out, window by window.
    ///
    /// # Safety
    /// As for the call that was planned.
    unsafe fn run_plan(&mut self, plan: CallPlan, input: *const u8, output: *mut u8) -> Result<(), Error> {
        self.begin(plan.call.collective.name())?;
        if self.book().check {
            check::compare_blocks(self, &plan.call, &plan.lengths)?;
        }
        // SAFETY: passed on.
        unsafe { self.carry_out(plan, input, output) }
    }

    /// The same for a call that has begun.
    ///
    /// # Safety
    /// As for the call that was planned.
    unsafe fn carry_out(
        &mut self,
        mut plan: CallPlan,
        mut input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let (fold, collective) = (plan.fold, plan.call.collective);
        if let Some(bytes) = plan.copied {
            self.reserve_shadow(bytes)?;
            // SAFETY: the caller vouches for the input.
            input = unsafe { self.shadow_copy(input, bytes) };
        }
        while let Some(Window { plan: id, at, bytes }) = plan.windows.now() {
            // SAFETY: `at` and `bytes` stay within the buffers, which the caller vouches for; a null buffer
            // is one that the plan does not touch.
            unsafe {
                let mut input = input.wrapping_add(at);
                if plan.aliased && !self.runs_in_place(id) {
                    input = self.shadow_copy(input, bytes);
                }
                self.run_window(id, Buffers { input, output: output.wrapping_add(at), fold })?;
            }
            plan.windows.advance();
        }
        if let Some((scale, elements)) = plan.scale {
            // SAFETY: the output holds so many elements of this type.
            unsafe { scale(output, elements, contributions(collective, self.rank(), self.ranks())) };
        }
        self.end();
        Ok(())
    }
}

/// Whether `n` bytes from `a` on and `m` bytes from `b` on have one in common.
fn overlap(a: *const u8, n: usize, b: *const u8, m: usize) -> bool {
    n > 0 && m > 0 && (a as usize) < b as usize + m && (b as usize) < a as usize + n
}

/// How many contributions the result of a rank combines.
pub(crate) fn contributions(collective: Collective, rank: usize, ranks: usize) -> NonZeroU32 {
    let n = match collective {
        Collective::Scan => rank + 1,
        Collective::Exscan => rank,
        Collective::Barrier
        | Collective::Bcast
        | Collective::Reduce
        | Collective::Allreduce
        | Collective::Gather
        | Collective::Scatter
        | Collective::Allgather
        | Collective::ReduceScatter
        | Collective::Alltoall => ranks,
    };
    NonZeroU32::new(n as u32).unwrap_or(NonZeroU32::MIN)
}
