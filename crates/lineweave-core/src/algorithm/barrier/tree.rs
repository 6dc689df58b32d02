//! K-ary tree: arrivals climb a tree of degree `k`, the release goes down it.
//!
//! Mellor-Crummey & Scott 1991 with one degree both ways; Chunduri & Srinivasan 2015 choose `k` (5, 7 or 8 on
//! chips of 6 cores) and the lines of the flags, which they keep in one segment (`home=root`). Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::release::{along, layout_param, release_param, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "tree",
    about: "arrivals up a k-ary tree, release down it",
    source: "Mellor-Crummey & Scott 1991; Chunduri & Srinivasan 2015",
    params: &[
        ParamSpec { name: "k", default: "4", about: "children of a rank" },
        layout_param("alone"),
        release_param("tree"),
        HOME_PARAM,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    let mut out = Vec::new();
    for k in [2, 3, 4, 5, 6, 7, 8].into_iter().filter(|&k| k == 2 || k < p) {
        for layout in [Layout::Packed, Layout::Alone, Layout::Spread(2)] {
            out.push(Params::new().with("k", k).with("layout", layout));
        }
        if k % 4 == 0 {
            out.push(Params::new().with("k", k).with("release", "shared"));
        }
    }
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 4, 1..super::super::MAX_RANKS)?;
    along(b, s, Ways::both(&Tree::kary(s.len(), k)), Wiring::read(params)?);
    Ok(())
}
