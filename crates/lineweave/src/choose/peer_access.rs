//! How a plan accesses the buffers of other ranks.

/// How a plan may access the buffers of other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PeerAccess {
    /// Not at all: bytes of others come through boxes.
    None,
    /// By loads and stores, because ranks are threads of one process.
    SameProcess,
    /// By loads and stores, because the buffers lie in a shared heap.
    SharedHeap,
    /// By system calls that copy (cross-memory attach).
    Cma,
}

impl PeerAccess {
    /// The kind of team, as choices name it.
    pub(super) fn team(self) -> &'static str {
        match self {
            PeerAccess::None | PeerAccess::Cma => "processes",
            PeerAccess::SameProcess => "threads",
            PeerAccess::SharedHeap => "shared",
        }
    }
}

/// The key of a cached plan: the call, the bytes for counters, and the rank if the plan is one rank's part alone.
pub(super) type CacheKey<K> = (K, usize, Option<usize>);
