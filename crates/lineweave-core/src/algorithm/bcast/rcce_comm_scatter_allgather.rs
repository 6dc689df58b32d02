//! RCCE_comm's broadcast of long messages: scatter down a tree of halves, then an allgather around a ring.
//!
//! Petrovic et al. 2012, section 5.3.2. In each of P - 1 rounds rank i sends to rank i - 1 the slice that it
//! received in the round before, over blocking send and receive: ranks of even number send first, so a round
//! takes two transfers. The root, which has every slice, takes part like the others and throws away what it
//! receives. Any P and root; slices are empty where there are more ranks than elements. A baseline: not
//! among the candidates for selection.

use super::super::ranks::block;
use super::super::two_sided::{halves, place, TwoSided, PARAMS};
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "rcce-comm-scatter-allgather",
    about: "RCCE_comm's scatter by halves and ring allgather over blocking send and receive",
    source: "Petrovic et al. 2012, section 5.3.2, Eq. 16",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let p = s.len();
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    let grain = b.grain();
    let slice = |blocks: std::ops::Range<usize>| {
        block(s.bytes, grain, p, blocks.start).start..block(s.bytes, grain, p, blocks.end - 1).end
    };
    let mut link = TwoSided::new(b, params, s.bytes)?;
    halves(0, p, &mut |from, to, hi| {
        let range = slice(to..hi);
        let (src, dst) = (place(s, from).at(range.clone()), s.to.at(range));
        link.message(b, s.rank_of_virtual(from), s.rank_of_virtual(to), src, dst);
    });
    // What the root receives goes to scratch, and on from there.
    let scratch = Place::acc(b.acc(s.bytes));
    for round in 0..p - 1 {
        for parity in [0, 1] {
            // Downwards, so that among two neighbours of even number (the ends, where P is odd) each finds
            // its own send before its receive.
            for v in (0..p).rev().filter(|v| v % 2 == parity) {
                let to = (v + p - 1) % p;
                let range = slice((v + round) % p..(v + round) % p + 1);
                let from = match v {
                    0 if round > 0 => scratch,
                    v => place(s, v),
                };
                let dst = if to == 0 { scratch } else { s.to };
                let (src, dst) = (from.at(range.clone()), dst.at(range));
                link.message(b, s.rank_of_virtual(v), s.rank_of_virtual(to), src, dst);
            }
        }
    }
    Ok(())
}
