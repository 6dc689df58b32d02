//! Centralized: one flag a rank at the root's home; the root polls them all and releases everybody.
//!
//! The barrier of RCCE. The one that Chunduri & Srinivasan 2015 call centralized, where the root resets each
//! rank's flag in turn, is `release=each` with `home=root`. Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, BarrierPart, ParamSpec, Participants, Problem};
use super::release::{along, layout_param, layouts, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
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
    emit: |b, _, s, params| phase(b, s, params, BarrierPart::Full),
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.push(Params::new().with("layout", Layout::Spread(5)));
    out.extend(layouts(&Params::new().with("release", "each")));
    out
}

pub(super) fn phase(
    b: &mut Builder,
    s: &Participants,
    params: &Params,
    phase: BarrierPart,
) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Packed)?;
    let release = match params.get("release").unwrap_or("shared") {
        "shared" => Release::Shared,
        "each" => Release::Tree,
        other => {
            return Err(PlanError::BadParameter {
                name: "release".to_owned(),
                value: other.to_owned(),
                expected: "shared or each".to_owned(),
            })
        }
    };
    let home = params.read("home", Home::Own)?;
    along(b, s, Ways::both(&Tree::flat(s.len())), Wiring { layout, release, home }, phase);
    Ok(())
}
