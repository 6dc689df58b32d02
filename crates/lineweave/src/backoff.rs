//! Pauses between looks at what another thread does, where no flag says when to look again.

use crate::sync::{sleep, spin_loop, yield_now};
use std::time::Duration;

/// Looks with a pause of the CPU between them, and with a yield up to this one.
const SPINS: u32 = 100;
const YIELDS: u32 = 1000;

/// The first nap and the longest. The longer it lasts, the longer the naps: who waits for a second shall not look thousands of times.
const NAP: Duration = Duration::from_micros(50);
const LONGEST: Duration = Duration::from_millis(2);

/// Number of naps after which the next nap is longer by [`NAP`].
const NAPS_OF_ONE_LENGTH: u32 = 16;

/// Spins at first, since it is mostly a matter of nanoseconds; then yields the CPU, then naps.
#[derive(Debug)]
pub struct Backoff {
    looks: u32,
    longest: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { looks: 0, longest: LONGEST }
    }
}

impl Backoff {
    /// Returns the backoff of a thread that nobody waits for, and that need not spin.
    pub fn unhurried() -> Backoff {
        Backoff { looks: SPINS, ..Backoff::default() }
    }

    /// Returns the backoff of a thread whose looks carry the work on: its naps stay short.
    pub fn at_work() -> Backoff {
        Backoff { longest: NAP, ..Backoff::default() }
    }

    /// Returns whether the next pause gives the CPU away.
    pub fn yields(&self) -> bool {
        self.looks >= SPINS
    }

    /// Pauses before the next look.
    pub fn pause(&mut self) {
        match self.looks {
            ..SPINS => spin_loop(),
            SPINS..YIELDS => yield_now(),
            many => sleep((NAP * (1 + (many - YIELDS) / NAPS_OF_ONE_LENGTH)).min(self.longest)),
        }
        self.looks = self.looks.saturating_add(1);
    }
}
