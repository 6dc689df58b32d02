//! Centralized: one flag a rank at the root's home; the root polls them all and releases everybody.
//!
//! The barrier of RCCE. The one that Chunduri & Srinivasan 2015 call centralized, where the root resets each
//! rank's flag in turn, is `release=each` with `home=root`. Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::release::{along, layout_param, layouts, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "centralized",
    about: "the root polls a flag of every rank, then releases all",
    source: "Chunduri & Srinivasan 2015; RCCE",
    params: &[
        layout_param("packed"),
        ParamSpec {
            name: "release",
            default: "shared",
            about: "shared: one flag at the root, polled by all; each: one at every rank, set in turn",
        },
        HOME_PARAM,
    ],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.push(Params::new().with("layout", Layout::Spread(5)));
    out.extend(layouts(&Params::new().with("release", "each")));
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Packed)?;
    let releases = [("shared", Release::Shared), ("each", Release::Tree)];
    let release = params.one_of("release", Release::Shared, &releases)?;
    let home = Home::read(params)?;
    along(b, s, Ways::both(&Tree::flat(s.len())), Wiring { layout, release, home });
    Ok(())
}
