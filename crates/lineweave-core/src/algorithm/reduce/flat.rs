//! Flat: the root folds every rank's contribution, in rank order.
//!
//! Best while arrivals, not folds, are what the root waits for. Any P and root. What fits a flag's line travels in it.

use super::super::pieces::LAYOUT;
use super::super::trees::Tree;
use super::super::{Algorithm, Problem};
use super::up::{up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "flat",
    about: "the root folds every contribution itself",
    source: "Ramos & Hoefler 2013, section 4.3, with one level",
    params: &[LAYOUT],
    candidates,
    emit: |b, _, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        up(b, s, &Tree::flat(s.len()), Travel { layout, at_parent: false, direct: false, rows: None })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    super::layouts(problem, &Params::new())
}
