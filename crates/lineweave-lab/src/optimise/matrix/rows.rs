//! Trees that collect: whose partial results a rank folds, and which of them together.
//!
//! A reduction is no broadcast backwards. A rank polls at once what it waits for in a row, as many lines as its core has misses in
//! flight; folds end the row, and what is polled after them is fetched only then. Folded at last, a long row delays the
//! result. So a rank's children are heard in rows, each folded before the next is polled, half of it onto the other half:
//!
//! - a child's line has landed when its store has taken it from the parent, a transfer after it left;
//! - it arrives a transfer after it has landed and is polled;
//! - a wait takes two hits from then on if the line was under way before its turn, and one if not; none if it is the first of its row
//!   and the store had left;
//! - a row is folded in as many folds as it can be halved, each of [`FOLD`] hits for [`TOGETHER`] sums.
//!
//! Children in the order in which they land, the best rows are found by dynamic programming: what a row ends with grows with when it
//! begins. Which rank is whose child is found by annealing from several trees. Numbers that it draws are the same every time.

use super::{Latencies, Schedule};
use crate::chance::Draw;

/// Hits of a fold: both operands are read, and the sum is written.
pub(super) const FOLD: f64 = 3.0;
/// Hits of a message: what it carries is read, written where it is taken, and folded.
pub(super) const MESSAGE: f64 = 2.0 + FOLD;
/// Sums of eight bytes that one line has.
const TOGETHER: usize = 8;

/// Returns the number of halvings until one is left of a rank's own value, or its partial sum, and `row` others.
pub(super) fn halvings(row: usize) -> f64 {
    f64::from((row + 1).next_power_of_two().trailing_zeros())
}

/// Folds that this takes, line by line.
fn folds(row: usize) -> f64 {
    let (mut left, mut folds) = (row + 1, 0);
    while left > 1 {
        let stays = left.next_power_of_two() / 2;
        folds += (left - stays).div_ceil(TOGETHER);
        left = stays;
    }
    folds as f64
}

/// A tree that collects, with the order of each rank's children and the rows in which they are heard.
#[derive(Clone, PartialEq, Debug)]
pub struct Rows {
    root: usize,
    above: Vec<Option<usize>>,
    children: Vec<Heard>,
}

/// Children that a rank hears, and the rows in which it folds their values.
#[derive(Clone, PartialEq, Debug, Default)]
struct Heard {
    order: Vec<usize>,
    /// True if the child at this position begins a row.
    begins: Vec<bool>,
    /// Time at which all are folded, ns.
    done: f64,
}

impl Rows {
    /// A schedule's tree with the best rows.
    pub fn of(l: &Latencies, tree: &Schedule) -> Rows {
        let ranks = l.ranks();
        let mut rows =
            Rows { root: tree.root, above: vec![None; ranks], children: vec![Heard::default(); ranks] };
        let edges = tree.edges();
        for &(parent, child) in &edges {
            rows.above[child] = Some(parent);
            rows.children[parent].order.push(child);
        }
        for &(_, child) in edges.iter().rev() {
            rows.settle(l, child);
        }
        rows.settle(l, tree.root);
        rows
    }

    /// Returns the time at which the root has everything, ns.
    pub fn time(&self) -> f64 {
        self.children[self.root].done
    }

    /// The value of the parameter `edges` of `reduce/edges`: `0-4,0-2,0/5`.
    pub fn param(&self) -> String {
        let mut order = vec![self.root];
        let mut at = 0;
        let mut out = Vec::with_capacity(self.above.len());
        while let Some(&rank) = order.get(at) {
            let heard = &self.children[rank];
            for (&child, &begins) in heard.order.iter().zip(&heard.begins) {
                out.push(format!("{rank}{}{child}", if begins { '/' } else { '-' }));
            }
            order.extend(&heard.order);
            at += 1;
        }
        out.join(",")
    }

    /// Puts a rank's children in order and in rows; says whether it is done at another time than before.
    fn settle(&mut self, l: &Latencies, rank: usize) -> bool {
        let hit = l.hit;
        let mut order = std::mem::take(&mut self.children[rank].order);
        let landed =
            |c: usize| self.children[c].done + l.latency(c, rank) - (MESSAGE - 1.0) * hit - l.gap(c, rank);
        order.sort_by(|&a, &b| landed(a).total_cmp(&landed(b)).then(a.cmp(&b)));
        let lines: Vec<(f64, f64)> = order.iter().map(|&c| (landed(c), l.gap(c, rank))).collect();
        let (done, begins) = best_rows(&lines, l);
        let heard = &mut self.children[rank];
        let changed = heard.done != done;
        *heard = Heard { order, begins, done };
        changed
    }

    /// A rank and all above it.
    fn way(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(rank), |&r| self.above[r])
    }

    /// Gives a rank with all below it to another one; returns what changed as it was before.
    fn shift(&mut self, l: &Latencies, child: usize, place: usize) -> Vec<(usize, Heard)> {
        let mut before = Vec::new();
        let Some(parent) = self.above[child] else { return before };
        before.push((parent, self.children[parent].clone()));
        if place != parent {
            before.push((place, self.children[place].clone()));
        }
        self.children[parent].order.retain(|&c| c != child);
        self.children[place].order.push(child);
        self.above[child] = Some(place);
        for from in [parent, place] {
            let mut at = Some(from);
            while let Some(rank) = at {
                if before.iter().all(|b| b.0 != rank) {
                    before.push((rank, self.children[rank].clone()));
                }
                at = if self.settle(l, rank) { self.above[rank] } else { None };
            }
        }
        before
    }

    fn unshift(&mut self, child: usize, parent: usize, before: Vec<(usize, Heard)>) {
        self.above[child] = Some(parent);
        for (rank, heard) in before {
            self.children[rank] = heard;
        }
    }

    /// Moves ranks to other parents as long as it takes longer than `bound`, and in the beginning also where that takes a little longer.
    pub(super) fn anneal(&mut self, l: &Latencies, bound: f64) {
        /// Moves that are tried, and how much longer one may take, as a part of the whole.
        const TRIES: usize = 1 << 14;
        const WARM: f64 = 0.005;
        let ranks = l.ranks();
        if ranks < 3 {
            return;
        }
        let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
        let near = nearest(l);
        let mut best = self.clone();
        let begin = WARM * self.time();
        for nth in 0..TRIES {
            let now = self.time();
            if best.time() <= bound {
                break;
            }
            let warm = begin * (1.0 - nth as f64 / TRIES as f64);
            let child = self.late(&mut draw);
            let Some(parent) = self.above[child] else { continue };
            let place = match draw.below(4) {
                0 => draw.below(ranks),
                _ => near[child][draw.below(near[child].len())],
            };
            if place == parent || self.way(place).any(|r| r == child) {
                continue;
            }
            let before = self.shift(l, child, place);
            let later = self.time() - now;
            if later > 0.0 && (warm <= 0.0 || draw.unit() >= (-later / warm).exp()) {
                self.unshift(child, parent, before);
            } else if self.time() < best.time() {
                best = self.clone();
            }
        }
        *self = best;
    }

    /// One of those that keep the root waiting, at some depth.
    fn late(&self, draw: &mut Draw) -> usize {
        let mut at = self.root;
        loop {
            let heard = &self.children[at];
            if heard.order.is_empty() || (at != self.root && draw.below(3) == 0) {
                return at;
            }
            let n = heard.order.len();
            // More often one of the last.
            let from = n - 1 - draw.below(n).min(draw.below(n));
            at = heard.order[from];
        }
    }
}

/// Returns the time at which all of `lines` are folded, in this order and the best rows, and which of them begin a row. Each of
/// `lines` has the time at which it has landed and the time that it takes to be fetched.
fn best_rows(lines: &[(f64, f64)], l: &Latencies) -> (f64, Vec<bool>) {
    let (hit, most) = (l.hit, l.at_once);
    let n = lines.len();
    // When the first so many are folded, and how many of them the last row has.
    let mut ends = vec![(0.0f64, 0usize); n + 1];
    ends[1..].fill((f64::INFINITY, 0));
    let mut turns: Vec<f64> = Vec::with_capacity(n);
    for from in 0..n {
        let mut at = ends[from].0;
        turns.clear();
        for (nth, &(landed, fetch)) in lines[from..].iter().enumerate() {
            turns.push(at);
            let polled = turns[(nth + 1).saturating_sub(most)];
            let left = landed - fetch <= at;
            at = match landed <= at {
                true => at.max(landed.max(polled) + fetch) + 2.0 * hit,
                false if left && nth == 0 => landed + fetch,
                false => landed + fetch + hit,
            };
            let end = at + FOLD * hit * folds(nth + 1);
            if end < ends[from + nth + 1].0 {
                ends[from + nth + 1] = (end, nth + 1);
            }
        }
    }
    let mut begins = vec![false; n];
    let mut at = n;
    while at > 0 {
        at -= ends[at].1;
        begins[at] = at > 0;
    }
    (ends[n].0, begins)
}

/// Returns the ranks that are nearest to each rank, nearest first.
fn nearest(l: &Latencies) -> Vec<Vec<usize>> {
    const NEAR: usize = 16;
    let ranks = l.ranks();
    (0..ranks)
        .map(|from| {
            let mut others: Vec<usize> = (0..ranks).filter(|&to| to != from).collect();
            others.sort_by(|&a, &b| l.latency(from, a).total_cmp(&l.latency(from, b)).then(a.cmp(&b)));
            others.truncate(NEAR);
            others
        })
        .collect()
}
