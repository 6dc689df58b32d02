//! RCKMPI's allreduce: MPICH's algorithms over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005. Recursive doubling up to 2 KiB; from there a
//! reduce-scatter by recursive halving and an allgather by recursive doubling. Any P. A baseline: not among the
//! candidates for selection.

use super::super::split_box::{short, Channel, Doubling, PARAMS};
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "rckmpi",
    about: "MPICH's doubling and halving over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

/// Messages up to here are short (MPICH's default).
const SHORT: usize = 2048;

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let short = short(params, s.bytes, SHORT)?;
    if super::trivial(b, s) {
        return Ok(());
    }
    let link = Channel::new(b, params, s.bytes)?;
    let mut all = Doubling::new(b, s, link);
    if short {
        all.everything(b);
    } else {
        all.scatter(b);
        all.gather(b);
    }
    all.tell_guests(b);
    all.link.finish(b);
    Ok(())
}
