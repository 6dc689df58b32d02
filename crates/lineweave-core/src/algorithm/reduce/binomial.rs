//! Binomial tree: neighbours fold first, then neighbouring pairs, round by round.
//!
//! Known from every MPI; the mirror image of the binomial broadcast (Rico-Gallego & Diaz-Martin 2015, Eq. 11). Any P
//! and root. Each subtree is a run of ranks, so contributions are folded in rank order from the root on.

use super::super::pieces::LAYOUT;
use super::super::trees::Tree;
use super::super::{Algorithm, Problem};
use super::up::{in_rank_order, up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "binomial",
    about: "pairs fold, then pairs of pairs, round by round",
    source: "Rico-Gallego & Diaz-Martin 2015, Eq. 11, mirrored",
    params: &[LAYOUT],
    candidates,
    emit: |b, _, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let tree = in_rank_order(Tree::binomial(s.len()));
        up(b, s, &tree, Travel { layout, at_parent: false, direct: false, rows: None })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    super::layouts(problem, &Params::new())
}
