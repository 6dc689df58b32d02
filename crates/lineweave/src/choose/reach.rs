//! Whose buffers plans reach.

/// Whose buffers a plan may reach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reach {
    /// The own: others' bytes come through boxes.
    Own,
    /// Everybody's, because ranks are threads of one process.
    Threads,
    /// Everybody's, because they lie in a heap.
    Heap,
    /// Everybody's, by system calls that copy.
    Attach,
}

impl Reach {
    /// The kind of team, as choices name it.
    pub(super) fn team(self) -> &'static str {
        match self {
            Reach::Own | Reach::Attach => "processes",
            Reach::Threads => "threads",
            Reach::Heap => "shared",
        }
    }
}

/// What a plan is on the shelf by: the call, the room for counters, and whose part of it that is, if it is one rank's alone.
pub(super) type ShelfKey<K> = (K, usize, Option<usize>);
