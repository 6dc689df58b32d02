//! Tournament: in round `i` neighbours `2^i` apart meet, the lower one wins; the champion wakes everybody.
//!
//! Hensgen, Finkel & Manber 1988: who wins is fixed beforehand, so each loser writes one flag that one winner
//! polls. Neighbours meet first, unlike in the binomial tree, where they meet last. Chunduri & Srinivasan 2015
//! release down a k-ary tree (`release=kary`). Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::release::{along, layout_param, layouts, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "tournament",
    about: "pairs meet round by round, the champion wakes everybody",
    source: "Hensgen, Finkel & Manber 1988",
    params: &[
        layout_param("alone"),
        ParamSpec {
            name: "release",
            default: "shared",
            about: "shared: one flag, polled by all; tree: back down the bracket; kary: down a k-ary tree",
        },
        ParamSpec { name: "k", default: "2", about: "children of a rank in release=kary" },
        HOME_PARAM,
    ],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.extend(layouts(&Params::new().with("release", "tree")));
    out.push(Params::new().with("release", "kary").with("k", 4));
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let home = Home::read(params)?;
    let k = params.int("k", 2, 1..super::super::MAX_RANKS)?;
    let shared = (Release::Shared, false);
    let releases = [("shared", shared), ("tree", (Release::Tree, false)), ("kary", (Release::Tree, true))];
    let (release, kary) = params.one_of("release", shared, &releases)?;
    // The winner of a virtual rank is that without its lowest set bit; who falls last is woken first.
    let bracket = Tree::halving(s.len());
    let down = if kary { Tree::kary(s.len(), k) } else { bracket.clone() };
    along(b, s, Ways { up: &bracket, down: &down }, Wiring { layout, release, home });
    Ok(())
}
