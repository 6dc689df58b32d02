//! lineweave's laboratory: what is known of collectives and machines beside what choosing and running them needs.
//!
//! Published models, simulators of machines that need not be there, searches for the best trees, drawings, and the papers that all of it
//! is held against. The library does not depend on this crate; the command does. As in the core, nothing here reads a
//! clock, starts a thread, opens a file or looks at the environment. Modules are declared in the order in which they may use each
//! other.
#![forbid(unsafe_code)]

mod chance;
mod ordered;
mod route;
mod steps;
pub mod models;
pub mod matrix;
pub mod optimise;
pub mod nodes;
pub mod closed_form;
pub mod simulate;
pub mod generate;
pub mod what_if;
pub mod coherence;
pub mod draw;
pub mod paper;
pub mod reproduce;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct WrittenExamples;
