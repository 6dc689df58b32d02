//! RCCE's reduction: the root receives from every other rank in turn, and folds.
//!
//! Mattson & van der Wijngaart 2010, over blocking send and receive. Any P and root. A baseline: not among the
//! candidates for selection.

use super::super::two_sided::{TwoSided, PARAMS};
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "rcce",
    about: "RCCE_reduce: the root receives from each in turn, blocking, and folds",
    source: "Mattson & van der Wijngaart 2010",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let all = 0..s.bytes;
    if s.bytes == 0 || s.len() < 2 {
        b.mov(s.members[s.root], s.from[s.root].at(all.clone()), s.to.at(all));
        return Ok(());
    }
    let mut link = TwoSided::new(b, params, s.bytes)?;
    receive_all(b, s, &mut link);
    Ok(())
}

/// The root receives from every other member in turn, and folds.
pub(in super::super) fn receive_all(b: &mut Builder, s: &Participants, link: &mut TwoSided) {
    let all = 0..s.bytes;
    let root = s.members[s.root];
    let received = Place::acc(b.acc(s.bytes)).at(all.clone());
    let mut so_far = s.from[s.root].at(all.clone());
    for (i, &rank) in s.members.iter().enumerate().filter(|&(i, _)| i != s.root) {
        link.message(b, rank, root, s.from[i].at(all.clone()), received);
        let to = s.to.at(all.clone());
        b.fold(root, so_far, received, to);
        so_far = to;
    }
}
