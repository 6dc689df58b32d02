//! Partial results up a tree: what flat, binomial, tree and direct reductions share.
//!
//! 1. A leaf publishes its contribution.
//! 2. Every other rank folds its children's partial results onto its own contribution, in rank order, as they
//!    come, and publishes the sum.
//! 3. The root's last fold ends in place.
//!
//! Trees are numbered so that each subtree is a run of ranks and small subtrees come first: a parent folds
//! left to right, and whoever arrives first is folded first. Each run takes the next bank, so nothing is
//! acknowledged, except that an address published to a parent is: its owner may change the buffer on return.

use super::super::trees::{boxed, Tree};
use super::super::{Participants, Place};
use crate::plan::{Builder, Layout, PlanError, Region, Space};
use crate::units::Rank;
use std::ops::Range;

/// Way in which partial results travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Travel<'a> {
    /// Lines of the flags; what fits beside a flag travels with it.
    pub layout: Layout,
    /// A longer partial result lies in a buffer of its own at the parent, otherwise in the child's box.
    pub at_parent: bool,
    /// A leaf publishes the address of its contribution in place of the bytes.
    pub direct: bool,
    /// For each virtual rank whether it begins a row of its parent's children. What travels with its flag is folded when all of a
    /// row are there, since waits that follow each other overlap: half of the row at once onto the other half, and so on. Without
    /// rows it is folded as each comes.
    pub rows: Option<&'a [bool]>,
}

/// A tree renumbered depth first with small subtrees in front.
pub(super) fn in_rank_order(mut tree: Tree) -> Tree {
    for children in &mut tree.children {
        children.reverse();
    }
    tree.preorder()
}

/// The place as its owner's peers see it, where it is a buffer whose address can be published.
pub(crate) fn seen_by_peers(place: Place, owner: usize) -> Option<Place> {
    let owner = Rank::from(owner);
    match place.space {
        Space::In => Some(Place { space: Space::PeerIn(owner), base: place.base }),
        Space::Out => Some(Place { space: Space::PeerOut(owner), base: place.base }),
        Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => None,
    }
}

/// A rank's children row by row, by their positions.
fn in_rows(children: &[usize], begins: Option<&[bool]>) -> Vec<Range<usize>> {
    let mut rows: Vec<Range<usize>> = Vec::new();
    for (position, &child) in children.iter().enumerate() {
        match rows.last_mut().filter(|_| begins.is_some_and(|begins| !begins[child])) {
            Some(row) => row.end = position + 1,
            None => rows.push(position..position + 1),
        }
    }
    rows
}

/// The most children in a row.
fn longest_row(tree: &Tree, begins: Option<&[bool]>) -> usize {
    let rows = tree.children.iter().flat_map(|children| in_rows(children, begins));
    rows.map(|row| row.len()).max().unwrap_or(0)
}

/// Emits the reduction up `tree` (in rank order, see [`in_rank_order`]).
pub(super) fn up(b: &mut Builder, s: &Participants, tree: &Tree, travel: Travel) -> Result<(), PlanError> {
    let whole = 0..s.bytes;
    let root = s.rank_of_virtual(0);
    if s.len() == 1 {
        b.mov(root, s.from[s.root].at(whole.clone()), s.to.at(whole));
        return Ok(());
    }
    if s.bytes == 0 {
        return Ok(());
    }
    b.ring();
    let carried = s.bytes <= travel.layout.payload() && !travel.direct;
    let partial = b.flags("partial", travel.layout, tree.degree());
    let (mut scratch, mut slots, mut done) = (0, Vec::new(), None);
    if carried {
        scratch = b.acc((1 + longest_row(tree, travel.rows)) * s.bytes);
    } else if travel.at_parent {
        slots = (0..tree.degree()).map(|_| b.slot(s.bytes)).collect();
    } else {
        slots = vec![b.slot(s.bytes)];
    }
    // A leaf whose contribution can be read in place, as its parent sees it.
    let in_place = |v: usize| {
        let leaf = v > 0 && tree.children[v].is_empty();
        let i = s.index_of_virtual(v);
        (travel.direct && leaf).then(|| seen_by_peers(s.from[i], s.members[i])).flatten()
    };
    if (1..s.len()).any(|v| in_place(v).is_some()) {
        b.direct();
        done = Some(b.flags("done", travel.layout, 1));
    }
    // Where the partial result of a virtual rank lies for its parent.
    let published = |v: usize| -> Region {
        match tree.parent[v] {
            Some(parent) if travel.at_parent => {
                boxed(s.rank_of_virtual(parent), slots[tree.position(v)], whole.clone())
            }
            _ => boxed(s.rank_of_virtual(v), slots[0], whole.clone()),
        }
    };
    for v in 0..s.len() {
        let rank = s.rank_of_virtual(v);
        let own = s.from[s.index_of_virtual(v)].at(whole.clone());
        let sum = match v {
            0 => s.to.at(whole.clone()),
            _ if carried => Place::acc(scratch).at(whole.clone()),
            _ => published(v),
        };
        let mut so_far = own;
        if carried {
            let places =
                |these: Range<usize>| Place::acc(scratch).at(these.start * s.bytes..these.end * s.bytes);
            for row in in_rows(&tree.children[v], travel.rows) {
                if row.len() > 1 {
                    b.mov(rank, so_far, places(0..1));
                    so_far = places(0..1);
                }
                for (place, position) in row.clone().enumerate() {
                    b.wait_taking(rank, partial.at(rank, position), 1, places(1 + place..2 + place));
                }
                let mut left = 1 + row.len();
                while left > 2 {
                    // A power of two stays, so that what is folded onto it begins with a line if it is longer than one.
                    let stays = left.next_power_of_two() / 2;
                    b.fold(rank, places(0..left - stays), places(stays..left), places(0..left - stays));
                    left = stays;
                }
                let goes_on = travel.rows.is_some() && row.end < tree.children[v].len();
                let sum = if goes_on { places(0..1) } else { sum };
                b.fold(rank, so_far, places(1..2), sum);
                so_far = sum;
            }
        }
        let apart = if carried { &[] } else { &tree.children[v][..] };
        for (position, &child) in apart.iter().enumerate() {
            let flag = partial.at(rank, position);
            let child_rank = s.rank_of_virtual(child);
            if let (Some(place), Some(done)) = (in_place(child), done) {
                b.wait_address(rank, flag, 1, place.space);
                b.fold(rank, so_far, place.at(whole.clone()), sum);
                b.set(rank, done.at(child_rank, 0), 1);
            } else {
                b.wait(rank, flag, 1);
                b.fold(rank, so_far, published(child), sum);
            }
            so_far = sum;
        }
        let Some(parent) = tree.parent[v] else { continue };
        let flag = partial.at(s.rank_of_virtual(parent), tree.position(v));
        if carried {
            b.set_carrying(rank, flag, 1, so_far);
        } else if let (Some(_), Some(done)) = (in_place(v), done) {
            b.set_address(rank, flag, 1, own.space);
            b.wait(rank, done.at(rank, 0), 1);
        } else {
            b.mov(rank, so_far, sum);
            b.set(rank, flag, 1);
        }
    }
    Ok(())
}
