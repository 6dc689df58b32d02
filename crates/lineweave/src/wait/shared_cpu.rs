//! Shared-CPU detector: does the rank that is waited for have the same CPU, though another may be idle?
//!
//! Ranks that are not bound run where the system puts them, and it may put two on one CPU. As each gives the CPU to the other by yielding, both look
//! busy and stay there: two ranks of an MPI program on 2 CPUs went on so for milliseconds to a second, at 30 us a barrier instead of 0.1 to 0.4.
//! If consecutive waits end in a yield that ran another thread, a rank assumes that its peer shares this CPU. It then
//! - yields sooner, as the peer cannot come before it does;
//! - sleeps occasionally, so that the scheduler can migrate it to an idle CPU.

use std::time::Duration;

/// A yield takes this long if another thread has run in it, and half a microsecond if none is there.
pub(super) const RUN: Duration = Duration::from_micros(2);
/// Looks before a yield then: a microsecond or two.
const LOOKS: u32 = 64;
/// So many waits in a row until one sleeps: at first, and at most, where sleeping did not help.
const WAITS: (u32, u32) = (2, 32);

/// Record of how the last waits of a rank ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedCpuDetector {
    in_a_row: u32,
    /// The number of such waits after which it sleeps.
    enough: u32,
    /// Looks before a yield.
    pub looks: u32,
}

/// The state before any wait.
pub(super) const APART: SharedCpuDetector =
    SharedCpuDetector { in_a_row: 0, enough: WAITS.0, looks: u32::MAX };

impl SharedCpuDetector {
    /// Returns whether the wait that begins is to sleep instead of yielding.
    pub fn sleeps(&mut self) -> bool {
        let sleeps = self.in_a_row >= self.enough;
        if sleeps {
            self.in_a_row = 0;
            self.enough = (self.enough * 2).min(WAITS.1);
        }
        sleeps
    }

    /// A wait ended with the first yield, in which another thread `ran`; or otherwise.
    pub fn ended(&mut self, ran: bool) {
        if ran {
            self.in_a_row += 1;
            if self.in_a_row >= WAITS.0 {
                self.looks = LOOKS;
            }
        } else {
            *self = APART;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Returns the numbers of those of `waits` waits that sleep.
    fn sleep_in(together: &mut SharedCpuDetector, waits: usize) -> Vec<usize> {
        let sleeps = |_: &usize| {
            let sleeps = together.sleeps();
            if !sleeps {
                together.ended(true);
            }
            sleeps
        };
        (0..waits).filter(sleeps).collect()
    }

    #[test]
    fn waits_that_end_as_another_ran_look_for_less_and_sleep_now_and_then() {
        let mut together = APART;
        together.ended(true);
        assert!(!together.sleeps() && together.looks == u32::MAX, "once is chance");
        together.ended(true);
        assert_eq!(together.looks, LOOKS);
        assert_eq!(sleep_in(&mut together, 20), [0, 5, 14]);
        assert!(sleep_in(&mut together, 3200).len() <= 3200 / 33 + 3);
        assert_eq!(together.looks, LOOKS);
    }

    #[test]
    fn a_wait_that_ends_otherwise_ends_it() {
        let mut together = APART;
        sleep_in(&mut together, 40);
        together.ended(false);
        assert_eq!(together.looks, u32::MAX);
        assert_eq!(sleep_in(&mut together, 5), [2]);
    }
}
