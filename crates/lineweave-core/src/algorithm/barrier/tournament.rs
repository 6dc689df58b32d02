//! Tournament: in round `i` neighbours `2^i` apart meet, the lower one wins; the champion wakes everybody.
//!
//! Hensgen, Finkel & Manber 1988: who wins is fixed beforehand, so each loser writes one flag that one winner
//! polls. Neighbours meet first, unlike in the binomial tree, where they meet last. Any P.

use super::super::trees::Tree;
use super::super::{Algorithm, Phase, Problem, Scope};
use super::release::{along, layout_param, layouts, release_param, Release};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "tournament",
    about: "pairs meet round by round, the champion wakes everybody",
    source: "Hensgen, Finkel & Manber 1988",
    params: &[layout_param("alone"), release_param("shared")],
    candidates,
    emit: |b, _, s, params| phase(b, s, params, Phase::Full),
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.extend(layouts(&Params::new().with("release", "tree")));
    out
}

pub(super) fn phase(b: &mut Builder, s: &Scope, params: &Params, phase: Phase) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let release = params.read("release", Release::Shared)?;
    along(b, s, &bracket(s.len()), layout, release, phase);
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
