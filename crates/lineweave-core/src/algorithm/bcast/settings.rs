//! The parameters that tree broadcasts share, and the sets of them worth costing.

pub(super) use super::super::pieces::LAYOUT;
use super::super::{ParamSpec, Problem};
use crate::plan::{Layout, Params, PlanError};

/// Notification scheme: the ranks that raise flags when a chunk is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notify {
    /// The parent raises a flag of each child.
    Each,
    /// The parent raises one flag of its own, which all its children poll.
    Shared,
    /// The parent raises the flags of two children, who pass it on to siblings (Petrovic et al. 2012, Fig. 5).
    Binary,
}

impl Notify {
    /// Reads the parameter `notify`.
    pub fn read(params: &Params, default: Notify) -> Result<Notify, PlanError> {
        let words = [("each", Notify::Each), ("shared", Notify::Shared), ("binary", Notify::Binary)];
        params.one_of("notify", default, &words)
    }
}

/// Rank whose box a rank copies from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// Its parent's.
    Parent,
    /// The root's: the tree only notifies.
    Root,
}

/// See [`Notify`].
pub(super) const NOTIFY: ParamSpec = ParamSpec {
    name: "notify",
    default: "each",
    about: "each: a flag a child; shared: children poll one flag; binary: siblings pass it on",
};
/// See [`super::relay::Relay::carry`].
pub(super) const CARRY: ParamSpec =
    ParamSpec { name: "carry", default: "1", about: "most flag lines that a payload may travel in; 0: none" };
/// See [`Source`].
pub(in super::super) const SOURCE: ParamSpec = ParamSpec {
    name: "source",
    default: "parent",
    about: "box to copy from: the parent's, or always the root's",
};
/// See [`super::relay::Relay::chunk`].
pub(super) const CHUNK: ParamSpec = ParamSpec {
    name: "chunk",
    default: "0",
    about: "bytes of a pipelined chunk; 0: the message is one chunk",
};
/// See [`super::relay::Relay::slots`].
pub(super) const SLOTS: ParamSpec = ParamSpec {
    name: "slots",
    default: "0",
    about: "chunk slots in a box, reused after acknowledgement; 0: room for the message, no acknowledgement",
};

/// Chunk sizes worth costing for a message: powers of four from 4 KiB that split it into 2 to 256 chunks.
pub(super) fn chunk_grid(bytes: usize) -> Vec<usize> {
    [4 << 10, 16 << 10, 64 << 10, 256 << 10].into_iter().filter(|&c| c < bytes && bytes / c <= 256).collect()
}

/// Candidates of a tree whose message goes whole or in chunks through room for all of it: `base` with the
/// layouts and ways of notifying that differ for this size.
pub(super) fn tree_candidates(problem: &Problem, base: &[Params], notify: &[&str]) -> Vec<Params> {
    if problem.ranks() < 2 {
        return vec![Params::new()];
    }
    let bytes = problem.bytes;
    let mut out = Vec::new();
    for params in base {
        for notify in notify {
            let params = params.clone().with("notify", notify);
            out.push(params.clone());
            if bytes <= Layout::Paired.payload() && *notify != "shared" {
                out.push(params.clone().with("layout", Layout::Paired));
            }
            if bytes <= Layout::Alone.payload() && problem.ranks() > 2 {
                out.push(params.clone().with("layout", Layout::Spread(2)));
            }
            if bytes > Layout::Alone.payload() && bytes <= 8 * Layout::Alone.payload() {
                out.push(params.clone().with("carry", 8));
            }
            for chunk in chunk_grid(bytes).into_iter().skip(1).take(2) {
                out.push(params.clone().with("chunk", chunk));
            }
        }
    }
    out.truncate(24);
    out
}
