//! Measured costs of a machine: one record a cell, each with its spread and confidence.
//!
//! A cell is a probe's name, its factors (layout, state, distance, bytes, ranks ...) and statistics of the
//! samples. What this machine cannot tell is listed by name and reason, never filled in.

use crate::document;
use crate::names::line_of;
use crate::units::fnv1a;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a text is not a profile, or a profile not this machine's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not the TOML of a profile.
    #[error("line {line}: {message}; measure again")]
    Malformed {
        /// Line of the text, from 1.
        line: usize,
        /// Message with the expected and the found text.
        message: String,
    },
    /// Another version.
    #[error("line {line}: expected schema {SCHEMA}, found {found}; measure again with this lineweave")]
    Schema {
        /// Line of the text, from 1.
        line: usize,
        /// Found.
        found: u32,
    },
    /// A cell with numbers that no measurement gives.
    #[error("line {line}: cell of probe `{probe}`: expected {expected}, found {found}; measure again")]
    BadCell {
        /// Line of the text where the cell begins, from 1.
        line: usize,
        /// Its probe.
        probe: String,
        /// Condition that was expected.
        expected: String,
        /// Values that were found.
        found: String,
    },
    /// Measured elsewhere.
    #[error(
        "the profile is of another machine: its {what} is `{profile}`, here it is `{here}`; measure this one"
    )]
    OtherMachine {
        /// Property that differs first.
        what: &'static str,
        /// In the profile.
        profile: String,
        /// On this machine.
        here: String,
    },
}

/// Version of the profile format.
pub const SCHEMA: u32 = 1;

/// Statistics of one cell (docs/explanation/measuring.md, rule 5): all in the cell's unit.
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
    /// Factors that were varied, by name.
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

/// Something that a model has a place for and this machine cannot identify. Printed as `unidentified` by `lineweave fit`, `measure` and `tune`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unidentified {
    /// The parameter or probe.
    pub what: String,
    /// Why: "contention needs 3 CPUs and 2 are usable".
    pub because: String,
}

/// Machine that a profile belongs to.
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
        format!("{:016x}", fnv1a(text.bytes()))
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
    /// Parameters that cannot be identified on this machine.
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

impl Stats {
    /// The statistics of some samples, of which `disturbed` more were set aside; `None` without a sample.
    ///
    /// The interval of the median is between two of the samples, those of ranks (n -+ 1.96 sqrt n) / 2: no
    /// distribution is assumed (Le Boudec 2010, theorem 2.1). Below six samples it is their whole range.
    pub fn of(samples: &[f64], disturbed: usize) -> Option<Stats> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let (&min, &last) = (sorted.first()?, sorted.last()?);
        // Between the two nearest ranks, in proportion.
        let quantile = |q: f64| {
            let at = q * (n - 1) as f64;
            let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
            low + (high - low) * at.fract()
        };
        let (ci_low, ci_high) = if n < 6 {
            (min, last)
        } else {
            let half = 1.96 * (n as f64).sqrt();
            let low = ((n as f64 - half) / 2.0).floor().max(1.0) as usize;
            let high = ((n as f64 + half) / 2.0 + 1.0).ceil() as usize;
            (sorted[low - 1], sorted[high.min(n) - 1])
        };
        let (median, p5, p95) = (quantile(0.5), quantile(0.05), quantile(0.95));
        Some(Stats { median, ci_low, ci_high, p5, p95, min, samples: n, disturbed })
    }

    /// Returns the fault of these numbers, if any: the expected condition, and the values found.
    fn fault(&self) -> Option<(String, String)> {
        let named = [
            ("median", self.median),
            ("ci_low", self.ci_low),
            ("ci_high", self.ci_high),
            ("p5", self.p5),
            ("p95", self.p95),
            ("min", self.min),
        ];
        if let Some((name, x)) = named.iter().find(|(_, x)| !x.is_finite() || *x < 0.0) {
            return Some((format!("{name} finite and not negative"), x.to_string()));
        }
        let ordered = [("ci_low", "ci_high", self.ci_low, self.ci_high), ("p5", "p95", self.p5, self.p95)];
        let reversed = ordered.iter().find(|(_, _, low, high)| low > high);
        reversed.map(|(a, b, low, high)| (format!("{a} <= {b}"), format!("{low} > {high}")))
    }
}

impl Profile {
    /// The text form.
    pub fn to_toml(&self) -> String {
        // Names, numbers and lists of them: TOML has a place for each.
        toml::to_string(self).unwrap_or_default()
    }

    /// The profile in a text.
    ///
    /// # Errors
    /// [`ProfileError`] with the line: malformed or truncated text, another schema, or numbers that are
    /// negative, not finite or out of order.
    pub fn from_toml(text: &str) -> Result<Profile, ProfileError> {
        let malformed = |(line, message)| ProfileError::Malformed { line, message };
        let document = document::parse(text).map_err(malformed)?;
        // Another version's text need not have this one's keys, so that its version is what is wrong with it.
        if let Some(schema) = document.get("schema") {
            let found = schema.get_ref().as_integer().and_then(|n| n.as_str().parse().ok());
            if let Some(found) = found.filter(|found| *found != SCHEMA) {
                return Err(ProfileError::Schema { line: line_of(text, schema.span().start), found });
            }
        }
        let profile: Profile = document::read(text, &document).map_err(malformed)?;
        for (i, cell) in profile.cells.iter().enumerate() {
            if let Some((expected, found)) = cell.stats.fault() {
                let line = text.match_indices("[[cells]]").nth(i).map_or(1, |(at, _)| line_of(text, at));
                return Err(ProfileError::BadCell { line, probe: cell.probe.clone(), expected, found });
            }
        }
        Ok(profile)
    }

    /// Returns whether this profile is of the machine with that fingerprint.
    ///
    /// # Errors
    /// [`ProfileError::OtherMachine`] that names the first difference.
    pub fn matches(&self, here: &Fingerprint) -> Result<(), ProfileError> {
        let mine = &self.machine;
        let pairs = [
            ("CPU", mine.cpu.clone(), here.cpu.clone()),
            ("number of usable CPUs", mine.cpus.to_string(), here.cpus.to_string()),
            ("cache line", mine.line_bytes.to_string(), here.line_bytes.to_string()),
            ("topology", mine.topology.clone(), here.topology.clone()),
        ];
        match pairs.into_iter().find(|(_, a, b)| a != b) {
            None => Ok(()),
            Some((what, profile, here)) => Err(ProfileError::OtherMachine { what, profile, here }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile() -> Profile {
        let stats = Stats {
            median: 40.25,
            ci_low: 40.0,
            ci_high: 41.0,
            p5: 39.0,
            p95: 55.0,
            min: 38.0,
            samples: 500,
            disturbed: 2,
        };
        let cell = |probe: &str, layout: &str| Cell {
            probe: probe.to_owned(),
            factors: BTreeMap::from([
                ("layout".to_owned(), layout.to_owned()),
                ("level".to_owned(), "l3".to_owned()),
            ]),
            unit: "ns".to_owned(),
            stats,
            flagged: Vec::new(),
        };
        Profile {
            schema: SCHEMA,
            version: "0.1.0".to_owned(),
            measured_at: "2026-01-01T00:00:00Z".to_owned(),
            machine: Fingerprint {
                cpu: "c".to_owned(),
                cpus: 2,
                line_bytes: 64,
                topology: "core:2".to_owned(),
            },
            unidentified: vec![Unidentified { what: "T_C".to_owned(), because: "needs 3 CPUs".to_owned() }],
            cells: vec![cell("signal", "alone"), cell("exchange", "paired")],
        }
    }

    #[test]
    fn the_interval_of_a_median_lies_between_samples() {
        assert_eq!(Stats::of(&[], 3), None);
        let few = Stats::of(&[3.0, 1.0, 2.0], 1).unwrap();
        assert_eq!((few.median, few.ci_low, few.ci_high, few.min), (2.0, 1.0, 3.0, 1.0));
        assert_eq!((few.samples, few.disturbed), (3, 1));
        // Ranks 40 and 61 of 100, as tabulated for 95 % (Le Boudec 2010, table A.1).
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        let many = Stats::of(&hundred, 0).unwrap();
        assert_eq!((many.median, many.ci_low, many.ci_high), (50.5, 40.0, 61.0));
    }

    #[test]
    fn profiles_round_trip() {
        assert_eq!(Profile::from_toml(&profile().to_toml()), Ok(profile()));
    }

    #[test]
    fn errors_name_the_line() {
        let text = profile().to_toml();
        let broken = text.replacen("cpus = 2", "cpus = \"two\"", 1);
        let Err(ProfileError::Malformed { line, .. }) = Profile::from_toml(&broken) else {
            panic!("accepted")
        };
        assert_eq!(broken.lines().nth(line - 1), Some("cpus = \"two\""));
        let newer = text.replacen("schema = 1", "schema = 7", 1);
        assert_eq!(Profile::from_toml(&newer), Err(ProfileError::Schema { line: 1, found: 7 }));
    }

    #[test]
    fn numbers_no_measurement_gives_are_refused_with_their_cell() {
        let mut p = profile();
        p.cells[1].stats.ci_low = 99.0;
        let text = p.to_toml();
        let Err(ProfileError::BadCell { line, probe, expected, .. }) = Profile::from_toml(&text) else {
            panic!("accepted")
        };
        assert_eq!((probe.as_str(), expected.as_str()), ("exchange", "ci_low <= ci_high"));
        assert_eq!(text.lines().nth(line - 1), Some("[[cells]]"));
        for bad in ["-1.0", "nan", "inf"] {
            let text = profile().to_toml().replacen("median = 40.25", &format!("median = {bad}"), 1);
            assert!(matches!(Profile::from_toml(&text), Err(ProfileError::BadCell { .. })), "{bad}");
        }
    }

    #[test]
    fn another_machine_is_named_by_what_differs() {
        let p = profile();
        assert_eq!(p.matches(&p.machine), Ok(()));
        let here = Fingerprint { cpus: 4, ..p.machine.clone() };
        let error = p.matches(&here).unwrap_err().to_string();
        assert!(error.contains("number of usable CPUs is `2`, here it is `4`"), "{error}");
    }

    proptest! {
        #[test]
        fn truncated_or_garbled_profiles_never_panic(cut in 0usize..900, at in 0usize..900, byte in 32u8..127) {
            let text = profile().to_toml();
            let cut = cut.min(text.len());
            if let Err(e) = Profile::from_toml(&text[..cut]) {
                prop_assert!(e.to_string().starts_with("line "));
            }
            let mut bytes = text.into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let garbled = String::from_utf8(bytes).expect("ASCII stays ASCII");
            if let Err(e) = Profile::from_toml(&garbled) {
                prop_assert!(e.to_string().starts_with("line "));
            }
        }
    }
}
