//! Division of a call into windows of plans.

use super::call_plan::{CallPlan, Left, Preface, Windows};
use super::nonblocking::Agreed;
use super::run::{fold_and_scale, Buffers};
use super::state::Engine;
use super::uneven::Uneven;
use crate::call::{expect_length, CallSpec};
use crate::choose::{has_two_buffers, PlanSequence};
use crate::error::Error;
use lineweave_core::collective::Collective;

impl Engine {
    /// Returns whether input and output are one buffer in the way that calls in place have it; an error when they overlap in another.
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
    pub(super) fn plan_call(
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
        let left = Left { windows: Windows::Nothing, fold: Buffers::NONE.fold, aliased: false, run: None };
        let nothing = CallPlan { call: *call, left, scale: None, copied: None, lengths: Vec::new() };
        if call.count == 0 && collective.moves_data() {
            return Ok(nothing);
        }
        let (fold, scale) = fold_and_scale(call.operator, call.element)?;
        let shared = match agreed.shared {
            true => Some(self.sequence_for(call, &self.request_of(call, true))?),
            false => None,
        };
        // Every rank takes the same: what a copy of the input was made for could not be reached.
        let sequence = match shared.filter(|shared| !agreed.in_place || self.all_in_place(shared)) {
            Some(shared) => shared,
            None => match self.ready(call)? {
                Some(ready) => ready.sequence,
                None => self.sequence_for(call, &self.request_of(call, false))?,
            },
        };
        let aliased = self.find_alias(call, input, output)?;
        let scale = scale.filter(|_| self.has_output(call)).map(|scale| (scale, call.count));
        // A window of one block may be where another block of the input lies.
        let blocks = aliased && collective.has_blocks();
        let in_place = self.all_in_place(&sequence);
        let copied = (blocks && !in_place).then(|| call.input_bytes(self.rank(), self.ranks()));
        // A message without bytes is one window all the same: a barrier.
        let windows = Windows::Even { sequence, at: 0, bytes: call.bytes().max(1) };
        let left = Left { windows, fold, aliased: aliased && !blocks, run: None };
        Ok(CallPlan { left, scale, copied, ..nothing })
    }

    /// Returns whether the plans of a call may run on one buffer.
    pub(super) fn all_in_place(&self, sequence: &PlanSequence) -> bool {
        sequence.plans().all(|plan| self.runs_in_place(plan))
    }

    /// Returns the properties of a call that are known before its plans: for blocks of one length, or of those in `counts`, in elements.
    ///
    /// # Errors
    /// [`Error::Root`], [`Error::Counts`]; [`Error::Overlap`] when input and output overlap in a way that no call in place has.
    pub(crate) fn preface(
        &self,
        call: &CallSpec,
        counts: Option<&[usize]>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<Preface, Error> {
        let (rank, ranks) = (self.rank(), self.ranks());
        let CallSpec { collective, element, .. } = *call;
        let Some(counts) = counts.filter(|counts| counts.iter().any(|&n| n != counts[0])) else {
            let call = CallSpec { count: counts.map_or(call.count, |counts| counts[0]), ..*call };
            let in_place = self.find_alias(&call, input, output)?;
            let (given, taken) = (call.input_bytes(rank, ranks), call.output_bytes(rank, ranks));
            return Ok(Preface { call, lengths: Vec::new(), given, taken, in_place });
        };
        let places = call.places(Some(counts), rank, ranks)?;
        let [given, taken] = [0, 1].map(|i| places[i].as_ref().map_or(0, |place| place.len()));
        let in_place = match &places {
            [Some(from), Some(to)] => {
                std::ptr::eq(input.wrapping_sub(from.start), output.wrapping_sub(to.start))
            }
            _ => false,
        };
        if !in_place && overlap(input, given, output, taken) {
            return Err(Error::Overlap { collective });
        }
        let call = CallSpec { count: counts.iter().sum(), ..*call };
        let lengths = counts.iter().map(|n| n * element.size()).collect();
        Ok(Preface { call, lengths, given, taken, in_place })
    }

    /// Returns whether a call with blocks of these lengths asks for shared buffers: by the longest.
    pub(crate) fn asks_uneven(&self, call: &CallSpec, counts: &[usize]) -> bool {
        self.asks(&CallSpec { count: counts.iter().copied().max().unwrap_or(0), ..*call })
    }

    /// As [`Engine::plan_call`], for blocks of these lengths, in elements.
    pub(super) fn plan_uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        input: *const u8,
        output: *mut u8,
        agreed: Agreed,
    ) -> Result<CallPlan, Error> {
        let Preface { call, lengths, given, in_place, .. } =
            self.preface(call, Some(counts), input, output)?;
        if lengths.is_empty() {
            return self.plan_call(&call, input, output, agreed);
        }
        let CallSpec { collective, element, operator, .. } = call;
        let (fold, scale) = fold_and_scale(operator, element)?;
        // What a fold's window writes may be where another block of the input lies.
        let copies = |uneven: &Uneven| collective.folds() || !uneven.in_place;
        let mut uneven = self.uneven(&call, &lengths, agreed.shared)?;
        // Every rank takes the same: what a copy of the input was made for could not be reached.
        if agreed.shared && agreed.in_place && copies(&uneven) {
            uneven = self.uneven(&call, &lengths, false)?;
        }
        let copied = (in_place && copies(&uneven)).then_some(given);
        let left = Left { windows: uneven.windows, fold, aliased: false, run: None };
        let scale = scale.map(|scale| (scale, counts[self.rank()]));
        Ok(CallPlan { call, left, scale, copied, lengths })
    }

    /// Returns whether the other ranks give what this one takes; `counts` is what all give to all.
    pub fn expect_taken(&self, counts: &[usize], taken: &[usize], element: usize) -> Result<(), Error> {
        for (i, &expected) in taken.iter().enumerate() {
            let found = counts[i * self.ranks() + self.rank()];
            expect_length(Collective::Alltoall, "a block", expected * element, found * element)?;
        }
        Ok(())
    }
}

/// Returns whether `n` bytes from `a` on and `m` bytes from `b` on have one in common.
fn overlap(a: *const u8, n: usize, b: *const u8, m: usize) -> bool {
    n > 0 && m > 0 && (a as usize) < b as usize + m && (b as usize) < a as usize + n
}
