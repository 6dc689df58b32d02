//! Other ranks' buffers, whose addresses flags carry: nobody reaches one that its owner has taken back.
//!
//! A proof speaks of calls that end well: an owner returns after the last access to its buffer. A call that fails (a timeout, a
//! panic, an interrupt, a lost rank, a started call that is given up) returns before that. So:
//!
//! 1. A *visitor*, a rank that has taken an address, raises its word VISITING and then looks at CLOSED, the segment's. If that is
//!    set, it lowers VISITING and its call fails too, before it has used the address.
//! 2. It lowers VISITING when its run is over; also where a wait becomes long, or a started call is left to be polled again, to begin
//!    with step 1 afterwards.
//! 3. A rank whose call fails lowers its own VISITING, sets CLOSED, and waits until nobody else is VISITING whose process lives. Only
//!    then it returns, and its buffers are its caller's.
//!
//! Between store and look of step 1 and of step 3 stands a full fence, so one of both sees the other. Where `membarrier` is at hand
//! the failing rank pays for both sides (as sleepers do, see `flag.rs`): then a visit is two stores and a load, of lines that nobody
//! writes. Nobody waits for others while VISITING, but for the moment in which a wait is polled: so step 3 lasts as long as a
//! visitor's copy or fold, and ranks that fail at the same time do not wait for each other. A visitor that is stopped in the middle
//! of a copy is waited for until it goes on or ends. If it is lost because of that (`LINEWEAVE_STOP_TIMEOUT`), it is killed: it would
//! go on with its copy when it is continued.

use super::header_words as header;
use super::words::control;
use super::Segment;
use crate::error::Loss;
use crate::flag::WakeFence;
use crate::process::{self, How};
use crate::sync::{self, compiler_fence, fence, membarrier, yield_now, Ordering};
use rustix::process::{Pid, Signal};
use std::time::Duration;

/// Looks before a failing rank naps between them, and for how long it does.
const LOOKS: u32 = 1000;
const NAP: Duration = Duration::from_micros(200);
/// Naps between two questions whether a visitor's process has ended.
const NAPS_A_QUESTION: u32 = 50;

impl Segment {
    /// Begins a visit of `rank` (step 1); the rank that closed, if one has.
    #[inline(always)]
    pub(crate) fn visit(&self, rank: usize, order: WakeFence) -> Result<(), usize> {
        // Relaxed: ordered before the look by the fence, or by the failing rank's membarrier.
        self.control(rank, control::VISITING).store(1, Ordering::Relaxed);
        match order {
            // SYNC: visit
            WakeFence::Full => fence(Ordering::SeqCst),
            WakeFence::Membarrier => compiler_fence(),
        }
        // Relaxed: as above; the word is the whole message.
        match self.header(header::CLOSED).load(Ordering::Relaxed) {
            0 => Ok(()),
            by => {
                self.end_visit(rank);
                Err((by - 1) as usize)
            }
        }
    }

    /// Ends a visit (step 2).
    #[inline(always)]
    pub(crate) fn end_visit(&self, rank: usize) {
        // SYNC: visiting
        self.control(rank, control::VISITING).store(0, Ordering::Release);
    }

    fn is_visiting(&self, rank: usize) -> bool {
        // SYNC: visiting
        self.control(rank, control::VISITING).load(Ordering::Acquire) != 0
    }

    /// Ends all visits, the call of `rank` having failed (step 3). `waits` is called once if that takes a while.
    #[cold]
    pub(crate) fn close(&self, rank: usize, order: WakeFence, waits: impl FnOnce()) {
        self.end_visit(rank);
        let by = rank as u64 + 1;
        // Relaxed: ordered by the fence below; the first one stays.
        let _ = self.header(header::CLOSED).compare_exchange(0, by, Ordering::Relaxed, Ordering::Relaxed);
        // SYNC: visit
        fence(Ordering::SeqCst);
        if order == WakeFence::Membarrier {
            membarrier();
        }
        let mut waits = Some(waits);
        for other in (0..self.ranks()).filter(|&other| other != rank) {
            let mut looks = 0;
            while self.is_visiting(other) {
                looks += 1;
                if looks < LOOKS {
                    yield_now();
                    continue;
                }
                if let Some(waits) = waits.take() {
                    waits();
                }
                if looks % NAPS_A_QUESTION == 0 {
                    if self.has_ended(other) {
                        break;
                    }
                    self.end_stopped(other);
                }
                sync::sleep(NAP);
            }
        }
    }

    /// Returns whether the process of a rank has ended.
    fn has_ended(&self, rank: usize) -> bool {
        let pid = self.pid(rank);
        pid != std::process::id() && matches!(process::state(pid), None | Some('Z' | 'X'))
    }

    /// Kills the process of a rank that all have given up because it is stopped.
    fn end_stopped(&self, rank: usize) {
        let pid = self.pid(rank);
        let lost = self.failed() == Some((rank, Loss::Stopped)) && pid != std::process::id();
        if let Some(process) = Pid::from_raw(pid as i32).filter(|_| lost && process::how(pid) == How::Stopped)
        {
            // Who may not has to wait for it.
            let _ = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

/// Ends all visits when a panic of the program's code, called while a rank waits, unwinds through its run.
pub(crate) struct Unwinding<'a> {
    pub segment: &'a Segment,
    pub rank: usize,
    pub order: WakeFence,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.segment.close(self.rank, self.order, || {});
    }
}
