//! Operations that are no calls of all ranks and have no number: messages, and waiting for one rank.

use super::state::Engine;
use super::transport::Transport;
use crate::error::Error;
use crate::p2p::{P2pContext, P2pOperation, Rings, Stopped};
use std::time::Duration;

impl Engine {
    /// Returns whether something can still be done with one rank, for which this one has waited so long elsewhere.
    pub(crate) fn look_beside(
        &mut self,
        operation: &'static str,
        peer: Option<usize>,
        waited: Duration,
    ) -> Result<(), Error> {
        let before = self.begin_errand(operation)?;
        let looked = self.transport.watch.check_peer(peer, waited).map_err(|i| self.interrupted(i));
        self.transport.watch.operation = before;
        looked
    }

    /// Nothing, where something can still be done.
    ///
    /// # Errors
    /// The loss that ended the last call, [`Error::Failed`], [`Error::Forked`].
    pub(crate) fn expect_usable(&mut self) -> Result<(), Error> {
        match self.health.expect_usable() {
            Err(error @ Error::Failed(_)) => Err(self.transport.watch.loss().unwrap_or(error)),
            other => other,
        }
    }

    /// Begins something that is no call of all ranks and has no number.
    fn begin_errand(&mut self, operation: &'static str) -> Result<&'static str, Error> {
        self.expect_usable()?;
        Ok(std::mem::replace(&mut self.transport.watch.operation, operation))
    }

    /// Does it, and waits meanwhile.
    pub(crate) fn do_p2p<E: P2pOperation>(
        &mut self,
        operation: &'static str,
        p2p_operation: &mut E,
    ) -> Result<E::Done, Error> {
        let before = self.begin_errand(operation)?;
        self.transport.watch.forget();
        self.health.busy = true;
        let mut mailbox = self.mailbox();
        let outcome = loop {
            match p2p_operation.step(&mut mailbox) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(stopped) => break Err(stopped),
            }
            if let Err(stopped) = p2p_operation.wait(&mut mailbox) {
                break Err(stopped);
            }
        };
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, p2p_operation));
        self.health.busy = self.health.failed.is_some();
        self.transport.watch.operation = before;
        outcome
    }

    /// Does what can be done of it now. With a time waited it also looks whether it can still be done.
    pub(crate) fn try_p2p<E: P2pOperation>(
        &mut self,
        operation: &'static str,
        p2p_operation: &mut E,
        look: Option<Duration>,
    ) -> Result<Option<E::Done>, Error> {
        let before = match self.begin_errand(operation) {
            Ok(before) => before,
            Err(error) => return p2p_operation.give_up(&mut self.mailbox()).and(Err(error)),
        };
        self.transport.waiter.call_hook();
        let mut outcome = p2p_operation.step(&mut self.mailbox());
        if let (Ok(None), Some(waited)) = (&outcome, look) {
            let looked = self.transport.watch.check_beside(p2p_operation.peer(), waited);
            outcome = looked.map(|()| None).map_err(Stopped::from);
        }
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, p2p_operation));
        self.transport.watch.operation = before;
        outcome
    }

    /// The error of what was stopped.
    fn stopped<E: P2pOperation>(&mut self, stopped: Stopped, p2p_operation: &mut E) -> Error {
        if let Err(error) = p2p_operation.give_up(&mut self.mailbox()) {
            return error;
        }
        match stopped {
            Stopped::Interrupted(interrupted) => self.interrupted(interrupted),
            Stopped::Refused(error) => error,
        }
    }

    fn mailbox(&mut self) -> P2pContext<'_> {
        let Engine { segment, p2p, transport: Transport { waiter, watch, .. }, rank, .. } = self;
        P2pContext { rings: Rings { segment, p2p, waiter, rank: *rank }, watch }
    }
}
