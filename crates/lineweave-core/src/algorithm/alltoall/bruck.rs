//! Bruck: in round `k` each rank hands all blocks that still have to go 2^k ranks on to the rank that far after it.
//!
//! Bruck et al. 1997: ceil(log2 P) flags a rank instead of P - 1, for tiny blocks among many ranks; each block is copied
//! once for each bit of the distance it goes. Blocks lie in scratch by that distance; what goes in a round is packed
//! beside the flag where it fits, else into a slot. Any P, blocks of one length.

use super::super::pieces::{copy, input, output, LAYOUT};
use super::super::ranks::ceil_log;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Blocks, Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "bruck",
    about: "blocks go on together to the rank 1, 2, 4, ... after each",
    source: "Bruck et al. 1997",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let uneven = matches!(problem.blocks, Blocks::Uneven(_));
    if problem.ranks() < 4 || problem.bytes > 512 || problem.bytes == 0 || uneven {
        return Vec::new();
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    if matches!(problem.blocks, Blocks::Uneven(_)) {
        return Err(ALGORITHM.not_applicable("blocks have different lengths"));
    }
    let (p, grid) = (b.ranks(), problem.grid());
    let n = grid.bytes;
    b.ring();
    let rounds = ceil_log(p, 2);
    // What goes in round k: the blocks whose distance has that bit.
    let goes = |k: usize| (0..p).filter(move |d| d >> k & 1 == 1);
    let bytes: Vec<usize> = (0..rounds).map(|k| goes(k).count() * n).collect();
    let carried = |k: usize| bytes[k] <= layout.payload();
    let slots: Vec<u16> = (0..rounds).map(|k| b.slot(if carried(k) { 0 } else { bytes[k] })).collect();
    let round = b.flags("round", layout, rounds);
    let held = Place::acc(b.acc(p * n));
    let packed = Place::acc(b.acc(layout.payload().min(p * n)));
    for rank in 0..p {
        let place = |d: usize| held.at(d * n..d * n + n);
        let within = |store: Region, i: usize| Region { offset: store.offset + i * n, len: n, ..store };
        // 1. By distance.
        copy(b, rank, (0..p).map(|d| [input(grid.given(rank, (rank + d) % p)), place(d)]));
        // 2. Rounds.
        for (k, &slot) in slots.iter().enumerate() {
            let (hop, all) = (1 << k, 0..bytes[k]);
            let (to, from) = ((rank + hop) % p, (rank + p - hop % p) % p);
            let store = |of: usize| match carried(k) {
                true => packed.at(all.clone()),
                false => boxed(of, slot, all.clone()),
            };
            copy(b, rank, goes(k).enumerate().map(|(i, d)| [place(d), within(store(rank), i)]));
            let (theirs, mine) = (round.at(to, k), round.at(rank, k));
            let beside = carried(k).then(|| store(rank));
            b.set_with(rank, theirs, 1, beside);
            b.wait_with(rank, mine, 1, beside);
            copy(b, rank, goes(k).enumerate().map(|(i, d)| [within(store(from), i), place(d)]));
        }
        // 3. What arrived from `d` ranks before.
        copy(b, rank, (0..p).map(|d| [place(d), output(grid.taken(rank, (rank + p - d) % p))]));
    }
    Ok(())
}
