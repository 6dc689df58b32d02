//! Operations that are no calls of all ranks and have no number: messages, and waiting for one rank.

use super::state::Engine;
use super::transport::Transport;
use crate::error::Error;
use crate::flag;
use crate::p2p::{Exchange, P2pContext, Rings, Stopped};
use std::time::Duration;

impl Engine {
    /// Returns whether something can still be done with one rank, for which this one has waited so long elsewhere.
    pub(crate) fn look_beside(
        &mut self,
        operation: &'static str,
        peer: Option<usize>,
        waited: Duration,
    ) -> Result<(), Error> {
        let before = self.begin_p2p(operation)?;
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
    fn begin_p2p(&mut self, operation: &'static str) -> Result<&'static str, Error> {
        self.expect_usable()?;
        Ok(std::mem::replace(&mut self.transport.watch.operation, operation))
    }

    /// Does something that waits for one rank, or for none.
    fn p2p<T>(
        &mut self,
        operation: &'static str,
        act: impl FnOnce(&mut Engine) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.begin_p2p(operation)?;
        self.transport.watch.forget();
        self.health.busy = true;
        let outcome = act(self);
        self.health.busy = self.health.failed.is_some();
        self.transport.watch.operation = before;
        outcome
    }

    /// Sends, receives, or both, and waits meanwhile; returns the bytes received.
    pub(crate) fn exchange(
        &mut self,
        operation: &'static str,
        mut exchange: Exchange,
    ) -> Result<usize, Error> {
        self.p2p(operation, |engine| {
            let mut mailbox = engine.mailbox();
            let stopped = loop {
                match exchange.step(&mut mailbox) {
                    Ok(Some(bytes)) => return Ok(bytes),
                    Ok(None) => {}
                    Err(stopped) => break stopped,
                }
                if let Err(stopped) = exchange.wait(&mut mailbox) {
                    break stopped;
                }
            };
            exchange.give_up(&mut mailbox)?;
            Err(match stopped {
                Stopped::Interrupted(interrupted) => engine.interrupted(interrupted),
                Stopped::Refused(error) => error,
            })
        })
    }

    /// Waits for a flag of this rank's window.
    pub(crate) fn wait_flag(&mut self, flag: usize, value: u64) -> Result<(), Error> {
        self.p2p("flag_wait", |engine| {
            let mut mailbox = engine.mailbox();
            let rank = mailbox.rings.rank;
            let word = mailbox.rings.segment.window_flag(rank, flag);
            if flag::reached(word, value) {
                return Ok(());
            }
            mailbox.wait(word, value, rank, None).map_err(|interrupted| engine.interrupted(interrupted))
        })
    }

    fn mailbox(&mut self) -> P2pContext<'_> {
        let Engine { segment, p2p, transport: Transport { waiter, watch, .. }, rank, .. } = self;
        P2pContext { rings: Rings { segment, p2p, waiter, rank: *rank }, watch }
    }
}
