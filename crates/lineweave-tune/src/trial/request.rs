//! Description of a trial, the same for every rank, and its result.

use lineweave::kernel::{Element, Operator};
use lineweave::settings::Wait;
use lineweave::tuning::Chosen;
use lineweave::CallSpec;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Params, Uneven};
use serde::{Deserialize, Serialize};

/// An algorithm with everything that makes it a plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Way {
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its parameters.
    pub params: Params,
    /// Bytes of a window.
    pub window: usize,
}

/// Choice of the buffers that successive collectives use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Buffers {
    /// One set of buffers for all calls, as in a benchmark loop; that flatters an implementation which finds them in a cache.
    Reuse,
    /// A walk over many buffers, together larger than the caches, as an application does.
    Fresh,
}

impl Buffers {
    /// The name used on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Buffers::Reuse => "reuse",
            Buffers::Fresh => "fresh",
        }
    }
}

/// By which way bytes go from rank to rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataPath {
    /// Through boxes.
    Boxes,
    /// From buffer to buffer by cross-memory attach: the plan that the model takes to be the best of those.
    Attach,
    /// As the library chooses where every buffer is shared memory.
    Shared,
}

/// The length of a window unless a trial says otherwise, in ns.
pub const WINDOW_NS: u64 = 8_000_000;

/// Description of a measurement, the same for every rank.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The collective; f64 elements that are summed.
    pub collective: Collective,
    /// Message length in bytes, a multiple of 8; of blocks that differ the longest.
    pub bytes: usize,
    /// The root, where there is one.
    pub root: usize,
    /// Bytes that each rank gives to each, row by row, for an alltoall by a named algorithm; empty where all give `bytes`.
    pub lengths: Vec<usize>,
    /// Buffers.
    pub buffers: Buffers,
    /// The algorithm, when it is not to be the library's own choice.
    pub way: Option<Way>,
    /// The way of the bytes, when it is not to be the library's own choice.
    pub path: Option<DataPath>,
    /// Way in which ranks wait, when it is not to be as they were set up.
    pub wait: Option<Wait>,
    /// Follow each call with a barrier, so that no call overlaps with the next; the time of both counts.
    pub apart: bool,
    /// Compare the answer with what it must be before timing.
    pub check: bool,
    /// The longest the window lasts, in ns.
    pub window_ns: u64,
    /// The fewest samples before it may end early.
    pub least: usize,
    /// The most samples.
    pub most: usize,
    /// It ends early when half the interval of the median is at most this share of it.
    pub precision: f64,
}

/// Result of a window.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// ns a call, one value a batch: the most of what any rank took.
    pub batches_ns: Vec<f64>,
    /// Batches set aside because something disturbed them.
    pub disturbed: usize,
    /// Algorithm that ran, with its parameters and window.
    pub way: Way,
    /// `forced`, `measured` or `predicted`: why that algorithm.
    pub because: String,
    /// True if it reached other ranks' buffers.
    pub direct: bool,
    /// True if ranks reach each other's memory by cross-memory attach.
    pub cross_memory: bool,
}

impl Trial {
    /// Returns a trial as the library chooses, its answer not checked, its buffers used again: a window of 8 ms of at most 300 samples.
    pub fn new(collective: Collective, bytes: usize) -> Trial {
        Trial {
            collective,
            bytes,
            root: 0,
            lengths: Vec::new(),
            buffers: Buffers::Reuse,
            way: None,
            path: None,
            wait: None,
            apart: false,
            check: false,
            window_ns: WINDOW_NS,
            least: 16,
            most: 300,
            precision: 0.01,
        }
    }

    /// Returns a trial of the library's barrier, as briefly as it goes.
    pub(super) fn barriers() -> Trial {
        Trial { window_ns: 1, least: 1, most: 1, precision: 1.0, ..Trial::new(Collective::Barrier, 0) }
    }

    /// Returns the length of the longest buffer that a rank needs, in bytes.
    pub(super) fn buffer_bytes(&self, ranks: usize) -> usize {
        let extents = [self.collective.input(0, 0), self.collective.output(0, 0)];
        let blocks = extents.map(|e| e.bytes(ranks, self.bytes)).into_iter().max();
        blocks.unwrap_or(0).max(self.bytes)
    }

    /// Returns the blocks that ranks exchange where they differ.
    pub(super) fn blocks(&self, ranks: usize) -> Uneven {
        Uneven::by_pair(ranks, self.lengths.clone())
    }

    /// Returns the call that is timed.
    pub fn call(&self) -> CallSpec {
        CallSpec {
            collective: self.collective,
            element: f64::TYPE,
            count: self.bytes / size_of::<f64>(),
            operator: self.collective.folds().then_some(Operator::Sum),
            root: self.root,
        }
    }
}

impl Way {
    pub(super) fn of(chosen: Chosen) -> Way {
        Way { algorithm: chosen.algorithm.name.to_owned(), params: chosen.params, window: chosen.window }
    }
}
