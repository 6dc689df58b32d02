//! NoC_Msg's broadcast: along the root's row, then along every column, then within tiles, chunk by chunk.
//!
//! Patil 2014, sections 4.1 and 5.2, Algorithm 2. (As printed the row's cores do not pass anything on to their columns; the
//! text and Figure 4.1 are followed.) Any P and root, pipelined. A baseline for meshes: not among the candidates
//! for selection.

use super::super::noc_msg::{Stream, CHUNK, COLUMNS, CORES, LAYOUT, SLOTS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "noc-msg",
    about: "NoC_Msg: along the root's row of tiles, then along columns, then within tiles",
    source: "Patil 2014, sections 4.1 and 5.2",
    params: &[COLUMNS, CORES, CHUNK, SLOTS, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    if s.bytes == 0 || s.len() < 2 {
        return Ok(());
    }
    Stream::new(b, s, params)?.down(b, s.from[s.root], None);
    Ok(())
}
