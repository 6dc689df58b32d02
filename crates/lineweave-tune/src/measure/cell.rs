//! Offer of a probe: cells, each with the ranks it needs and the way to take its samples.

use super::random::Random;
use super::timing::{Rules, Samples};
use lineweave::internal::Scratch;
use lineweave::Communicator;
use lineweave::Error;
use lineweave_core::profile::{Cell, Stats, Unidentified};
use lineweave_core::topology::{Cpu, Level};
use std::collections::BTreeMap;

/// The name of a cell: its probe and its factors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleKey {
    pub probe: &'static str,
    pub factors: BTreeMap<String, String>,
}

impl SampleKey {
    pub fn new(probe: &'static str) -> SampleKey {
        SampleKey { probe, factors: BTreeMap::new() }
    }

    pub fn with(mut self, name: &str, value: impl ToString) -> SampleKey {
        self.factors.insert(name.to_owned(), value.to_string());
        self
    }

    /// As a profile has it.
    pub fn cell(self, stats: Stats) -> Cell {
        Cell {
            probe: self.probe.to_owned(),
            factors: self.factors,
            unit: "ns".to_owned(),
            stats,
            flagged: Vec::new(),
        }
    }
}

impl std::fmt::Display for SampleKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let factors: Vec<String> = self.factors.iter().map(|(k, v)| format!("{k}={v}")).collect();
        write!(f, "{} {}", self.probe, factors.join(" "))
    }
}

/// Ranks that a cell needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// One rank.
    Solo,
    /// Two ranks on different CPUs.
    Pair,
    /// Two ranks on one CPU.
    SameCpu,
    /// Two ranks of a package, and a third in another one, in whose memory their lines are.
    Trio,
    /// Three ranks or more, each on a CPU of its own.
    Crowd,
}

/// CPUs that measure together.
#[derive(Clone, Debug)]
pub struct ProbeTeam {
    pub role: Role,
    /// One a rank.
    pub cpus: Vec<Cpu>,
    /// The nearest level that the first two ranks share.
    pub level: Level,
}

/// One rank's three buffers: a page-aligned piece of private memory each, first touched by the rank itself.
#[derive(Debug)]
pub struct Memory {
    pub input: Scratch,
    pub output: Scratch,
    /// Memory that peers may read and write.
    pub shared: Scratch,
}

// SAFETY: plain bytes; who may touch them when is decided by the barriers of the probes.
unsafe impl Send for Memory {}

/// Context of a rank while it takes the samples of a cell.
pub struct ProbeContext<'a> {
    pub comm: &'a mut Communicator,
    /// Own input buffer.
    pub input: *mut u8,
    /// Own output buffer.
    pub output: *mut u8,
    /// Bytes that each buffer holds.
    pub bytes: usize,
    /// The shared buffers of all ranks.
    pub shared: &'a [*mut u8],
    /// Source of random numbers, the same on every rank.
    pub random: Random,
}

/// Takes the samples of a cell, on every rank of its crew at once.
pub type Sampler = Box<dyn Fn(&mut ProbeContext<'_>, &Rules) -> Result<Samples, Error> + Send + Sync>;

/// One cell to be measured.
pub struct Task {
    /// Its name, and the further names of the same set-up.
    pub keys: Vec<SampleKey>,
    /// Share of the time, in relation to others.
    pub weight: f64,
    pub take: Sampler,
}

impl Task {
    pub fn new(
        key: SampleKey,
        weight: f64,
        take: impl Fn(&mut ProbeContext<'_>, &Rules) -> Result<Samples, Error> + Send + Sync + 'static,
    ) -> Task {
        Task { keys: vec![key], weight, take: Box::new(take) }
    }
}

/// Cells that one probe offers to a crew, and those that it cannot.
#[derive(Default)]
pub struct ProbeTasks {
    pub tasks: Vec<Task>,
    pub unidentified: Vec<Unidentified>,
}

impl ProbeTasks {
    pub fn missing(&mut self, what: impl Into<String>, because: impl Into<String>) {
        let (what, because) = (what.into(), because.into());
        if self.unidentified.iter().all(|u| u.what != what) {
            self.unidentified.push(Unidentified { what, because });
        }
    }
}

/// Samples of half a round trip from those of a round trip, or the like.
pub fn scaled(mut samples: Samples, factor: f64) -> Samples {
    samples.values.iter_mut().for_each(|v| *v *= factor);
    samples
}
