//! Recursive doubling: in round `k` each rank folds what the rank 2^k below it has by then.
//!
//! Hillis & Steele 1986; MPICH's scan. ceil(log2 P) rounds. After `k` rounds a rank has the sum of the 2^k contributions
//! up to its own. A sum that fits beside a flag travels with it; a longer one lies in a slot a round, folded there
//! straight. For exscan a rank folds its result from what it receives alone. Any P.

use super::super::pieces::LAYOUT;
use super::super::ranks::ceil_log;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Place, Problem};
use super::{trivial, Kind};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scan,
    name: "recursive-doubling",
    about: "each folds what the rank 1, 2, 4, ... below it has",
    source: "Hillis & Steele 1986",
    params: &[LAYOUT],
    candidates,
    emit: |b, _, s, params| emit(b, s, params, Kind::Inclusive),
};

pub(super) static EXCLUSIVE: Algorithm = Algorithm {
    collective: Collective::Exscan,
    emit: |b, _, s, params| emit(b, s, params, Kind::Exclusive),
    ..ALGORITHM
};

fn candidates(_: &Problem) -> Vec<Params> {
    vec![Params::new()]
}

fn emit(b: &mut Builder, s: &Participants, params: &Params, kind: Kind) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    if trivial(b, s, kind) {
        return Ok(());
    }
    b.ring();
    let p = s.len();
    let whole = 0..s.bytes;
    let rounds = ceil_log(p, 2);
    let carried = s.bytes <= layout.payload();
    let round = b.flags("round", layout, rounds);
    let slots: Vec<u16> = (0..rounds).map(|_| b.slot(if carried { 0 } else { s.bytes })).collect();
    let scratch = b.acc(if carried && kind == Kind::Exclusive { s.bytes } else { 0 });
    let taken = b.acc(if carried { s.bytes } else { 0 });
    for i in 0..p {
        let rank = s.members[i];
        let out = s.to.at(whole.clone());
        let is_read = |k: usize| i + (1 << k) < p;
        // Where the sum before round k goes that others will read, or nobody.
        let place = |k: usize| match (carried, kind) {
            (true, Kind::Inclusive) => out,
            (true, Kind::Exclusive) => Place::acc(scratch).at(whole.clone()),
            (false, _) if is_read(k) => boxed(rank, slots[k], whole.clone()),
            (false, _) => out,
        };
        let mut sum = s.from[i].at(whole.clone());
        let mut received_any = false;
        if !carried && is_read(0) {
            let first = boxed(rank, slots[0], whole.clone());
            b.mov(rank, sum, first);
        }
        for k in 0..rounds {
            let hop = 1 << k;
            // 1. The sum so far, for the rank above.
            if is_read(k) {
                b.set_with(rank, round.at(s.members[i + hop], k), 1, carried.then_some(sum));
            }
            // 2. What comes from below.
            if i < hop {
                continue;
            }
            let received = if carried {
                Place::acc(taken).at(whole.clone())
            } else {
                // It is complete from round `done` on and then stays where it is.
                let below = i - hop;
                let done = ceil_log(below + 1, 2);
                boxed(s.members[below], slots[k.min(done)], whole.clone())
            };
            b.wait_with(rank, round.at(rank, k), 1, carried.then_some(received));
            // 3. The next sum; an exscan needs it only for others.
            if kind == Kind::Inclusive || is_read(k + 1) {
                let next = place(k + 1);
                b.fold(rank, received, sum, next);
                sum = next;
            }
            // 4. The result of an exscan.
            if kind == Kind::Exclusive {
                if received_any {
                    b.fold(rank, received, out, out);
                } else {
                    b.mov(rank, received, out);
                }
                received_any = true;
            }
        }
        if kind == Kind::Inclusive {
            b.mov(rank, sum, out);
        }
    }
    Ok(())
}
