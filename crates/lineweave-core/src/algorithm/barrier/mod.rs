//! Algorithms for barrier.
//!
//! A barrier moves no data and its flags only grow, so all of them may run again and again in the same lines
//! ([`crate::plan::Reuse::Same`]): a rank's second arrival can be seen only after its first.

pub mod all_to_all;
pub mod binomial;
pub mod centralized;
pub mod counter;
pub mod dissemination;
pub mod edges;
pub mod exchange;
pub mod hierarchical;
pub mod noc_msg;
mod release;
pub mod tournament;
pub mod tree;

use super::{Algorithm, BarrierPart, Participants};
use crate::plan::{Builder, Params, PlanError};

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &dissemination::ALGORITHM,
    &exchange::ALGORITHM,
    &all_to_all::ALGORITHM,
    &tree::ALGORITHM,
    &edges::ALGORITHM,
    &binomial::ALGORITHM,
    &tournament::ALGORITHM,
    &centralized::ALGORITHM,
    &counter::ALGORITHM,
    &hierarchical::ALGORITHM,
    &noc_msg::ALGORITHM,
];

/// As printed, and no barriers.
pub const REFUTED: &[&Algorithm] = &[&noc_msg::PUBLISHED];

type EmitPhase = fn(&mut Builder, &Participants, &Params, BarrierPart) -> Result<(), PlanError>;

/// The barriers that can be a level of the hierarchical one.
const PHASED: &[(&Algorithm, EmitPhase)] = &[
    (&dissemination::ALGORITHM, dissemination::phase),
    (&exchange::ALGORITHM, exchange::phase),
    (&all_to_all::ALGORITHM, all_to_all::phase),
    (&tree::ALGORITHM, tree::phase),
    (&binomial::ALGORITHM, binomial::phase),
    (&tournament::ALGORITHM, tournament::phase),
    (&centralized::ALGORITHM, centralized::phase),
    (&counter::ALGORITHM, counter::phase),
];

/// Appends one phase of a barrier to a plan.
///
/// # Errors
/// A [`PlanError`] when a parameter is out of range or the barrier cannot be played in phases.
pub fn emit_phase(
    b: &mut Builder,
    algorithm: &Algorithm,
    participants: &Participants,
    params: &Params,
    phase: BarrierPart,
) -> Result<(), PlanError> {
    match PHASED.iter().find(|(phased, _)| phased.name == algorithm.name) {
        Some((_, emit)) => emit(b, participants, params, phase),
        None => Err(algorithm.not_applicable("it cannot be played in phases")),
    }
}
