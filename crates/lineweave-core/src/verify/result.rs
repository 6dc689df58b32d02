//! What must lie in `out` as a rank returns.

use super::expr::{mix, Expr, Exprs, Node, UNDEFINED};
use super::memory::Value;
use super::segments::Segments;
use super::text::site;
use super::violation::{Step, Violation};
use crate::collective::Collective;
use crate::plan::Plan;
use crate::units::Rank;
use std::collections::HashMap;

/// Stretches of `out`: first byte, one past the last, what they hold.
type Held = Vec<(usize, usize, Expr)>;

/// What has been seen of the results so far.
pub(super) struct Results {
    /// For each run, the first rank that returned and what it held.
    first: Vec<Option<(usize, Held)>>,
    /// For each tree, whether its leaves are in rank order, or what is wrong with it.
    trees: HashMap<(Expr, usize), Result<bool, String>>,
    /// Every tree so far had its leaves in rank order.
    pub(super) rank_order: bool,
    /// Of the trees of run 0 and the bytes they cover.
    pub(super) hash: u64,
}

impl Results {
    pub(super) fn new(plan: &Plan, runs: usize) -> Results {
        Results {
            first: vec![None; runs],
            trees: HashMap::new(),
            rank_order: true,
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
        let has_result = match plan.collective {
            Collective::Barrier => false,
            Collective::Bcast => rank != plan.root.index(),
            Collective::Reduce => rank == plan.root.index(),
            Collective::Allreduce => true,
        };
        if !has_result || plan.bytes == 0 {
            return Ok(());
        }
        let wrong = |(start, end): (usize, usize), expected: String, found: String| Violation::WrongResult {
            site: Box::new(site(plan, rank, run, Step::Leave)),
            bytes: start..end,
            expected,
            found,
        };
        let mut held: Held = Vec::new();
        for (start, end, value) in out.iter(0, plan.bytes) {
            let at = (start, end);
            let same_place = value.expr == UNDEFINED || value.origin == start;
            if !same_place {
                let n = end - start;
                let found = format!(
                    "bytes {}..{} of {}",
                    value.origin,
                    value.origin + n,
                    exprs.text(value.expr, run)
                );
                return Err(wrong(at, format!("bytes {start}..{end} of the message"), found));
            }
            if plan.collective.folds() {
                let tree = self
                    .trees
                    .entry((value.expr, run))
                    .or_insert_with(|| tree_fault(exprs, value.expr, plan.ranks, run));
                match tree {
                    Ok(in_order) => self.rank_order &= *in_order,
                    Err(fault) => {
                        let found = format!("{} ({fault})", exprs.text(value.expr, run));
                        return Err(wrong(at, "every rank's contribution exactly once".to_owned(), found));
                    }
                }
            } else if value.expr != exprs.leaf(plan.root.index(), run) {
                return Err(wrong(at, format!("in@{}", plan.root), exprs.text(value.expr, run)));
            }
            match held.last_mut() {
                Some((_, last, e)) if *last == start && *e == value.expr => *last = end,
                _ => held.push((start, end, value.expr)),
            }
        }
        if let Some(&(start, end, e)) = held.iter().find(|(start, _, _)| start % plan.grain != 0) {
            let expected = format!("whole elements of {} bytes combined alike", plan.grain);
            return Err(wrong((start, end), expected, exprs.text(e, run)));
        }
        self.compare(exprs, rank, run, held)
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
                        return Err(Violation::TreesDiffer {
                            bytes: a.0.max(b.0)..a.1.min(b.1),
                            first: Rank::from(*other),
                            first_tree: exprs.text(a.2, run),
                            second: Rank::from(rank),
                            second_tree: exprs.text(b.2, run),
                        });
                    }
                }
                Ok(())
            }
        }
    }
}

/// Whether the leaves are in rank order; or why the tree is not every rank's contribution exactly once.
fn tree_fault(exprs: &Exprs, tree: Expr, ranks: usize, run: usize) -> Result<bool, String> {
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
    let missing: Vec<usize> = (0..ranks).filter(|&r| count[r] == 0).collect();
    let double: Vec<usize> = (0..ranks).filter(|&r| count[r] > 1).collect();
    match (missing.is_empty(), double.is_empty()) {
        (true, true) => Ok(leaves.windows(2).all(|w| w[0].0 < w[1].0)),
        (false, true) => Err(format!("missing: {missing:?}")),
        (true, false) => Err(format!("more than once: {double:?}")),
        (false, false) => Err(format!("missing: {missing:?}, more than once: {double:?}")),
    }
}
