//! More ranks than CPUs, under every way of waiting: nothing hangs, nothing is torn.
#![cfg(not(loom))]

// Of the conformance cases only the mixed calls are run here.
#[allow(dead_code)]
mod common;

use lineweave::settings::{Settings, Wait};
use lineweave::team::{Charter, Team};
use std::time::Duration;

/// Mixed calls by `ranks` threads that wait so. A rank that hears nothing for a minute ends with an error that
/// names whom it waited for, where a test without a limit would hang.
fn stress(ranks: usize, wait: Wait, rounds: usize) -> usize {
    let settings = Settings { wait, timeout: Some(Duration::from_secs(60)), ..Settings::default() };
    let charter = Charter::new(ranks, &settings).expect("a charter");
    let outcomes = Team::with(charter)
        .expect("a team")
        .threads(|mut comm| Ok(common::mixed(&mut comm, rounds)))
        .unwrap_or_else(|e| panic!("{ranks} ranks, {wait:?}: {e}"));
    assert_eq!(outcomes.len(), ranks);
    for outcome in outcomes {
        assert_eq!(outcome, Ok(rounds), "{ranks} ranks, {wait:?}");
    }
    rounds
}

#[test]
fn eight_ranks_agree_however_they_wait() {
    let mut cases = 0;
    for wait in [Wait::Yield, Wait::Sleep, Wait::Auto] {
        cases += stress(8, wait, 300);
    }
    // Ranks that only spin move on when the kernel takes the CPU from one: some ms for each hand-over.
    cases += stress(8, Wait::Spin, 4);
    println!("tally: conformance cases (stress, threads) {cases}");
}

#[test]
fn nothing_hangs_with_32_ranks() {
    let mut cases = 0;
    for wait in [Wait::Yield, Wait::Sleep, Wait::Auto] {
        cases += stress(32, wait, 60);
    }
    println!("tally: conformance cases (stress, threads) {cases}");
}
