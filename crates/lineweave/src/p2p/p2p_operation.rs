//! Operations of a rank with one other rank that it waits for.

use super::{P2pContext, RecvOp, SendOp};
use crate::error::Error;
use crate::failure_detector::FailureDetector;
use crate::flag;
use crate::wait::{Interrupted, WaitMonitor};
use std::time::Duration;

/// Reason why sending or receiving ended without success.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The wait was ended; the communicator fails.
    Interrupted(Interrupted),
    /// Refused; the communicator can be used on.
    Refused(Error),
}

impl From<Interrupted> for Stopped {
    fn from(interrupted: Interrupted) -> Stopped {
        Stopped::Interrupted(interrupted)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Stopped {
        Stopped::Refused(error)
    }
}

/// Watches over all ranks during a wait, with a check that looks at some more closely.
pub(crate) struct Watching<'a, C> {
    pub watch: &'a mut FailureDetector,
    pub check: C,
}

/// Returns what watches over the one rank that matters, besides all others.
pub(crate) fn on_peer(
    watch: &mut FailureDetector,
    peer: Option<usize>,
) -> Watching<'_, impl FnMut(&mut FailureDetector, Duration) -> Result<(), Interrupted>> {
    Watching { watch, check: move |watch: &mut FailureDetector, waited| watch.check_peer(peer, waited) }
}

impl<C: FnMut(&mut FailureDetector, Duration) -> Result<(), Interrupted>> WaitMonitor for Watching<'_, C> {
    fn check(&mut self, waited: Duration) -> Result<(), Interrupted> {
        (self.check)(self.watch, waited)
    }

    fn begin(&mut self) {
        self.watch.begin();
    }

    fn end(&mut self) {
        self.watch.end();
    }

    fn forgives(&mut self, raised: impl Fn() -> bool) -> bool {
        self.watch.forgives(raised)
    }
}

/// A message that goes out, one that comes in, or both, whatever becomes possible first.
pub(crate) struct Exchange {
    out: Option<SendOp>,
    want: Option<RecvOp>,
    received: Result<usize, Error>,
}

impl Exchange {
    /// # Safety
    /// What they say must be valid, the message for reads and the buffer for writes, until it is over or given up.
    pub unsafe fn new(out: Option<SendOp>, want: Option<RecvOp>) -> Exchange {
        Exchange { out, want, received: Ok(0) }
    }

    /// Nothing more comes in. What goes out has to be completed if parts of it went through the ring, or only this side's
    /// buffer was to blame; otherwise it is taken back.
    fn refuse(&mut self, error: Error, mailbox: &mut P2pContext<'_>) -> Result<(), Error> {
        let cut = matches!(error, Error::Truncated { .. });
        if let Some(out) = self.out.take_if(|out| !cut && (!out.begun || out.direct)) {
            mailbox.rings.revoke(&out)?;
        }
        (self.want, self.received) = (None, Err(error));
        Ok(())
    }

    /// Does what can be done now: the bytes received when it is over.
    pub fn step(&mut self, mailbox: &mut P2pContext<'_>) -> Result<Option<usize>, Stopped> {
        if let Some(out) = &mut self.out {
            let received_at_once = self.want.as_ref().is_some_and(|want| want.from == mailbox.rings.rank);
            if !out.begun && !received_at_once {
                mailbox.rings.fits_oneself(out)?;
            }
            // SAFETY: who made this vouches for the message.
            if unsafe { mailbox.rings.push(out) }? {
                self.out = None;
            }
        }
        if let Some(want) = &mut self.want {
            // SAFETY: who made this vouches for the buffer.
            match unsafe { mailbox.rings.pull(want) } {
                Ok(None) => {}
                Ok(Some(bytes)) => (self.want, self.received) = (None, Ok(bytes)),
                Err(error) => self.refuse(error, mailbox)?,
            }
        }
        match (&self.out, &self.want) {
            (None, None) => Ok(Some(std::mem::replace(&mut self.received, Ok(0))?)),
            _ => Ok(None),
        }
    }

    /// Waits until there is more to do.
    pub fn wait(&mut self, mailbox: &mut P2pContext<'_>) -> Result<(), Stopped> {
        // The one rank that it waits for.
        let from = self.want.as_ref().map(|want| want.from);
        let peer = from.or(self.out.as_ref().map(|out| out.to));
        match (&self.out, &self.want) {
            (None, None) => {}
            (Some(out), None) => {
                let (mail, value) = mailbox.rings.awaits(out)?;
                mailbox.wait(mail.taken(), value, out.to, peer)?;
            }
            (None, Some(want)) => {
                let (mail, value) = mailbox.rings.wants(want)?;
                mailbox.wait(mail.sent(), value, mailbox.rings.rank, peer)?;
            }
            (Some(out), Some(want)) => {
                let (theirs, taken) = mailbox.rings.awaits(out)?;
                let (mine, sent) = mailbox.rings.wants(want)?;
                let mut monitor = on_peer(mailbox.watch, peer);
                let ready = || flag::reached(theirs.taken(), taken) || flag::reached(mine.sent(), sent);
                mailbox.rings.waiter.wait_until(ready, &mut monitor)?;
            }
        }
        Ok(())
    }

    /// Takes back what goes out.
    pub fn give_up(&mut self, mailbox: &mut P2pContext<'_>) -> Result<(), Error> {
        self.out.take().map_or(Ok(()), |out| mailbox.rings.revoke(&out))
    }
}
