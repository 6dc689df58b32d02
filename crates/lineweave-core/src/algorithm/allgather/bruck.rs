//! Bruck: in round `k` each rank gets as many blocks as it has, up to 2^k, from the rank 2^k after it.
//!
//! Bruck et al. 1997; recursive doubling for any P, in ceil(log2 P) rounds. Rank `i` keeps block `i + d` in place `d`, so
//! what it gets in a round follows what it has. Blocks lie in the box, or in scratch while all that is
//! exchanged fits beside flags; what the last round brings goes straight to `out`. Any P.

use super::super::pieces::{copy, input, keep_own, output, part, trivial, Packed, LAYOUT};
use super::super::ranks::ceil_log;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "bruck",
    about: "each gets all that the rank 1, 2, 4, ... after it has",
    source: "Bruck et al. 1997; Thakur, Rabenseifner & Gropp 2005",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes > 16_384 {
        return Vec::new();
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let rounds = ceil_log(p, 2);
    let width = |k: usize| (1 << k).min(p - (1 << k));
    let packed: Vec<Packed> = (0..p).map(|i| Packed::new((0..p).map(|d| grid.len((i + d) % p, i)))).collect();
    let sent = |i: usize, k: usize| packed[i].bytes(0..width(k));
    let most = |k: usize| (0..p).map(|i| sent(i, k)).max().unwrap_or(0);
    let carried = |k: usize| most(k) <= layout.payload();
    let all_carried = (0..rounds).all(carried);
    let total = (0..p).map(|i| packed[i].total()).max().unwrap_or(0);
    let slot = b.slot(if all_carried { 0 } else { total });
    let acc = b.acc(if all_carried { total } else { 0 });
    let round = b.flags("round", layout, rounds);
    let store = |i: usize| -> Region {
        match all_carried {
            true => Place::acc(acc).at(0..packed[i].total()),
            false => boxed(i, slot, 0..packed[i].total()),
        }
    };
    for rank in 0..p {
        let mine = |places: std::ops::Range<usize>| part(store(rank), packed[rank].span(places, 0));
        let to_out = |from: usize, n: usize, src: &dyn Fn(usize) -> Region| {
            let pairs = (from..from + n).map(|d| [src(d), output(grid.taken(rank, (rank + d) % p))]);
            pairs.collect::<Vec<_>>()
        };
        b.mov(rank, input(grid.given(rank, rank)), mine(0..1));
        let mut stored = 1;
        for k in 0..rounds {
            let (hop, n) = (1 << k, width(k));
            let (reader, giver) = ((rank + p - hop) % p, (rank + hop) % p);
            if sent(rank, k) > 0 {
                b.set_with(rank, round.at(reader, k), 1, carried(k).then(|| mine(0..n)));
            }
            let flag = round.at(rank, k);
            match (carried(k), sent(giver, k)) {
                (_, 0) => {}
                (true, _) => b.wait_taking(rank, flag, 1, mine(hop..hop + n)),
                (false, _) => {
                    b.wait(rank, flag, 1);
                    let theirs = |d: usize| part(store(giver), packed[giver].span(d - hop..d - hop + 1, 0));
                    if k + 1 == rounds {
                        copy(b, rank, to_out(hop, n, &theirs));
                        continue;
                    }
                    b.mov(rank, part(store(giver), 0..sent(giver, k)), mine(hop..hop + n));
                }
            }
            stored = hop + n;
        }
        keep_own(b, &grid, rank);
        copy(b, rank, to_out(1, stored - 1, &|d| mine(d..d + 1)));
    }
    Ok(())
}
