//! Budget of a wait: the limit of each way of waiting.

use crate::settings::Wait;
use std::time::Duration;

/// Limit of each way of waiting before the next one is tried, in polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Polls with nothing but a pause between them.
    pub spins: u32,
    /// As `spins`, where the rank that raises the flag has another CPU and so may be at it now.
    pub apart: u32,
    /// Polls with a yield between them, after that.
    pub yields: u32,
    /// True if ranks outnumber usable CPUs, so that one that waits holds up another.
    pub crowded: bool,
    /// Instruction between the looks of an exchange of two bare flags, the two-rank barrier.
    pub exchange: Between,
    /// The longest sleep without a look at the other ranks; bounds the time to notice a dead one.
    pub sleep: Duration,
}

/// Instruction between two looks at a flag. All but exchanges pause (docs/explanation/findings.md, "What lies between two polls").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The CPU's hint for polling loops.
    Pause,
    /// A fence for loads.
    LoadFence,
}

/// Polls of a wait that goes on while this CPU could be handed over.
const APART: u32 = 128;

/// The longest sleep, and for how many ranks to a CPU. Of more each sleeps longer, so that the looks of all take no more of a CPU than those of so
/// many, and leave it to the rank that is waited for.
pub const SLEEP: Duration = Duration::from_millis(50);
const SLEEPERS: usize = 64;

/// Yields of all ranks on one CPU before all of them sleep, and the most and the fewest of one rank. Each yield hands the CPU to another that may
/// have nothing to do either: at the 0.8 us of a Xeon's VM (`wake[yield]` of `lineweave fit`), 16,000 are 13 ms, and 2,000 of each of 256 ranks would
/// be 0.4 s.
const YIELDS: usize = 16_000;
const YIELDS_OF_ONE: (u32, u32) = (16, 2_000);

/// Polls, some 30 us of them, and yields of a rank that no CPU is held for.
const UNHELD: (u32, u32) = (1_000, 2_000);

impl Budget {
    /// The budget of a policy for `ranks` ranks on `cpus` usable CPUs.
    ///
    /// Own CPUs: spin for about 20 000 pauses (some 0.5 ms: several times what waking a sleeper costs),
    /// since giving up the CPU early can only lose. Shared CPUs: a poll or two catches a peer that runs on
    /// the other CPU at this moment; then the awaited rank needs this CPU. Who is known to run on another CPU is waited for
    /// about as long as handing this one over takes (`yield` of `lineweave fit`: 1.4 us on the VM it was set on): no more than twice what the better of both costs.
    pub fn of(policy: Wait, ranks: usize, cpus: usize) -> Budget {
        let crowded = ranks > cpus;
        let share = ranks.div_ceil(cpus.max(1));
        let yields = u32::try_from(YIELDS / share.max(1)).unwrap_or(u32::MAX);
        let yields = yields.clamp(YIELDS_OF_ONE.0, YIELDS_OF_ONE.1);
        let (spins, yields) = match policy {
            Wait::Spin => (u32::MAX, u32::MAX),
            Wait::Yield => (if crowded { 2 } else { 2_000 }, u32::MAX),
            Wait::Sleep => (if crowded { 2 } else { 1_000 }, 4),
            Wait::Auto if crowded => (2, yields),
            Wait::Auto => (20_000, 200),
        };
        let apart = if crowded { spins.max(APART) } else { spins };
        let sleep = SLEEP * u32::try_from(share.div_ceil(SLEEPERS).max(1)).unwrap_or(u32::MAX);
        Budget { spins, apart, yields, crowded, exchange: Between::Pause, sleep }
    }

    /// Returns the budget of a rank that no CPU is held for: the rank that it waits for may be on the CPU that it keeps. Two ranks of
    /// torch, which are not bound, took 650 us for each barrier while the system had them on one CPU, as long as all the spins before the
    /// first yield. A yield costs nothing where nobody else wants the CPU, and as many take as long as the spins did.
    #[must_use]
    pub fn on_any_cpu(self, policy: Wait) -> Budget {
        match policy {
            Wait::Auto if !self.crowded => {
                Budget { spins: UNHELD.0, apart: UNHELD.0, yields: UNHELD.1, ..self }
            }
            Wait::Auto | Wait::Spin | Wait::Yield | Wait::Sleep => self,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_ranks_that_share_cpus_wait_for_each_other_in_two_ways() {
        for policy in [Wait::Spin, Wait::Yield, Wait::Sleep, Wait::Auto] {
            let (own, shared) = (Budget::of(policy, 2, 2), Budget::of(policy, 3, 2));
            assert_eq!(own.spins, own.apart, "{policy:?}");
            assert!(shared.apart >= shared.spins && shared.apart <= own.apart, "{policy:?}: {shared:?}");
        }
        assert_eq!(Budget::of(Wait::Auto, 3, 2).spins, 2);
    }

    #[test]
    fn looks_of_all_ranks_take_no_more_of_a_cpu_than_those_of_a_few() {
        for (ranks, cpus) in [(1, 1), (2, 2), (64, 2), (65, 2), (512, 2), (512, 512), (4096, 1)] {
            let Budget { sleep, .. } = Budget::of(Wait::Auto, ranks, cpus);
            let looks_a_second = ranks as f64 / cpus as f64 / sleep.as_secs_f64();
            assert!(looks_a_second <= SLEEPERS as f64 / SLEEP.as_secs_f64(), "{ranks} ranks on {cpus}");
            assert!(ranks > 512 || sleep <= Duration::from_millis(200), "{ranks} ranks on {cpus}");
        }
    }

    #[test]
    fn a_rank_without_a_cpu_of_its_own_yields_early_unless_it_was_told_how_to_wait() {
        let held = Budget::of(Wait::Auto, 2, 2);
        let free = held.on_any_cpu(Wait::Auto);
        assert!(free.spins * 10 <= held.spins && free.apart == free.spins && free.yields > held.yields);
        for policy in [Wait::Spin, Wait::Yield, Wait::Sleep] {
            let budget = Budget::of(policy, 2, 2);
            assert_eq!(budget.on_any_cpu(policy), budget, "{policy:?}");
        }
        let crowded = Budget::of(Wait::Auto, 3, 2);
        assert_eq!(crowded.on_any_cpu(Wait::Auto), crowded);
    }
}
