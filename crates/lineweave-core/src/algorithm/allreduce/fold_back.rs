//! Fold back: each rank folds its slice in the box that the slice came from, where its giver reads the sum.
//!
//! As in `slices`, ranks put contributions into their boxes and each folds one slice of them. There a sum is written to a
//! box of the rank that folds it, whose lines others had read last, so that among two ranks each line of a slice is
//! moved four times: to its giver, to who folds it, to who folds once more for the sum, and to who reads that. Here the
//! sum stays in the lines that have just been read, and they move three times.
//!
//! For each chunk a rank
//!
//! 1. puts its contribution, without its own slice, into its box,
//! 2. folds its slice from all boxes, in rank order, into the box of the next rank, and takes a copy,
//! 3. takes the other slices.
//!
//! One slot suffices for two ranks: it is put by its rank, folded by the other, and taken by its rank before it is put
//! again, by the next run too. More ranks take each sum, so they need two: who puts chunk `t` has seen everybody fold chunk
//! `t - 1`, and each took chunk `t - 2` before that; runs take turns in a ring of banks. Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::ranks::chunks;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "fold-back",
    about: "chunk by chunk, each folds its slice in the box that it came from, where it is read",
    source: "here; the slices are those of Ramos & Hoefler 2013, section 4.1.3",
    params: &[
        ParamSpec {
            name: "chunk",
            default: "131072",
            about: "bytes of the message under way at once, for all slices",
        },
        super::HOME,
        super::CHUNKED_LAYOUT,
        ORDER,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let mut out = Vec::new();
    // Two ranks hold the lines of a slot in turn: it shall stay in their caches beside what they give and take.
    let longest = if problem.ranks() == 2 { 262_144 } else { 1 << 20 };
    for chunk in [16384, 65536, 131_072, 262_144, 1 << 20].into_iter().filter(|&chunk| chunk <= longest) {
        if chunk / problem.ranks() >= super::slices::LEAST || chunk >= problem.bytes {
            out.extend(super::by_homes(chunk));
        }
        if chunk >= problem.bytes {
            break;
        }
    }
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let chunk = params.int("chunk", 131_072, 1..usize::MAX)?;
    let layout = params.read("layout", Layout::Paired)?;
    let home = super::Home::read(params)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let (p, grain) = (s.len(), b.grain());
    if p > 2 {
        b.ring();
    }
    let chunks_of = chunks(0..s.bytes, chunk, grain);
    let largest = chunks_of[0].len();
    let put = b.flags("put", layout, home.count(p));
    let folded = b.flags("folded", layout, home.count(p));
    let depth = if p == 2 { 1 } else { chunks_of.len().min(2) };
    // Slices lie in a slot as in a chunk; nobody puts the one that it folds itself.
    let slots: Vec<u16> = (0..depth).map(|_| b.slot(largest)).collect();
    let longest = largest.div_ceil(p).next_multiple_of(grain);
    let via = Place::acc(b.acc(if p > 2 { longest } else { 0 }));
    let brackets = Brackets::read(b, params, p, longest)?;
    for i in 0..p {
        let rank = s.members[i];
        let others = (1..p).map(|d| (i + d) % p);
        for (t, chunk) in chunks_of.iter().enumerate() {
            let slice = |j: usize| super::slice(chunk, grain, p, j);
            let place = |j: usize, part: &Range<usize>| -> Region {
                boxed(s.members[j], slots[t % depth], part.start - chunk.start..part.end - chunk.start)
            };
            let own = slice(i);
            // 1. What others need.
            for part in [chunk.start..own.start, own.end..chunk.end] {
                b.mov(rank, s.from[i].at(part.clone()), place(i, &part));
            }
            b.set(rank, home.flag(put, s, i), t as i32 + 1);
            // 2. The own slice.
            for j in others.clone() {
                b.wait(rank, home.flag(put, s, j), t as i32 + 1);
            }
            let source = |j: usize| -> Region {
                match j == i {
                    true => s.from[i].at(own.clone()),
                    false => place(j, &own),
                }
            };
            let sum = place((i + 1) % p, &own);
            brackets.fold(b, rank, p, source, via.at(0..own.len()), sum);
            b.mov(rank, sum, s.to.at(own.clone()));
            b.set(rank, home.flag(folded, s, i), t as i32 + 1);
            // 3. The others.
            for j in others.clone() {
                let range = slice(j);
                b.wait(rank, home.flag(folded, s, j), t as i32 + 1);
                b.mov(rank, place((j + 1) % p, &range), s.to.at(range));
            }
        }
    }
    Ok(())
}
