//! Reduce, then broadcast: any reduction of the table, followed by any broadcast of the table.
//!
//! What Rico-Gallego & Diaz-Martin 2015 model as Open MPI's and MPICH's plain allreduce, and the guideline that any other
//! allreduce has to beat. The root of both is that of the participants. Any P, as far as both parts go.

use super::super::levels::Spec;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allreduce,
    name: "reduce-bcast",
    about: "a reduction to one rank, then a broadcast from it",
    source: "Thakur, Rabenseifner & Gropp 2005",
    params: &[
        ParamSpec {
            name: "reduce",
            default: "binomial",
            about: "reduction: a name, or name(parameter=value;...)",
        },
        ParamSpec { name: "bcast", default: "binomial", about: "broadcast, likewise" },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let (reduces, bcasts) = match (problem.bytes > 4096, problem.direct) {
        (false, _) => (&["flat", "binomial", "tree"][..], &["flat", "binomial", "degrees"][..]),
        (true, false) => {
            (&["binomial", "tree", "pipelined"][..], &["binomial", "pipelined-kary", "cyclic"][..])
        }
        (true, true) => {
            (&["binomial", "pipelined", "slices"][..], &["pipelined-kary", "cyclic", "direct-flat"][..])
        }
    };
    let known = |name: &&&str| super::super::find(Collective::Bcast, name).is_ok();
    let mut out = Vec::new();
    for reduce in reduces {
        for bcast in bcasts.iter().filter(known) {
            out.push(Params::new().with("reduce", reduce).with("bcast", bcast));
        }
    }
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let reduce: Spec = params.read("reduce", Spec::named("binomial"))?;
    let bcast: Spec = params.read("bcast", Spec::named("binomial"))?;
    let (up, down) = (reduce.find(Collective::Reduce)?, bcast.find(Collective::Bcast)?);
    if super::trivial(b, s) {
        return Ok(());
    }
    // The two parts count runs by spans of their own: a fresh bank each run suits both.
    b.ring();
    (up.emit)(b, problem, s, &reduce.params)?;
    let spread = Participants { from: vec![s.to; s.len()], ..s.clone() };
    (down.emit)(b, problem, &spread, &bcast.params)
}
