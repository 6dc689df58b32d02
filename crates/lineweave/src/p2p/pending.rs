//! Messages that were started and are not over.
//!
//! 1. To one rank they go out in the order in which they were started, one after the other.
//! 2. What comes from one rank goes to the receive under way, else to the first that was started and asks for its tag. What nobody
//!    asks for is kept as ever, but not more than [`MOST_KEPT`] bytes: then it stays in the ring until somebody does.
//! 3. Who waits for a message that such a one is in front of gets [`Error::Unexpected`].

use super::{P2pEngine, Pulled, RecvOp, Rings, SendOp, MOST_KEPT};
use crate::error::Error;
use crate::segment::Segment;
use crate::wait::Waiter;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Outcome of a started message, for whoever asks: the bytes received, 0 for one that was sent.
#[derive(Debug, Default)]
pub(crate) struct Delivery(Mutex<Option<Result<usize, Error>>>);

impl Delivery {
    /// Returns the outcome, if the message has ended.
    pub fn outcome(&self) -> Option<Result<usize, Error>> {
        // Nothing that panics is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn finish(&self, outcome: Result<usize, Error>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
    }
}

enum What {
    Out(SendOp),
    In(RecvOp),
}

struct PendingMessage {
    what: What,
    delivery: Arc<Delivery>,
}

/// The started messages of one rank, with its ends of the rings while there are any.
pub(crate) struct PendingMessages {
    segment: Arc<Segment>,
    rank: usize,
    waiter: Waiter,
    pub p2p: P2pEngine,
    list: Vec<PendingMessage>,
}

// SAFETY: the addresses in it are of buffers that live until their messages are over, by the contract of who starts one, and are
// used by who has the pending messages only.
unsafe impl Send for PendingMessages {}

impl PendingMessages {
    /// None yet, of this rank.
    pub fn new(segment: Arc<Segment>, rank: usize, waiter: Waiter, p2p: P2pEngine) -> PendingMessages {
        PendingMessages { segment, rank, waiter, p2p, list: Vec::new() }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the bytes that are still to be sent, or to come of messages that are arriving.
    pub fn bytes_left(&self) -> usize {
        let left = |item: &PendingMessage| match &item.what {
            What::Out(out) => out.bytes - out.done,
            What::In(want) => want.under_way.map_or(want.room, |coming| coming.bytes - coming.done),
        };
        self.list.iter().map(left).sum()
    }

    /// One more to be sent.
    ///
    /// # Safety
    /// The message must be valid until it is over.
    pub unsafe fn send(&mut self, out: SendOp) -> Arc<Delivery> {
        self.add(What::Out(out))
    }

    /// One more to be received.
    ///
    /// # Safety
    /// The buffer must be valid until it is over.
    pub unsafe fn receive(&mut self, want: RecvOp) -> Arc<Delivery> {
        self.add(What::In(want))
    }

    fn add(&mut self, what: What) -> Arc<Delivery> {
        let delivery = Arc::<Delivery>::default();
        self.list.push(PendingMessage { what, delivery: Arc::clone(&delivery) });
        self.step();
        delivery
    }

    /// Checks that a message of this rank to itself fits the ring, if nobody asks for it yet.
    pub fn fits_oneself(&mut self, out: &SendOp) -> Result<(), Error> {
        let PendingMessages { segment, rank, waiter, p2p, list } = self;
        match list.iter().any(|item| item.from(None) == Some(*rank)) {
            true => Ok(()),
            false => PendingMessages::rings(segment, p2p, waiter, *rank).fits_oneself(out),
        }
    }

    fn rings<'a>(
        segment: &'a Segment,
        p2p: &'a mut P2pEngine,
        waiter: &'a mut Waiter,
        rank: usize,
    ) -> Rings<'a> {
        Rings { segment, p2p, waiter, rank }
    }

    /// Does what can be done now.
    pub fn step(&mut self) {
        self.push();
        let sources: BTreeSet<usize> = self.list.iter().filter_map(|item| item.from(None)).collect();
        for from in sources {
            if let Err(error) = self.pull(from) {
                self.end(|item| item.from(None) == Some(from), &error);
            }
        }
    }

    /// Sends what there is room for (step 1).
    fn push(&mut self) {
        let PendingMessages { segment, rank, waiter, p2p, list } = self;
        let mut behind = BTreeSet::new();
        list.retain_mut(|PendingMessage { what, delivery }| {
            let What::Out(out) = what else { return true };
            if behind.contains(&out.to) {
                return true;
            }
            // SAFETY: who started it vouches for the message.
            let pushed = unsafe { PendingMessages::rings(segment, p2p, waiter, *rank).push(out) };
            if let Ok(false) = pushed {
                behind.insert(out.to);
                return true;
            }
            delivery.finish(pushed.map(|_| 0));
            false
        });
    }

    /// Takes what came from a rank (step 2).
    fn pull(&mut self, from: usize) -> Result<(), Error> {
        let PendingMessages { segment, rank, waiter, p2p, list } = self;
        loop {
            let source = p2p.source(segment, *rank, from)?;
            let of = |tag: Option<u32>| list.iter().position(|item| item.from(tag) == Some(from));
            let under_way = list.iter().position(|item| match &item.what {
                What::In(want) => want.from == from && want.under_way.is_some(),
                What::Out(_) => false,
            });
            let kept = list.iter().position(|item| match &item.what {
                What::In(want) => want.from == from && source.kept.length(want.tag).is_some(),
                What::Out(_) => false,
            });
            let chosen = match (under_way.or(kept), source.next()) {
                (Some(at), _) => Some(at),
                _ if source.aside.is_some() => None,
                (None, None) => return Ok(()),
                (None, Some(head)) => match of(Some(head.tag)) {
                    None if !source.kept.has_room(head.bytes) => return Ok(()),
                    at => at,
                },
            };
            let want = chosen.and_then(|at| match &mut list[at].what {
                What::In(want) => Some(want),
                What::Out(_) => None,
            });
            // SAFETY: who started it vouches for the buffer.
            let pulled = unsafe { PendingMessages::rings(segment, p2p, waiter, *rank).pull_one(from, want) };
            match (pulled, chosen) {
                (Ok(Pulled::Nothing), _) => return Ok(()),
                (Ok(Pulled::Aside), _) | (Ok(Pulled::Whole(_)), None) => {}
                (Ok(Pulled::Whole(bytes)), Some(at)) => list.remove(at).delivery.finish(Ok(bytes)),
                (Err(error), Some(at)) => list.remove(at).delivery.finish(Err(error)),
                (Err(error), None) => return Err(error),
            }
        }
    }

    /// Returns an error for who waits for a message of this rank and tag that is behind one that cannot be kept (step 3).
    pub fn is_stuck(&mut self, from: usize, tag: u32) -> Result<(), Error> {
        let of = |item: &PendingMessage| item.from(None) == Some(from) && item.is_under_way();
        let waiting = self.list.iter().any(of);
        let wanted = |t: u32| self.list.iter().any(|item| item.from(Some(t)) == Some(from));
        let source = self.p2p.source(&self.segment, self.rank, from)?;
        match source.next() {
            Some(head) if !waiting && source.aside.is_none() && head.tag != tag && !wanted(head.tag) => {
                let kept = source.kept.bytes() + head.bytes;
                let error = Error::Unexpected { source_rank: from, tag, kept, most: MOST_KEPT };
                if source.kept.has_room(head.bytes) {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            _ => Ok(()),
        }
    }

    /// The bytes of the message of this rank and tag that would be received next, when all of it or its first cell has come.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Unexpected`].
    pub fn probe(&mut self, from: usize, tag: u32) -> Result<Option<usize>, Error> {
        self.step();
        if self.list.iter().any(|item| item.from(Some(tag)) == Some(from)) {
            // What comes is for that one.
            return Ok(None);
        }
        self.is_stuck(from, tag)?;
        loop {
            let PendingMessages { segment, rank, waiter, p2p, list } = self;
            let source = p2p.source(segment, *rank, from)?;
            if let Some(bytes) = source.kept.length(tag) {
                return Ok(Some(bytes));
            }
            if list.iter().any(|item| item.from(None) == Some(from) && item.is_under_way()) {
                return Ok(None);
            }
            match source.next() {
                Some(head) if source.aside.is_none() && head.tag == tag => return Ok(Some(head.bytes)),
                None => return Ok(None),
                Some(_) => {}
            }
            // SAFETY: no buffer is given.
            match unsafe { PendingMessages::rings(segment, p2p, waiter, *rank).pull_one(from, None) }? {
                Pulled::Nothing => return Ok(None),
                Pulled::Aside | Pulled::Whole(_) => {}
            }
        }
    }

    /// Ends those with an error for which `which` holds.
    fn end(&mut self, which: impl Fn(&PendingMessage) -> bool, error: &Error) {
        let PendingMessages { segment, rank, waiter, p2p, list } = self;
        list.retain_mut(|item| {
            if !which(item) {
                return true;
            }
            let mut outcome = Err(error.clone());
            if let What::Out(out) = &item.what {
                let revoked = PendingMessages::rings(segment, p2p, waiter, *rank).revoke(out);
                outcome = revoked.and(outcome);
            }
            item.delivery.finish(outcome);
            false
        });
    }

    /// Ends one with an error.
    pub fn end_one(&mut self, delivery: &Arc<Delivery>, error: &Error) {
        self.end(|item| Arc::ptr_eq(&item.delivery, delivery), error);
    }

    /// Ends all with an error.
    pub fn end_all(&mut self, error: &Error) {
        self.end(|_| true, error);
    }
}

impl PendingMessage {
    /// The rank that it is received from, if it is one to be received, under this tag if one is given.
    fn from(&self, tag: Option<u32>) -> Option<usize> {
        match &self.what {
            What::In(want) if tag.is_none_or(|tag| want.tag == tag) => Some(want.from),
            What::In(_) | What::Out(_) => None,
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(&self.what, What::In(want) if want.under_way.is_some())
    }
}
