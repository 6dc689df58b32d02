//! More ranks than CPUs, under every way of waiting: nothing hangs, nothing is torn.

use crate::common;
use lineweave::settings::{Settings, Wait};
use lineweave::team::{Team, TeamConfig};
use lineweave::Operator;
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::collective::Collective;
use lineweave_core::model::{Fitted, Provenance, Trick};
use std::time::Duration;

/// Mixed calls by `ranks` threads that wait so. A rank that hears nothing for a minute ends with an error that
/// names whom it waited for, where a test without a limit would hang.
fn stress(ranks: usize, wait: Wait, rounds: usize) -> usize {
    let settings = Settings { wait, timeout: Some(Duration::from_secs(60)), ..Settings::default() };
    let config = TeamConfig::new(ranks, &settings).expect("a configuration");
    let outcomes = Team::with(config)
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
fn ranks_agree_however_they_wait() {
    // Ranks that only spin move on when the kernel takes the CPU from one: some ms for each hand-over.
    let mut cases = stress(8, Wait::Spin, 4);
    for wait in [Wait::Yield, Wait::Sleep, Wait::Auto] {
        cases += stress(8, wait, 300) + stress(32, wait, 60);
    }
    println!("tally: conformance cases (stress, threads) {cases}");
}

/// Lines of the next run are taken while this one waits: a hint, which must not change what arrives.
#[test]
fn lines_taken_ahead_arrive_as_they_were_written() {
    let mut config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
    let cost = |ns: f64| Fitted { value: ns, ci_low: ns, ci_high: ns, provenance: Provenance::Measured };
    let trick = |(name, ns): (&str, f64)| Trick { name: name.to_owned(), cost: cost(ns), least: ns };
    config.tuning.model.tricks = [("lines", 470.0), ("lines-ahead", 390.0)].map(trick).to_vec();
    assert!(config.tuning.model.trick_beats("lines-ahead", "lines"));
    // Threads would reach each other's buffers, and write to no boxes.
    config.tuning.force(Collective::Allgather, Spec::named("all-read-all"));
    config.tuning.force(Collective::Allreduce, Spec::named("recursive-doubling"));
    config.tuning.force(Collective::Alltoall, Spec::named("flat"));
    let rounds = Team::with(config).expect("a team").threads(|mut comm| {
        let me = comm.rank() as u64;
        for round in 0..1000u64 {
            let words = [64, 128, 131, 256, 511, 512][(round % 6) as usize];
            let (mine, theirs) = (round * 2 + me, round * 2 + 1 - me);
            let mut all = vec![0; 2 * words];
            comm.allgather(&vec![mine; words], &mut all)?;
            let (first, second) = all.split_at(words);
            let expected = [mine.min(theirs), mine.max(theirs)];
            assert!(first.iter().all(|&x| x == expected[0]) && second.iter().all(|&x| x == expected[1]));
            let mut sum = vec![mine; words];
            comm.allreduce_in_place(&mut sum, Operator::Sum)?;
            assert!(sum.iter().all(|&x| x == mine + theirs), "round {round}");
            let mut taken = vec![0; 2 * words];
            comm.alltoall(&[vec![mine; words], vec![mine + 7; words]].concat(), &mut taken)?;
            let lot = 7 * me;
            assert!(taken[..words].iter().all(|&x| x == expected[0] + lot), "round {round}");
            assert!(taken[words..].iter().all(|&x| x == expected[1] + lot), "round {round}");
        }
        Ok(())
    });
    assert_eq!(rounds.expect("no failure").len(), 2);
}

/// Sizes that come once and never again: what was made for them is forgotten, and memory stops growing.
#[test]
fn ever_new_sizes_do_not_take_ever_more_memory() {
    const SIZES: usize = 3000;
    let mut config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
    // An operator of one's own has a plan for each size; lengths of one class share those of others.
    let own = Operator::new(true, |left: &[u64], right: &mut [u64]| {
        right.iter_mut().zip(left).for_each(|(sum, x)| *sum += x);
    });
    // To choose takes longer than to prove, and is not what this is about.
    config.tuning.force(Collective::Allreduce, Spec::named("recursive-doubling"));
    config.tuning.force(Collective::Allgather, Spec::named("ring"));
    // Short plans would have a step more than long ones where this machine's profile has them take lines ahead.
    config.tuning.model.tricks.clear();
    let held = Team::with(config).expect("a team").threads(|mut comm| {
        let mut held = Vec::new();
        let mut repeated = [0u64; 7];
        // From the longest on: buffers of the library's own are as long as they will be at once. All even ones, then all odd ones, which are as new.
        let [even, odd] = [0, 1].map(|rest| (1..=SIZES).rev().filter(move |words| words % 2 == rest));
        for (turn, words) in even.chain(odd).enumerate() {
            let mut field = vec![comm.rank() as u64 + 1; words];
            comm.allreduce_in_place(&mut field, own)?;
            assert!(field.iter().all(|&x| x == 3), "{words} words");
            if turn % 8 == 0 {
                let counts = [words, 2 * words + 1];
                let mut all = vec![0u32; counts[0] + counts[1]];
                comm.allgatherv(&vec![comm.rank() as u32 + 5; counts[comm.rank()]], &mut all, &counts)?;
                assert!(all[words - 1] == 5 && all[words] == 6, "{words} words");
            }
            // What is used all the time is not forgotten, nor are a barrier's plans.
            repeated.fill(1);
            comm.bcast(&mut repeated, 0)?;
            comm.barrier()?;
            held.push(comm.memory().private_bytes);
        }
        // The first sizes again, whose plans are long gone.
        for words in (SIZES - 40..=SIZES).rev() {
            let mut field = vec![1u64; words];
            comm.allreduce_in_place(&mut field, own)?;
            assert!(field.iter().all(|&x| x == 2), "{words} words again");
        }
        Ok(held)
    });
    for held in held.expect("a run") {
        let [even, odd] =
            [&held[..SIZES / 2], &held[SIZES / 2..]].map(|held| *held.iter().max().expect("a size"));
        assert!(
            odd <= even + even / 100,
            "{even} bytes at most among the first half of all sizes, {odd} among the other"
        );
    }
}
