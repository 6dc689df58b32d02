//! From a call to the plans that carry it out: looked up when the call was made before, else chosen, proven
//! and compiled.

mod adopt;
mod book;
mod library;
mod prove;
mod recent;
mod record;
mod shelf;
mod uneven;

pub(crate) use adopt::Adoptable;
pub(crate) use book::{Book, Room};
pub(crate) use uneven::Prepared;

use record::Proved;
use shelf::{Key, Proven, Reach};

use crate::called::Called;
use crate::check::CallSpec;
use crate::communicator::{Buffers, Engine, PlanId};
use crate::error::Error;
use crate::kernel::{scale_fn, Fold, ScaleFn};
use crate::tuning::Chosen;
use lineweave_core::collective::Collective;
use lineweave_core::topology::Shape;

/// The plans of one call: `plan` over windows of `window` bytes `whole` times, then `tail` for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub plan: PlanId,
    pub window: usize,
    pub whole: usize,
    pub tail: Option<PlanId>,
}

/// A call with everything it needs resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub call: CallSpec,
    /// Whether it was asked to be reproducible.
    pub reproducible: bool,
    pub sequence: Sequence,
    pub fold: Fold,
    pub scale: Option<ScaleFn>,
    /// By which ranks know it.
    pub called: Called,
    /// One window does, it may run in place, and nothing is asked before.
    pub simple: bool,
}

impl Engine {
    /// Where the ranks sit.
    pub fn shape(&self) -> &Shape {
        self.book().shape()
    }

    /// See [`crate::Communicator::reproducible`].
    pub fn reproducible(&self) -> bool {
        self.book().reproducible
    }

    /// See [`crate::Communicator::set_reproducible`].
    pub fn set_reproducible(&mut self, reproducible: bool) -> bool {
        if self.book().reproducible != reproducible {
            self.cool();
        }
        std::mem::replace(&mut self.book_mut().reproducible, reproducible)
    }

    /// The algorithm that a call of this size runs, and why.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let book = self.book();
        let (key, _) = book.first(&book.key_of(call));
        book.choose(&book.question(&key, &self.room()), key.reach)
    }

    /// The same for a call whose buffers are shared at all ranks.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen_shared(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let book = self.book();
        if book.direct() || call.bytes() < book.ask_from() {
            return self.chosen(call);
        }
        let (key, _) = book.first(&Key { reach: Reach::Heap, ..book.key_of(call) });
        book.choose(&book.question(&key, &self.room()), key.reach)
    }

    /// Everything a call needs, from the last call of this collective if that was equal. By reference: copying
    /// it about costs more than a small call itself.
    ///
    /// # Errors
    /// Those of choosing a plan, and [`Error::Operator`] when the type has no such operator.
    #[inline(always)]
    pub(crate) fn ready(&mut self, call: &CallSpec) -> Result<&Ready, Error> {
        let slot = call.collective as usize;
        let reproducible = self.book().reproducible;
        let same = |ready: &Ready| ready.call == *call && ready.reproducible == reproducible;
        if !self.book().last[slot].as_ref().is_some_and(same) {
            let ready = self.make_ready(call)?;
            self.book_mut().last[slot] = Some(ready);
        }
        match &self.book().last[slot] {
            Some(ready) => Ok(ready),
            None => Err(Error::Failed("a call was not made ready".into())),
        }
    }

    #[cold]
    fn make_ready(&mut self, call: &CallSpec) -> Result<Ready, Error> {
        let undefined = |e: crate::kernel::Undefined| Error::Operator(e.to_string());
        let (fold, scale) = match call.operator {
            None => (Buffers::NONE.fold, None),
            Some(o) => (Fold::of(o, call.element).map_err(undefined)?, scale_fn(o, call.element)),
        };
        let sequence = self.sequence_of(self.book().key_of(call))?;
        let simple = sequence.whole == 1
            && !self.asks(call)
            && sequence.tail.is_none()
            && (!has_two_buffers(call.collective) || self.runs_in_place(sequence.plan));
        let reproducible = self.book().reproducible;
        let called = call.called(reproducible);
        Ok(Ready { call: *call, reproducible, sequence, fold, scale, called, simple })
    }

    /// The plans of a call whose buffers are all shared.
    ///
    /// # Errors
    /// Those of choosing a plan.
    pub(crate) fn shared_sequence(&mut self, call: &CallSpec) -> Result<Sequence, Error> {
        self.sequence_of(Key { reach: Reach::Heap, ..self.book().key_of(call) })
    }

    fn sequence_of(&mut self, key: Key) -> Result<Sequence, Error> {
        if let Some(sequence) = self.book_mut().remembered(&key) {
            return Ok(sequence);
        }
        self.set_up(|engine| engine.make_sequence(key))
    }

    fn make_sequence(&mut self, key: Key) -> Result<Sequence, Error> {
        let proven = self.book().proven(&key, &self.room())?;
        let sequence = self.compile(&key, &proven)?;
        if proven.has_counters() {
            self.book_mut().kept.insert(key, sequence);
            return Ok(sequence);
        }
        let weight = proven.ops() / self.ranks();
        let old = self.book_mut().remember(key, sequence, weight);
        self.give_up(old.into_iter());
        Ok(sequence)
    }

    fn compile(&mut self, key: &Key, proven: &Proven) -> Result<Sequence, Error> {
        let mut prepare = |proved: &Proved| self.prepare_part(&proved.part, &proved.proof, key.bytes);
        let plan = prepare(&proven.plan)?;
        let tail = proven.tail.as_ref().map(prepare).transpose()?;
        // Where ranks exchange blocks, the copy is of the whole input, and made room for when first needed.
        let copies_windows = key.collective.folds() && !key.collective.has_blocks();
        if copies_windows && !self.runs_in_place(plan) {
            self.reserve_shadow(proven.window)?;
        }
        Ok(Sequence { plan, window: proven.window, whole: proven.whole, tail })
    }
}

/// Whether some rank has an input and an output, which may be one buffer.
pub(crate) fn has_two_buffers(collective: Collective) -> bool {
    collective.folds() || collective.has_blocks()
}
