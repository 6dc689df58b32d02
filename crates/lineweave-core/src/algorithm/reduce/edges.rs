//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave lab optimise reduce` makes the edges from latencies between ranks (`optimise::matrix`). A parent folds its
//! children's partial results in the edges' order, which need not be that of ranks. Any P; the edges begin at the
//! root. Without edges it is the tree that tells the nearest first, upwards.

use super::super::edges;
use super::super::{Algorithm, ParamSpec, Problem};
use super::up::{up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params, PlanError};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[
        edges::EDGES,
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags" },
        ParamSpec {
            name: "fold",
            default: "each",
            about: "a few bytes: each as it comes; last, when all children's are there",
        },
    ],
    candidates,
    emit: |b, problem, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let last = match params.get("fold").unwrap_or("each") {
            "each" => false,
            "last" => true,
            other => {
                return Err(PlanError::BadParameter {
                    name: "fold".to_owned(),
                    value: other.to_owned(),
                    expected: "each or last".to_owned(),
                })
            }
        };
        let (tree, ordered) = edges::ordered(params, problem, s)?;
        up(b, &ordered, &tree, Travel { layout, at_parent: false, direct: false, last })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new(), Params::new().with("fold", "last")],
    }
}
