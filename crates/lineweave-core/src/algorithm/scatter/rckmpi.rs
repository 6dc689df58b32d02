//! RCKMPI's scatter: MPICH's binomial tree over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005; in shared memory, with two slots of 8 KiB, the
//! scatter of Rico-Gallego & Diaz-Martin 2015, Eq. 16. Blocks of a subtree go down together; an inner rank keeps them in
//! scratch. Any P and root. A baseline: not among the candidates for selection.

use super::super::pieces::{input, keep_own, output, Packed};
use super::super::split_box::{Channel, CHUNK, LAYOUT, SLOTS};
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Place, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Scatter,
    name: "rckmpi",
    about: "MPICH's binomial tree over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: &[CHUNK, SLOTS, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let (p, grid, root) = (s.len(), problem.grid(), s.rank_of_virtual(0));
    if p < 2 || grid.bytes == 0 {
        keep_own(b, &grid, root);
        return Ok(());
    }
    let tree = Tree::halving(p);
    let sizes = tree.sizes();
    let packed = Packed::new((0..p).map(|v| grid.len(root, s.rank_of_virtual(v))));
    let mut link = Channel::new(b, params, packed.total())?;
    let most = (1..p).map(|v| packed.bytes(v..v + sizes[v])).max().unwrap_or(0);
    let scratch = Place::acc(b.acc(most));
    // Where `v` has the block of the `w`th rank of its subtree: leaves and the root have no scratch.
    let at = |v: usize, w: usize| -> Region {
        match (v, sizes[v]) {
            (0, _) => input(grid.given(root, s.rank_of_virtual(w))),
            (_, 1) => output(grid.taken(s.rank_of_virtual(v), root)),
            _ => scratch.at(packed.span(w..w + 1, v)),
        }
    };
    keep_own(b, &grid, root);
    for v in 0..p {
        if v > 0 && sizes[v] > 1 {
            b.mov(s.rank_of_virtual(v), at(v, v), output(grid.taken(s.rank_of_virtual(v), root)));
        }
        for &child in &tree.children[v] {
            let blocks = (child..child + sizes[child]).map(|w| [at(v, w), at(child, w)]);
            link.pieces(b, s.rank_of_virtual(v), s.rank_of_virtual(child), blocks);
        }
    }
    link.finish(b);
    Ok(())
}
