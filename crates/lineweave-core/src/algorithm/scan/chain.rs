//! Chain: each rank folds what the rank before it has, and hands it on, chunk by chunk.
//!
//! The linear scan of every MPI, pipelined: for long messages each contribution is folded once, P - 1 chunks after the
//! first rank's. A message that fits beside a flag travels with it. Any P.

use super::super::pieces::LAYOUT;
use super::super::ranks::chunks;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use super::{trivial, Kind};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "chunk",
        default: "0",
        about: "bytes of a pipelined chunk; 0: the message is one chunk",
    },
    LAYOUT,
];

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scan,
    name: "chain",
    about: "each folds what the rank before it has, chunk by chunk",
    source: "Sanders & Traeff 2006 (linear pipeline)",
    params: PARAMS,
    candidates,
    emit: |b, _, s, params| emit(b, s, params, Kind::Inclusive),
};

pub(super) static EXCLUSIVE: Algorithm = Algorithm {
    collective: Collective::Exscan,
    emit: |b, _, s, params| emit(b, s, params, Kind::Exclusive),
    ..ALGORITHM
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 2 {
        return Vec::new();
    }
    let pipelined =
        [4096, 16_384, 65_536].into_iter().filter(|&c| c < problem.bytes && problem.bytes / c <= 256);
    let mut out: Vec<Params> = pipelined.map(|c| Params::new().with("chunk", c)).collect();
    out.push(Params::new());
    out
}

fn emit(b: &mut Builder, s: &Participants, params: &Params, kind: Kind) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let chunk = params.int("chunk", 0, 0..usize::MAX)?;
    if trivial(b, s, kind) {
        return Ok(());
    }
    b.ring();
    let p = s.len();
    let carried = s.bytes <= layout.payload();
    let ready = b.flags("ready", layout, 1);
    let slot = b.slot(if carried { 0 } else { s.bytes });
    let [taken, sum] = [0, 1].map(|_| b.acc(if carried { s.bytes } else { 0 }));
    let chunk = if chunk == 0 || carried { s.bytes } else { chunk };
    for (t, range) in chunks(0..s.bytes, chunk, b.grain()).into_iter().enumerate() {
        let value = t as i32 + 1;
        for i in 0..p {
            let (rank, last) = (s.members[i], i + 1 == p);
            let (own, out) = (s.from[i].at(range.clone()), s.to.at(range.clone()));
            // 1. The sum of those before.
            let before = i.checked_sub(1).map(|j| {
                let place = match carried {
                    true => Place::acc(taken).at(range.clone()),
                    false => boxed(s.members[j], slot, range.clone()),
                };
                b.wait_with(rank, ready.at(s.members[j], 0), value, carried.then_some(place));
                place
            });
            // 2. The sum with the own contribution, for the next rank.
            let mut with_own = own;
            if !last || kind == Kind::Inclusive {
                let place = match (last, carried) {
                    (true, _) => out,
                    (false, true) => Place::acc(sum).at(range.clone()),
                    (false, false) => boxed(rank, slot, range.clone()),
                };
                match before {
                    Some(before) => {
                        b.fold(rank, before, own, place);
                        with_own = place;
                    }
                    None if !carried => {
                        b.mov(rank, own, place);
                        with_own = place;
                    }
                    None => {}
                }
            }
            if !last {
                b.set_with(rank, ready.at(rank, 0), value, carried.then_some(with_own));
            }
            // 3. The result.
            match (kind, before) {
                (Kind::Inclusive, None) => b.mov(rank, own, out),
                (Kind::Inclusive, Some(_)) => b.mov(rank, with_own, out),
                (Kind::Exclusive, Some(before)) => b.mov(rank, before, out),
                (Kind::Exclusive, None) => {}
            }
        }
    }
    Ok(())
}
