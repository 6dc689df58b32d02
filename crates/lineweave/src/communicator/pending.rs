//! Messages that are started and waited for later: who carries them on, and who waits.
//!
//! While there are any, the rank's ends of the rings are with them, behind a lock, so that whoever waits in whatever call of this
//! thread, and the helper thread, can carry them on. Calls that send or receive meanwhile line up behind them, as they do while
//! started collectives are not over. When there are none any more, the next such call takes the rings back, and needs no lock again.

use super::ownership::pause;
use super::Communicator;
use crate::backoff::Backoff;
use crate::engine::{Engine, Mode};
use crate::error::Error;
use crate::p2p::{Delivery, PendingMessages, RecvOp, SendOp};
use crate::progress::{self, Progress, Progressed};
use crate::sync::Ordering;
use crate::wait::{Rounds, WaitMonitor, Waiter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Polls before a wait counts as one that is not over at once.
const SHORT: u32 = 20;

/// The pending messages of a rank, where others find them.
pub(crate) struct SharedPending(Mutex<PendingMessages>);

impl SharedPending {
    fn lock(&self) -> MutexGuard<'_, PendingMessages> {
        // Nothing that panics is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for SharedPending {
    fn progress(&self) -> Progressed {
        match self.0.try_lock() {
            Ok(mut pending) => {
                let before = pending.bytes_left();
                pending.step();
                Progressed::of(!pending.is_empty(), pending.bytes_left() != before)
            }
            Err(_) => Progressed::Waiting,
        }
    }
}

/// A message that was started; made by [`Communicator::isend_bytes`] and [`Communicator::irecv_bytes`].
#[derive(Debug)]
pub struct Message {
    delivery: Arc<Delivery>,
    operation: &'static str,
    peer: usize,
    tag: u32,
    /// Rounds of looking after the peers while the message is only tested.
    rounds: Rounds,
}

impl Message {
    /// Tells whether it is over, to whoever has its buffer: it is not carried on by that.
    pub fn ended(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let delivery = Arc::clone(&self.delivery);
        move || delivery.outcome().is_some()
    }

    fn new(delivery: Arc<Delivery>, operation: &'static str, peer: usize, tag: u32) -> Message {
        Message { delivery, operation, peer, tag, rounds: Rounds::default() }
    }
}

impl Communicator {
    /// Does something with the engine, between steps of whoever carries started calls on.
    pub(crate) fn with_engine<T>(&mut self, f: impl FnOnce(&mut Engine) -> T) -> T {
        if self.has_started() {
            if let Some(mut held) = self.shared.hold() {
                return f(held.engine());
            }
        }
        f(self.engine())
    }

    /// Returns whether messages line up behind started ones, or go beside started calls: the other rank may make those only
    /// after it has the message.
    #[inline]
    pub(crate) fn goes_beside(&mut self) -> bool {
        self.has_parcels() || self.has_calls()
    }

    /// Returns whether started calls are not over, after carrying them on a little.
    #[inline]
    pub(crate) fn has_calls(&mut self) -> bool {
        self.has_started() && self.carry_on()
    }

    #[cold]
    fn carry_on(&mut self) -> bool {
        let Some(mut held) = self.shared.hold() else { return false };
        held.carry_on(Mode::Poll, None);
        held.is_left()
    }

    /// Returns whether the rings are with pending messages that are not over; takes them back when all are.
    #[inline]
    fn has_parcels(&mut self) -> bool {
        self.pending.is_some() && !self.take_rings_back()
    }

    #[cold]
    fn take_rings_back(&mut self) -> bool {
        let Some(pending) = &self.pending else { return true };
        let mut locked = pending.lock();
        locked.step();
        if !locked.is_empty() {
            return false;
        }
        let p2p = std::mem::take(&mut locked.p2p);
        drop(locked);
        self.pending = None;
        self.with_engine(|engine| engine.p2p = p2p);
        true
    }

    /// The pending messages, to which the rings are given.
    fn shared_pending(&mut self) -> Arc<SharedPending> {
        if let Some(pending) = &self.pending {
            return Arc::clone(pending);
        }
        let (segment, rank) = (Arc::clone(&self.segment), self.rank);
        let (waiter, p2p) = self.with_engine(|engine| {
            let transport_config = engine.transport.transport_config();
            (Waiter::new(transport_config.budget, transport_config.order), std::mem::take(&mut engine.p2p))
        });
        let made = Arc::new(SharedPending(Mutex::new(PendingMessages::new(segment, rank, waiter, p2p))));
        self.pending = Some(Arc::clone(&made));
        made
    }

    fn start_message(
        &mut self,
        operation: &'static str,
        (peer, tag): (usize, u32),
        add: impl FnOnce(&mut PendingMessages) -> Arc<Delivery>,
    ) -> Result<Message, Error> {
        self.with_engine(|engine| engine.expect_usable())?;
        let pending = self.shared_pending();
        let delivery = add(&mut pending.lock());
        let message = Message::new(delivery, operation, peer, tag);
        if message.delivery.outcome().is_none() {
            let started: Arc<dyn Progress> = pending;
            progress::register(&started);
            // Relaxed: a preference, of use as soon as it is seen.
            if self.shared.helped.load(Ordering::Relaxed) {
                progress::help(&started);
            }
        }
        Ok(message)
    }

    /// Starts sending.
    ///
    /// # Safety
    /// The message must be valid until it is over.
    pub(crate) unsafe fn start_sending(
        &mut self,
        out: SendOp,
        to: usize,
        tag: u32,
    ) -> Result<Message, Error> {
        // SAFETY: the caller's.
        self.start_message("send", (to, tag), |pending| unsafe { pending.send(out) })
    }

    /// Starts receiving.
    ///
    /// # Safety
    /// The buffer must be valid until it is over.
    pub(crate) unsafe fn start_receiving(
        &mut self,
        want: RecvOp,
        from: usize,
        tag: u32,
    ) -> Result<Message, Error> {
        // SAFETY: the caller's.
        self.start_message("recv", (from, tag), |pending| unsafe { pending.receive(want) })
    }

    fn step_parcels(&mut self) {
        if let Some(pending) = &self.pending {
            pending.lock().step();
        }
    }

    /// Waits until a started message is over: sent, so that its buffer may be used again, or received; returns the bytes
    /// received.
    ///
    /// # Errors
    /// The errors of [`Communicator::send`] and [`Communicator::recv`].
    pub fn wait_message(&mut self, message: &Message) -> Result<usize, Error> {
        let Message { delivery, operation, peer, tag, .. } = message;
        let (peer, tag, receives) = (*peer, *tag, *operation == "recv");
        let waited = self.await_beside(operation, Some(peer), |comm| {
            comm.step_parcels();
            let outcome = delivery.outcome();
            match (&outcome, &comm.pending) {
                (None, Some(pending)) if receives => {
                    let mut pending = pending.lock();
                    if let Err(error) = pending.is_stuck(peer, tag) {
                        pending.end_one(delivery, &error);
                    }
                }
                _ => {}
            }
            outcome.map(Ok)
        });
        match waited {
            Ok(outcome) => outcome,
            Err(error) => {
                if let Some(pending) = &self.pending {
                    pending.lock().end_one(delivery, &error);
                }
                Err(error)
            }
        }
    }

    /// Checks that a message to oneself that is waited for will not be waited for in vain.
    pub(crate) fn expect_room(&mut self, out: &SendOp) -> Result<(), Error> {
        self.with_engine(|engine| engine.expect_usable())?;
        self.shared_pending().lock().fits_oneself(out)
    }

    /// Polls, and looks now and then whether the peer is there.
    pub(crate) fn await_beside<T>(
        &mut self,
        operation: &'static str,
        peer: Option<usize>,
        mut poll: impl FnMut(&mut Communicator) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        let (mut backoff, mut rounds, mut turns) = (Backoff::default(), Rounds::default(), 0);
        let outcome = loop {
            if let Some(outcome) = poll(self) {
                break outcome;
            }
            turns += 1;
            if turns == SHORT {
                self.with_engine(|engine| {
                    engine.transport.watch.forget();
                    engine.transport.watch.begin();
                });
            }
            if turns >= SHORT {
                if let Some(waited) = rounds.due(Instant::now()) {
                    let look = |engine: &mut Engine| engine.look_beside(operation, peer, waited);
                    if let Err(error) = self.with_engine(look) {
                        break Err(error);
                    }
                }
            }
            pause(&mut backoff);
        };
        if turns >= SHORT {
            self.with_engine(|engine| engine.transport.watch.end());
        }
        outcome
    }

    /// Returns whether a started message is over, after carrying it on a little: the bytes received, 0 for one that was sent.
    ///
    /// # Errors
    /// The errors of [`Communicator::wait_message`].
    pub fn test_message(&mut self, message: &mut Message) -> Result<Option<usize>, Error> {
        self.step_parcels();
        progress::turn();
        if let Some(outcome) = message.delivery.outcome() {
            return outcome.map(Some);
        }
        if let Some(waited) = message.rounds.due_of_test(Instant::now()) {
            let (operation, peer) = (message.operation, message.peer);
            let looked = self.with_engine(|engine| engine.look_beside(operation, Some(peer), waited));
            if let (Err(error), Some(pending)) = (&looked, &self.pending) {
                pending.lock().end_one(&message.delivery, error);
            }
            self.with_engine(|engine| engine.transport.watch.settle());
            looked?;
        }
        Ok(None)
    }

    /// The rank that a message of this tag has come from, of those that are asked for, and its bytes; a receive from that rank
    /// under that tag gets it. With `wait` it waits until there is one.
    ///
    /// # Errors
    /// [`Error::NoRank`], [`Error::Memory`]; [`Error::PeerLost`] and [`Error::Timeout`] when it waits.
    ///
    /// ```
    /// let got = lineweave::team::threads(2, |mut comm| {
    ///     if comm.rank() == 0 {
    ///         comm.send(&[3u8, 1, 4], 1, 7)?;
    ///         return Ok(vec![]);
    ///     }
    ///     let (from, bytes) = comm.probe(None, 7, true)?.expect("it waits until there is one");
    ///     let mut message = vec![0u8; bytes];
    ///     comm.recv(&mut message, from, 7)?;
    ///     Ok(message)
    /// })?;
    /// assert_eq!(got[1], [3, 1, 4]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn probe(
        &mut self,
        from: Option<usize>,
        tag: u32,
        wait: bool,
    ) -> Result<Option<(usize, usize)>, Error> {
        let ranks = self.ranks();
        if let Some(rank) = from.filter(|&rank| rank >= ranks) {
            return Err(Error::NoRank { what: "probe", rank, ranks });
        }
        self.with_engine(|engine| engine.expect_usable())?;
        let sources = from.map_or(0..ranks, |rank| rank..rank + 1);
        self.shared_pending();
        let poll = |comm: &mut Communicator| -> Option<Result<(usize, usize), Error>> {
            let pending = comm.shared_pending();
            let mut pending = pending.lock();
            sources.clone().find_map(|from| match pending.probe(from, tag) {
                Ok(Some(bytes)) => Some(Ok((from, bytes))),
                Ok(None) => None,
                Err(error) => Some(Err(error)),
            })
        };
        match wait {
            true => self.await_beside("probe", from, poll).map(Some),
            false => {
                progress::turn();
                poll(self).transpose()
            }
        }
    }

    /// Ends the messages that were started: this rank leaves.
    pub(super) fn end_parcels(&mut self, why: &str) {
        if let Some(pending) = &self.pending {
            let mut pending = pending.lock();
            // What the ring has room for is on its way.
            pending.step();
            pending.end_all(&Error::Failed(why.to_owned()));
        }
    }
}
