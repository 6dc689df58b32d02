//! How long each way of waiting is tried.

use crate::settings::Wait;

/// How long each way of waiting is tried before the next, in polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Polls with nothing but a pause between them.
    pub spins: u32,
    /// The same, where who raises the flag has another CPU and so may be at it now.
    pub apart: u32,
    /// Polls with a yield between them, after that.
    pub yields: u32,
    /// Whether ranks outnumber usable CPUs, so that one that waits holds up another.
    pub crowded: bool,
    /// What lies between the looks of an exchange of two bare flags, the two-rank barrier.
    pub exchange: Between,
}

/// What lies between two looks at a flag. All but exchanges pause (docs/findings.md, "What lies between two polls").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Between {
    /// The CPU's hint for polling loops.
    Pause,
    /// A fence for loads.
    LoadFence,
}

/// Polls of a wait that goes on while this CPU could be handed over.
const APART: u32 = 128;

impl Budget {
    /// The budget of a policy for `ranks` ranks on `cpus` usable CPUs.
    ///
    /// Own CPUs: spin for about 20 000 pauses (some 0.5 ms: several times what waking a sleeper costs),
    /// since giving up the CPU early can only lose. Shared CPUs: a poll or two catches a peer that runs on
    /// the other CPU at this moment; then the awaited rank needs this CPU. Who is known to run on another CPU is waited for
    /// about as long as handing this one over takes (`yield` of `lineweave fit`: 1.4 us on the VM it was set on): no more than twice what the better of both costs.
    pub fn of(policy: Wait, ranks: usize, cpus: usize) -> Budget {
        let crowded = ranks > cpus;
        let (spins, yields) = match policy {
            Wait::Spin => (u32::MAX, u32::MAX),
            Wait::Yield => (if crowded { 2 } else { 2_000 }, u32::MAX),
            Wait::Sleep => (if crowded { 2 } else { 1_000 }, 4),
            Wait::Auto if crowded => (2, 2_000),
            Wait::Auto => (20_000, 200),
        };
        let apart = if crowded { spins.max(APART) } else { spins };
        Budget { spins, apart, yields, crowded, exchange: Between::Pause }
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
}
