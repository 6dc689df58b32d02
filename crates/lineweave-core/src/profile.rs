//! What a machine was measured to cost: one record a cell, each with its spread and confidence.
//!
//! A cell is a probe's name, its factors (layout, state, distance, bytes, ranks ...) and statistics of the
//! samples. What this machine cannot tell is listed by name and reason, never filled in.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the profile format.
pub const SCHEMA: u32 = 1;

/// Statistics of one cell (MEASURING.md, rule 5): all in the cell's unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stats {
    /// Median.
    pub median: f64,
    /// Lower end of the rank-based 95 % confidence interval of the median.
    pub ci_low: f64,
    /// Upper end of it.
    pub ci_high: f64,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Smallest sample; only a calibration floor.
    pub min: f64,
    /// Samples kept.
    pub samples: usize,
    /// Samples set aside, with a cause (steal, context switch, migration).
    pub disturbed: usize,
}

/// One measured cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The probe: `signal`, `exchange`, `copy` ...
    pub probe: String,
    /// What was varied, by name.
    #[serde(default)]
    pub factors: BTreeMap<String, String>,
    /// The unit of the statistics: `ns`, `bytes_per_ns`, `ticks`.
    pub unit: String,
    /// The samples.
    pub stats: Stats,
    /// Notes of the plausibility gate, empty when nothing was odd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flagged: Vec<String>,
}

/// Something that a model has a place for and this machine cannot identify.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unidentified {
    /// The parameter or probe.
    pub what: String,
    /// Why: "contention needs 3 CPUs and 2 are usable".
    pub because: String,
}

/// Which machine a profile belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Fingerprint {
    /// CPU model as the kernel names it.
    pub cpu: String,
    /// Usable CPUs.
    pub cpus: usize,
    /// Bytes of a cache line.
    pub line_bytes: usize,
    /// Topology in hwloc's synthetic form.
    pub topology: String,
}

impl Fingerprint {
    /// A short stable name for files: 16 hexadecimal digits (FNV-1a, 64 bits).
    pub fn id(&self) -> String {
        let text = format!("{}|{}|{}|{}", self.cpu, self.cpus, self.line_bytes, self.topology);
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3));
        format!("{hash:016x}")
    }
}

/// A measured machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Format version, [`SCHEMA`].
    pub schema: u32,
    /// lineweave's version that measured.
    pub version: String,
    /// When, in UTC, as RFC 3339.
    pub measured_at: String,
    /// The machine.
    pub machine: Fingerprint,
    /// What cannot be identified here.
    #[serde(default)]
    pub unidentified: Vec<Unidentified>,
    /// The cells.
    #[serde(default)]
    pub cells: Vec<Cell>,
}

impl Profile {
    /// The cells of a probe.
    pub fn probe<'a>(&'a self, probe: &'a str) -> impl Iterator<Item = &'a Cell> + 'a {
        self.cells.iter().filter(move |c| c.probe == probe)
    }

    /// The cell of a probe with exactly these values among its factors.
    pub fn cell(&self, probe: &str, factors: &[(&str, &str)]) -> Option<&Cell> {
        self.cells.iter().find(|c| {
            c.probe == probe && factors.iter().all(|(k, v)| c.factors.get(*k).map(String::as_str) == Some(*v))
        })
    }
}
