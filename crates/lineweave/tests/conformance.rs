//! Threads: every algorithm, every type and operator, and calls in mixed order, against references.
#![cfg(not(loom))]

mod common;

use lineweave::team;

fn run(ranks: usize, f: impl Fn(&mut lineweave::Communicator) -> common::Outcome + Sync) -> usize {
    let outcomes = team::threads(ranks, |mut comm| Ok(f(&mut comm))).expect("the team runs");
    let mut cases = 0;
    for outcome in outcomes {
        match outcome {
            Ok(n) => cases = n,
            Err(why) => panic!("{why}"),
        }
    }
    cases
}

#[test]
fn every_algorithm_delivers_on_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 4, 5, 7, 8] {
        cases += run(ranks, |comm| common::algorithms(comm, &[0, 1, 13, 300, 9001], true));
    }
    cases += run(17, |comm| common::algorithms(comm, &[13], true));
    println!("tally: conformance cases (algorithms, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn every_type_and_operator_is_right_on_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 5, 8] {
        cases += run(ranks, |comm| common::types_and_operators(comm, &[0, 1, 7, 1023]));
    }
    // Around the window: one element less, and one more, than a box holds.
    let around = [(1 << 18) - 1, 1 << 18, (1 << 18) + 1];
    cases += run(2, |comm| common::types_and_operators(comm, &around));
    println!("tally: conformance cases (types and operators, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn calls_follow_each_other_in_any_order() {
    let mut cases = 0;
    for ranks in [2, 3, 8, 32] {
        cases += run(ranks, |comm| common::mixed(comm, 400));
    }
    println!("tally: conformance cases (mixed calls, threads) {cases}");
}
