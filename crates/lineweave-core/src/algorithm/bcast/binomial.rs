//! Binomial tree: in round `i` every virtual rank below `2^i` informs the one `2^i` above it.
//!
//! Known from every MPI; Rico-Gallego & Diaz-Martin Eq. 11 models it. Applies to any P and root. A payload
//! that fits the flag's line travels in it; a longer one goes through the sender's own slot, written once.

use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, tree_candidates};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "binomial",
    about: "each informed rank informs one more, round by round",
    source: "Rico-Gallego & Diaz-Martin 2015, Eq. 11",
    params: &[
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
    tree_candidates(problem, &[Params::new(), Params::new().with("source", "root")], &["each"])
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let relay = Relay::PLAIN.read(params)?;
    relay.emit(b, s, &Tree::binomial(s.len()), &cyclic(s));
    Ok(())
}
