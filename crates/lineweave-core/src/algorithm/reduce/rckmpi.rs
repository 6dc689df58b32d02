//! RCKMPI's reduction: MPICH's algorithms over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005. A binomial tree up to 2 KiB; from there a
//! reduce-scatter by recursive halving, and the blocks are sent to the root (MPICH gathers them up a binomial tree; the
//! root's receiving, which is the same, is what takes the time). Any P and root. A baseline: not among the
//! candidates for selection.

use super::super::split_box::{short, Channel, Doubling, PARAMS};
use super::super::trees::Tree;
use super::super::{Algorithm, Participants, Place, Problem};
use super::up::in_rank_order;
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "rckmpi",
    about: "MPICH's binomial tree, or halving and gathering, over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: PARAMS,
    candidates: |_| Vec::new(),
    emit,
};

/// Messages up to here are short (MPICH's default).
const SHORT: usize = 2048;

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let short = short(params, s.bytes, SHORT)?;
    let whole = 0..s.bytes;
    if s.bytes == 0 || s.len() < 2 {
        b.mov(s.members[s.root], s.from[s.root].at(whole.clone()), s.to.at(whole));
        return Ok(());
    }
    let link = Channel::new(b, params, s.bytes)?;
    match short {
        true => up(b, s, link),
        false => halve(b, s, link),
    }
    Ok(())
}

/// Up a binomial tree.
fn up(b: &mut Builder, s: &Participants, mut link: Channel) {
    let whole = 0..s.bytes;
    let tree = in_rank_order(Tree::binomial(s.len()));
    let scratch = b.acc(2 * s.bytes);
    let (received, sums) = (Place::acc(scratch).at(whole.clone()), Place::acc(scratch + s.bytes));
    for v in 0..s.len() {
        let rank = s.rank_of_virtual(v);
        let sum = if v == 0 { s.to } else { sums }.at(whole.clone());
        let mut so_far = s.from[s.index_of_virtual(v)].at(whole.clone());
        for &child in &tree.children[v] {
            link.exchange(b, rank, None, Some((s.rank_of_virtual(child), received)));
            b.fold(rank, so_far, received, sum);
            so_far = sum;
        }
        if let Some(parent) = tree.parent[v] {
            link.exchange(b, rank, Some((s.rank_of_virtual(parent), so_far)), None);
        }
    }
    link.finish(b);
}

/// By halves, then every player's block to the root.
fn halve(b: &mut Builder, s: &Participants, link: Channel) {
    let scratch = Place::acc(b.acc(s.bytes));
    // Sums are made in scratch: only the root has a result to write.
    let inner = Participants { to: scratch, ..s.clone() };
    let mut all = Doubling::new(b, &inner, link);
    all.scatter(b);
    let root = s.members[s.root];
    for v in 0..all.players.len() {
        let rank = s.members[all.players[v]];
        let range = all.blocks(b, v..v + 1);
        match rank == root {
            true => b.mov(root, scratch.at(range.clone()), s.to.at(range)),
            false => all.link.message(b, rank, root, scratch.at(range.clone()), s.to.at(range)),
        }
    }
    all.link.finish(b);
}
