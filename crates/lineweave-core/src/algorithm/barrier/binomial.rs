//! Binomial spanning tree: arrivals up a binomial tree, release down it.
//!
//! The barrier of libraries that have a binomial reduce and broadcast at hand; Hoefler et al. 2004 survey it.
//! Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::release::{along, layout_param, layouts, release_param, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "binomial",
    about: "arrivals up a binomial tree, release down it",
    source: "Hoefler, Mehlan, Mietke & Rehm 2004",
    params: &[layout_param("alone"), release_param("tree"), HOME_PARAM],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.extend(layouts(&Params::new().with("release", "shared")));
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    along(b, s, Ways::both(&Tree::binomial(s.len())), Wiring::read(params)?);
    Ok(())
}
