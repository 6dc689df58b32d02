//! What is no call of all ranks and has no number: messages, and waiting for one rank.

use super::state::Engine;
use super::wire::Wire;
use crate::error::Error;
use crate::post::{Errand, Mailbox, Rings, Stopped};
use std::time::Duration;

impl Engine {
    /// Whether something can still be done with one rank, for which this one has waited so long elsewhere.
    pub(crate) fn look_beside(
        &mut self,
        operation: &'static str,
        peer: Option<usize>,
        waited: Duration,
    ) -> Result<(), Error> {
        let before = self.begin_errand(operation)?;
        let looked = self.wire.watch.check_peer(peer, waited).map_err(|i| self.interrupted(i));
        self.wire.watch.operation = before;
        looked
    }

    /// Nothing, where something can still be done.
    ///
    /// # Errors
    /// The loss that ended the last call, [`Error::Failed`], [`Error::Forked`].
    pub(crate) fn expect_usable(&mut self) -> Result<(), Error> {
        match self.health.expect_usable() {
            Err(error @ Error::Failed(_)) => Err(self.wire.watch.loss().unwrap_or(error)),
            other => other,
        }
    }

    /// Begins something that is no call of all ranks and has no number.
    fn begin_errand(&mut self, operation: &'static str) -> Result<&'static str, Error> {
        self.expect_usable()?;
        Ok(std::mem::replace(&mut self.wire.watch.operation, operation))
    }

    /// Does it, and waits meanwhile.
    pub(crate) fn do_errand<E: Errand>(
        &mut self,
        operation: &'static str,
        errand: &mut E,
    ) -> Result<E::Done, Error> {
        let before = self.begin_errand(operation)?;
        self.wire.watch.forget();
        self.health.busy = true;
        let mut mailbox = self.mailbox();
        let outcome = loop {
            match errand.step(&mut mailbox) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(stopped) => break Err(stopped),
            }
            if let Err(stopped) = errand.wait(&mut mailbox) {
                break Err(stopped);
            }
        };
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, errand));
        self.health.busy = self.health.failed.is_some();
        self.wire.watch.operation = before;
        outcome
    }

    /// Does what can be done of it now. With a time waited it also looks whether it can still be done.
    pub(crate) fn try_errand<E: Errand>(
        &mut self,
        operation: &'static str,
        errand: &mut E,
        look: Option<Duration>,
    ) -> Result<Option<E::Done>, Error> {
        let before = match self.begin_errand(operation) {
            Ok(before) => before,
            Err(error) => return errand.give_up(&mut self.mailbox()).and(Err(error)),
        };
        self.wire.waiter.call_hook();
        let mut outcome = errand.step(&mut self.mailbox());
        if let (Ok(None), Some(waited)) = (&outcome, look) {
            let looked = self.wire.watch.check_beside(errand.peer(), waited);
            outcome = looked.map(|()| None).map_err(Stopped::from);
        }
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, errand));
        self.wire.watch.operation = before;
        outcome
    }

    /// The error of what was stopped.
    fn stopped<E: Errand>(&mut self, stopped: Stopped, errand: &mut E) -> Error {
        if let Err(error) = errand.give_up(&mut self.mailbox()) {
            return error;
        }
        match stopped {
            Stopped::Interrupted(interrupted) => self.interrupted(interrupted),
            Stopped::Refused(error) => error,
        }
    }

    fn mailbox(&mut self) -> Mailbox<'_> {
        let Engine { segment, post, wire: Wire { waiter, watch, .. }, rank, .. } = self;
        Mailbox { rings: Rings { segment, post, waiter, rank: *rank }, watch }
    }
}
