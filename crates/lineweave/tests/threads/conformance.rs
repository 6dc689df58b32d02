//! Threads: every algorithm, every type and operator, and calls in mixed order, against references.

use crate::{common, most, run};
use lineweave::settings::Settings;
use lineweave::team::{Team, TeamConfig};
use lineweave::{Error, Operator};
use std::time::Duration;

/// [`run`] with an algorithm for every allreduce.
fn run_forced(
    algorithm: &str,
    ranks: usize,
    f: impl Fn(&mut lineweave::Communicator) -> common::Outcome + Sync,
) -> usize {
    let team =
        Team::with(TeamConfig::new(ranks, &forced(algorithm)).expect("a configuration")).expect("a team");
    most(team.threads(|mut comm| Ok(f(&mut comm))).expect("the team runs"))
}

fn forced(algorithm: &str) -> Settings {
    let forced = ("LINEWEAVE_ALGORITHM".to_owned(), format!("allreduce={algorithm}"));
    Settings::read([forced]).expect("it is in the table").0
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
        cases += run(ranks, |comm| common::calls::numbers(comm, &[0, 1, 7, 1023]));
    }
    // Around the window: one element less, and one more, than a box holds.
    let around = [(1 << 18) - 1, 1 << 18, (1 << 18) + 1];
    cases += run(2, |comm| common::calls::numbers(comm, &around));
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

#[test]
fn lengths_of_one_class_are_right_on_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 5] {
        let lengths = common::lengths::around(&[20, 320, 5120]);
        cases += run(ranks, |comm| common::lengths::lengths(comm, &lengths));
    }
    // Of one class, in one and in several windows.
    cases += run(2, |comm| common::lengths::lengths(comm, &[260_000, 262_144, 262_145, 278_000]));
    for algorithm in ["slices", "direct", "all-read-all"] {
        cases += run_forced(algorithm, 3, |comm| {
            common::lengths::halves(comm, &common::lengths::around(&[640, 10240]))
        });
    }
    println!("tally: conformance cases (lengths of one class, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
    run(5, common::lengths::few_plans);
}

#[test]
fn blocks_and_scans_are_right_on_threads() {
    let mut cases = 0;
    for ranks in 1..=9 {
        cases += run(ranks, |comm| common::calls::blocks_and_scans(comm, &[0, 1, 3, 14, 257, 5000]));
    }
    cases += run(17, |comm| common::calls::blocks_and_scans(comm, &[1, 100, 1000]));
    // Around the window: an element less, and one more, than a box holds of P blocks; and several of them.
    for ranks in [2, 3] {
        let around = [(1 << 17) - 1, 1 << 17, (1 << 17) + 1, 300_007];
        cases += run(ranks, |comm| common::calls::blocks_and_scans(comm, &around));
    }
    println!("tally: conformance cases (blocks and scans, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn uneven_blocks_are_right_on_threads() {
    let mut cases = 0;
    for ranks in 1..=9 {
        cases += run(ranks, |comm| common::calls::uneven(comm, &[0, 2, 13, 999]));
    }
    cases += run(2, |comm| common::calls::uneven(comm, &[(1 << 18) - 1, 1 << 18, (1 << 18) + 1]));
    cases += run(3, |comm| common::calls::uneven(comm, &[200_001]));
    for ranks in [2, 3, 5] {
        cases += run(ranks, |comm| {
            Ok(common::uneven::overlaps(comm)? + common::shared::calls(comm, &[13, 9000], true)?)
        });
    }
    // More sets of lengths than are kept.
    let many: Vec<usize> = (1..40).collect();
    cases += run(2, |comm| common::calls::uneven(comm, &many));
    for ranks in [2, 3, 5] {
        cases += run(ranks, |comm| common::uneven::many(comm, 150));
    }
    println!("tally: conformance cases (uneven blocks, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn wide_elements_and_own_operators_are_right_on_threads() {
    let mut cases = 0;
    for ranks in [1, 2, 3, 7] {
        cases += run(ranks, |comm| common::calls::wide(comm, &[0, 1, 9, 300]));
    }
    // Around the window of 16-byte elements.
    cases += run(3, |comm| common::calls::wide(comm, &[(1 << 16) + 1]));
    println!("tally: conformance cases (wide elements and own operators, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn shared_buffers_are_used_on_threads() {
    let mut cases = 0;
    for ranks in 1..=17 {
        cases += run(ranks, |comm| common::shared::calls(comm, &[0, 1, 2049], false));
    }
    for ranks in [1, 2, 5] {
        cases += run(ranks, |comm| {
            Ok(common::shared::in_place(comm, &[3, 20_001])? + common::shared::given_back(comm, 20)?)
        });
    }
    println!("tally: conformance cases (shared buffers, threads) {cases}");
    assert!(cases > 1000, "{cases} cases only");
}

#[test]
fn an_operator_that_panics_is_named_by_all() {
    // Whatever this machine's profile says, each rank combines.
    let team =
        Team::with(TeamConfig::new(3, &forced("all-read-all")).expect("a configuration")).expect("a team");
    let outcomes = team
        .threads(|mut comm| {
            comm.barrier()?;
            let me = comm.rank();
            let operator =
                Operator::new(true, move |_: &[u64], _: &mut [u64]| assert!(me != 1, "bad element"));
            let said: Vec<String> = (0..40)
                .map_while(|_| comm.allreduce_in_place(&mut [1u64; 900], operator).err())
                .map(|e| e.to_string())
                .collect();
            let said = match said.first() {
                Some(said) => said.clone(),
                None => comm.barrier().expect_err("rank 1 failed").to_string(),
            };
            let after = comm.barrier().expect_err("the communicator failed").to_string();
            Ok((said, after))
        })
        .expect("ranks return");
    for (rank, (said, after)) in outcomes.iter().enumerate() {
        match rank {
            1 => assert_eq!(said, "rank 1 panicked: bad element"),
            _ => assert!(said.starts_with("rank 1 (pid ") && said.contains("failed"), "rank {rank}: {said}"),
        }
        assert!(after.contains("failed earlier") || after.contains("rank 1"), "rank {rank}: {after}");
    }
}

/// What the ranks of a team say of calls that do not fit each other; calls are compared before data moves.
fn complaints(
    ranks: usize,
    f: impl Fn(&mut lineweave::Communicator) -> Result<(), Error> + Sync,
) -> Vec<String> {
    let settings = Settings { check: true, timeout: Some(Duration::from_secs(20)), ..Settings::default() };
    let team = Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team");
    team.threads(|mut comm| Ok(f(&mut comm).err().map(|e| e.to_string()).unwrap_or_default()))
        .expect("the team runs")
}

#[test]
fn different_blocks_are_named() {
    let said = complaints(3, |comm| {
        let mine = vec![0u32; 4 + comm.rank() / 2];
        let mut all = vec![0; mine.len() * 3];
        comm.allgather(&mine, &mut all)
    });
    assert!(said[0].contains("rank 2 called allgather(5 x u32)"), "{}", said[0]);
    let said = complaints(2, |comm| {
        let counts = [[1, 2], [2, 1]][comm.rank()];
        comm.gatherv(&[0u32], &mut vec![0; 3 * (1 - comm.rank())], &counts, 0)
    });
    assert!(said[0].contains("rank 1 called gather(blocks of 3 elements together"), "{}", said[0]);
    // Found by the rank alone, before anybody hears of the call.
    let said = complaints(1, |comm| comm.gather(&[0u32; 2], &mut [0; 3], 0));
    assert_eq!(said[0], "gather: output is 12 bytes long and 8 were expected");
    let said = complaints(1, |comm| comm.scatterv(&[0u32; 2], &mut [0; 2], &[1, 1], 0));
    assert!(said[0].starts_with("scatter: 2 counts of blocks were given and 1 expected"), "{}", said[0]);
    let said = complaints(2, |comm| match comm.rank() {
        0 => comm.alltoallv(&[1u8], &[0, 1], &mut [0; 2], &[0, 2]),
        _ => comm.alltoallv(&[1u8], &[1, 0], &mut [0; 1], &[1, 0]),
    });
    assert_eq!(said[0], "alltoall: a block is 1 bytes long and 2 were expected");
}
