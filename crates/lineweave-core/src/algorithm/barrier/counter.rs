//! Central counter: every rank adds one to a counter at the root's home and waits until it reaches P.
//!
//! What `pthread_barrier_t` and libgomp resemble: the baseline. With `release=counter` everybody polls the
//! counter that is still being added to; with `release=flag` only the root does, and then sets one flag. Any P.
//! The counter is never reset, so runs follow each other in the same line.

use super::super::{Algorithm, BarrierPart, ParamSpec, Participants, Problem};
use super::release::{layout_param, layouts};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "counter",
    about: "every rank adds to one counter and waits for it",
    source: "libgomp and pthreads; Mellor-Crummey & Scott 1991, section 3.1",
    params: &[
        layout_param("alone"),
        ParamSpec {
            name: "release",
            default: "counter",
            about: "counter: all poll it; flag: the root polls it and sets a flag",
        },
    ],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    // One counter: only whether a line or two lie between it and its neighbours can matter.
    let mut out = vec![Params::new(), Params::new().with("layout", Layout::Spread(2))];
    out.extend(layouts(&Params::new().with("release", "flag")));
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let by_flag = params.one_of("release", false, &[("counter", false), ("flag", true)])?;
    let (p, phase) = (s.len(), s.phase);
    if p < 2 {
        return Ok(());
    }
    let root = s.rank_of_virtual(0);
    let everybody = p as i32;
    if matches!(phase, BarrierPart::Full | BarrierPart::Gather) {
        let counter = b.counters("count", layout, 1).at(root, 0);
        for i in 0..p {
            let rank = s.members[i];
            b.add(rank, counter);
            let polls = i == s.root || (phase == BarrierPart::Full && !by_flag);
            if polls {
                b.wait(rank, counter, everybody);
            }
        }
    }
    if phase == BarrierPart::Release || (phase == BarrierPart::Full && by_flag) {
        let go = b.flags("release", layout, 1).at(root, 0);
        b.set(root, go, 1);
        for v in 1..p {
            b.wait(s.rank_of_virtual(v), go, 1);
        }
    }
    Ok(())
}
