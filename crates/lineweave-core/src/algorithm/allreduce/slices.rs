//! Slices: chunk by chunk, each rank folds its slice from everybody's box and publishes it for all to read.
//!
//! Reduce-scatter and allgather through boxes, pipelined so that copying and folding overlap; with two ranks it is the
//! two-way exchange of halves. In iteration `t` each rank
//!
//! 1. reads the finished slices of chunk `t - 2`,
//! 2. puts its contribution to chunk `t` (without its own slice) into its box,
//! 3. folds its slice of chunk `t - 1` from all boxes, in rank order, and publishes it.
//!
//! Two slots of each kind suffice without acknowledgements. A contribution's slot was last used for chunk `t - 2`,
//! which everybody has folded, as step 1 has seen. A result's slot was last used for chunk `t - 3`, which
//! everybody had read in step 1 before putting chunk `t - 1`, as step 3 waits for. The same holds from one run to the
//! next, so runs follow each other in the same memory. Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::ranks::{block, chunks};
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};
use crate::units::LINE;
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "slices",
    about: "chunk by chunk, each folds its slice from all boxes and publishes it",
    source: "Ramos & Hoefler 2013, section 4.1.3, applied to a reduction",
    params: &[
        ParamSpec {
            name: "chunk",
            default: "16384",
            about: "bytes of the message under way at once, for all slices",
        },
        super::HOME,
        super::CHUNKED_LAYOUT,
        ORDER,
    ],
    candidates,
    emit,
};

/// Bytes of a slice: in shorter ones flags cost more than bytes.
pub(super) const LEAST: usize = 2 * LINE;

fn candidates(problem: &Problem) -> Vec<Params> {
    let mut out = Vec::new();
    // Long chunks too: a ring that is larger than a core's caches has left the reader's when its slots are written again.
    for chunk in [2048, 8192, 16384, 32768, 65536, 262_144, 524_288, 1 << 20] {
        if chunk > 2048 && chunk / 2 >= problem.bytes {
            break;
        }
        if chunk / problem.ranks() >= LEAST || chunk >= problem.bytes {
            out.extend(super::by_homes(chunk));
        }
    }
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let chunk = params.int("chunk", 16384, 1..usize::MAX)?;
    let layout = params.read("layout", Layout::Paired)?;
    let home = super::Home::read(params)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let (p, grain) = (s.len(), b.grain());
    let chunks = chunks(0..s.bytes, chunk, grain);
    let largest = chunks[0].len();
    let put = b.flags("put", layout, home.count(p));
    let folded = b.flags("folded", layout, home.count(p));
    let depth = chunks.len().min(2);
    // Nobody puts the slice that it folds itself.
    let least = (0..p).map(|j| block(largest, grain, p, j).len()).min().unwrap_or(0);
    let given: Vec<u16> = (0..depth).map(|_| b.slot(largest - least)).collect();
    let results: Vec<u16> = (0..depth).map(|_| b.slot(largest.div_ceil(p).next_multiple_of(grain))).collect();
    let brackets = Brackets::read(b, params, p, largest.div_ceil(p).next_multiple_of(grain))?;
    // Slice j of chunk t within the message; slots hold what lies between these bounds.
    let slice = |t: usize, j: usize| super::slice(&chunks[t], grain, p, j);
    // Where a part of chunk t lies in member j's slot, which has no place for j's slice.
    let in_slot = |t: usize, j: usize, part: &Range<usize>| {
        let own = slice(t, j);
        let from = chunks[t].start + if part.start >= own.end { own.len() } else { 0 };
        part.start - from..part.end - from
    };
    for i in 0..p {
        let rank = s.members[i];
        let others = (1..p).map(|d| (i + d) % p);
        for t in 0..chunks.len() + 2 {
            if let Some(u) = t.checked_sub(2) {
                for j in others.clone() {
                    let range = slice(u, j);
                    b.wait(rank, home.flag(folded, s, j), u as i32 + 1);
                    b.mov(rank, boxed(s.members[j], results[u % depth], 0..range.len()), s.to.at(range));
                }
            }
            if t < chunks.len() {
                let own = slice(t, i);
                for part in [chunks[t].start..own.start, own.end..chunks[t].end] {
                    let slot = boxed(rank, given[t % depth], in_slot(t, i, &part));
                    b.mov(rank, s.from[i].at(part), slot);
                }
                b.set(rank, home.flag(put, s, i), t as i32 + 1);
            }
            if let Some(u) = t.checked_sub(1).filter(|&u| u < chunks.len()) {
                let range = slice(u, i);
                let result = boxed(rank, results[u % depth], 0..range.len());
                for j in others.clone() {
                    b.wait(rank, home.flag(put, s, j), u as i32 + 1);
                }
                let source = |j: usize| -> Region {
                    match j == i {
                        true => s.from[i].at(range.clone()),
                        false => boxed(s.members[j], given[u % depth], in_slot(u, j, &range)),
                    }
                };
                brackets.fold(b, rank, p, source, result, result);
                b.set(rank, home.flag(folded, s, i), u as i32 + 1);
                b.mov(rank, result, s.to.at(range));
            }
        }
    }
    Ok(())
}
