//! NoC_Msg's reduction: within tiles, then along every column, then along the root's row, chunk by chunk.
//!
//! Patil 2014, sections 4.2 and 5.3. Algorithm 3 as printed sends away from the root in lines 17 and 22; the text is
//! followed, by which partial results travel towards the root's row. Chunks are pipelined through all stages, where the
//! thesis completes the stage within tiles first. Any P and root. A baseline for meshes: not among the candidates
//! for selection.

use super::super::noc_msg::{Stream, CHUNK, COLUMNS, CORES, LAYOUT, SLOTS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "noc-msg",
    about: "NoC_Msg: within tiles, then along columns of tiles, then along the root's row",
    source: "Patil 2014, sections 4.2 and 5.3",
    params: &[COLUMNS, CORES, CHUNK, SLOTS, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    if s.bytes == 0 || s.len() < 2 {
        b.mov(s.members[s.root], s.from[s.root].at(0..s.bytes), s.to.at(0..s.bytes));
        return Ok(());
    }
    Stream::new(b, s, params)?.up(b, true);
    Ok(())
}
