//! Cadence at which a wait looks around: one for all waits, those that only test now and then included.

use std::time::{Duration, Instant};

/// Time between two looks of a wait at its peers and the time limit.
pub const EVERY: Duration = Duration::from_millis(5);
/// The most that a look counts for as time waited: who only tests may have had other things to do between two tests.
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// The rounds of one wait.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rounds {
    looked: Option<Instant>,
    waited: Duration,
}

impl Rounds {
    /// The time waited so far, when it is time to look around. The wait begins at the first call.
    pub fn due(&mut self, now: Instant) -> Option<Duration> {
        self.due_after(now, Duration::MAX)
    }

    /// As [`Rounds::due`], for a rank that only tests.
    pub fn due_of_test(&mut self, now: Instant) -> Option<Duration> {
        self.due_after(now, LONGEST_GAP)
    }

    /// Restarts the time waited: what was waited for has come on.
    pub fn go_on(&mut self) {
        self.waited = Duration::ZERO;
    }

    fn due_after(&mut self, now: Instant, most: Duration) -> Option<Duration> {
        let gap = now - *self.looked.get_or_insert(now);
        if gap < EVERY {
            return None;
        }
        self.looked = Some(now);
        self.waited += gap.min(most);
        Some(self.waited)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wait_looks_every_few_milliseconds_and_a_test_counts_for_no_more_than_a_while() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ms = |ms| Some(Duration::from_millis(ms));
        let (mut wait, mut test) = (Rounds::default(), Rounds::default());
        assert_eq!([0, 4, 6, 10, 500].map(|t| wait.due(at(t))), [None, None, ms(6), None, ms(500)]);
        assert_eq!([0, 4, 6, 10, 500].map(|t| test.due_of_test(at(t))), [None, None, ms(6), None, ms(56)]);
    }
}
