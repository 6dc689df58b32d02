//! Visits of other ranks' buffers, and of this rank's by others: begun, refused and ended.

use super::FailureDetector;
use crate::error::{Error, Loss};
use crate::wait::Interrupted;

impl FailureDetector {
    /// Begins a visit of other ranks' buffers: an error when their addresses may be void.
    #[inline(always)]
    pub fn visit(&mut self) -> Result<(), Interrupted> {
        self.visiting = true;
        self.segment.visit(self.rank, self.order).map_err(|by| self.turned_away(by))
    }

    #[cold]
    fn turned_away(&mut self, by: usize) -> Interrupted {
        self.visiting = false;
        let (rank, how) = self.segment.failed().unwrap_or((by, Loss::Failed));
        self.lost(rank, how)
    }

    /// Notes the failure that something carried beside a flag is no address of this call.
    #[cold]
    pub fn foreign_address(&mut self) -> Interrupted {
        let all = (0..self.segment.ranks()).filter(|&other| other != self.rank);
        self.failure = Some(self.differing(all).unwrap_or_else(|| {
            Error::Failed("another rank carried something that is no address of this call".to_owned())
        }));
        Interrupted
    }

    /// Ends it, if one is under way; whether one was.
    #[inline(always)]
    pub fn end_visit(&mut self) -> bool {
        let visiting = std::mem::take(&mut self.visiting);
        if visiting {
            self.segment.end_visit(self.rank);
        }
        visiting
    }

    /// Says that others may visit this rank's buffers from now on.
    pub fn lends(&mut self) {
        self.lends = true;
    }

    /// Ends all visits, this rank's call having failed: others use no address of it after this. Who never told one has no visitors, and need not
    /// look at what every other rank says, which takes a page of each.
    pub fn close(&mut self) {
        self.end_visit();
        if !self.lends {
            return;
        }
        let FailureDetector { segment, wait_callback, .. } = self;
        let mut waits = false;
        // A visitor may be in an operator that wants the lock which the callback lets go of.
        segment.close(self.rank, self.order, || {
            waits = true;
            wait_callback.iter_mut().for_each(|wait_callback| wait_callback.begin());
        });
        if waits {
            wait_callback.iter_mut().for_each(|wait_callback| wait_callback.end());
        }
    }
}
