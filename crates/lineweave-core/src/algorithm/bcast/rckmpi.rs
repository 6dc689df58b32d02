//! RCKMPI's broadcast: MPICH's algorithms over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005. A binomial tree below 12 KiB; from there a
//! scatter down the same tree and an allgather around a ring, which is what MPICH takes where P is no power of two
//! (and where it is, above 512 KiB). Any P and root. A baseline: not among the candidates for selection.

use super::super::ranks::block;
use super::super::split_box::{short, Channel, PARAMS};
use super::super::trees::Tree;
use super::super::two_sided::place;
use super::super::{Algorithm, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "rckmpi",
    about: "MPICH's binomial tree, or scatter and ring, over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

/// Messages up to here are short (MPICH's default: fewer than 12,288 bytes).
const SHORT: usize = 12_287;

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let p = s.len();
    let short = short(params, s.bytes, SHORT)?;
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    let mut link = Channel::new(b, params, s.bytes)?;
    let grain = b.grain();
    let blocks = |first: usize, end: usize| {
        block(s.bytes, grain, p, first).start..block(s.bytes, grain, p, end - 1).end
    };
    // Down the tree whose subtrees are runs of ranks, parents before children.
    let tree = Tree::halving(p);
    let sizes = tree.sizes();
    for v in 0..p {
        for &child in &tree.children[v] {
            let range = if short { 0..s.bytes } else { blocks(child, child + sizes[child]) };
            let (src, dst) = (place(s, v).at(range.clone()), s.to.at(range));
            link.message(b, s.rank_of_virtual(v), s.rank_of_virtual(child), src, dst);
        }
    }
    if !short {
        // The root has everything: what reaches it goes nowhere, and so is not sent to it.
        for v in 0..p {
            let (right, left) = ((v + 1) % p, (v + p - 1) % p);
            for round in 0..p - 1 {
                let out = blocks((v + p - round) % p, (v + p - round) % p + 1);
                let into = blocks((left + p - round) % p, (left + p - round) % p + 1);
                let to = (right != 0).then(|| (s.rank_of_virtual(right), place(s, v).at(out)));
                let from = (v != 0).then(|| (s.rank_of_virtual(left), s.to.at(into)));
                link.exchange(b, s.rank_of_virtual(v), to, from);
            }
        }
    }
    link.finish(b);
    Ok(())
}
