//! Definitions of benchmarks, read from `bench/definitions/*.toml` (schema: `bench/README.md`).

use super::subject::Subject;
use lineweave_core::collective::Collective;
use lineweave_core::names::did_you_mean;
use lineweave_tune::trial::Buffers;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The schema of definitions and records that this version reads.
pub const SCHEMA: u32 = 1;

/// The most ranks a benchmark may ask for; the peers' programs hold as many.
pub const MAX_RANKS: usize = 256;

/// The definitions that ship with lineweave, by name.
const SHIPPED: [(&str, &str); 11] = [
    ("barrier", include_str!("../../bench/definitions/barrier.toml")),
    ("bcast", include_str!("../../bench/definitions/bcast.toml")),
    ("reduce", include_str!("../../bench/definitions/reduce.toml")),
    ("allreduce", include_str!("../../bench/definitions/allreduce.toml")),
    ("gather", include_str!("../../bench/definitions/gather.toml")),
    ("scatter", include_str!("../../bench/definitions/scatter.toml")),
    ("allgather", include_str!("../../bench/definitions/allgather.toml")),
    ("reduce-scatter", include_str!("../../bench/definitions/reduce-scatter.toml")),
    ("scan", include_str!("../../bench/definitions/scan.toml")),
    ("exscan", include_str!("../../bench/definitions/exscan.toml")),
    ("alltoall", include_str!("../../bench/definitions/alltoall.toml")),
];

/// Kind of the ranks of a measured team.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Team {
    /// Threads of one process.
    Threads,
    /// Processes that share memory.
    Processes,
}

impl Team {
    /// The name used on command lines and in records.
    pub fn name(self) -> &'static str {
        match self {
            Team::Threads => "threads",
            Team::Processes => "processes",
        }
    }
}

impl fmt::Display for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Number of windows for each cell of a benchmark, and the precision that ends a window early.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// Windows of each subject; windows of different subjects alternate, and processes start anew for each.
    pub launches: usize,
    /// Longest time that a window lasts, in nanoseconds.
    pub window_ns: u64,
    pub min_batches: usize,
    pub max_batches: usize,
    /// A window ends early when the 95 % interval of the median is narrower than this share of the median.
    pub precision: f64,
}

/// One benchmark.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub schema: u32,
    /// The name that `lineweave bench` takes.
    pub name: String,
    /// One line for listings.
    pub about: String,
    pub collective: Collective,
    pub ranks: Vec<usize>,
    /// Message sizes a rank, in bytes; zero alone for a barrier.
    pub sizes_bytes: Vec<u64>,
    pub teams: Vec<Team>,
    pub buffers: Vec<Buffers>,
    pub subjects: Vec<Subject>,
    pub repeat: Repeat,
}

/// Reason why a definition cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The text is not TOML, or not of this shape; the parser's message names line and column.
    #[error("{name}: {reason}")]
    Syntax { name: String, reason: String },
    /// The definition is well-formed, but no benchmark.
    #[error("{name}: {reason}")]
    Invalid {
        name: String,
        /// A sentence that says what was expected and what was found.
        reason: String,
    },
    #[error("no benchmark is called `{name}`{}: expected one of {known}, or the path of a .toml file", did_you_mean(name, [known.as_str()]))]
    Unknown { name: String, known: String },
    #[error("`{name}` is measured by itself: name nothing beside it")]
    Alone { name: String },
}

impl Definition {
    /// Reads a definition. Errors refer to it by `name`, for instance a path.
    pub fn parse(name: &str, text: &str) -> Result<Definition, DefinitionError> {
        let definition: Definition = toml::from_str(text)
            .map_err(|e| DefinitionError::Syntax { name: name.to_owned(), reason: e.to_string() })?;
        definition
            .fault()
            .map_or(Ok(()), |reason| Err(DefinitionError::Invalid { name: name.to_owned(), reason }))?;
        Ok(definition)
    }

    /// Returns a definition that ships with lineweave.
    pub fn shipped(name: &str) -> Result<Definition, DefinitionError> {
        match SHIPPED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Definition::parse(name, text),
            None => Err(DefinitionError::Unknown {
                name: name.to_owned(),
                known: SHIPPED.map(|(known, _)| known).join(", "),
            }),
        }
    }

    /// Returns the names of the definitions that ship, in the order of listings.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.into_iter().map(|(name, _)| name)
    }

    /// Returns a sentence that says what is wrong with the values, or `None`.
    fn fault(&self) -> Option<String> {
        if self.schema != SCHEMA {
            return Some(format!("schema is {}, and this version reads {SCHEMA}", self.schema));
        }
        let empty = [
            ("ranks", self.ranks.is_empty()),
            ("sizes_bytes", self.sizes_bytes.is_empty()),
            ("teams", self.teams.is_empty()),
            ("buffers", self.buffers.is_empty()),
            ("subjects", self.subjects.is_empty()),
        ];
        if let Some((key, _)) = empty.into_iter().find(|(_, empty)| *empty) {
            return Some(format!("{key} is empty: expected at least one value"));
        }
        if let Some(ranks) = self.ranks.iter().find(|r| !(1..=MAX_RANKS).contains(*r)) {
            return Some(format!("ranks has {ranks}: expected 1 to {MAX_RANKS}"));
        }
        if self.collective.moves_data() {
            // Benchmarks fold and check f64 elements.
            if let Some(bytes) = self.sizes_bytes.iter().find(|b| **b == 0 || **b % 8 != 0) {
                return Some(format!("sizes_bytes has {bytes}: expected multiples of 8 (f64 elements)"));
            }
        } else if self.sizes_bytes != [0] {
            return Some(format!("sizes_bytes is {:?}: a {} takes [0]", self.sizes_bytes, self.collective));
        }
        let Repeat { launches, window_ns, min_batches, max_batches, precision } = self.repeat;
        if launches == 0 || window_ns < 1_000_000 || min_batches == 0 {
            return Some(
                "repeat: expected launches >= 1, window_ns >= 1_000_000 and min_batches >= 1".to_owned(),
            );
        }
        if max_batches < min_batches {
            return Some(format!("repeat: max_batches {max_batches} is below min_batches {min_batches}"));
        }
        if !(0.0..1.0).contains(&precision) {
            return Some(format!("repeat: precision is {precision}: expected a share from 0 to below 1"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_definition_reads_and_is_named_as_its_file() {
        for name in Definition::names() {
            let definition = Definition::shipped(name).expect("a shipped definition");
            assert_eq!(definition.name, name);
            assert!(definition.subjects.contains(&Subject::Lineweave), "{name} measures lineweave");
            let text = toml::to_string(&definition).expect("TOML");
            assert_eq!(Definition::parse(name, &text), Ok(definition), "{name} reads back");
        }
        let covered: Vec<_> =
            Definition::names().map(|n| Definition::shipped(n).expect("shipped").collective).collect();
        assert_eq!(covered, Collective::ALL, "one definition a collective");
    }

    #[test]
    fn a_fault_is_named_with_what_was_expected() {
        let barrier = SHIPPED[0].1;
        let bcast = SHIPPED[1].1;
        let refuses = |text: &str, from: &str, to: &str, expected: &str| {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "`{from}` occurs");
            let error = Definition::parse("x.toml", &changed).expect_err(to).to_string();
            assert!(error.starts_with("x.toml: ") && error.contains(expected), "{to}: {error}");
        };
        refuses(barrier, "schema = 1", "schema = 2", "this version reads 1");
        refuses(barrier, "[2, 4, 8]", "[]", "ranks is empty");
        refuses(barrier, "[2, 4, 8]", "[0]", "expected 1 to 256");
        refuses(barrier, "sizes_bytes = [0]", "sizes_bytes = [8]", "a barrier takes [0]");
        refuses(bcast, "[8, 64", "[12, 64", "multiples of 8");
        refuses(barrier, "launches = 5", "launches = 0", "launches >= 1");
        refuses(barrier, "max_batches = 1000", "max_batches = 1", "below min_batches");
        refuses(barrier, "precision = 0.01", "precision = nan", "share");
        refuses(barrier, "\"floor\"", "\"ceiling\"", "ceiling");
        refuses(barrier, "launches", "lunches", "lunches");
        refuses(barrier, "[repeat]", "[repeat", "line 11");
        assert!(Definition::shipped("gossip").expect_err("unknown").to_string().contains("allreduce"));
    }
}
