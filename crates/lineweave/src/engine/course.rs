//! Course of a call that blocks.

use super::call_plan::{CallPlan, Left, Preface};
use super::fast_path::FastPathResult;
use super::nonblocking::Agreed;
use super::run::{Buffers, Mode, Stop};
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::ResolvedCall;
use crate::compile::MessageSpan;
use crate::error::Error;
use lineweave_core::collective::{Collective, Extent};
use std::num::NonZeroU32;

impl Engine {
    /// Returns when every rank has called it.
    #[inline(always)]
    pub fn barrier(&mut self) -> Result<(), Error> {
        match self.repeat_barrier(self.between()) {
            FastPathResult::Done => Ok(()),
            FastPathResult::Waits => self.end_exchange(),
            FastPathResult::Other => self.barrier_anew(),
        }
    }

    /// A barrier that is not the last call again. Apart from [`Engine::barrier`], whose callers would otherwise save registers for it.
    #[cold]
    #[inline(never)]
    fn barrier_anew(&mut self) -> Result<(), Error> {
        // SAFETY: a barrier touches no buffer.
        unsafe { self.call(&CallSpec::BARRIER, std::ptr::null(), std::ptr::null_mut()) }?;
        if !self.selector().check {
            self.keep_exchange(true);
        }
        Ok(())
    }

    /// Any collective on raw buffers.
    ///
    /// # Safety
    /// The conditions of [`crate::Communicator::call`].
    #[inline(always)]
    pub unsafe fn call(&mut self, call: &CallSpec, input: *const u8, output: *mut u8) -> Result<(), Error> {
        if call.collective == Collective::Allreduce {
            // SAFETY: passed on.
            match unsafe { self.repeat_swap(call, input, output) } {
                FastPathResult::Done => return Ok(()),
                // SAFETY: passed on.
                FastPathResult::Waits => return unsafe { self.end_swap(output) },
                FastPathResult::Other => {}
            }
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
        let ResolvedCall { ref sequence, fold, scale, signature, simple, in_place, .. } =
            *self.ready(call)?;
        let (plan, bytes) = sequence.next(call.bytes());
        if !simple || (self.find_alias(call, input, output)? && !in_place) {
            if self.asks(call) {
                // SAFETY: passed on.
                return unsafe { self.call_asking(call, None, input, output) };
            }
            let plan = self.plan_call(call, input, output, Agreed::NOTHING)?;
            // SAFETY: passed on.
            return unsafe { self.run_plan(plan, input, output) };
        }
        self.begin(collective.name(), signature)?;
        if self.selector().check {
            self.compare(call, &[])?;
        }
        // SAFETY: passed on.
        unsafe { self.run_window(plan, MessageSpan { bytes, of: bytes }, Buffers { input, output, fold }) }?;
        if let Some(scale) = scale.filter(|_| self.has_output(call)) {
            // SAFETY: the output holds `count` elements of this type.
            unsafe { scale(output, call.count, contributions(collective, self.rank(), self.ranks())) };
        }
        self.end();
        // When it is called again, it may be in place.
        if in_place && collective == Collective::Allreduce && scale.is_none() && !self.selector().check {
            self.keep_swap(call, plan);
        }
        Ok(())
    }

    /// A call that goes by what buffers all ranks give.
    ///
    /// # Safety
    /// The conditions of [`Engine::call`], or for [`Engine::run_uneven`] where blocks have the lengths `counts`.
    #[cold]
    unsafe fn call_asking(
        &mut self,
        call: &CallSpec,
        counts: Option<&[usize]>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let preface = self.preface(call, counts, input, output)?;
        let Preface { call, ref lengths, .. } = preface;
        self.begin(call.collective.name(), call.signature(self.reproducible()).of_blocks(lengths))?;
        if self.selector().check {
            self.compare(&call, lengths)?;
        }
        let mut agreement = self.ask(&preface, input, output);
        let agreed = self.hear(&mut agreement, Mode::Block).map_err(Stop::into_error)?;
        let plan = match counts {
            None => self.plan_call(&call, input, output, agreed),
            Some(counts) => self.plan_uneven(&call, counts, input, output, agreed),
        };
        let plan = plan.inspect_err(|_| self.end())?;
        // SAFETY: passed on.
        unsafe { self.carry_out(plan, input, output) }
    }

    /// A call without elements: checked and counted like any other.
    fn nothing_to_do(&mut self, call: &CallSpec) -> Result<(), Error> {
        self.begin(call.collective.name(), call.signature(self.reproducible()))?;
        if self.selector().check {
            self.compare(call, &[])?;
        }
        self.end();
        Ok(())
    }

    pub(super) fn has_output(&self, call: &CallSpec) -> bool {
        call.collective.output(self.rank(), call.root) != Extent::Nothing
    }

    /// Runs a call with uneven blocks.
    ///
    /// # Safety
    /// `input` and `output` must be valid, as [`CallSpec::places`] says, for the length of the call.
    pub unsafe fn run_uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        if counts.iter().all(|&n| n == counts[0]) {
            let call = CallSpec { count: counts[0], ..*call };
            // SAFETY: passed on; the blocks are of one length.
            return unsafe { self.call(&call, input, output) };
        }
        if self.asks_uneven(call, counts) {
            // SAFETY: passed on.
            return unsafe { self.call_asking(call, Some(counts), input, output) };
        }
        let plan = self.plan_uneven(call, counts, input, output, Agreed::NOTHING)?;
        // SAFETY: passed on.
        unsafe { self.run_plan(plan, input, output) }
    }

    /// Carries a call out, window by window.
    ///
    /// # Safety
    /// The conditions of the call that was planned.
    unsafe fn run_plan(&mut self, plan: CallPlan, input: *const u8, output: *mut u8) -> Result<(), Error> {
        self.begin(plan.call.collective.name(), plan.signature)?;
        if self.selector().check {
            self.compare(&plan.call, &plan.lengths)?;
        }
        // SAFETY: passed on.
        unsafe { self.carry_out(plan, input, output) }
    }

    /// As `run_plan`, for a call that has begun.
    ///
    /// # Safety
    /// The conditions of the call that was planned.
    unsafe fn carry_out(
        &mut self,
        plan: CallPlan,
        mut input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        if let Some(bytes) = plan.copied {
            self.reserve_shadow(bytes)?;
            // SAFETY: the caller vouches for the input.
            input = unsafe { self.shadow_copy(input, bytes) };
        }
        let CallPlan { windows, fold, aliased, .. } = plan;
        let mut left = Left { windows, fold, aliased, run: None };
        // SAFETY: the caller vouches for the buffers.
        unsafe { self.run_windows(&mut left, input, output, Mode::Block) }.map_err(Stop::into_error)?;
        if let Some((scale, elements)) = plan.scale {
            // SAFETY: the output holds so many elements of this type.
            unsafe {
                scale(output, elements, contributions(plan.call.collective, self.rank(), self.ranks()))
            };
        }
        self.end();
        Ok(())
    }
}

/// Returns the number of contributions that the result of a rank combines.
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
