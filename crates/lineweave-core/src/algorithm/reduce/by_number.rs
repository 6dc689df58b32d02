//! By number: a binomial tree over the ranks as they are numbered, whoever is the root, which gets the sum from rank 0.
//!
//! The other trees are rooted at the root, and so combine contributions from the root on around to the rank before it.
//! Here they are combined in the order of ranks, and with the brackets of reproducible results, for one hop more where
//! the root is not rank 0. Any P and root.

use super::super::pieces::LAYOUT;
use super::super::trees::{boxed, Tree};
use super::super::{Algorithm, Participants, Place, Problem};
use super::up::{up, Travel};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "by-number",
    about: "binomial tree over ranks by number, in rank order for any root",
    source: "Thakur, Rabenseifner & Gropp 2005, section 4.5, for operators that do not commute",
    params: &[LAYOUT],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    // Else it is `binomial`.
    match problem.root != 0 || !problem.ranks().is_power_of_two() {
        true => super::layouts(problem, &Params::new()),
        false => Vec::new(),
    }
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let tree = Tree::aligned(s.len());
    let travel = Travel { layout, at_parent: false, direct: false, rows: None };
    if s.root == 0 || s.bytes == 0 {
        return up(b, s, &tree, travel);
    }
    let (first, root) = (s.members[0], s.members[s.root]);
    let carried = s.bytes <= layout.payload();
    let whole = 0..s.bytes;
    if s.len() == 2 {
        // The root itself is the last to be combined.
        b.ring();
        let flag = b.flags("contribution", layout, 1).at(root, 0);
        let [given, own] = [s.from[0], s.from[1]].map(|place| place.at(whole.clone()));
        let taken = match carried {
            true => Place::acc(b.acc(s.bytes)).at(whole.clone()),
            false => boxed(first, b.slot(s.bytes), whole.clone()),
        };
        if !carried {
            b.mov(first, given, taken);
        }
        b.set_with(first, flag, 1, carried.then_some(given));
        b.wait_with(root, flag, 1, carried.then_some(taken));
        b.fold(root, taken, own, s.to.at(whole));
        return Ok(());
    }
    // 1. To the first rank, in its box or beside the flag.
    let to = match carried {
        true => Place::acc(b.acc(s.bytes)),
        false => {
            let slot = b.slot(s.bytes);
            Place { space: boxed(first, slot, whole.clone()).space, base: 0 }
        }
    };
    up(b, &Participants { root: 0, to, ..s.clone() }, &tree, travel)?;
    // 2. On to the root.
    let sum = b.flags("sum", layout, 1);
    let out = s.to.at(whole.clone());
    b.set_with(first, sum.at(root, 0), 1, carried.then(|| to.at(whole.clone())));
    b.wait_with(root, sum.at(root, 0), 1, carried.then_some(out));
    if !carried {
        b.mov(root, to.at(whole), out);
    }
    Ok(())
}
