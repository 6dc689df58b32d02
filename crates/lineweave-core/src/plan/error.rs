//! Why a plan cannot be made.

use crate::collective::Collective;
use crate::names::did_you_mean;
use std::fmt;

/// Why a plan cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A communicator has at least one rank.
    #[error("a plan needs at least 1 rank, and 0 were asked for")]
    NoRanks,
    /// More ranks than a plan can name.
    #[error("{ranks} ranks: a plan takes at most {most}")]
    TooManyRanks {
        /// Asked for.
        ranks: usize,
        /// Limit.
        most: usize,
    },
    /// More ops than can be held.
    #[error("{algorithm} of {bytes} bytes among {ranks} ranks has about {ops} ops, and a plan takes at most {most}: take fewer ranks, larger chunks, or send the message in windows")]
    TooLarge {
        /// `collective/algorithm`.
        algorithm: String,
        /// Message length, or that of a block.
        bytes: usize,
        /// Ranks.
        ranks: usize,
        /// About how many.
        ops: usize,
        /// Limit.
        most: usize,
    },
    /// A root that is not a rank.
    #[error("root {root} is out of range: ranks are 0 to {}", ranks - 1)]
    RootOutOfRange {
        /// Asked for.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// A message that is not a whole number of elements.
    #[error("{bytes} bytes are not a whole number of {grain}-byte elements")]
    Ragged {
        /// Message length.
        bytes: usize,
        /// Element size.
        grain: usize,
    },
    /// Blocks that do not fit the collective or the message.
    #[error("{0}")]
    Blocks(String),
    /// A parameter with a value it cannot take.
    #[error("parameter {name}={value}: expected {expected}")]
    BadParameter {
        /// Name.
        name: String,
        /// Value found.
        value: String,
        /// Value that was expected.
        expected: String,
    },
    /// A parameter the algorithm does not have.
    #[error("{algorithm} has no parameter `{name}`{}: it takes {known}", did_you_mean(name, [known.as_str()]))]
    UnknownParameter {
        /// `collective/algorithm`.
        algorithm: String,
        /// Name found.
        name: String,
        /// Names it has.
        known: String,
    },
    /// No such algorithm.
    #[error("no algorithm `{name}` for {collective}{}: there are {known}", did_you_mean(name, [known.as_str()]))]
    UnknownAlgorithm {
        /// For this collective.
        collective: Collective,
        /// Name found.
        name: String,
        /// Names there are.
        known: String,
    },
    /// The algorithm does not fit this problem.
    #[error("{algorithm} does not apply: {why}")]
    NotApplicable {
        /// `collective/algorithm`.
        algorithm: String,
        /// In words.
        why: String,
    },
}

impl PlanError {
    /// Returns the error of a parameter with a value it cannot take.
    pub fn bad(name: &str, value: impl fmt::Display, expected: impl Into<String>) -> PlanError {
        PlanError::BadParameter { name: name.to_owned(), value: value.to_string(), expected: expected.into() }
    }
}
