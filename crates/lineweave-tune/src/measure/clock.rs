//! The clock of measurements: the CPU's time stamp counter where it runs at one rate, else the system's.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A clock and what is known about it. Readings of different CPUs are never compared: every duration is
/// taken on one CPU, so that counters that are apart do no harm.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// ns a tick.
    tick: f64,
    counter: bool,
    start: Instant,
    /// ns between two readings that follow each other.
    cost: f64,
}

/// Fewest ticks between two readings that are believed (docs/explanation/measuring.md, rule 3).
pub const FEWEST_TICKS: f64 = 50.0;

impl Clock {
    /// The clock of this process, calibrated when it is first asked for.
    pub fn get() -> Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(Clock::calibrate)
    }

    fn calibrate() -> Clock {
        let mut clock = Clock { tick: 1.0, counter: counter::invariant(), start: Instant::now(), cost: 0.0 };
        if clock.counter {
            let (begin, ticks) = (Instant::now(), counter::read());
            // 10 ms against a clock of some 30 ns: the rate is good to a few millionths.
            while begin.elapsed() < Duration::from_millis(10) {
                std::hint::spin_loop();
            }
            let passed = counter::read().wrapping_sub(ticks);
            clock.counter = passed > 0;
            clock.tick = if clock.counter { begin.elapsed().as_nanos() as f64 / passed as f64 } else { 1.0 };
        }
        let mut gaps: Vec<u64> = (0..1001)
            .map(|_| {
                let first = clock.now();
                clock.now() - first
            })
            .collect();
        gaps.sort_unstable();
        clock.cost = gaps[gaps.len() / 2] as f64 * clock.tick;
        clock
    }

    /// Ticks since some moment. Everything before it in program order is done first.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        if self.counter {
            counter::read()
        } else {
            self.start.elapsed().as_nanos() as u64
        }
    }

    /// ns since `earlier`, less what reading the clock costs; not below 0.
    #[inline(always)]
    pub fn since(&self, earlier: u64) -> f64 {
        (self.now().wrapping_sub(earlier) as f64 * self.tick - self.cost).max(0.0)
    }

    /// ns a tick.
    pub fn tick_ns(&self) -> f64 {
        self.tick
    }

    /// Median ns between two readings that follow each other.
    pub fn cost_ns(&self) -> f64 {
        self.cost
    }

    /// `tsc` or `system`.
    pub fn source(&self) -> &'static str {
        if self.counter {
            "tsc"
        } else {
            "system"
        }
    }

    /// The shortest duration that is believed, in ns.
    pub fn shortest_ns(&self) -> f64 {
        FEWEST_TICKS * self.tick
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// Returns whether the counter runs at one rate in every power state (Intel SDM vol. 3, 17.17.1; AMD APM vol. 3,
    /// CPUID 8000_0007 EDX bit 8).
    pub fn invariant() -> bool {
        if __cpuid(0x8000_0000).eax < 0x8000_0007 {
            return false;
        }
        __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    #[inline(always)]
    pub fn read() -> u64 {
        // SAFETY: both instructions exist on every x86-64 CPU; no memory is touched.
        unsafe {
            _mm_lfence();
            let ticks = _rdtsc();
            _mm_lfence();
            ticks
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    /// The system's clock reads the architecture's counter without a system call.
    pub fn invariant() -> bool {
        false
    }

    pub fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_as_fast_as_the_system_s_clock() {
        let clock = Clock::get();
        let (begin, ticks) = (Instant::now(), clock.now());
        std::thread::sleep(Duration::from_millis(20));
        let measured = clock.since(ticks);
        let truth = begin.elapsed().as_nanos() as f64;
        assert!(measured >= 20e6 - 1e6, "{measured} ns by {}", clock.source());
        assert!(measured <= truth * 1.01, "{measured} of {truth} ns by {}", clock.source());
        assert!(clock.cost_ns().is_finite() && clock.tick_ns() > 0.0);
    }
}
