//! Box slices: every rank folds one slice of the message from everybody's box; the root collects the slices.
//!
//! The first half of `allreduce/slices` and a gather, for long messages between processes: all ranks fold at once, and
//! contributions are combined in the order of ranks, whoever is the root.
//!
//! 1. Each rank puts its contribution into its box, but for its own slice of it.
//! 2. It folds its slice, in rank order, into its box.
//! 3. The root copies all slices.
//!
//! Any P and root; slices are empty where elements are fewer than ranks.

use super::super::brackets::{Brackets, ORDER};
use super::super::pieces::LAYOUT;
use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "box-slices",
    about: "every rank folds a slice from all boxes, the root collects them",
    source: "Ramos & Hoefler 2013, section 4.1.3, applied to a reduction",
    params: &[LAYOUT, ORDER],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes < 64 * problem.ranks() {
        return Vec::new(); // Less than a line a slice.
    }
    vec![Params::new()]
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let root = s.members[s.root];
    if s.len() == 1 {
        b.mov(root, s.from[s.root].at(0..s.bytes), s.to.at(0..s.bytes));
        return Ok(());
    }
    if s.bytes == 0 {
        return Ok(());
    }
    b.ring();
    let (p, grain) = (s.len(), b.grain());
    let slice = |j: usize| block(s.bytes, grain, p, j);
    let widest = (0..p).map(|j| slice(j).len()).max().unwrap_or(0);
    let given = b.slot(s.bytes);
    let sums = b.slot(widest);
    let written = b.flags("written", layout, 1);
    let folded = b.flags("folded", layout, 1);
    let brackets = Brackets::read(b, params, p, widest)?;
    for i in 0..p {
        let rank = s.members[i];
        let own = slice(i);
        let others = (1..p).map(|d| (i + d) % p);
        // 1. The contribution.
        for part in [0..own.start, own.end..s.bytes] {
            b.mov(rank, s.from[i].at(part.clone()), boxed(rank, given, part));
        }
        b.set(rank, written.at(rank, 0), 1);
        // 2. The own slice.
        if !own.is_empty() {
            for j in others.clone() {
                b.wait(rank, written.at(s.members[j], 0), 1);
            }
            let source = |j: usize| -> Region {
                match j == i {
                    true => s.from[i].at(own.clone()),
                    false => boxed(s.members[j], given, own.clone()),
                }
            };
            let sum = boxed(rank, sums, 0..own.len());
            brackets.fold(b, rank, p, source, sum, sum);
            b.set(rank, folded.at(rank, 0), 1);
        }
        // 3. All slices, the root's own first.
        if rank == root {
            for j in (0..p).map(|d| (i + d) % p).filter(|&j| !slice(j).is_empty()) {
                if j != i {
                    b.wait(rank, folded.at(s.members[j], 0), 1);
                }
                b.mov(rank, boxed(s.members[j], sums, 0..slice(j).len()), s.to.at(slice(j)));
            }
        }
    }
    Ok(())
}
