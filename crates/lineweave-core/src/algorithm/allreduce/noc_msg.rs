//! NoC_Msg's allreduce: its reduction to one rank, then its broadcast from there.
//!
//! Patil 2014, sections 4.2 and 5.4, Algorithm 4. Both go through the same slots. Any P. A baseline for meshes: not among
//! the candidates for selection.

use super::super::noc_msg::{Stream, CHUNK, COLUMNS, CORES, LAYOUT, ROOT, SLOTS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "noc-msg",
    about: "NoC_Msg: its reduction to one rank, then its broadcast",
    source: "Patil 2014, section 5.4",
    params: &[COLUMNS, CORES, ROOT, CHUNK, SLOTS, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let root = params.int("root", s.root, 0..s.len())?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let stream = Stream::new(b, &Participants { root, ..s.clone() }, params)?;
    let read = stream.up(b, false);
    stream.down(b, s.to, Some(read));
    Ok(())
}
