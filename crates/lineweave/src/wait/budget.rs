//! How long each way of waiting is tried.

use crate::settings::Wait;

/// How long each way of waiting is tried before the next, in polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Polls with nothing but a pause between them.
    pub spins: u32,
    /// Polls with a yield between them, after that.
    pub yields: u32,
    /// Whether ranks outnumber usable CPUs, so that one that waits holds up another.
    pub crowded: bool,
}

impl Budget {
    /// The budget of a policy for `ranks` ranks on `cpus` usable CPUs.
    ///
    /// Own CPUs: spin for about 20 000 pauses (some 0.5 ms: several times what waking a sleeper costs),
    /// since giving up the CPU early can only lose. Shared CPUs: a poll or two catches a peer that runs on
    /// the other CPU at this moment; then the awaited rank needs this CPU.
    pub fn of(policy: Wait, ranks: usize, cpus: usize) -> Budget {
        let crowded = ranks > cpus;
        let (spins, yields) = match policy {
            Wait::Spin => (u32::MAX, u32::MAX),
            Wait::Yield => (if crowded { 2 } else { 2_000 }, u32::MAX),
            Wait::Sleep => (if crowded { 2 } else { 1_000 }, 4),
            Wait::Auto if crowded => (2, 2_000),
            Wait::Auto => (20_000, 200),
        };
        Budget { spins, yields, crowded }
    }
}
