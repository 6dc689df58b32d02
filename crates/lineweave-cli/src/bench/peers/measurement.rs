//! What a peer's program prints, and the statistics over its batches.

use crate::bench::definition::{Subject, Team};
use lineweave_core::profile::Stats;
use serde::{Deserialize, Serialize};

/// One measurement of one subject; windows of the same kind merge into one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Who was measured.
    pub subject: Subject,
    /// The variant or setting.
    #[serde(rename = "variant")]
    pub setting: String,
    /// What really ran: a library's file name, or how it was written.
    pub runtime: String,
    /// The kind of team.
    pub team: Team,
    /// Team size.
    pub ranks: usize,
    /// Message size in bytes.
    pub bytes: u64,
    /// Collectives a batch.
    pub iterations: u64,
    /// Batches run again because a rank had been switched out.
    #[serde(rename = "discarded")]
    pub disturbed: usize,
    /// Nanoseconds a collective, one value a batch.
    pub batches_ns: Vec<f64>,
}

impl Measurement {
    /// Reads one line of a program's output; the message says what is wrong with it.
    pub fn parse(line: &str) -> Result<Measurement, String> {
        let measurement: Measurement = serde_json::from_str(line).map_err(|e| e.to_string())?;
        if measurement.batches_ns.is_empty() {
            return Err("batches_ns is empty: expected at least one batch".to_owned());
        }
        match measurement.batches_ns.iter().find(|ns| !(ns.is_finite() && **ns > 0.0)) {
            Some(ns) => Err(format!("batches_ns has {ns}: expected positive times")),
            None => Ok(measurement),
        }
    }

    /// Adds another window's batches.
    pub fn merge(&mut self, window: &Measurement) {
        self.batches_ns.extend_from_slice(&window.batches_ns);
        self.disturbed += window.disturbed;
    }

    /// Statistics over the batches, in nanoseconds.
    pub fn stats(&self) -> Stats {
        stats(&self.batches_ns, self.disturbed)
    }
}

/// Statistics of at least one sample. The interval of the median is rank-based: its ends are the order
/// statistics n/2 -+ 1.96 sqrt(n)/2; under six samples no 95 % interval exists, and the extremes stand for it.
pub fn stats(samples: &[f64], disturbed: usize) -> Stats {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let last = count.saturating_sub(1);
    let at = |index: usize| sorted.get(index.min(last)).copied().unwrap_or(f64::NAN);
    let (low, high) = if count >= 6 {
        let (n, spread) = (count as f64, 1.96 * (count as f64).sqrt());
        (((n - spread) / 2.0).floor() as usize, (1.0 + (n + spread) / 2.0).ceil() as usize)
    } else {
        (1, count)
    };
    Stats {
        median: (at(last / 2) + at(count / 2)) / 2.0,
        ci_low: at(low.saturating_sub(1)),
        ci_high: at(high.saturating_sub(1)),
        p5: at((0.05 * last as f64) as usize),
        p95: at((0.95 * last as f64) as usize),
        min: at(0),
        samples: count,
        disturbed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_published_one() {
        // Le Boudec, Performance Evaluation, Table A.1: n = 70 has ranks 27 and 44 at 95 %; the formula for
        // large n rounds outward to 26 and 45.
        let samples: Vec<f64> = (1..=70).rev().map(f64::from).collect();
        let s = stats(&samples, 3);
        assert_eq!((s.median, s.ci_low, s.ci_high), (35.5, 26.0, 45.0));
        assert_eq!((s.min, s.samples, s.disturbed), (1.0, 70, 3));
        assert_eq!((s.p5, s.p95), (4.0, 66.0));
    }

    #[test]
    fn few_samples_give_the_extremes() {
        let s = stats(&[5.0, 1.0, 2.0], 0);
        assert_eq!((s.median, s.ci_low, s.ci_high), (2.0, 1.0, 5.0));
        let s = stats(&[4.0], 0);
        assert_eq!((s.median, s.ci_low, s.ci_high, s.p5, s.p95), (4.0, 4.0, 4.0, 4.0, 4.0));
        assert!(stats(&[], 0).median.is_nan());
    }

    const LINE: &str = r#"{"schema":1,"kind":"peer","subject":"std-barrier","variant":"default",
        "runtime":"libstdc++","team":"threads","ranks":2,"bytes":0,"median_ns":2.0,"samples":3,
        "iterations":16,"discarded":1,"batches_ns":[1.0,2.0,3.0]}"#;

    #[test]
    fn windows_merge() {
        let mut first = Measurement::parse(LINE).expect("a line as printed");
        let second = first.clone();
        first.merge(&second);
        let s = first.stats();
        assert_eq!((s.samples, s.disturbed, s.median), (6, 2, 2.0));
    }

    #[test]
    fn impossible_times_are_refused() {
        for (found, because) in [("[]", "empty"), ("[0.0]", "positive"), ("[1.0,-1.0]", "positive")] {
            let line = LINE.replace("[1.0,2.0,3.0]", found);
            assert!(Measurement::parse(&line).expect_err(found).contains(because), "{found}");
        }
        assert!(Measurement::parse("{").is_err());
    }
}
