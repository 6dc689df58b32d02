//! Demands of the checker on collectives that exchange blocks, and on scans.

use super::*;
use crate::algorithm::{self, Problem};
use crate::plan::{Blocks, Builder, Layout, Params, Region, Space, Uneven};
use std::ops::Range;
use std::sync::Arc;

fn builder(collective: Collective, ranks: usize, bytes: usize, blocks: Blocks) -> Builder {
    let mut b = Builder::new(collective, "test", &Params::new(), ranks, 0, bytes, 1);
    b.blocks(blocks);
    b.ring();
    b
}

fn input(range: Range<usize>) -> Region {
    Region::new(Space::In, range)
}

fn out(range: Range<usize>) -> Region {
    Region::new(Space::Out, range)
}

#[track_caller]
fn refused(b: Builder, part: &str) {
    let violation = verify(&b.finish()).expect_err("a broken plan").to_string();
    assert!(violation.contains(part), "{violation}");
}

/// Two ranks give each other the block that is `gives` of their input, and keep the other; both where `places` says.
fn swap(gives: impl Fn(usize) -> Range<usize>, places: [Range<usize>; 2], blocks: Blocks) -> Builder {
    let mut b = builder(Collective::Alltoall, 2, 8, blocks);
    let flag = b.flags("flag", Layout::Alone, 1);
    for rank in 0..2 {
        b.set_carrying(rank, flag.at(rank, 0), 1, input(gives(1 - rank)));
        b.mov(rank, input(gives(rank)), out(places[rank].clone()));
        b.wait_taking(rank, flag.at(1 - rank, 0), 1, out(places[1 - rank].clone()));
    }
    b
}

#[test]
fn blocks_must_arrive_in_the_place_of_their_giver() {
    let dense = |j: usize| 8 * j..8 * j + 8;
    assert!(verify(&swap(dense, [0..8, 8..16], Blocks::Dense).finish()).is_ok());
    refused(
        swap(dense, [8..16, 0..8], Blocks::Dense),
        "out@1[0..8] should hold bytes 8..16 of in@0, but holds in@1",
    );
    let other = |j: usize| 8 * (1 - j)..8 * (1 - j) + 8;
    refused(
        swap(other, [0..8, 8..16], Blocks::Dense),
        "out@1[0..8] should hold bytes 8..16 of the message, but holds bytes 0..8 of in@0",
    );
}

#[test]
fn a_window_leaves_alone_what_lies_between_its_blocks() {
    let apart = |j: usize| 20 * j..20 * j + 8;
    let good = swap(apart, [0..8, 20..28], Blocks::Apart(20));
    assert!(verify(&good.finish()).is_ok());
    let mut b = swap(apart, [0..8, 20..28], Blocks::Apart(20));
    b.mov(0, input(0..8), out(9..17));
    refused(b, "out@0[9..17] should hold what was there before, between blocks");
    refused(swap(|j| 8 * j..8 * j + 8, [0..8, 20..28], Blocks::Apart(20)), "bytes 20..28 of the message");
}

#[test]
fn buffers_end_with_their_last_block() {
    let mut b = builder(Collective::Scatter, 3, 8, Blocks::Dense);
    b.mov(0, input(0..8), out(0..8));
    b.mov(1, input(0..8), out(0..8));
    refused(b, "in[0..8] ends beyond the 0 bytes there are");
    let uneven = |counts: &[usize]| Blocks::Uneven(Arc::new(Uneven::by_rank(counts.to_vec())));
    let mut b = builder(Collective::Gather, 2, 8, uneven(&[8, 2]));
    b.mov(0, input(0..8), out(0..8));
    b.mov(0, input(0..3), out(8..11));
    refused(b, "out[8..11] ends beyond the 10 bytes there are");
    let mut b = builder(Collective::Gather, 2, 8, uneven(&[8, 2]));
    b.mov(1, input(0..2), out(0..2));
    refused(b, "rank 1 has no output buffer in this gather");
    for (blocks, part) in [
        (uneven(&[8]), "1 lengths of blocks: expected 2"),
        (uneven(&[4, 2]), "the longest block has 4 bytes: expected the message's 8"),
        (Blocks::Apart(4), "start 4 bytes apart"),
    ] {
        refused(builder(Collective::Gather, 2, 8, blocks), part);
    }
    refused(builder(Collective::Bcast, 2, 8, Blocks::Apart(8)), "a bcast has no blocks");
}

/// Three ranks hand their contributions on; rank 2 folds them as `order` says.
fn scan(order: [usize; 3]) -> Builder {
    let mut b = builder(Collective::Scan, 3, 8, Blocks::Dense);
    let flag = b.flags("flag", Layout::Alone, 1);
    let acc = b.acc(24);
    let place = |j: usize| Region::new(Space::Acc, acc + 8 * j..acc + 8 * j + 8);
    for rank in 0..3 {
        b.set_carrying(rank, flag.at(rank, 0), 1, input(0..8));
        b.mov(rank, input(0..8), place(rank));
        for q in (0..3).filter(|&q| q != rank) {
            b.wait_taking(rank, flag.at(q, 0), 1, place(q));
        }
    }
    b.mov(0, place(0), out(0..8));
    b.fold(1, place(0), place(1), out(0..8));
    b.fold(2, place(order[0]), place(order[1]), out(0..8));
    b.fold(2, out(0..8), place(order[2]), out(0..8));
    b
}

#[test]
fn a_scan_combines_the_ranks_up_to_each_in_their_order() {
    let proof = verify(&scan([0, 1, 2]).finish()).expect("a scan");
    assert!(proof.rank_order);
    refused(scan([1, 0, 2]), "the contributions of ranks 0 to 2 once each, in this order");
    refused(scan([0, 1, 1]), "missing: [2], more than once: [1]");
    let mut b = scan([0, 1, 2]);
    b.fold(1, out(0..8), Region::new(Space::Acc, 16..24), out(0..8));
    refused(b, "not to be there: [2]");
}

#[test]
fn rank_0_has_no_output_in_an_exscan() {
    let mut b = builder(Collective::Exscan, 2, 8, Blocks::Dense);
    b.mov(0, input(0..8), out(0..8));
    refused(b, "rank 0 has no output buffer in this exscan");
}

#[test]
fn a_reduce_scatter_pins_the_association_of_every_block() {
    let problem = Problem { grain: 8, ..Problem::flat(Collective::ReduceScatter, 4, 64) };
    let hash = |name: &str| {
        let algorithm = algorithm::find(Collective::ReduceScatter, name).expect("in the table");
        verify(&algorithm.plan(&problem, &Params::new()).expect("a plan")).expect("proved").result_hash
    };
    assert_ne!(hash("slices"), hash("ring"));
    assert_ne!(hash("ring"), hash("recursive-halving"));
}

/// One buffer with the own block in its place, as MPI has it.
#[test]
fn in_place_is_known_where_one_buffer_is_a_block_of_the_other() {
    let proof = |collective: Collective, name: &str| {
        let problem = Problem { direct: true, ..Problem::flat(collective, 3, 100) };
        let algorithm = algorithm::find(collective, name).expect("in the table");
        verify(&algorithm.plan(&problem, &Params::new()).expect("a plan")).expect("proved")
    };
    assert!(proof(Collective::Allgather, "all-read-all").in_place);
    assert!(proof(Collective::Scatter, "flat").in_place);
    assert!(proof(Collective::Alltoall, "flat").in_place);
    // A rank overwrites a block that its taker has not read yet.
    assert!(!proof(Collective::Alltoall, "direct").in_place);
}
