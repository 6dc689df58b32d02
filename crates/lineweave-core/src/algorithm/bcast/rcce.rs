//! RCCE's broadcast: the root sends to every other rank in turn.
//!
//! Mattson & van der Wijngaart 2010, over blocking send and receive. Any P and root. A baseline: not among the
//! candidates for selection.

use super::super::two_sided::{place, TwoSided, PARAMS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "rcce",
    about: "RCCE_bcast: the root sends to each in turn, blocking",
    source: "Mattson & van der Wijngaart 2010",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    if s.bytes == 0 || s.len() < 2 {
        return Ok(());
    }
    let mut link = TwoSided::new(b, params, s.bytes)?;
    send_all(b, s, &mut link);
    Ok(())
}

/// The root sends to every other member in turn.
pub(in super::super) fn send_all(b: &mut Builder, s: &Participants, link: &mut TwoSided) {
    for v in 1..s.len() {
        let (src, dst) = (place(s, 0).at(0..s.bytes), s.to.at(0..s.bytes));
        link.message(b, s.rank_of_virtual(0), s.rank_of_virtual(v), src, dst);
    }
}
