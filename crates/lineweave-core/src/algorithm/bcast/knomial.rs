//! K-nomial tree: in each round every informed rank informs `k - 1` more.
//!
//! The binomial tree's generalisation to base `k`; k = P is the flat tree. Applies to any P and root. The
//! `k - 1` ranks of a round copy at the same time, which pays where one line serves several readers well.

use super::super::ranks::ceil_log;
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem, MAX_RANKS};
use super::relay::{cyclic, Relay};
use super::settings::{self, tree_candidates};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

const K: ParamSpec = ParamSpec { name: "k", default: "4", about: "base of the tree: k-1 children a round" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "knomial",
    about: "each informed rank informs k-1 more, round by round",
    source: "MPICH, UCC; binomial to base k",
    params: &[
        K,
        settings::LAYOUT,
        settings::NOTIFY,
        settings::CARRY,
        settings::SOURCE,
        settings::CHUNK,
        settings::SLOTS,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 {
        return Vec::new(); // With one reader this is `flat`.
    }
    // Bases that take fewer rounds than the one before; base 2 is `binomial`.
    let p = problem.ranks();
    let bases = [3, 4, 5, 6, 8, 12, 16].into_iter().filter(|&k| k <= p);
    let mut useful: Vec<usize> = bases.collect();
    useful.dedup_by_key(|k| ceil_log(p, *k));
    let base: Vec<Params> = useful.into_iter().map(|k| Params::new().with("k", k)).collect();
    tree_candidates(problem, &base, &["each"])
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 4, 2..MAX_RANKS + 1)?;
    let relay = Relay::PLAIN.read(params)?;
    relay.emit(b, s, &Tree::knomial(s.len(), k), &cyclic(s));
    Ok(())
}
