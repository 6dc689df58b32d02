//! Choices of one's own: another algorithm for one call than the tuning would take, to compare them.

use super::book::Book;
use super::record::Proofs;
use super::shelf::{Key, Reach};
use super::Sequence;
use crate::check::CallSpec;
use crate::communicator::Engine;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::select::Question;

/// A choice of one's own for one call, proven and compiled on one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adoptable {
    key: Key,
    sequence: Sequence,
}

impl Engine {
    /// The question that a call of this size poses to whoever chooses.
    pub fn question(&self, call: &CallSpec) -> Question {
        self.book().question(&self.book().key_of(call), &self.room())
    }

    /// Proves and compiles a choice for a call, to be used by [`Engine::adopt`]. Every rank must prepare the
    /// same choices in the same order.
    ///
    /// # Errors
    /// [`Error::Plan`] or [`Error::NoPlan`] when it does not apply, [`Error::Refuted`].
    pub fn prepare_choice(&mut self, call: &CallSpec, chosen: &Chosen) -> Result<Adoptable, Error> {
        let key = self.book().key_of(call);
        let room = self.room();
        let question = self.book().question(&key, &room);
        let proven = Book::plans(&key, &question, chosen, &mut Proofs::Made(&mut Vec::new()), room.rank)?;
        Ok(Adoptable { key, sequence: self.compile(&key, &proven)? })
    }

    /// Whether long calls go by cross-memory attach where the model says so: see [`crate::Communicator::set_cross_memory`].
    pub fn set_cross_memory(&mut self, on: bool) -> bool {
        self.cool();
        self.book_mut().forget_last();
        self.book_mut().set_attach(on)
    }

    /// The best choice by the model among plans that reach other ranks' buffers.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when ranks do not reach them for a call of this length, or no plan does.
    pub fn best_direct(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let book = self.book();
        let key = book.key_of(call);
        let question = book.question(&key, &self.room());
        let no_plan = |why: &str| Error::NoPlan {
            collective: question.collective,
            bytes: question.bytes,
            ranks: question.shape.ranks(),
            why: why.to_owned(),
        };
        if key.reach == Reach::Own {
            return Err(no_plan("ranks do not reach each other's buffers for messages of this length"));
        }
        book.best_direct(&question)
            .ok_or_else(|| no_plan("no plan that reaches other ranks' buffers applies"))
    }

    /// Calls of this size run this choice from now on, whatever the tuning says, until
    /// [`Engine::forget`]. Every rank must adopt the same.
    pub fn adopt(&mut self, choice: &Adoptable) {
        self.cool();
        let book = self.book_mut();
        book.kept.insert(choice.key, choice.sequence);
        book.last[choice.key.collective as usize] = None;
    }

    /// Calls of this size run what the tuning says again.
    pub fn forget(&mut self, choice: &Adoptable) {
        self.cool();
        let book = self.book_mut();
        book.kept.remove(&choice.key);
        book.last[choice.key.collective as usize] = None;
    }
}
