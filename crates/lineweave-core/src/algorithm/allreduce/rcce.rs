//! RCCE's allreduce: its reduction to one rank, then its broadcast from there.
//!
//! Mattson & van der Wijngaart 2010, over blocking send and receive. Any P. A baseline: not among the candidates
//! for selection.

use super::super::two_sided::{TwoSided, PARAMS};
use super::super::{bcast, reduce, Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "rcce",
    about: "RCCE_allreduce: RCCE_reduce, then RCCE_bcast",
    source: "Mattson & van der Wijngaart 2010",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    if super::trivial(b, s) {
        return Ok(());
    }
    let mut link = TwoSided::new(b, params, s.bytes)?;
    reduce::rcce::receive_all(b, s, &mut link);
    let spread = Participants { from: vec![s.to; s.len()], ..s.clone() };
    bcast::rcce::send_all(b, &spread, &mut link);
    Ok(())
}
