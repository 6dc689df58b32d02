//! Required content of `out` as a rank returns.

use super::expr::{mix, Expr, Exprs, Node, UNDEFINED};
use super::memory::Value;
use super::segments::Segments;
use super::text::site;
use super::violation::{Step, Violation};
use crate::collective::{split, Collective};
use crate::plan::Plan;
use crate::units::Rank;
use std::collections::HashMap;
use std::ops::Range;

/// Stretches of `out`: first byte, one past the last, what they hold.
type Held = Vec<(usize, usize, Expr)>;

/// Required content of a stretch of `out`.
#[derive(Clone, Debug)]
enum Due {
    /// Bytes that `rank` brought, from its byte `origin` on.
    Bytes { rank: usize, origin: usize },
    /// A tree of what these ranks brought, each once, from their byte `origin` on; in rank order where it says so.
    Sum { ranks: Range<usize>, origin: usize, ordered: bool },
    /// Bytes that were there before: the stretch lies between blocks.
    Untouched,
}

/// Order of a tree, each kind a special case of the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Order {
    Any,
    /// Its leaves are in rank order.
    Rank,
    /// It has the brackets of reproducible results besides.
    Fixed,
}

/// Record of the results seen so far.
pub(super) struct Results {
    /// For each run, the first rank that returned and what it held.
    first: Vec<Option<(usize, Held)>>,
    /// For each tree over some ranks, how its leaves are ordered, or what is wrong with it.
    trees: HashMap<(Expr, usize, usize), Result<Order, String>>,
    /// Every tree so far had its leaves in rank order.
    pub(super) rank_order: bool,
    /// Every tree so far had the brackets of reproducible results.
    pub(super) fixed_order: bool,
    /// Of the trees of run 0 and the bytes they cover.
    pub(super) hash: u64,
}

impl Results {
    pub(super) fn new(plan: &Plan, runs: usize) -> Results {
        Results {
            first: vec![None; runs],
            trees: HashMap::new(),
            rank_order: true,
            fixed_order: true,
            hash: mix(plan.collective as u64, plan.bytes as u64),
        }
    }

    /// Checks `out` of a rank that returns.
    pub(super) fn check(
        &mut self,
        plan: &Plan,
        exprs: &Exprs,
        rank: usize,
        run: usize,
        out: &Segments<Value>,
    ) -> Result<(), Violation> {
        let wrong = |(start, end): (usize, usize), expected: String, found: String| Violation::WrongResult {
            site: Box::new(site(plan, rank, run, Step::Leave)),
            bytes: start..end,
            expected,
            found,
        };
        let mut held: Held = Vec::new();
        for (range, due) in dues(plan, rank) {
            for (start, end, value) in out.iter(range.start, range.end) {
                let at = (start, end);
                let found = || exprs.text(value.expr, run);
                let (first, n) = (start - range.start, end - start);
                let place = |origin: usize| (origin + first, origin + first + n);
                match &due {
                    Due::Untouched if value.expr == UNDEFINED => continue,
                    Due::Untouched => {
                        return Err(wrong(at, "what was there before, between blocks".to_owned(), found()))
                    }
                    Due::Bytes { origin, .. } | Due::Sum { origin, .. }
                        if value.expr != UNDEFINED && value.origin != place(*origin).0 =>
                    {
                        let (from, to) = place(*origin);
                        let found = format!("bytes {}..{} of {}", value.origin, value.origin + n, found());
                        return Err(wrong(at, format!("bytes {from}..{to} of the message"), found));
                    }
                    Due::Bytes { rank: giver, origin } => {
                        if value.expr != exprs.leaf(*giver, run) {
                            let expected = match plan.collective.has_blocks() {
                                false => format!("in@{giver}"),
                                true => {
                                    let (from, to) = place(*origin);
                                    format!("bytes {from}..{to} of in@{giver}")
                                }
                            };
                            return Err(wrong(at, expected, found()));
                        }
                    }
                    Due::Sum { ranks, ordered, .. } => {
                        let tree = self
                            .trees
                            .entry((value.expr, ranks.end, run))
                            .or_insert_with(|| tree_fault(exprs, value.expr, ranks, plan.ranks, run));
                        let fault = match tree {
                            Ok(order) if *ordered && *order == Order::Any => "not in rank order",
                            Ok(order) => {
                                self.rank_order &= *order >= Order::Rank;
                                self.fixed_order &= *order >= Order::Fixed;
                                ""
                            }
                            Err(fault) => fault,
                        };
                        if !fault.is_empty() {
                            let expected = match ordered {
                                false => "every rank's contribution exactly once".to_owned(),
                                true => format!(
                                    "the contributions of ranks 0 to {} once each, in this order",
                                    ranks.end - 1
                                ),
                            };
                            return Err(wrong(at, expected, format!("{} ({fault})", found())));
                        }
                    }
                }
                match held.last_mut() {
                    Some((_, last, e)) if *last == start && *e == value.expr => *last = end,
                    _ => held.push((start, end, value.expr)),
                }
            }
        }
        if held.is_empty() {
            return Ok(());
        }
        if let Some(&(start, end, e)) = held.iter().find(|(start, _, _)| start % plan.grain != 0) {
            let expected = format!("whole elements of {} bytes combined alike", plan.grain);
            return Err(wrong((start, end), expected, exprs.text(e, run)));
        }
        let scan = matches!(plan.collective, Collective::Scan | Collective::Exscan);
        let same_everywhere = !plan.collective.has_blocks() && !scan;
        if same_everywhere {
            return self.compare(exprs, rank, run, held);
        }
        // Each rank has a result of its own: all of them are pinned, in whatever order ranks return.
        if run == 0 && plan.collective.folds() {
            let hash = held.iter().fold(mix(rank as u64, 1), |h, &(start, end, e)| {
                mix(mix(mix(h, start as u64), end as u64), exprs.hash(e))
            });
            self.hash = self.hash.wrapping_add(hash);
        }
        Ok(())
    }

    /// Every rank must hold the same trees as the first that returned.
    fn compare(&mut self, exprs: &Exprs, rank: usize, run: usize, held: Held) -> Result<(), Violation> {
        match &self.first[run] {
            None => {
                if run == 0 {
                    self.hash = held.iter().fold(self.hash, |h, &(start, end, e)| {
                        mix(mix(mix(h, start as u64), end as u64), exprs.hash(e))
                    });
                }
                self.first[run] = Some((rank, held));
                Ok(())
            }
            Some((_, first)) if *first == held => Ok(()),
            Some((other, first)) => {
                let differs =
                    |a: &(usize, usize, Expr), b: &(usize, usize, Expr)| a.2 != b.2 && a.0 < b.1 && b.0 < a.1;
                for a in first {
                    if let Some(b) = held.iter().find(|b| differs(a, b)) {
                        let mut sides = [(*other, a.2), (rank, b.2)];
                        sides.sort();
                        let [(first, left), (second, right)] = sides;
                        return Err(Violation::TreesDiffer {
                            bytes: a.0.max(b.0)..a.1.min(b.1),
                            first: Rank::from(first),
                            first_tree: exprs.text(left, run),
                            second: Rank::from(second),
                            second_tree: exprs.text(right, run),
                        });
                    }
                }
                Ok(())
            }
        }
    }
}

/// Returns the required content of the stretches of a rank's `out`, in order.
fn dues(plan: &Plan, rank: usize) -> Vec<(Range<usize>, Due)> {
    let (grid, root, p) = (plan.grid(), plan.root.index(), plan.ranks);
    let whole = 0..grid.output_bytes(rank);
    if whole.is_empty() {
        return Vec::new();
    }
    let sum = |ranks: Range<usize>, origin: usize, ordered: bool| {
        vec![(whole.clone(), Due::Sum { ranks, origin, ordered })]
    };
    match plan.collective {
        Collective::Barrier => Vec::new(),
        Collective::Bcast => vec![(whole, Due::Bytes { rank: root, origin: 0 })],
        Collective::Reduce | Collective::Allreduce => sum(0..p, 0, false),
        Collective::Scan => sum(0..rank + 1, 0, true),
        Collective::Exscan => sum(0..rank, 0, true),
        Collective::ReduceScatter => sum(0..p, grid.given(0, rank).start, false),
        Collective::Scatter => {
            vec![(whole, Due::Bytes { rank: root, origin: grid.given(root, rank).start })]
        }
        Collective::Gather | Collective::Allgather | Collective::Alltoall => {
            let mut dues = Vec::new();
            let mut at = 0;
            for giver in 0..p {
                let block = grid.taken(rank, giver);
                if block.is_empty() {
                    continue;
                }
                if at < block.start {
                    dues.push((at..block.start, Due::Untouched));
                }
                at = block.end;
                dues.push((block, Due::Bytes { rank: giver, origin: grid.given(giver, rank).start }));
            }
            dues
        }
    }
}

/// Returns whether a tree over the ranks from `first` on has the brackets of reproducible results.
fn is_fixed(exprs: &Exprs, tree: Expr, first: usize, n: usize) -> bool {
    match exprs.node(tree) {
        Node::Leaf { rank, .. } => n == 1 && rank == first,
        Node::Fold(a, b) if n > 1 => {
            let left = split(n);
            is_fixed(exprs, a, first, left) && is_fixed(exprs, b, first + left, n - left)
        }
        Node::Fold(..) | Node::Undefined | Node::Address { .. } => false,
    }
}

/// Returns the order of the leaves; or why the tree is not the contribution of each of `wanted` exactly once.
fn tree_fault(
    exprs: &Exprs,
    tree: Expr,
    wanted: &Range<usize>,
    ranks: usize,
    run: usize,
) -> Result<Order, String> {
    match exprs.node(tree) {
        Node::Undefined => return Err("nothing was written here".to_owned()),
        Node::Address { .. } => return Err("an address, not data".to_owned()),
        Node::Leaf { .. } | Node::Fold(..) => {}
    }
    let leaves = exprs.leaves(tree, 4 * ranks + 4);
    if let Some((rank, of)) = leaves.iter().find(|(_, of)| *of != run) {
        return Err(format!("in@{rank} is left over from run {of}"));
    }
    let mut count = vec![0usize; ranks];
    for &(rank, _) in &leaves {
        count[rank] += 1;
    }
    let missing: Vec<usize> = wanted.clone().filter(|&r| count[r] == 0).collect();
    let double: Vec<usize> = (0..ranks).filter(|&r| count[r] > 1).collect();
    let strange: Vec<usize> = (0..ranks).filter(|r| count[*r] > 0 && !wanted.contains(r)).collect();
    if !strange.is_empty() {
        return Err(format!("not to be there: {strange:?}"));
    }
    match (missing.is_empty(), double.is_empty()) {
        (true, true) if !leaves.windows(2).all(|w| w[0].0 < w[1].0) => Ok(Order::Any),
        (true, true) if is_fixed(exprs, tree, wanted.start, wanted.len()) => Ok(Order::Fixed),
        (true, true) => Ok(Order::Rank),
        (false, true) => Err(format!("missing: {missing:?}")),
        (true, false) => Err(format!("more than once: {double:?}")),
        (false, false) => Err(format!("missing: {missing:?}, more than once: {double:?}")),
    }
}
