use super::*;
use crate::settings::Wait;

struct Patience(u32);

impl WaitMonitor for Patience {
    fn check(&mut self, _: Duration) -> Result<(), Interrupted> {
        self.0 -= 1;
        if self.0 == 0 {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}

#[test]
fn every_policy_wakes_when_the_flag_is_raised() {
    for policy in [Wait::Spin, Wait::Yield, Wait::Sleep, Wait::Auto] {
        for order in [WakeFence::Full, WakeFence::Membarrier] {
            if order == WakeFence::Membarrier && !crate::sync::register_membarrier() {
                continue;
            }
            let (flag, sleepers) = (AtomicU64::new(0), AtomicU64::new(0));
            let budget = Budget::of(policy, 4, 2);
            std::thread::scope(|s| {
                s.spawn(|| {
                    std::thread::sleep(Duration::from_millis(20));
                    Waiter::new(budget, order).raise(&flag, 7, &sleepers);
                });
                let mut waiter = Waiter::new(budget, order);
                assert_eq!(waiter.wait(&flag, 7, &sleepers, &mut Patience(u32::MAX)), Ok(()));
            });
            assert_eq!(flag::peek(&sleepers), 0);
        }
    }
}

/// A rank whose flag is raised, and which is lost at once.
struct Lost<'a>(&'a AtomicU64);

impl WaitMonitor for Lost<'_> {
    fn check(&mut self, _: Duration) -> Result<(), Interrupted> {
        // Relaxed: one thread.
        self.0.store(1, crate::sync::Ordering::Relaxed);
        Err(Interrupted)
    }

    fn forgives(&mut self, raised: impl Fn() -> bool) -> bool {
        raised()
    }
}

#[test]
fn what_a_rank_did_before_it_was_lost_counts() {
    let (flag, sleepers) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut waiter = Waiter::new(Budget::of(Wait::Sleep, 4, 2), WakeFence::Full);
    assert_eq!(waiter.wait(&flag, 1, &sleepers, &mut Lost(&flag)), Ok(()));
    assert_eq!(waiter.wait(&flag, 2, &sleepers, &mut Lost(&flag)), Err(Interrupted));
}

#[test]
fn a_vigil_ends_a_wait_that_cannot_end() {
    for policy in [Wait::Spin, Wait::Yield, Wait::Sleep, Wait::Auto] {
        let (flag, sleepers) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut waiter = Waiter::new(Budget::of(policy, 4, 2), WakeFence::Full);
        assert_eq!(waiter.wait(&flag, 1, &sleepers, &mut Patience(3)), Err(Interrupted));
    }
}
