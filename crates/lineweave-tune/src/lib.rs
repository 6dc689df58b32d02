//! Costs of a machine, and the fastest of lineweave's algorithms on it.
//!
//! [`measure`](measure::measure) times what the engine does and makes a profile of it; [`trial`] runs collectives as programs call them
//! and [races](trial::race()) the algorithms that a model predicts to be good. The command `lineweave tune` does both and keeps what comes out
//! for every program. Modules are declared in the order in which they may use each other.
#![cfg_attr(test, allow(clippy::disallowed_methods))] // Tests sleep as programs do.

pub mod measure;
pub mod trial;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct WrittenExamples;
