//! Direct: everybody copies its blocks straight out of everybody's buffer.
//!
//! The zero-copy protocol of Ramos & Hoefler 2013, 4.1.1, every rank a root: each block is copied once. Nobody returns
//! before everybody is done. Needs direct access; any P.

use super::super::allgather::direct::{candidates, read_blocks};
use super::super::pieces::LAYOUT;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Alltoall,
    name: "direct",
    about: "everybody copies its blocks out of everybody's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, section 4.1.1 (zero copy), applied to an alltoall",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    read_blocks(&ALGORITHM, b, problem, params)
}
