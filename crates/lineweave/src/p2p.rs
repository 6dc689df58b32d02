//! Point-to-point messages: transfer through the cells of a ring, and queues of messages that arrive before they are asked for.
//!
//! 1. A short message is one cell. A longer one goes, where ranks reach each other's memory, as one cell that says where
//!    it is, and the receiver copies it straight from there; the sender waits for that. Otherwise it goes through as many
//!    cells as it needs, and both sides copy at the same time.
//! 2. Messages of a pair are taken in the order in which they were sent. The receiver takes the first whose tag it asks
//!    for; those before it are kept, up to [`MOST_KEPT`] bytes, and come first when their tag is asked for: so two
//!    messages of one tag never overtake each other.
//! 3. Who copies from a sender's memory first claims the message, and a sender whose wait is ended first revokes it: one of
//!    them finds the other was there, and the sender does not return while somebody copies.
//! 4. A receiver that asks for nothing takes nothing: the ring fills up, and the sender waits.
//!
//! A blocking call is an [`Exchange`] (`p2p_operation.rs`); nonblocking messages, and messages beside started calls, are
//! [`PendingMessages`] (`pending.rs`).

mod cell;
mod p2p_operation;
mod kept;
mod pending;

pub(crate) use p2p_operation::{on_peer, Exchange, Stopped, Watching};
pub(crate) use pending::{Delivery, PendingMessages};

use crate::error::Error;
use crate::failure_detector::FailureDetector;
use crate::flag;
use crate::message_ring::{RecvEnd, SendEnd};
use crate::segment::{Geometry, P2pRing, Segment};
use crate::sync::{AtomicU64, Ordering};
use crate::wait::{Interrupted, Waiter};
use cell::{claim, take_over, Head, CLAIMED, HEAD, OPEN, REVOKED};
use kept::Kept;

/// Bytes of messages that are kept for a pair of ranks because other tags were asked for first.
pub const MOST_KEPT: usize = 1 << 20;

/// One rank's ends of its message rings.
#[derive(Debug, Default)]
pub(crate) struct P2pEngine {
    to: Vec<Option<(P2pRing, SendEnd)>>,
    from: Vec<Option<Source>>,
}

#[derive(Debug)]
struct Source {
    mail: P2pRing,
    inbox: RecvEnd,
    /// The message that comes in now, when nobody asked for it.
    aside: Option<Aside>,
    kept: Kept,
}

/// A send operation.
pub(crate) struct SendOp {
    to: usize,
    tag: u32,
    start: *const u8,
    bytes: usize,
    /// Sent so far; the first cell is always sent.
    done: usize,
    begun: bool,
    direct: bool,
    /// Value that `taken` reaches when the receiver has copied a direct message.
    awaits: Option<u64>,
}

/// A receive operation.
pub(crate) struct RecvOp {
    from: usize,
    tag: u32,
    start: *mut u8,
    room: usize,
    under_way: Option<UnderWay>,
}

/// A message of several cells that is still arriving.
#[derive(Clone, Copy)]
struct UnderWay {
    bytes: usize,
    done: usize,
}

/// An unexpected message that is still arriving.
#[derive(Debug)]
struct Aside {
    tag: u32,
    bytes: Vec<u8>,
    done: usize,
}

/// The result of polling a ring.
enum Pulled {
    /// No complete message has arrived.
    Nothing,
    /// An unexpected message was queued.
    Aside,
    /// The expected message is complete, with its length in bytes.
    Whole(usize),
}

impl SendOp {
    /// Makes the operation that sends `bytes` bytes at `start`.
    pub fn new(to: usize, tag: u32, start: *const u8, bytes: usize, reachable: bool, cell: usize) -> SendOp {
        let direct = reachable && bytes > cell - HEAD;
        SendOp { to, tag, start, bytes, done: 0, begun: false, direct, awaits: None }
    }

    fn is_sent(&self) -> bool {
        self.begun && (self.direct || self.done == self.bytes)
    }
}

impl RecvOp {
    /// At most `room` bytes to `start`.
    pub fn new(from: usize, tag: u32, start: *mut u8, room: usize) -> RecvOp {
        RecvOp { from, tag, start, room, under_way: None }
    }
}

/// State of one rank that sending and receiving need.
pub(crate) struct Rings<'a> {
    pub segment: &'a Segment,
    pub p2p: &'a mut P2pEngine,
    pub waiter: &'a mut Waiter,
    pub rank: usize,
}

/// Everything that a step of an operation needs.
pub(crate) struct P2pContext<'a> {
    pub rings: Rings<'a>,
    pub watch: &'a mut FailureDetector,
}

impl P2pEngine {
    fn outbox(
        &mut self,
        segment: &Segment,
        rank: usize,
        to: usize,
    ) -> Result<&mut (P2pRing, SendEnd), Error> {
        if self.to.is_empty() {
            self.to.resize_with(segment.ranks(), || None);
        }
        let place = &mut self.to[to];
        if place.is_none() {
            *place = Some((segment.claim_mail(rank, to)?, SendEnd::new(Geometry::MAIL_CELLS as u64)));
        }
        place.as_mut().ok_or_else(|| Error::Failed("a ring was not made ready".into()))
    }

    fn source(&mut self, segment: &Segment, rank: usize, from: usize) -> Result<&mut Source, Error> {
        if self.from.is_empty() {
            self.from.resize_with(segment.ranks(), || None);
        }
        let place = &mut self.from[from];
        if place.is_none() {
            let (mail, inbox) = (segment.claim_mail(from, rank)?, RecvEnd::new(Geometry::MAIL_CELLS as u64));
            *place = Some(Source { mail, inbox, aside: None, kept: Kept::default() });
        }
        place.as_mut().ok_or_else(|| Error::Failed("a ring was not made ready".into()))
    }
}

impl Source {
    /// The first cell of the next message, when no message is under way.
    fn next(&self) -> Option<Head> {
        let there = self.inbox.is_there(self.mail.sent());
        // SAFETY: the cell was published by its sender, and stays until it is taken.
        there.then(|| unsafe { self.mail.cell(self.inbox.cell()).cast::<Head>().read() })
    }
}

impl P2pContext<'_> {
    /// Waits for a word of the memory of `home`, and watches over the one rank that matters.
    pub fn wait(
        &mut self,
        flag: &AtomicU64,
        value: u64,
        home: usize,
        peer: Option<usize>,
    ) -> Result<(), Interrupted> {
        let mut monitor = on_peer(self.watch, peer);
        self.rings.waiter.wait(flag, value, self.rings.segment.sleepers(home), &mut monitor)
    }
}

impl Rings<'_> {
    /// The flag and value that tell when more can be sent, or that a message given by its address was taken.
    fn awaits(&mut self, out: &SendOp) -> Result<(P2pRing, u64), Error> {
        let (mail, outbox) = self.p2p.outbox(self.segment, self.rank, out.to)?;
        Ok((*mail, out.awaits.unwrap_or(outbox.needs())))
    }

    /// The flag and value that tell when the next cell of a message has come in.
    fn wants(&mut self, want: &RecvOp) -> Result<(P2pRing, u64), Error> {
        let source = self.p2p.source(self.segment, self.rank, want.from)?;
        Ok((source.mail, source.inbox.needs()))
    }

    /// Sends as much as there is room for; whether all is sent, and what was given by its address copied.
    ///
    /// # Safety
    /// The message must be valid.
    unsafe fn push(&mut self, out: &mut SendOp) -> Result<bool, Error> {
        let (mail, outbox) = self.p2p.outbox(self.segment, self.rank, out.to)?;
        let room = mail.cell_bytes() - HEAD;
        while !out.is_sent() && outbox.is_free(mail.taken()) {
            let cell = mail.cell(outbox.cell());
            let n = if out.direct { 0 } else { room.min(out.bytes - out.done) };
            let head = Head {
                tag: out.tag,
                direct: u32::from(out.direct),
                bytes: out.bytes,
                address: out.start as usize,
            };
            // SAFETY: the cell is this rank's to fill, and holds the head and `n` bytes behind it; the message's extent
            // is the caller's.
            unsafe {
                cell.cast::<Head>().write(head);
                // Relaxed: published with the cell.
                claim(cell).store(OPEN, Ordering::Relaxed);
                crate::kernel::copy(out.start.add(out.done), cell.add(HEAD), n);
            }
            out.done += n;
            out.begun = true;
            let sent = outbox.advance();
            if out.direct {
                out.awaits = Some(sent);
            }
            self.waiter.raise(mail.sent(), sent, self.segment.sleepers(out.to));
        }
        Ok(out.is_sent() && out.awaits.is_none_or(|value| flag::reached(mail.taken(), value)))
    }

    /// Takes what is there; the message's length when it is complete.
    ///
    /// # Safety
    /// The buffer must be valid.
    unsafe fn pull(&mut self, want: &mut RecvOp) -> Result<Option<usize>, Error> {
        loop {
            // SAFETY: the caller's.
            match unsafe { self.pull_one(want.from, Some(want)) }? {
                Pulled::Nothing => return Ok(None),
                Pulled::Aside => {}
                Pulled::Whole(bytes) => return Ok(Some(bytes)),
            }
        }
    }

    /// Takes what is there up to the end of one message. Without `want`, a message that comes is kept. While a receive from this rank is
    /// under way, only that receive may be given as `want`.
    ///
    /// # Safety
    /// The buffer must be valid.
    unsafe fn pull_one(&mut self, from: usize, mut want: Option<&mut RecvOp>) -> Result<Pulled, Error> {
        let source = self.p2p.source(self.segment, self.rank, from)?;
        if let Some(want) = want.as_deref().filter(|want| want.under_way.is_none()) {
            if let Some(kept) = source.kept.take(want.tag) {
                fits(want, kept.len())?;
                // SAFETY: it fits the buffer, which the caller vouches for.
                unsafe { crate::kernel::copy(kept.as_ptr(), want.start, kept.len()) };
                return Ok(Pulled::Whole(kept.len()));
            }
        }
        while let Some(head) = source.next() {
            // An address is one of this process only if a thread of this process wrote it.
            if head.direct != 0 && !self.segment.is_here(from) {
                return Err(Error::Failed(format!("rank {from} sent an address of another process")));
            }
            let cell = source.mail.cell(source.inbox.cell());
            let coming = want.as_deref().and_then(|want| want.under_way);
            match &mut want {
                _ if source.aside.is_some() || coming.is_some() => {}
                Some(want) if want.tag == head.tag => {
                    want.under_way = Some(UnderWay { bytes: head.bytes, done: 0 });
                }
                want => {
                    if !source.kept.has_room(head.bytes) {
                        let (tag, kept) = (want.as_ref().map_or(head.tag, |w| w.tag), source.kept.bytes());
                        let kept = kept.saturating_add(head.bytes);
                        return Err(Error::Unexpected { source_rank: from, tag, kept, most: MOST_KEPT });
                    }
                    source.aside = Some(Aside { tag: head.tag, bytes: vec![0; head.bytes], done: 0 });
                }
            }
            let (to, room, bytes, done) = match (&mut source.aside, &mut want) {
                (Some(aside), _) => {
                    let bytes = aside.bytes.len();
                    (aside.bytes.as_mut_ptr(), bytes, bytes, &mut aside.done)
                }
                (None, Some(RecvOp { start, room, under_way: Some(coming), .. })) => {
                    (*start, *room, coming.bytes, &mut coming.done)
                }
                (None, _) => return Ok(Pulled::Nothing),
            };
            let n = match head.direct {
                0 => (source.mail.cell_bytes() - HEAD).min(bytes - *done),
                _ => bytes,
            };
            let payload = match head.direct {
                // SAFETY: behind the head, within the cell.
                0 => unsafe { cell.add(HEAD) }.cast_const(),
                _ => head.address as *const u8,
            };
            // What does not fit is passed over, and so is a message whose sender gave up.
            let revoked = head.direct != 0 && !take_over(cell, CLAIMED);
            let fitting = if revoked { 0 } else { n.min(room.saturating_sub(*done)) };
            // SAFETY: the cell's payload, or the message that its sender keeps until the cell is taken; it ends within
            // the buffer, which is the caller's, or the one just made for it.
            unsafe { crate::kernel::copy(payload, to.wrapping_add(*done), fitting) };
            *done += n;
            let whole = *done >= bytes;
            let taken = source.inbox.advance();
            self.waiter.raise(source.mail.taken(), taken, self.segment.sleepers(self.rank));
            if !whole {
                continue;
            }
            match source.aside.take() {
                Some(_) if revoked => {}
                Some(Aside { tag, bytes, .. }) => {
                    source.kept.put(tag, bytes);
                    return Ok(Pulled::Aside);
                }
                None => {
                    let Some(want) = &mut want else { continue };
                    want.under_way = None;
                    if !revoked {
                        return fits(want, bytes).map(|()| Pulled::Whole(bytes));
                    }
                }
            }
        }
        Ok(Pulled::Nothing)
    }

    /// Takes a direct message back that nobody has taken, or waits until who copies it has.
    fn revoke(&mut self, out: &SendOp) -> Result<(), Error> {
        let Some(value) = out.awaits else { return Ok(()) };
        let (mail, outbox) = self.p2p.outbox(self.segment, self.rank, out.to)?;
        if !take_over(mail.cell(outbox.last()), REVOKED) {
            while !flag::reached(mail.taken(), value) {
                crate::sync::yield_now();
            }
        }
        Ok(())
    }

    /// Checks that a message of a rank to itself, without a receive at the same time, fits the ring.
    fn fits_oneself(&mut self, out: &SendOp) -> Result<(), Error> {
        if out.to != self.rank {
            return Ok(());
        }
        let (mail, outbox) = self.p2p.outbox(self.segment, self.rank, out.to)?;
        let cells = out.bytes.div_ceil(mail.cell_bytes() - HEAD).max(1) as u64;
        match flag::reached(mail.taken(), outbox.needs_for(cells)) {
            true => Ok(()),
            false => Err(Error::ToItself { bytes: out.bytes }),
        }
    }
}

fn fits(want: &RecvOp, sent: usize) -> Result<(), Error> {
    if sent <= want.room {
        return Ok(());
    }
    Err(Error::Truncated { source_rank: want.from, tag: want.tag, sent, room: want.room })
}
