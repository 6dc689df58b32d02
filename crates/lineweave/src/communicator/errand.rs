//! What a rank does with another one and not with all, beside calls that were started.
//!
//! Started calls need not be over before it begins: the other rank may make them only after it. So they are carried on between
//! its steps, and the engine is given back after each, for whoever else wants it. As soon as no call is left, it waits as any
//! other wait does.

use super::lend::pause;
use super::Communicator;
use super::{Engine, Mode};
use crate::error::Error;
use crate::post::{Desk, Errand, Rings, Stopped};
use crate::wait::Vigil;
use std::time::{Duration, Instant};

/// How often a rank that is awaited is looked after.
pub(super) const LOOK: Duration = Duration::from_millis(5);

impl Communicator {
    /// Does it, while started calls are carried on.
    pub(crate) fn do_errand<E: Errand>(
        &mut self,
        operation: &'static str,
        errand: &mut E,
    ) -> Result<E::Done, Error> {
        if self.has_started() {
            if let Some(done) = self.do_beside(operation, errand) {
                return done;
            }
        }
        self.engine().do_errand(operation, errand)
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
    fn do_beside<E: Errand>(
        &mut self,
        operation: &'static str,
        errand: &mut E,
    ) -> Option<Result<E::Done, Error>> {
        let start = Instant::now();
        let (mut looked, mut tries) = (start, 0);
        let outcome = loop {
            let Some(mut held) = self.shared.hold() else { break None };
            held.carry_on(Mode::Poll, None);
            let now = Instant::now();
            let look = now - looked >= LOOK;
            if look {
                looked = now;
            }
            let engine = held.engine();
            match engine.try_errand(operation, errand, look.then_some(now - start)) {
                Ok(None) if tries == 0 => {
                    engine.watch.forget();
                    engine.watch.begin();
                }
                Ok(None) => {}
                Ok(Some(done)) => break Some(Ok(done)),
                Err(error) => break Some(Err(error)),
            }
            drop(held);
            pause(&mut tries);
        };
        if tries > 0 {
            self.with_engine(|engine| engine.watch.end());
        }
        outcome
    }
}

impl Engine {
    /// Whether something can still be done with one rank, for which this one has waited so long elsewhere.
    pub(super) fn look_beside(
        &mut self,
        operation: &'static str,
        peer: Option<usize>,
        waited: Duration,
    ) -> Result<(), Error> {
        let before = self.begin_errand(operation)?;
        let looked = self.watch.check_peer(peer, waited).map_err(|i| self.interrupted(i));
        self.watch.operation = before;
        looked
    }

    /// Whether anything can still be done.
    pub(super) fn expect_usable(&mut self) -> Result<(), Error> {
        if self.is_inherited() {
            return Err(Error::Forked);
        }
        match self.failed.clone() {
            Some(why) => Err(self.watch.loss().unwrap_or(Error::Failed(why))),
            None => Ok(()),
        }
    }

    /// Begins something that is no call of all ranks and has no number.
    fn begin_errand(&mut self, operation: &'static str) -> Result<&'static str, Error> {
        self.expect_usable()?;
        Ok(std::mem::replace(&mut self.watch.operation, operation))
    }

    /// Does it, and waits meanwhile.
    fn do_errand<E: Errand>(&mut self, operation: &'static str, errand: &mut E) -> Result<E::Done, Error> {
        let before = self.begin_errand(operation)?;
        self.watch.forget();
        self.busy = true;
        let mut desk = self.desk();
        let outcome = loop {
            match errand.step(&mut desk) {
                Ok(Some(done)) => break Ok(done),
                Ok(None) => {}
                Err(stopped) => break Err(stopped),
            }
            if let Err(stopped) = errand.wait(&mut desk) {
                break Err(stopped);
            }
        };
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, errand));
        self.busy = self.failed.is_some();
        self.watch.operation = before;
        outcome
    }

    /// Does what can be done of it now. With a time waited it also looks whether it can still be done.
    fn try_errand<E: Errand>(
        &mut self,
        operation: &'static str,
        errand: &mut E,
        look: Option<Duration>,
    ) -> Result<Option<E::Done>, Error> {
        let before = match self.begin_errand(operation) {
            Ok(before) => before,
            Err(error) => return errand.give_up(&mut self.desk()).and(Err(error)),
        };
        self.waiter.call_hook();
        let mut outcome = errand.step(&mut self.desk());
        if let (Ok(None), Some(waited)) = (&outcome, look) {
            let looked = self.watch.check_beside(errand.peer(), waited);
            outcome = looked.map(|()| None).map_err(Stopped::from);
        }
        let outcome = outcome.map_err(|stopped| self.stopped(stopped, errand));
        self.watch.operation = before;
        outcome
    }

    /// The error of what was stopped.
    fn stopped<E: Errand>(&mut self, stopped: Stopped, errand: &mut E) -> Error {
        if let Err(error) = errand.give_up(&mut self.desk()) {
            return error;
        }
        match stopped {
            Stopped::Interrupted(interrupted) => self.interrupted(interrupted),
            Stopped::Refused(error) => error,
        }
    }

    fn desk(&mut self) -> Desk<'_> {
        let Engine { segment, post, waiter, watch, rank, .. } = self;
        Desk { rings: Rings { segment, post, waiter, rank: *rank }, watch }
    }
}
