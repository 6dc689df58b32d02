//! Ranks that are threads of this process: one program for all such tests, since each compiles the runtime's generic code again.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.
#![cfg(not(loom))]

// Processes run the rest of it.
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

use lineweave::{team, Communicator};

mod communicators;
mod conformance;
mod late;
mod messages;
mod reproducible;
mod requests;
mod rounding;
mod stress;

/// Runs cases on a team of threads; returns the number of them.
fn run(ranks: usize, f: impl Fn(&mut Communicator) -> common::Outcome + Sync) -> usize {
    most(team::threads(ranks, |mut comm| Ok(f(&mut comm))).expect("the team runs"))
}

/// Returns the cases of the rank with the most of them.
fn most(outcomes: Vec<common::Outcome>) -> usize {
    outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|why| panic!("{why}"))).max().unwrap_or(0)
}
