//! Direct: each rank folds its slice from everybody's buffer, then the slices are exchanged buffer to buffer.
//!
//! Reduce-scatter and allgather without a copy on the way, for threads and shared heaps (Ramos & Hoefler's zero-copy
//! notification applied to slices).
//!
//! 1. Each rank publishes where its buffers are, at its own home, and learns where everybody's are.
//! 2. It folds its slice, in rank order, a chunk at a time.
//! 3. `move=push`: it writes the chunk into everybody's `out`. `move=pull`: everybody reads it from its `out`.
//! 4. Nobody returns before everybody is done.
//!
//! Any P.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::check_direct;
use super::super::ranks::{block, chunks};
use super::super::reduce::up::seen_by_peers;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "direct",
    about: "each folds a slice from all buffers; slices go from buffer to buffer",
    source: "Ramos & Hoefler 2013, section 4.1.3 (zero copy), applied to slices",
    params: &[
        ParamSpec {
            name: "move",
            default: "push",
            about: "push: owners write to all; pull: all read from owners",
        },
        ParamSpec { name: "chunk", default: "8192", about: "bytes folded over all ranks before the next" },
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags; not packed" },
        ORDER,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !problem.direct || problem.bytes == 0 {
        return Vec::new();
    }
    let chunks = [2048, 8192, 32768].into_iter().filter(|&c| c == 2048 || c < problem.bytes);
    chunks
        .flat_map(|chunk| ["push", "pull"].map(|m| Params::new().with("move", m).with("chunk", chunk)))
        .collect()
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let push = params.one_of("move", true, &[("push", true), ("pull", false)])?;
    let chunk = params.int("chunk", 8192, 1..usize::MAX)?;
    let layout = params.read("layout", Layout::Alone)?;
    check_direct(&ALGORITHM, problem, layout)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let p = s.len();
    let seen = |places: &dyn Fn(usize) -> Place| -> Option<Vec<Place>> {
        (0..p).map(|i| seen_by_peers(places(i), s.members[i])).collect()
    };
    let (Some(ins), Some(outs)) = (seen(&|i| s.from[i]), seen(&|_| s.to)) else {
        return Err(ALGORITHM.not_applicable("contributions and results have to be in the callers' buffers"));
    };
    b.ring();
    b.direct();
    let grain = b.grain();
    // Sums on the way stay in this rank's cache, and its contribution is read before it is overwritten.
    let via = Place::acc(b.acc(if p > 2 { chunk.max(grain).min(s.bytes) } else { 0 }));
    let brackets = Brackets::read(b, params, p, chunk.max(grain).min(s.bytes))?;
    let address = b.flags("address", layout, 2);
    let done = b.flags("done", layout, 1);
    for i in 0..p {
        let rank = s.members[i];
        let others = (1..p).map(|d| (i + d) % p);
        // 1. Addresses.
        b.set_address(rank, address.at(rank, 0), 1, s.from[i].space);
        b.set_address(rank, address.at(rank, 1), 1, s.to.space);
        for j in others.clone() {
            b.wait_address(rank, address.at(s.members[j], 0), 1, ins[j].space);
            b.wait_address(rank, address.at(s.members[j], 1), 1, outs[j].space);
        }
        // 2. The own slice, and 3. where owners write, on to everybody.
        for range in chunks(block(s.bytes, grain, p, i), chunk, grain) {
            let sum = s.to.at(range.clone());
            let source = |j: usize| if j == i { s.from[i] } else { ins[j] }.at(range.clone());
            brackets.fold(b, rank, p, source, via.at(0..range.len()), sum);
            if push {
                others.clone().for_each(|j| b.mov(rank, sum, outs[j].at(range.clone())));
            }
        }
        b.set(rank, done.at(rank, 0), 1);
        // 3. Where readers fetch.
        if !push {
            for j in others.clone() {
                let slice = block(s.bytes, grain, p, j);
                b.wait(rank, done.at(s.members[j], 0), 1);
                b.mov(rank, outs[j].at(slice.clone()), s.to.at(slice));
            }
            b.set(rank, done.at(rank, 0), 2);
        }
        // 4. Everybody is done.
        let last = if push { 1 } else { 2 };
        for j in others {
            b.wait(rank, done.at(s.members[j], 0), last);
        }
    }
    Ok(())
}
