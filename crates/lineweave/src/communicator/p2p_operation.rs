//! Operations of a rank with one other rank and not with all, beside calls that were started.
//!
//! Started calls need not be over before such an operation begins: the other rank may make them only after it. So they are carried on
//! between its steps, and the engine is given back after each step, for whoever else wants it. As soon as no call is left, the operation
//! waits as any other wait does.

use super::ownership::pause;
use super::Communicator;
use crate::backoff::Backoff;
use crate::engine::{Engine, Mode};
use crate::error::Error;
use crate::p2p::P2pOperation;
use crate::wait::{Rounds, WaitMonitor};
use std::time::Instant;

impl Communicator {
    /// Does it, while started calls are carried on.
    pub(crate) fn do_p2p<E: P2pOperation>(
        &mut self,
        operation: &'static str,
        p2p_operation: &mut E,
    ) -> Result<E::Done, Error> {
        if self.has_started() {
            if let Some(done) = self.do_beside(operation, p2p_operation) {
                return done;
            }
        }
        self.engine().do_p2p(operation, p2p_operation)
    }

    /// Does something with the engine, between steps of whoever carries started calls on.
    pub(crate) fn with_engine<T>(&mut self, f: impl FnOnce(&mut Engine) -> T) -> T {
        if self.has_started() {
            if let Some(mut held) = self.shared.hold() {
                return f(held.engine());
            }
        }
        f(self.engine())
    }

    /// Does it between steps of the started calls; nothing when they are over and it is not.
    fn do_beside<E: P2pOperation>(
        &mut self,
        operation: &'static str,
        p2p_operation: &mut E,
    ) -> Option<Result<E::Done, Error>> {
        let (mut rounds, mut backoff, mut waits) = (Rounds::default(), Backoff::default(), false);
        let outcome = loop {
            let Some(mut held) = self.shared.hold() else { break None };
            held.carry_on(Mode::Poll, None);
            let engine = held.engine();
            match engine.try_p2p(operation, p2p_operation, rounds.due(Instant::now())) {
                Ok(None) if !waits => {
                    waits = true;
                    engine.transport.watch.forget();
                    engine.transport.watch.begin();
                }
                Ok(None) => {}
                Ok(Some(done)) => break Some(Ok(done)),
                Err(error) => break Some(Err(error)),
            }
            drop(held);
            pause(&mut backoff);
        };
        if waits {
            self.with_engine(|engine| engine.transport.watch.end());
        }
        outcome
    }
}
