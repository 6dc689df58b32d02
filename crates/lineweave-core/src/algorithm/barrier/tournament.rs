//! Tournament: in round `i` neighbours `2^i` apart meet, the lower one wins; the champion wakes everybody.
//!
//! Hensgen, Finkel & Manber 1988: who wins is fixed beforehand, so each loser writes one flag that one winner
//! polls. Neighbours meet first, unlike in the binomial tree, where they meet last. Chunduri & Srinivasan 2015
//! release down a k-ary tree (`release=kary`). Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, BarrierPart, ParamSpec, Participants, Problem};
use super::release::{along, layout_param, layouts, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
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
    emit: |b, _, s, params| phase(b, s, params, BarrierPart::Full),
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.extend(layouts(&Params::new().with("release", "tree")));
    out.push(Params::new().with("release", "kary").with("k", 4));
    out
}

pub(super) fn phase(
    b: &mut Builder,
    s: &Participants,
    params: &Params,
    phase: BarrierPart,
) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let home = params.read("home", Home::Own)?;
    let k = params.int("k", 2, 1..super::super::MAX_RANKS)?;
    let bracket = bracket(s.len());
    let (release, down) = match params.get("release").unwrap_or("shared") {
        "shared" => (Release::Shared, bracket.clone()),
        "tree" => (Release::Tree, bracket.clone()),
        "kary" => (Release::Tree, Tree::kary(s.len(), k)),
        other => {
            return Err(PlanError::BadParameter {
                name: "release".to_owned(),
                value: other.to_owned(),
                expected: "shared, tree or kary".to_owned(),
            })
        }
    };
    along(b, s, Ways { up: &bracket, down: &down }, Wiring { layout, release, home }, phase);
    Ok(())
}

/// The winner of `v` is `v` without its lowest set bit; who falls last is woken first.
fn bracket(p: usize) -> Tree {
    let mut tree = Tree { parent: vec![None; p], children: vec![Vec::new(); p] };
    for v in (1..p).rev() {
        let winner = v & (v - 1);
        tree.parent[v] = Some(winner);
        tree.children[winner].push(v);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_meet_first() {
        let tree = bracket(7);
        assert_eq!(tree.children[0], vec![4, 2, 1]);
        assert_eq!(tree.children[4], vec![6, 5]);
        assert_eq!(tree.parent[5], Some(4));
        assert_eq!(tree.depth(), 2);
    }
}
