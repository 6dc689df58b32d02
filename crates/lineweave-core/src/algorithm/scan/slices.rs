//! Slices: each rank computes every rank's result for one slice of the message.
//!
//! 1. Each rank puts its contribution into its box, but for its own slice of it.
//! 2. It folds its slice of contribution after contribution, in rank order, each sum into a place of its own in its box.
//! 3. Everybody copies its result, slice by slice, from those who computed it.
//!
//! Two rounds, and all ranks fold at once: each folds as many bytes as the message has, whatever P. The
//! slices are those of Ramos & Hoefler 2013, section 4.1.3. Any P; slices are empty where elements are fewer than ranks.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::LAYOUT;
use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use super::{trivial, Kind};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scan,
    name: "slices",
    about: "each computes one slice of everybody's result",
    source: "Ramos & Hoefler 2013, section 4.1.3, applied to a scan",
    params: &[LAYOUT, ORDER],
    candidates,
    emit: |b, _, s, params| emit(b, s, params, Kind::Inclusive),
};

pub(super) static EXCLUSIVE: Algorithm = Algorithm {
    collective: Collective::Exscan,
    emit: |b, _, s, params| emit(b, s, params, Kind::Exclusive),
    ..ALGORITHM
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 2 || problem.bytes < 64 * problem.ranks() {
        return Vec::new(); // Less than a line a slice.
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, s: &Participants, params: &Params, kind: Kind) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    if trivial(b, s, kind) {
        return Ok(());
    }
    b.ring();
    let (p, grain) = (s.len(), b.grain());
    let slice = |j: usize| block(s.bytes, grain, p, j);
    let widest = (0..p).map(|j| slice(j).len()).max().unwrap_or(0);
    let given = b.slot(s.bytes);
    // The sum of contributions 0 to j of a slice lies in place j.
    let sums = b.slot(p * widest);
    let written = b.flags("written", layout, 1);
    let folded = b.flags("folded", layout, 1);
    let brackets = Brackets::read(b, params, p, widest)?;
    // The contributions that some result needs.
    let needed = kind.upto(p - 1);
    for i in 0..p {
        let rank = s.members[i];
        let own = slice(i);
        let sum = |of: usize, j: usize| boxed(s.members[of], sums, j * widest..j * widest + slice(of).len());
        // The first sum is the first contribution, which is read where it is.
        let contribution = |j: usize| match j == i {
            true => s.from[i].at(own.clone()),
            false => boxed(s.members[j], given, own.clone()),
        };
        // 1. The contribution.
        if i < needed {
            for part in [0..own.start, own.end..s.bytes] {
                b.mov(rank, s.from[i].at(part.clone()), boxed(rank, given, part));
            }
            b.set(rank, written.at(rank, 0), 1);
        }
        // 2. The own slice of all sums.
        if !own.is_empty() {
            let wait = |b: &mut Builder, j: usize| {
                if j != i {
                    b.wait(rank, written.at(s.members[j], 0), 1);
                }
            };
            brackets.prefixes(b, rank, needed, contribution, |j| sum(i, j), wait);
            b.set(rank, folded.at(rank, 0), 1);
        }
        // 3. The own result.
        let Some(last) = kind.upto(i).checked_sub(1) else { continue };
        for of in (0..p).map(|d| (i + d) % p).filter(|&of| !slice(of).is_empty()) {
            if of != i {
                b.wait(rank, folded.at(s.members[of], 0), 1);
            }
            b.mov(rank, sum(of, last), s.to.at(slice(of)));
        }
    }
    Ok(())
}
