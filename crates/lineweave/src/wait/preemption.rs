//! Preemption detector: do other programs keep a waiting rank from its CPU?
//!
//! A rank that spins until its time slice is over, or yields to a program that computes, gets the CPU back after a slice of that program, some
//! milliseconds, even if its flag is raised at once. One that sleeps has used up less of its share and is put first when it is woken.
//! So a rank that notices such slices sleeps in its waits for a while, and is not bound to its CPU meanwhile; then it tries again.
//!
//! Only where each rank has a CPU. Ranks that share one compute in turn, and lose slices to each other: four ranks of torch's DistributedDataParallel
//! on 2 CPUs, with nothing beside them, took 1.2 times as long when they slept for that.

use std::time::{Duration, Instant};

/// A gap between two looks from which on it is a time slice of another program. Looks are some 30 us apart while a rank spins, and less while it yields.
const SLICE: Duration = Duration::from_millis(1);
/// Two lost slices within this time are no chance; a virtual machine's CPU is away for one now and then.
const AGAIN: Duration = Duration::from_millis(50);
/// Waits that yield between two looks at how long one took: a look at the clock costs a tenth of a yield.
const WAITS_A_LOOK: u32 = 4;
/// For how long waits sleep then: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// The time slices that a rank lost while it waited.
#[derive(Default, Debug)]
pub(super) struct PreemptionDetector {
    last: Option<Instant>,
    /// Until when waits sleep, and for how long that was decided.
    pause: Option<(Instant, Duration)>,
    /// Number of waits that ended after a yield.
    yielded: u32,
}

impl PreemptionDetector {
    /// Returns whether waits sleep at this time.
    pub fn are_lost(&self, now: Instant) -> bool {
        self.pause.is_some_and(|(until, _)| now < until)
    }

    /// Tells that `gap` lies between the last look of a rank that did not sleep and that of `now`.
    #[inline]
    pub fn look(&mut self, now: Instant, gap: Duration) {
        if gap >= SLICE {
            self.lose(now);
        }
    }

    /// Tells that a wait that began at `start` ended after a yield. Now and then its length is looked at: beside another program it is
    /// a time slice, so the thread asks for a short one. So it does where ranks compute for as long, to whom that makes no difference.
    #[inline]
    pub fn yielded(&mut self, start: Instant) {
        self.yielded = self.yielded.wrapping_add(1);
        if self.yielded % WAITS_A_LOOK == 0 && start.elapsed() >= SLICE {
            #[cfg(not(loom))]
            crate::time_slice::shorten();
        }
    }

    #[cold]
    fn lose(&mut self, now: Instant) {
        let again = self.last.replace(now).is_some_and(|last| now - last < AGAIN);
        // Soon after a pause one is enough, and the next pause is twice as long.
        let (paused, longer) = match self.pause {
            Some((until, pause)) if now < until + pause => (true, (pause * 2).min(PAUSES.1)),
            _ => (false, PAUSES.0),
        };
        if again || paused {
            self.pause = Some((now + longer, longer));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{Budget, Interrupted, WaitMonitor, Waiter};
    use super::*;
    use crate::flag::WakeFence;
    use crate::settings::Wait;
    use crate::sync::AtomicU64;
    use rustix::time::{clock_gettime, ClockId};
    use std::sync::Arc;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn two_slices_in_a_row_have_waits_sleep_and_later_ones_longer() {
        let (start, mut slices) = (Instant::now(), PreemptionDetector::default());
        let mut lose = |at| {
            slices.look(start + ms(at), ms(3));
            [0, 19, 20, 39, 40].map(|later| slices.are_lost(start + ms(at + later)))
        };
        assert_eq!(lose(0), [false; 5], "one may be chance");
        assert_eq!(lose(60), [false; 5], "and so may another one much later");
        assert_eq!(lose(65), [true, true, false, false, false]);
        assert_eq!(lose(100), [true, true, true, true, false], "soon after a pause");
        assert_eq!(lose(1000), [false; 5], "long after a pause");
    }

    #[test]
    fn pauses_end_and_short_gaps_are_no_slices() {
        let (start, mut slices) = (Instant::now(), PreemptionDetector::default());
        for at in 0..100 {
            slices.look(start + ms(at), SLICE / 2);
            assert!(!slices.are_lost(start + ms(at)));
        }
        let mut now = start + ms(100);
        for _ in 0..20 {
            slices.look(now, ms(3));
            now += ms(3);
            slices.look(now, ms(3));
            assert!(slices.are_lost(now));
            now = slices.pause.expect("paused").0;
            assert!(!slices.are_lost(now));
        }
        assert_eq!(slices.pause.map(|(_, pause)| pause), Some(PAUSES.1));
    }

    #[test]
    fn a_thread_whose_waits_last_asks_for_a_short_slice() {
        use crate::time_slice::tests::now_and_short;
        std::thread::spawn(|| {
            let (before, short) = now_and_short();
            let mut slices = PreemptionDetector::default();
            let mut waits_since = |start: Instant| {
                (0..WAITS_A_LOOK).for_each(|_| slices.yielded(start));
                now_and_short().0
            };
            // Of a start to come no time has passed, however long this thread loses its CPU here.
            assert_eq!(waits_since(Instant::now() + Duration::from_secs(3600)), before);
            assert_eq!(waits_since(Instant::now() - SLICE), short);
        })
        .join()
        .expect("no panic");
    }

    struct Patience;

    impl WaitMonitor for Patience {
        fn check(&mut self, _: Duration) -> Result<(), Interrupted> {
            Ok(())
        }
    }

    #[test]
    fn a_rank_that_lost_slices_sleeps_where_it_would_spin() {
        for hooked in [false, true] {
            let (flag, sleepers) = (AtomicU64::new(0), AtomicU64::new(0));
            let budget = Budget { spins: u32::MAX - 1, ..Budget::of(Wait::Auto, 2, 2) };
            let mut waiter = Waiter::new(budget, WakeFence::Full);
            if hooked {
                waiter.set_hook(Some(Box::new(|| {})));
            }
            waiter.slices.pause = Some((Instant::now() + Duration::from_secs(60), PAUSES.1));
            let on_cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
            let (started, before) = (Instant::now(), on_cpu());
            std::thread::scope(|s| {
                s.spawn(|| {
                    std::thread::sleep(ms(100));
                    Waiter::new(budget, WakeFence::Full).raise(&flag, 1, &sleepers);
                });
                assert_eq!(waiter.wait(&flag, 1, &sleepers, &mut Patience), Ok(()));
            });
            let spent = on_cpu() - before;
            assert!(spent < started.elapsed() / 2, "{spent:?} of the wait, hooked: {hooked}");
        }
    }

    #[test]
    fn what_a_hook_takes_is_no_lost_slice() {
        // Real slices may be lost as well, but not at each try.
        let kept = (0..20).any(|_| {
            let (flag, sleepers) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
            let mut waiter = Waiter::new(Budget::of(Wait::Auto, 2, 2), WakeFence::Full);
            let (raised, mut calls) = (Arc::clone(&flag), 0);
            waiter.set_hook(Some(Box::new(move || {
                std::thread::sleep(SLICE * 2);
                calls += 1;
                if calls == 4 {
                    crate::flag::raise(&raised, 1);
                }
            })));
            assert_eq!(waiter.wait(&flag, 1, &sleepers, &mut Patience), Ok(()));
            waiter.slices.pause.is_none()
        });
        assert!(kept);
    }
}
