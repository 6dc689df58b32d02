//! One line of a benchmark's result.

use super::definition::Team;
use super::peers::stats;
use super::subject::Subject;
use lineweave_core::algorithm::spec::Named;
use lineweave_core::collective::Collective;
use lineweave_core::profile::Stats;
use lineweave_tune::trial::{Buffers, Outcome, Way};
use serde::Serialize;

/// The times of one subject for one case. Printed as `bench` by `lineweave bench`, one object a subject and case: root 0, f64 elements, sum. In
/// `bench/record/` keys that are `null` are left out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: u64,
    pub team: Team,
    pub subject: Subject,
    pub buffers: Buffers,
    #[serde(flatten)]
    pub times: Times,
    /// Number of windows, alternating with those of the other subjects.
    pub rounds: usize,
    /// Median over rounds of this subject's median divided by the floor's in the same round.
    pub ratio_to_floor: Option<f64>,
    /// The subject that is the floor of this case: `floor`; for more than two ranks `hand-floor`; beyond a line `memcpy`; for an allreduce of two
    /// ranks from 64 KiB on `byte-floor`.
    pub floor: Option<Subject>,
    /// The algorithm that ran, with parameters and window; lineweave only.
    pub algorithm: Option<String>,
    /// Bytes of a window; lineweave only.
    pub window_bytes: Option<usize>,
    /// The reason for that algorithm: `forced`, `measured`, `simulated` or `predicted`; lineweave only.
    pub because: Option<String>,
    /// The fastest of a peer's settings.
    pub setting: Option<String>,
    /// The library of a peer that ran.
    pub runtime: Option<String>,
}

/// Statistics of a call's time, in ns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Times {
    pub median_ns: f64,
    /// Lower end of the rank-based 95 % interval of the median.
    pub ci_low_ns: f64,
    pub ci_high_ns: f64,
    pub p5_ns: f64,
    pub p95_ns: f64,
    pub min_ns: f64,
    /// Number of batches.
    pub samples: usize,
    /// Number of batches that were set aside because something disturbed them.
    pub disturbed: usize,
}

impl From<Stats> for Times {
    fn from(s: Stats) -> Times {
        Times {
            median_ns: s.median,
            ci_low_ns: s.ci_low,
            ci_high_ns: s.ci_high,
            p5_ns: s.p5,
            p95_ns: s.p95,
            min_ns: s.min,
            samples: s.samples,
            disturbed: s.disturbed,
        }
    }
}

/// A subject that was not measured, and why. Printed as `skipped` by `lineweave bench`, of Python and of MPI as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    pub subject: Subject,
    pub ranks: usize,
    pub team: Team,
    pub because: String,
}

/// The windows of one subject so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    pub batches_ns: Vec<f64>,
    pub medians: Vec<Option<f64>>,
    pub disturbed: usize,
}

impl Windows {
    /// Adds a window.
    pub fn add(&mut self, batches_ns: &[f64], disturbed: usize) {
        self.medians.push((!batches_ns.is_empty()).then(|| stats(batches_ns, 0).median));
        self.batches_ns.extend_from_slice(batches_ns);
        self.disturbed += disturbed;
    }

    /// Adds a window that failed: it keeps its place, so that rounds stay pairs.
    pub fn miss(&mut self) {
        self.medians.push(None);
    }

    /// Returns the median over rounds of the ratio to the floor's window of the same round.
    pub fn ratio_to(&self, floor: &Windows) -> Option<f64> {
        let pairs = self.medians.iter().zip(&floor.medians);
        let ratios: Vec<f64> = pairs.filter_map(|(a, b)| Some((*a)? / (*b)?)).collect();
        (!ratios.is_empty()).then(|| stats(&ratios, 0).median)
    }
}

/// Returns the name of the algorithm that ran, as other commands and `LINEWEAVE_ALGORITHM` take it.
pub fn algorithm_name(outcome: &Outcome, message: u64) -> String {
    let Way { algorithm, params, window } = &outcome.way;
    Named::new(algorithm, params).by(*window, message as usize).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_rounds() {
        let windows = |medians: &[f64]| {
            let mut windows = Windows::default();
            medians.iter().for_each(|&m| windows.add(&[m], 0));
            windows
        };
        // The machine becomes three times slower between rounds; the subject is always twice the floor.
        let (subject, floor) = (windows(&[100.0, 300.0, 100.0]), windows(&[50.0, 150.0, 50.0]));
        assert_eq!(subject.ratio_to(&floor), Some(2.0));
        let mut gap = Windows::default();
        gap.miss();
        gap.add(&[150.0], 1);
        assert_eq!(subject.ratio_to(&gap), Some(2.0), "a round that was missed is no pair");
        assert_eq!(subject.ratio_to(&Windows::default()), None);
    }
}
