//! Throttle of a thread that computes beside ranks: it sleeps between pieces of work, so that it takes a quarter of a CPU.
//!
//! Ranks that outnumber CPUs yield to each other all the time. A thread that computes never does, so it takes far more than its share of a CPU, and
//! single calls take several times as long: `lineweave bench first --mpi` shows it in the slowest calls of its sweeps.

use crate::sync::sleep;
use rustix::time::{clock_gettime_dynamic, ClockId, DynamicClockId};
use std::cell::Cell;
use std::time::Duration;

/// CPU time after which a thread sleeps, at the next end of a piece of work.
const STRETCH: Duration = Duration::from_micros(200);
/// Time of a sleep, as a multiple of the CPU time before it.
const SLEEPS: u32 = 3;

thread_local! {
    /// CPU time of the thread when it last slept; `None` where it is not throttled.
    static SLEPT: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// The calling thread is throttled until this is dropped.
#[derive(Debug)]
pub(crate) struct Throttle(Option<Duration>);

impl Throttle {
    /// Throttles the calling thread.
    pub fn new() -> Throttle {
        Throttle(SLEPT.replace(Some(cpu_time())))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        SLEPT.set(self.0);
    }
}

/// Throttles the calling thread from now on, or no longer.
pub fn throttle(on: bool) {
    SLEPT.set(on.then(cpu_time));
}

/// Returns the CPU time of the calling thread; zero where a sandbox refuses to tell, so that nobody sleeps.
fn cpu_time() -> Duration {
    let time = clock_gettime_dynamic(DynamicClockId::Known(ClockId::ThreadCPUTime));
    time.map_or(Duration::ZERO, |time| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Marks the end of a piece of work: a throttled thread that has worked for long enough sleeps.
pub(crate) fn pause() {
    let Some(slept) = SLEPT.get() else { return };
    let worked = cpu_time().saturating_sub(slept);
    if worked >= STRETCH {
        sleep(SLEEPS * worked);
        SLEPT.set(Some(cpu_time()));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Works for so long, in pieces, and returns the time that this took as a multiple of it.
    fn stretched(work: Duration) -> f64 {
        let (began, start) = (cpu_time(), Instant::now());
        while cpu_time() - began < work {
            std::hint::black_box((0..1000).sum::<u64>());
            pause();
        }
        start.elapsed().as_secs_f64() / work.as_secs_f64()
    }

    #[test]
    fn a_throttled_thread_takes_a_quarter_of_a_cpu_and_others_what_they_need() {
        let throttle = Throttle::new();
        assert!(stretched(Duration::from_millis(10)) > 3.5);
        drop(throttle);
        assert_eq!(SLEPT.get(), None);
        super::throttle(true);
        drop(Throttle::new());
        assert!(SLEPT.get().is_some(), "what it was before");
        super::throttle(false);
        let least = (0..20).map(|_| stretched(Duration::from_millis(2))).fold(f64::INFINITY, f64::min);
        assert!(least < 2.0, "a thread that is not throttled sleeps: {least}");
    }
}
