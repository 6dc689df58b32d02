//! The naive judge on plans that were cut.

use super::{blocks_in, cell_size, Judge, Tree};
use crate::plan::Plan;
use std::collections::HashMap;

/// A rank that returns from a run, and what its output holds.
type Returned = (usize, usize, Vec<Tree>);

/// Returns whether a plan that was cut, with blocks as far apart as they were, is ordered and complete, and delivers what the whole one has up to the end of
/// each block.
pub(in super::super) fn is_cut_of(cut: &Plan, whole: &Plan) -> bool {
    let cell = cell_size(whole, cell_size(cut, 0)).max(1);
    let mut trees = HashMap::new();
    let mut results = |plan: &Plan| Judge::new(plan, cell, &mut trees).and_then(|mut judge| judge.results());
    let (Some(pitch), Some(a), Some(b)) = (whole.pitch(), results(whole), results(cut)) else { return false };
    let kept = |(rank, run, held): Returned| {
        let cells = held.into_iter().enumerate().filter(|(c, _)| c * cell % pitch < cut.bytes);
        (rank, run, cells.collect::<Vec<_>>())
    };
    let beyond = b.iter().any(|(.., held)| {
        held.iter().enumerate().any(|(c, tree)| c * cell % pitch >= cut.bytes && *tree != Tree::Nothing)
    });
    !beyond && a.into_iter().map(kept).eq(b.into_iter().map(kept))
}

/// As [`is_cut_of`], for a plan that was [cut](Plan::cut_to) to blocks of different lengths, which lie without gaps.
pub(in super::super) fn is_cut_to(cut: &Plan, whole: &Plan) -> bool {
    let Some(pitch) = whole.pitch() else { return false };
    let cell = cell_size(whole, cell_size(cut, pitch)).max(1);
    let mut trees = HashMap::new();
    let whole_results = Judge::new(whole, cell, &mut trees).and_then(|mut judge| judge.results());
    let cut_results = Judge::new(cut, cell, &mut trees).and_then(|mut judge| {
        judge.apart = Some(pitch);
        judge.results()
    });
    let (Some(a), Some(b)) = (whole_results, cut_results) else { return false };
    let (ranks, root) = (cut.ranks, cut.root.index());
    let same = |((rank, run, all), (r, n, left)): (&Returned, &Returned)| {
        let blocks = blocks_in(cut.collective.output(*rank, root), ranks);
        let mut places = (0..blocks).flat_map(|b| {
            let place = cut.grid().taken(*rank, b);
            (0..place.len() / cell).map(move |i| (place.start / cell + i, b * pitch / cell + i))
        });
        (rank, run) == (r, n) && places.all(|(here, there)| left[here] == all[there])
    };
    a.len() == b.len() && a.iter().zip(&b).all(same)
}
