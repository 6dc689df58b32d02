//! A tree with a degree per level and a buffer a child.
//!
//! Ramos & Hoefler 2013, section 4.3: each child writes to a buffer of its own at its parent, so that the children of
//! one parent never wait for each other; Eq. 4.13 gives the cost and with it the degrees. `buffers=child` leaves a
//! partial result in the child's box instead, where the parent reads it. Any P and root.

use super::super::bcast::degrees::{degrees, of_each_depth};
use super::super::pieces::LAYOUT;
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Problem};
use super::up::{in_rank_order, up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "tree",
    about: "a tree with a degree per level and a buffer for each child",
    source: "Ramos & Hoefler 2013, section 4.3, Eq. 4.13",
    params: &[
        ParamSpec { name: "degrees", default: "auto", about: "children of a rank, level by level: 5,3,2" },
        ParamSpec {
            name: "buffers",
            default: "parent",
            about: "parent: one a child at its parent; child: at the child",
        },
        LAYOUT,
    ],
    candidates,
    emit: |b, _, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let at_parent = params.one_of("buffers", true, &[("parent", true), ("child", false)])?;
        let tree = in_rank_order(Tree::by_degrees(s.len(), &degrees(params, s.len())?));
        up(b, s, &tree, Travel { layout, at_parent, direct: false, rows: None })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let both = |base: Params| match problem.bytes > Layout::Alone.payload() {
        true => [base.clone(), base.with("buffers", "child")],
        false => [base.clone(), base.with("layout", Layout::Spread(2))],
    };
    of_each_depth(problem.ranks()).flat_map(both).collect()
}
