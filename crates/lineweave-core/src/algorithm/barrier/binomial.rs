//! Binomial spanning tree: arrivals up a binomial tree, release down it.
//!
//! The barrier of libraries that have a binomial reduce and broadcast at hand; Hoefler et al. 2004 survey it.
//! Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, BarrierPart, Participants, Problem};
use super::release::{along, layout_param, layouts, release_param, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "binomial",
    about: "arrivals up a binomial tree, release down it",
    source: "Hoefler, Mehlan, Mietke & Rehm 2004",
    params: &[layout_param("alone"), release_param("tree"), HOME_PARAM],
    candidates,
    emit: |b, _, s, params| phase(b, s, params, BarrierPart::Full),
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.extend(layouts(&Params::new().with("release", "shared")));
    out
}

pub(super) fn phase(
    b: &mut Builder,
    s: &Participants,
    params: &Params,
    phase: BarrierPart,
) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let release = params.read("release", Release::Tree)?;
    let home = params.read("home", Home::Own)?;
    along(b, s, Ways::both(&Tree::binomial(s.len())), Wiring { layout, release, home }, phase);
    Ok(())
}
