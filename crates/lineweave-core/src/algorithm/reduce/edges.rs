//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave optimise reduce` makes the edges from latencies between ranks (`optimise::matrix`). A parent folds its
//! children's partial results in the edges' order, which need not be that of ranks. Any P; the edges begin at the
//! root. Without edges it is the tree that tells the nearest first, upwards.

use super::super::edges;
use super::super::{Algorithm, ParamSpec, Problem, Scope};
use super::up::{up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[
        ParamSpec {
            name: "edges",
            default: "auto",
            about: "parent-child, in order: 0-4,0-2,4-5; auto: nearest first",
        },
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags" },
    ],
    candidates,
    emit: |b, problem, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let (tree, order) = edges::tree(params, problem, s)?;
        // The same members in the tree's order, the root first.
        let ordered = Scope {
            members: order.iter().map(|&i| s.members[i]).collect(),
            root: 0,
            from: order.iter().map(|&i| s.from[i]).collect(),
            to: s.to,
            bytes: s.bytes,
        };
        up(b, &ordered, &tree, Travel { layout, at_parent: false, direct: false })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new()],
    }
}
