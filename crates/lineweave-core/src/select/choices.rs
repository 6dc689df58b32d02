//! Choices that were measured: what `tune` found best, kept per machine and used before the model is asked.

use crate::collective::Collective;
use crate::document;
use crate::names::line_of;
use crate::plan::Params;
use serde::{Deserialize, Serialize};

/// Version of the table's text form.
pub const CHOICES_SCHEMA: u32 = 1;

/// One measured choice.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// The collective.
    pub collective: Collective,
    /// Number of ranks.
    pub ranks: usize,
    /// Message length that was measured, in bytes.
    pub bytes: usize,
    /// `threads` or `processes`.
    pub team: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Its parameters.
    #[serde(default)]
    pub params: Params,
    /// Bytes of a window.
    pub window: usize,
    /// Predicted cost of a call, in ns.
    pub predicted_ns: f64,
    /// Measured cost of a call, in ns; a simulated one where that is said.
    pub measured_ns: f64,
    /// True if a plan with cross-memory attach was the fastest; `None` where no such plan was among those that were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<bool>,
    /// True if the call was simulated, on a machine like this one whose pairs of CPUs were timed, and not measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
}

/// A table of them for one machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choices {
    /// Version, [`CHOICES_SCHEMA`].
    pub schema: u32,
    /// The machine's [`Fingerprint::id`](crate::profile::Fingerprint::id).
    pub machine: String,
    /// The choices.
    #[serde(default, rename = "choice")]
    pub choices: Vec<Tuned>,
}

/// Result of a look-up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found<'a> {
    /// The nearest measured choice.
    pub tuned: &'a Tuned,
    /// True if this very size was measured.
    pub exact: bool,
    /// True if the size lies outside what was measured.
    pub beyond: bool,
}

/// Why a text is not a table of choices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoicesError {
    /// Not the TOML of a table of choices.
    #[error("line {line}: {message}; run `lineweave tune` again")]
    Malformed {
        /// Line of the text, from 1.
        line: usize,
        /// Message with the expected and the found text.
        message: String,
    },
    /// Another version.
    #[error(
        "choices of schema {found}: this lineweave reads schema {CHOICES_SCHEMA}; run `lineweave tune` again"
    )]
    Schema {
        /// Found.
        found: u32,
    },
}

impl Choices {
    /// An empty table for a machine.
    pub fn new(machine: impl Into<String>) -> Choices {
        Choices { schema: CHOICES_SCHEMA, machine: machine.into(), choices: Vec::new() }
    }

    /// Adds a choice, in place of one for the same case.
    pub fn insert(&mut self, tuned: Tuned) {
        let same = |t: &Tuned| {
            t.collective == tuned.collective
                && t.ranks == tuned.ranks
                && t.bytes == tuned.bytes
                && t.team == tuned.team
        };
        self.choices.retain(|t| !same(t));
        self.choices.push(tuned);
        self.choices.sort_by(|a, b| {
            (a.collective, a.ranks, &a.team, a.bytes).cmp(&(b.collective, b.ranks, &b.team, b.bytes))
        });
    }

    /// The choice measured at the size nearest to `bytes` by ratio, the smaller of two as near. `None` when nothing
    /// was measured for this collective, number of ranks and kind of team.
    pub fn lookup(
        &self,
        collective: Collective,
        ranks: usize,
        bytes: usize,
        team: &str,
    ) -> Option<Found<'_>> {
        let mine = || {
            self.choices.iter().filter(|t| t.collective == collective && t.ranks == ranks && t.team == team)
        };
        let gap = |t: &Tuned| ((t.bytes as f64 + 1.0) / (bytes as f64 + 1.0)).ln().abs();
        let tuned = mine().min_by(|a, b| gap(a).total_cmp(&gap(b)).then(a.bytes.cmp(&b.bytes)))?;
        let beyond = mine().all(|t| t.bytes < bytes) || mine().all(|t| t.bytes > bytes);
        Some(Found { tuned, exact: tuned.bytes == bytes, beyond })
    }

    /// The text form.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("choices hold only plain values")
    }

    /// The table in a text.
    ///
    /// # Errors
    /// [`ChoicesError`] with the line.
    pub fn from_toml(text: &str) -> Result<Choices, ChoicesError> {
        let malformed = |(line, message)| ChoicesError::Malformed { line, message };
        let table = document::parse(text)
            .and_then(|table| document::read::<Choices>(text, &table))
            .map_err(malformed)?;
        if table.schema != CHOICES_SCHEMA {
            return Err(ChoicesError::Schema { found: table.schema });
        }
        for (i, t) in table.choices.iter().enumerate() {
            let numbers = [t.predicted_ns, t.measured_ns];
            if t.ranks == 0 || numbers.iter().any(|x| !x.is_finite() || *x < 0.0) {
                let line = text.match_indices("[[choice]]").nth(i).map_or(1, |(at, _)| line_of(text, at));
                let message =
                    "expected at least 1 rank and times that are finite and not negative".to_owned();
                return Err(ChoicesError::Malformed { line, message });
            }
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tuned(bytes: usize, algorithm: &str) -> Tuned {
        Tuned {
            collective: Collective::Bcast,
            ranks: 2,
            bytes,
            team: "threads".to_owned(),
            algorithm: algorithm.to_owned(),
            params: Params::new().with("k", 2),
            window: bytes,
            predicted_ns: 10.0,
            measured_ns: 11.0,
            attach: None,
            simulated: false,
        }
    }

    fn table() -> Choices {
        let mut c = Choices::new("00");
        c.insert(tuned(1024, "chain"));
        c.insert(tuned(64, "flat"));
        c
    }

    #[test]
    fn look_ups_take_the_nearest_size_and_say_so() {
        let c = table();
        let at = |bytes| c.lookup(Collective::Bcast, 2, bytes, "threads").unwrap();
        assert!(at(64).exact && at(64).tuned.algorithm == "flat");
        assert!(!at(128).exact && at(128).tuned.algorithm == "flat");
        assert_eq!(at(700).tuned.algorithm, "chain");
        assert!(at(4096).beyond && at(8).beyond && !at(700).beyond);
        assert!(c.lookup(Collective::Bcast, 3, 64, "threads").is_none());
        assert!(c.lookup(Collective::Bcast, 2, 64, "processes").is_none());
    }

    #[test]
    fn a_case_is_kept_once() {
        let mut c = table();
        c.insert(tuned(64, "binomial"));
        assert_eq!(c.choices.len(), 2);
        assert_eq!(c.lookup(Collective::Bcast, 2, 64, "threads").unwrap().tuned.algorithm, "binomial");
    }

    #[test]
    fn tables_round_trip_and_errors_name_the_line() {
        let text = table().to_toml();
        assert_eq!(Choices::from_toml(&text), Ok(table()));
        let broken = text.replacen("ranks = 2", "ranks = \"two\"", 1);
        let Err(ChoicesError::Malformed { line, .. }) = Choices::from_toml(&broken) else {
            panic!("accepted")
        };
        assert_eq!(broken.lines().nth(line - 1), Some("ranks = \"two\""));
        assert!(matches!(
            Choices::from_toml(&text.replacen("measured_ns = 11.0", "measured_ns = nan", 1)),
            Err(ChoicesError::Malformed { .. })
        ));
        let newer = text.replacen("schema = 1", "schema = 2", 1);
        assert_eq!(Choices::from_toml(&newer), Err(ChoicesError::Schema { found: 2 }));
    }

    proptest! {
        #[test]
        fn truncated_tables_are_errors_or_shorter_tables(cut in 0usize..400) {
            let text = table().to_toml();
            let cut = cut.min(text.len());
            match Choices::from_toml(&text[..cut]) {
                Ok(c) => prop_assert!(c.choices.len() <= 2),
                Err(e) => prop_assert!(e.to_string().contains("line")),
            }
        }
    }
}
