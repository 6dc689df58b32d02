//! The output of a peer's program, and the statistics over its batches.

use crate::bench::definition::Team;
use crate::bench::subject::Subject;
use lineweave_core::profile::Stats;
use serde::{Deserialize, Serialize};

/// One measurement of one subject.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measurement {
    pub subject: Subject,
    /// The variant or setting.
    #[serde(rename = "variant")]
    pub setting: String,
    /// The implementation that ran: a library's file name, or the way in which it was written.
    pub runtime: String,
    pub team: Team,
    pub ranks: usize,
    pub bytes: u64,
    /// Batches run again because a rank had been switched out.
    #[serde(rename = "discarded")]
    pub disturbed: usize,
    /// Nanoseconds of one collective, one value for each batch.
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

    /// Returns the statistics over the batches, in nanoseconds.
    pub fn stats(&self) -> Stats {
        stats(&self.batches_ns, self.disturbed)
    }
}

/// Returns [`Stats::of`] the samples, with no numbers where there is no sample.
pub fn stats(samples: &[f64], disturbed: usize) -> Stats {
    let none = f64::NAN;
    let nothing = Stats {
        median: none,
        ci_low: none,
        ci_high: none,
        p5: none,
        p95: none,
        min: none,
        samples: 0,
        disturbed,
    };
    Stats::of(samples, disturbed).unwrap_or(nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_sample_there_are_no_numbers() {
        assert_eq!(stats(&[4.0], 1).p95, 4.0);
        assert!(stats(&[], 0).median.is_nan());
    }

    const LINE: &str = r#"{"schema":1,"kind":"peer","subject":"std-barrier","variant":"default",
        "runtime":"libstdc++","team":"threads","ranks":2,"bytes":0,"median_ns":2.0,"samples":3,
        "iterations":16,"discarded":1,"batches_ns":[1.0,2.0,3.0]}"#;

    #[test]
    fn a_line_is_read_as_printed() {
        let s = Measurement::parse(LINE).expect("a line as printed").stats();
        assert_eq!((s.samples, s.disturbed, s.median), (3, 1, 2.0));
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
