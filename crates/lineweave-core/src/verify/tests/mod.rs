mod judges;
mod shape;

use super::mutate::{mutants, Change};
use super::*;
use crate::algorithm::{self, Problem};
use crate::plan::{Builder, FlagArrayId, Layout, Params, Region, Space};
use std::ops::Range;

fn builder(collective: Collective, ranks: usize, bytes: usize, grain: usize) -> Builder {
    Builder::new(collective, "test", &Params::new(), ranks, 0, bytes, grain)
}

fn input(range: Range<usize>) -> Region {
    Region::new(Space::In, range)
}

fn out(range: Range<usize>) -> Region {
    Region::new(Space::Out, range)
}

fn acc(range: Range<usize>) -> Region {
    Region::new(Space::Acc, range)
}

fn slot(rank: usize, slot: u16, range: Range<usize>) -> Region {
    Region::new(Space::Slot { rank: Rank::from(rank), slot }, range)
}

#[track_caller]
fn refused(b: Builder, message: &str) -> Violation {
    let violation = verify(&b.finish()).expect_err("a broken plan");
    assert_eq!(violation.to_string(), message);
    violation
}

#[track_caller]
fn proved(b: Builder) -> Proof {
    verify(&b.finish()).unwrap_or_else(|v| panic!("{v}"))
}

/// Two ranks tell each other that they are there; `deaf` ranks do not listen.
fn exchange(deaf: Option<usize>) -> Builder {
    let mut b = builder(Collective::Barrier, 2, 0, 1);
    let here = b.flags("here", Layout::Paired, 2);
    for rank in 0..2 {
        b.set(rank, here.at(0, 1 - rank), 1);
        if deaf != Some(rank) {
            b.wait(rank, here.at(0, rank), 1);
        }
    }
    b
}

/// Rank 0 puts its message into its slot, rank 1 gets it and acknowledges.
fn through_a_slot(acknowledged: bool) -> Builder {
    let mut b = builder(Collective::Bcast, 2, 100, 1);
    let (ready, done) = (b.flags("ready", Layout::Alone, 1), b.flags("done", Layout::Alone, 1));
    b.slot(128);
    if acknowledged {
        b.wait(0, done.at(0, 0), 0);
    }
    b.mov(0, input(0..100), slot(0, 0, 0..100));
    b.set(0, ready.at(1, 0), 1);
    b.wait(1, ready.at(1, 0), 1);
    b.mov(1, slot(0, 0, 0..100), out(0..100));
    b.set(1, done.at(0, 0), 1);
    b
}

#[test]
fn an_exchange_is_a_barrier() {
    let proof = proved(exchange(None));
    assert!(proof.synchronizing);
    assert_eq!((proof.depth, proof.ops), (1, 4));
    refused(exchange(Some(0)), "rank 0 can leave the barrier before rank 1 has entered");
}

#[test]
fn a_slot_is_reused_only_after_it_was_read() {
    assert!(!proved(through_a_slot(true)).synchronizing);
    refused(
        through_a_slot(false),
        "race on box@0[0][0..100]: rank 1 op 1 `get box@0[0][0..100] -> out[0..100]` reads it, rank 0 op 0 of \
         run 1 `put in[0..100] -> box@0[0][0..100]` writes it, and no flag orders the one before the other: \
         nothing of rank 1 is known to precede rank 0's",
    );
    let mut ring = through_a_slot(false);
    ring.ring();
    proved(ring);
    let back = Plan { reuse: Reuse::Ring, ..through_a_slot(true).finish() };
    assert_eq!(
        verify(&back).unwrap_err().to_string(),
        "rank 0 op 0 `wait done@0[0]>=0`: a ring plan cannot wait for an earlier run (value 0): every run has \
         a bank of its own",
    );
}

#[test]
fn a_read_must_follow_its_write() {
    let mut b = builder(Collective::Bcast, 2, 8, 1);
    b.slot(64);
    b.ring();
    b.mov(0, input(0..8), slot(1, 0, 0..8));
    b.mov(1, slot(1, 0, 0..8), out(0..8));
    refused(
        b,
        "race on box@1[0][0..8]: rank 0 op 0 `put in[0..8] -> box@1[0][0..8]` writes it, rank 1 op 0 `get \
         box@1[0][0..8] -> out[0..8]` reads it, and no flag orders the one before the other: nothing of rank 0 \
         is known to precede rank 1's",
    );
}

#[test]
fn a_race_names_the_last_step_that_is_known() {
    let mut b = builder(Collective::Bcast, 2, 16, 1);
    let ready = b.flags("ready", Layout::Alone, 1);
    b.slot(64);
    b.ring();
    b.mov(0, input(0..8), slot(1, 0, 0..8));
    b.set(0, ready.at(1, 0), 1);
    b.mov(0, input(8..16), slot(1, 0, 8..16));
    b.set(0, ready.at(1, 0), 2);
    b.wait(1, ready.at(1, 0), 1);
    b.mov(1, slot(1, 0, 0..16), out(0..16));
    let violation = verify(&b.finish()).unwrap_err();
    let Violation::Race(race) = violation else { panic!("{violation}") };
    assert_eq!(race.place, "box@1[0][8..16]");
    assert_eq!(race.known.map(|site| site.step), Some(Step::Op(1)));
}

#[test]
fn nothing_undefined_is_read() {
    let mut b = builder(Collective::Bcast, 2, 8, 1);
    b.acc(8);
    b.mov(1, acc(0..8), out(0..8));
    refused(b, "rank 1 op 0 `copy acc[0..8] -> out[0..8]` reads acc[0..8], which nothing has written");
    let mut b = builder(Collective::Bcast, 2, 8, 1);
    b.mov(1, input(4..8), out(4..8));
    refused(b, "rank 1 op 0 `copy in[4..8] -> out[4..8]` reads in[4..8], which nothing has written");
}

#[test]
fn a_deadlock_names_the_cycle_or_the_missing_set() {
    let mut b = builder(Collective::Barrier, 2, 0, 1);
    let go = b.flags("go", Layout::Alone, 1);
    for rank in 0..2 {
        b.wait(rank, go.at(rank, 0), 1);
        b.set(rank, go.at(1 - rank, 0), 1);
    }
    refused(
        b,
        "deadlock of 2 ranks: rank 0 op 0 `wait go@0[0]>=1`, which needs rank 1 op 0 `wait go@1[0]>=1`, which \
         needs rank 0 to go on",
    );
    let mut b = builder(Collective::Barrier, 2, 0, 1);
    let go = b.flags("go", Layout::Alone, 1);
    b.set(0, go.at(1, 0), 1);
    b.wait(1, go.at(1, 0), 2);
    refused(
        b,
        "deadlock of 1 ranks: rank 1 op 0 of run 1 `wait go@1[0]>=2`: the plan raises this flag to 1 only",
    );
    let mut b = builder(Collective::Barrier, 2, 0, 1);
    let go = b.flags("go", Layout::Alone, 1);
    b.wait(1, go.at(1, 0), 1);
    refused(b, "deadlock of 1 ranks: rank 1 op 0 `wait go@1[0]>=1`: no op of the plan sets this flag");
}

/// Both ranks swap inputs through slots and fold; `order[rank]` says whether rank 0's input is on the left.
fn allread(order: [bool; 2]) -> Builder {
    let mut b = builder(Collective::Allreduce, 2, 16, 8);
    let ready = b.flags("ready", Layout::Alone, 1);
    b.slot(64);
    b.ring();
    for (rank, zero_first) in order.into_iter().enumerate() {
        b.mov(rank, input(0..16), slot(1 - rank, 0, 0..16));
        b.set(rank, ready.at(1 - rank, 0), 1);
        b.wait(rank, ready.at(rank, 0), 1);
        let (mine, theirs) = (input(0..16), slot(rank, 0, 0..16));
        let mine_first = (rank == 0) == zero_first;
        let (a, c) = if mine_first { (mine, theirs) } else { (theirs, mine) };
        b.fold(rank, a, c, out(0..16));
    }
    b
}

#[test]
fn every_rank_must_have_the_same_tree() {
    let proof = proved(allread([true, true]));
    assert!(proof.rank_order && proof.in_place && proof.synchronizing);
    let other = proved(allread([false, false]));
    assert!(!other.rank_order);
    assert_ne!(proof.result_hash, other.result_hash);
    refused(
        allread([true, false]),
        "bytes 0..16 are combined as (in@0 + in@1) at rank 0, but as (in@1 + in@0) at rank 1: every rank must \
         have the same bits",
    );
}

#[test]
fn every_contribution_counts_once() {
    let mut b = builder(Collective::Allreduce, 2, 8, 8);
    b.fold(0, input(0..8), input(0..8), out(0..8));
    refused(
        b,
        "rank 0 `return to the caller`: out@0[0..8] should hold every rank's contribution exactly once, but \
         holds (in@0 + in@0) (missing: [1], more than once: [0])",
    );
    let mut b = builder(Collective::Reduce, 1, 16, 8);
    b.mov(0, input(0..8), out(0..8));
    refused(
        b,
        "rank 0 `return to the caller`: out@0[8..16] should hold every rank's contribution exactly once, but \
         holds undefined (nothing was written here)",
    );
    let mut b = builder(Collective::Reduce, 1, 16, 8);
    b.mov(0, input(0..8), out(8..16));
    b.mov(0, input(8..16), out(0..8));
    refused(
        b,
        "rank 0 `return to the caller`: out@0[0..8] should hold bytes 0..8 of the message, but holds bytes \
         8..16 of in@0",
    );
}

#[test]
fn folds_combine_the_same_whole_elements() {
    let mut b = builder(Collective::Reduce, 1, 16, 8);
    b.fold(0, input(0..8), input(8..16), out(0..8));
    refused(
        b,
        "rank 0 op 0 `fold in[0..8] + in[8..16] -> out[0..8]` combines in@0 at message bytes 0..8 with in@0 at \
         message bytes 8..16: operands must be the same whole elements of the message",
    );
}

#[test]
fn what_is_left_over_from_an_earlier_run_is_no_result() {
    // Rank 1 gets its message before it lets rank 0 put the next one: one run late.
    let mut b = builder(Collective::Bcast, 2, 8, 1);
    let (ready, next) = (b.flags("ready", Layout::Alone, 1), b.flags("next", Layout::Alone, 1));
    b.slot(64);
    b.mov(1, slot(0, 0, 0..8), out(0..8));
    b.set(1, next.at(0, 0), 1);
    b.wait(1, ready.at(1, 0), 1);
    b.wait(0, next.at(0, 0), 1);
    b.mov(0, input(0..8), slot(0, 0, 0..8));
    b.set(0, ready.at(1, 0), 1);
    refused(
        b,
        "rank 1 op 0 `get box@0[0][0..8] -> out[0..8]` reads box@0[0][0..8], which nothing has written",
    );
}

/// Everybody adds to a counter and waits for everybody, but for the ranks that are `deaf`.
fn central(ranks: usize, deaf: Option<usize>, threshold: i32) -> Builder {
    let mut b = builder(Collective::Barrier, ranks, 0, 1);
    let count = b.counters("count", Layout::Alone, 1);
    for rank in 0..ranks {
        b.add(rank, count.at(0, 0));
        if deaf != Some(rank) {
            b.wait(rank, count.at(0, 0), threshold);
        }
    }
    b
}

#[test]
fn counters_order_after_all_adds_of_a_run() {
    assert!(proved(central(5, None, 5)).synchronizing);
    refused(
        central(2, Some(1), 2),
        "rank 1 op 0 of run 1 `add count@0[0]` adds to a counter, and nothing orders it after rank 0 op 0 `add \
         count@0[0]`: waits of run 0 may count it",
    );
    refused(
        central(3, None, 2),
        "rank 0 op 1 `wait count@0[0]>=2`: a counter is waited for until all adds of a run are there: 3, not 2",
    );
    // Rank 2 waits, and nobody waits for it.
    let mut b = builder(Collective::Barrier, 3, 0, 1);
    let count = b.counters("count", Layout::Alone, 1);
    (0..2).for_each(|rank| b.add(rank, count.at(0, 0)));
    (0..3).for_each(|rank| b.wait(rank, count.at(0, 0), 2));
    refused(
        b,
        "rank 2 op 0 `wait count@0[0]>=2` may still look at the counter when run 2 adds to it: no add of run 1 follows that wait",
    );
}

/// Rank 1 reads rank 0's input directly; `ack` tells whether rank 0 waits for it.
fn zero_copy(taken: bool, ack: bool) -> Builder {
    let mut b = builder(Collective::Bcast, 2, 1000, 1);
    let (at, done) = (b.flags("at", Layout::Alone, 1), b.flags("done", Layout::Alone, 1));
    b.direct();
    b.ring();
    b.set_address(0, at.at(1, 0), 1, Space::In);
    if ack {
        b.wait(0, done.at(0, 0), 1);
    }
    match taken {
        true => b.wait_address(1, at.at(1, 0), 1, Space::PeerIn(Rank(0))),
        false => b.wait(1, at.at(1, 0), 1),
    }
    b.mov(1, Region::new(Space::PeerIn(Rank(0)), 0..1000), out(0..1000));
    b.set(1, done.at(0, 0), 1);
    b
}

#[test]
fn a_peers_buffer_is_read_only_while_its_owner_stays() {
    assert!(proved(zero_copy(true, true)).in_place);
    refused(
        zero_copy(true, false),
        "race on in@0[0..1000]: rank 0 `return to the caller` writes it, rank 1 op 1 `get in@0[0..1000] -> \
         out[0..1000]` reads it, and no flag orders the one before the other: the last step of rank 0 known to \
         precede rank 1's is rank 0 op 0 `set at@1[0]=1 carrying &in`",
    );
    refused(
        zero_copy(false, true),
        "rank 1 op 1 `get in@0[0..1000] -> out[0..1000]` uses in@0, but rank 1 has not taken that address in \
         this run",
    );
}

#[test]
fn payloads_are_slots_too() {
    // Nothing tells rank 0 that rank 1 took the payload before the next run carries another one.
    let mut b = builder(Collective::Bcast, 2, 8, 1);
    let ready = b.flags("ready", Layout::Alone, 1);
    b.set_carrying(0, ready.at(1, 0), 1, input(0..8));
    b.wait_taking(1, ready.at(1, 0), 1, out(0..8));
    let violation = verify(&b.finish()).unwrap_err();
    assert!(violation.to_string().starts_with("race on the payload of ready@1[0]: "), "{violation}");
}

#[test]
fn one_buffer_for_input_and_output() {
    // The second half is written first, and then read as input.
    let mut b = builder(Collective::Allreduce, 1, 16, 8);
    b.acc(16);
    b.mov(0, input(0..16), out(0..16));
    assert!(proved(b).in_place);
    let mut b = builder(Collective::Allreduce, 1, 16, 8);
    b.acc(16);
    b.mov(0, input(0..16), acc(0..16));
    b.mov(0, acc(0..16), out(0..16));
    b.mov(0, input(8..16), acc(8..16));
    assert!(!proved(b).in_place);
}

#[test]
fn a_thousand_ranks_are_proved() {
    let problem = Problem { root: 3, ..Problem::flat(Collective::Bcast, 1024, 4096) };
    let plan =
        algorithm::find(Collective::Bcast, "binomial").unwrap().plan(&problem, &Params::new()).unwrap();
    assert_eq!(verify(&plan).unwrap().depth, 10);
}
