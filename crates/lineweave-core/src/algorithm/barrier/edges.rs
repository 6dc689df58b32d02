//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave lab optimise barrier` makes the edges from latencies between ranks (`optimise::matrix`). Arrivals climb the tree,
//! whoever is told last being heard first, and the release goes down it in the edges' order. Any P; the edges begin at
//! the root. Without edges the nearest are told first.

use super::super::edges;
use super::super::{Algorithm, BarrierPart, Problem};
use super::release::{along, layout_param, release_param, Home, Release, Ways, Wiring, HOME_PARAM};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

/// The table line.
pub static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[edges::EDGES, layout_param("alone"), release_param("tree"), HOME_PARAM],
    candidates,
    emit: |b, problem, s, params| {
        let wiring = Wiring {
            layout: params.read("layout", Layout::Alone)?,
            release: params.read("release", Release::Tree)?,
            home: params.read("home", Home::Own)?,
        };
        let (tree, ordered) = edges::ordered(params, problem, s)?;
        along(b, &ordered, Ways::both(&tree), wiring, BarrierPart::Full);
        Ok(())
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new(), Params::new().with("layout", Layout::Spread(2))],
    }
}
