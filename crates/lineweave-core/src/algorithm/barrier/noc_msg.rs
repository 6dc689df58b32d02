//! NoC_Msg's barrier: arrivals within tiles, along columns, along the root's row; and the release backwards.
//!
//! Patil 2014, sections 4.2 and 5.5, Algorithm 5. As published "the cores leave the barrier as soon as they send a
//! message": nobody is released, so a core can leave before another has entered, and that is no barrier. It is kept as
//! [`PUBLISHED`], outside the table, to be refuted and to be timed. [`ALGORITHM`] adds the release. Any P. Baselines
//! for meshes: not among the candidates for selection.

use super::super::noc_msg::{Tiles, COLUMNS, CORES, ROOT};
use super::super::{Algorithm, BarrierPart, Participants, Problem};
use super::release::{along, layout_param, Home, Release, Ways, Wiring};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "noc-msg",
    about: "NoC_Msg with a release: up along columns and the root's row of tiles, and down again",
    source: "Patil 2014, section 5.5, corrected",
    params: &[COLUMNS, CORES, ROOT, layout_param("alone")],
    candidates: |_| Vec::new(),
    emit,
};

/// The barrier as printed, which is none.
pub(super) static PUBLISHED: Algorithm = Algorithm {
    name: "noc-msg-published",
    about: "NoC_Msg as printed: ranks leave as soon as they have sent, so it is no barrier",
    source: "Patil 2014, section 5.5, Algorithm 5",
    emit: |b, problem, s, params| {
        emit(b, problem, &Participants { phase: BarrierPart::Gather, ..s.clone() }, params)
    },
    ..ALGORITHM
};

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let root = params.int("root", s.root, 0..s.len())?;
    let (tree, order) = Tiles::read(params, s.len())?.tree(root);
    let wiring = Wiring { layout, release: Release::Tree, home: Home::Own };
    along(b, &s.in_order(&order), Ways::both(&tree), wiring);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::verify;

    #[test]
    fn the_published_barrier_is_refuted_and_the_corrected_one_proved() {
        for p in 2..20 {
            let problem = Problem::flat(Collective::Barrier, p, 0);
            for root in [0, p / 2, p - 1] {
                let params = Params::new().with("root", root);
                let plan = |algorithm: &Algorithm| algorithm.plan(&problem, &params).unwrap();
                assert!(verify(&plan(&ALGORITHM)).unwrap().synchronizing);
                let violation = verify(&plan(&PUBLISHED)).unwrap_err().to_string();
                assert!(violation.contains("rank"), "{violation}");
            }
        }
    }
}
