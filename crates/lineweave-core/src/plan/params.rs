//! Parameters of an algorithm, by name.

use super::PlanError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Parameters of an algorithm, by name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Params(pub BTreeMap<String, String>);

impl Params {
    /// No parameters: every default.
    pub fn new() -> Params {
        Params::default()
    }

    /// These parameters and one more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Params {
        self.0.insert(name.to_owned(), value.to_string());
        self
    }

    /// The text of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter of any type that reads itself from text, or its default.
    pub fn read<T: std::str::FromStr>(&self, name: &'static str, default: T) -> Result<T, PlanError>
    where
        T::Err: fmt::Display,
    {
        match self.get(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|e: T::Err| PlanError::bad(name, text, e.to_string())),
        }
    }

    /// Returns the value that goes with the word of a parameter, or the default where it is left out.
    pub fn one_of<T: Copy>(
        &self,
        name: &'static str,
        default: T,
        words: &[(&str, T)],
    ) -> Result<T, PlanError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|&(_, value)| value).ok_or_else(|| {
            let known = words.iter().map(|&(word, _)| word).collect::<Vec<_>>().join(", ");
            let expected = known.rsplit_once(", ").map(|(others, last)| format!("{others} or {last}"));
            PlanError::bad(name, text, expected.unwrap_or(known))
        })
    }

    /// A whole number within `range`, or its default.
    pub fn int(&self, name: &'static str, default: usize, range: Range<usize>) -> Result<usize, PlanError> {
        let value = self.get(name).map_or(Some(default), |text| text.parse().ok());
        if let Some(value) = value.filter(|value| range.contains(value)) {
            return Ok(value);
        }
        let expected = match range.end {
            usize::MAX => format!("a whole number from {} on", range.start),
            end => format!("a whole number from {} to {}", range.start, end - 1),
        };
        let value = self.get(name).map_or_else(|| default.to_string(), str::to_owned);
        Err(PlanError::bad(name, value, expected))
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        f.pad(&parts.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_name_what_was_expected() {
        let params = Params::new().with("k", 0);
        let error = params.int("k", 2, 1..64).unwrap_err();
        assert_eq!(error.to_string(), "parameter k=0: expected a whole number from 1 to 63");
        let said = |params: Params, range| params.int("k", 2, range).unwrap_err().to_string();
        assert_eq!(
            said(Params::new().with("k", "x"), 1..64),
            "parameter k=x: expected a whole number from 1 to 63"
        );
        let words = [("each", 1), ("shared", 2), ("binary", 3)];
        let one_of = |text: &str| Params::new().with("k", text).one_of("k", 2, &words);
        assert_eq!((one_of("binary"), Params::new().one_of("k", 2, &words)), (Ok(3), Ok(2)));
        let error = one_of("all").unwrap_err();
        assert_eq!(error.to_string(), "parameter k=all: expected each, shared or binary");
        assert_eq!(said(params, 1..usize::MAX), "parameter k=0: expected a whole number from 1 on");
    }
}
