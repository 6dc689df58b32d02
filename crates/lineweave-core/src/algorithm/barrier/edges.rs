//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave lab optimise barrier` makes the edges from latencies between ranks (`optimise::matrix`). Arrivals climb the tree,
//! whoever is told last being heard first, and the release goes down it in the edges' order. Any P; the edges begin at
//! the root. Without edges the nearest are told first.

use super::super::edges;
use super::super::{Algorithm, Problem};
use super::release::{along, layout_param, release_param, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[edges::EDGES, layout_param("alone"), release_param("tree"), HOME_PARAM],
    candidates,
    emit: |b, problem, s, params| {
        let wiring = Wiring::read(params)?;
        let (tree, order) = edges::tree(params, problem, s)?;
        along(b, &s.in_order(&order), Ways::both(&tree), wiring);
        Ok(())
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new(), Params::new().with("layout", Layout::Spread(2))],
    }
}
