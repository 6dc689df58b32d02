//! lineweave's pure part: collective plans as data, and everything that is computed from them.
//!
//! Nothing here reads a clock, starts a thread, opens a file or looks at the environment; the crate forbids
//! unsafe code. Modules are declared in the order in which they may use each other.
#![forbid(unsafe_code)]

pub mod units;
pub mod names;
mod document;
pub mod topology;
pub mod collective;
pub mod profile;
pub mod plan;
pub mod machine;
pub mod model;
pub mod algorithm;
pub mod probe;
pub mod verify;
pub mod trace;
pub mod lines;
pub mod cost;
pub mod select;

/// A number of this crate's sources: others may make other plans, and choose otherwise.
pub const SOURCES: &str = env!("LINEWEAVE_SOURCES");

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct WrittenExamples;
