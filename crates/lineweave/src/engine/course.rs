//! Course of a call: of one that blocks at once, and of a started one from where it had to wait.

use super::call_plan::CallPlan;
use super::fast_path::FastPathResult;
use super::nonblocking::{Agreed, Agreement, ChangeOver, Comparison};
use super::run::{Buffers, Mode, Stop};
use super::state::Engine;
use crate::call::CallSpec;
use crate::choose::ResolvedCall;
use crate::compile::MessageSpan;
use crate::error::Error;
use crate::signature::CallSignature;
use lineweave_core::collective::{Collective, Extent};
use std::num::NonZeroU32;

/// A call that is carried out: what it is, and how far it is.
pub(super) struct Course {
    pub call: CallSpec,
    input: *const u8,
    output: *mut u8,
    begun: bool,
    comparison: Option<Comparison>,
    /// The question about the buffers of all ranks, if the plans depend on it.
    agreement: Option<Agreement>,
    pub change_over: ChangeOver,
    pub plan: Option<CallPlan>,
}

impl Course {
    pub fn new(call: CallSpec, input: *const u8, output: *mut u8) -> Course {
        let change_over = ChangeOver::New;
        Course {
            call,
            input,
            output,
            begun: false,
            comparison: None,
            agreement: None,
            change_over,
            plan: None,
        }
    }
}

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
        // A provisional plan is not for good.
        if !self.selector.check && self.selector.is_last(&CallSpec::BARRIER) {
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
            // SAFETY: passed on.
            return unsafe { self.run_course(call, None, input, output) };
        }
        let Some(&ResolvedCall { ref sequence, fold, scale, signature, simple, in_place, .. }) =
            self.ready(call)?
        else {
            // SAFETY: passed on.
            return unsafe { self.run_course(call, None, input, output) };
        };
        let (plan, bytes) = sequence.next(call.bytes());
        if !simple || (self.find_alias(call, input, output)? && !in_place) {
            // SAFETY: passed on.
            return unsafe { self.run_course(call, None, input, output) };
        }
        self.begin(collective.name(), signature)?;
        if self.selector.check {
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
        if in_place && collective == Collective::Allreduce && scale.is_none() && !self.selector.check {
            self.keep_swap(call, plan);
        }
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
        // SAFETY: passed on.
        unsafe { self.run_course(call, Some(counts), input, output) }
    }

    /// Carries a call out that is not made in one window alone.
    ///
    /// # Safety
    /// The conditions of [`Engine::call`], or of [`Engine::run_uneven`] where blocks have the lengths `counts`.
    #[inline(never)]
    unsafe fn run_course(
        &mut self,
        call: &CallSpec,
        counts: Option<&[usize]>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<(), Error> {
        let mut course = Course::new(*call, input, output);
        // SAFETY: passed on.
        unsafe { self.advance(&mut course, counts, Mode::Block) }.map_err(Stop::into_error)
    }

    /// Carries a call on from where it stopped: to its end, or to where it would have to wait. Its blocks have the lengths `counts`, in
    /// elements, if given; they are looked at until it has plans.
    ///
    /// # Safety
    /// The conditions of [`Engine::run_course`], until it is over.
    #[inline(always)]
    pub(super) unsafe fn advance(
        &mut self,
        course: &mut Course,
        counts: Option<&[usize]>,
        mode: Mode,
    ) -> Result<(), Stop> {
        if course.plan.is_none() {
            let Course { call, input, output, .. } = *course;
            let asks = match counts {
                None => self.asks(&call),
                Some(counts) => self.asks_uneven(&call, counts),
            };
            let agreed = if asks { self.open(course, counts, mode)? } else { Agreed::NOTHING };
            if counts.is_none() {
                self.settle(course, agreed.shared, mode)?;
            }
            let plan = match counts {
                None => self.plan_call(&call, input, output, agreed),
                Some(counts) => self.plan_uneven(&call, counts, input, output, agreed),
            };
            if plan.is_err() && course.begun {
                self.end();
            }
            course.plan = Some(plan?);
        }
        let Some(plan) = &mut course.plan else { return Ok(()) };
        let (call, lengths) = (plan.call, std::mem::take(&mut plan.lengths));
        self.begin_once(course, &call, &lengths, mode)?;
        let Course { input, output, plan: Some(plan), .. } = course else { return Ok(()) };
        if let Some(bytes) = plan.copied.take() {
            self.reserve_shadow(bytes)?;
            // SAFETY: the caller vouches for the input.
            *input = unsafe { self.shadow_copy(*input, bytes) };
        }
        // SAFETY: the caller vouches for the buffers.
        unsafe { self.run_windows(&mut plan.left, *input, *output, mode) }?;
        if let Some((scale, elements)) = plan.scale {
            let by = contributions(plan.call.collective, self.rank(), self.ranks());
            // SAFETY: the output holds so many elements of this type.
            unsafe { scale(*output, elements, by) };
        }
        self.end();
        Ok(())
    }

    /// Begins a call, and announces it if calls are compared.
    fn begin_course(
        &mut self,
        call: &CallSpec,
        signature: CallSignature,
        lengths: &[usize],
    ) -> Result<Option<Comparison>, Error> {
        self.begin(call.collective.name(), signature)?;
        Ok(self.selector.check.then(|| self.announce(call, lengths)))
    }

    fn end_comparison(&mut self, comparison: &mut Option<Comparison>, mode: Mode) -> Result<(), Stop> {
        if let Some(going_on) = comparison {
            self.compare_on(going_on, mode)?;
            *comparison = None;
        }
        Ok(())
    }

    /// Begins a call that asks, compares it, and hears what the others say of their buffers.
    #[cold]
    fn open(&mut self, course: &mut Course, counts: Option<&[usize]>, mode: Mode) -> Result<Agreed, Stop> {
        let Course { ref call, input, output, .. } = *course;
        let preface = self.preface(call, counts, input, output)?;
        self.begin_once(course, &preface.call, &preface.lengths, mode)?;
        let agreement = match &mut course.agreement {
            Some(agreement) => agreement,
            None => course.agreement.insert(self.ask(&preface, input, output)),
        };
        self.hear_buffers(agreement, mode)
    }

    /// Begins a call, with blocks of these lengths in bytes if they differ, unless it has begun, and compares it.
    pub(super) fn begin_once(
        &mut self,
        course: &mut Course,
        call: &CallSpec,
        lengths: &[usize],
        mode: Mode,
    ) -> Result<(), Stop> {
        if !course.begun {
            let signature = call.signature(self.reproducible()).of_blocks(lengths);
            course.comparison = self.begin_course(call, signature, lengths)?;
            course.begun = true;
        }
        self.end_comparison(&mut course.comparison, mode)
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
