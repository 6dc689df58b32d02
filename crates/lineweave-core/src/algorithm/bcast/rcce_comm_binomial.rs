//! RCCE_comm's broadcast of short messages: a binary recursive tree over blocking send and receive.
//!
//! Petrovic et al. 2012, section 5.2.2, with which OC-Bcast is compared there. The ranks are split in halves;
//! the one that has the message sends it to the first of the other half, and both halves go on. Any P and
//! root. A baseline: not among the candidates for selection.

use super::super::two_sided::{halves, place, TwoSided, PARAMS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "rcce-comm-binomial",
    about: "RCCE_comm's tree of halves over blocking send and receive",
    source: "Petrovic et al. 2012, section 5.2.2, Eq. 14",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    if s.bytes == 0 || s.len() < 2 {
        return Ok(());
    }
    let mut link = TwoSided::new(b, params, s.bytes)?;
    halves(0, s.len(), &mut |from, to, _| {
        let (src, dst) = (place(s, from).at(0..s.bytes), s.to.at(0..s.bytes));
        link.message(b, s.rank_of_virtual(from), s.rank_of_virtual(to), src, dst);
    });
    Ok(())
}
