//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave lab optimise bcast` makes the edges from latencies between ranks (Bhat, Raghavendra & Prasanna 2003 on
//! the problem; `optimise::matrix`). A parent raises a flag of each child in the edges' order. Any P; the edges begin at the
//! root. Without edges the nearest are told first, which is worth a try where there are levels.

use super::super::edges;
use super::super::{Algorithm, Problem};
use super::relay::Relay;
use super::settings;
use crate::collective::Collective;
use crate::plan::Params;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[
        edges::EDGES,
        settings::LAYOUT,
        settings::NOTIFY,
        settings::CARRY,
        settings::CHUNK,
        settings::SLOTS,
    ],
    candidates,
    emit: |b, problem, s, params| {
        let (tree, members) = edges::tree(params, problem, s)?;
        Relay::PLAIN.read(params)?.emit(b, s, &tree, &members);
        Ok(())
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new()],
    }
}
