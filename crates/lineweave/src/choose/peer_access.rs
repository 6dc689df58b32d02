//! Access of a plan to the buffers of other ranks.

/// Kind of access that a plan may have to the buffers of other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PeerAccess {
    /// No access: bytes of other ranks come through the banks.
    None,
    /// Loads and stores, because ranks are threads of one process.
    SameProcess,
    /// Loads and stores, because the buffers lie in a shared heap.
    SharedHeap,
    /// System calls that copy (cross-memory attach).
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
