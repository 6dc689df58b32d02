//! Symbolic content of bytes: a rank's contribution, or a fold of two values.
//!
//! Expressions are hash-consed, so two values are the same tree exactly when their ids are equal. The
//! position in the message is kept beside the id, once for the whole tree: a fold of two different
//! positions is refused, so all leaves of a tree lie at the same one.

use crate::plan::Digest;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Expr(pub(super) u32);

/// Nothing that a plan may read.
pub(super) const UNDEFINED: Expr = Expr(0);

/// Kind of an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// Nothing was written here.
    Undefined,
    /// Contribution that `rank` brought into run `run`.
    Leaf {
        rank: usize,
        run: usize,
    },
    /// The address of `rank`'s `in` or `out` in run `run`.
    Address {
        rank: usize,
        out: bool,
        run: usize,
    },
    Fold(Expr, Expr),
}

/// Mixes one word into a running hash; fixed for all time, so that hashes may be recorded.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let mut z = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// All expressions of one proof.
pub(super) struct Exprs {
    ranks: usize,
    runs: usize,
    folds: Vec<(Expr, Expr, u64)>,
    known: HashMap<(Expr, Expr), Expr, BuildHasherDefault<Digest>>,
}

impl Exprs {
    pub(super) fn new(ranks: usize, runs: usize) -> Exprs {
        Exprs { ranks, runs, folds: Vec::new(), known: HashMap::default() }
    }

    pub(super) fn leaf(&self, rank: usize, run: usize) -> Expr {
        self.id(1 + run * self.ranks + rank)
    }

    pub(super) fn address(&self, rank: usize, out: bool, run: usize) -> Expr {
        self.id(1 + self.ranks * (self.runs + 2 * run + usize::from(out)) + rank)
    }

    fn id(&self, index: usize) -> Expr {
        Expr(u32::try_from(index).expect("a plan has fewer than 2^32 expressions"))
    }

    fn first_fold(&self) -> usize {
        1 + 3 * self.ranks * self.runs
    }

    /// `a (op) b`.
    pub(super) fn fold(&mut self, a: Expr, b: Expr) -> Expr {
        if let Some(&known) = self.known.get(&(a, b)) {
            return known;
        }
        let hash = mix(mix(mix(0xf01d, self.hash(a)), 1), self.hash(b));
        let id = self.id(self.first_fold() + self.folds.len());
        self.folds.push((a, b, hash));
        self.known.insert((a, b), id);
        id
    }

    pub(super) fn node(&self, e: Expr) -> Node {
        let i = e.0 as usize;
        if i == 0 {
            return Node::Undefined;
        }
        let (i, leaves) = (i - 1, self.ranks * self.runs);
        if i < leaves {
            return Node::Leaf { rank: i % self.ranks, run: i / self.ranks };
        }
        if i < 3 * leaves {
            let (rank, block) = ((i - leaves) % self.ranks, (i - leaves) / self.ranks);
            return Node::Address { rank, out: block % 2 == 1, run: block / 2 };
        }
        let (a, b, _) = self.folds[i - 3 * leaves];
        Node::Fold(a, b)
    }

    /// Returns a hash that is the same for the same tree in every run and every build.
    pub(super) fn hash(&self, e: Expr) -> u64 {
        match self.node(e) {
            Node::Undefined => mix(0, 0),
            Node::Leaf { rank, .. } => mix(1, rank as u64),
            Node::Address { rank, out, .. } => mix(2 + u64::from(out), rank as u64),
            Node::Fold(..) => self.folds[e.0 as usize - self.first_fold()].2,
        }
    }

    /// The leaves from left to right, as (rank, run); stops after `limit`, which a correct tree never exceeds.
    pub(super) fn leaves(&self, e: Expr, limit: usize) -> Vec<(usize, usize)> {
        let mut leaves = Vec::new();
        let mut stack = vec![e];
        while let Some(e) = stack.pop() {
            match self.node(e) {
                Node::Leaf { rank, run } => leaves.push((rank, run)),
                Node::Fold(a, b) => stack.extend([b, a]),
                Node::Undefined | Node::Address { .. } => {}
            }
            if leaves.len() >= limit {
                break;
            }
        }
        leaves
    }

    /// The tree as a person reads it, for example `((0+1)+2)`, cut short after some 120 characters.
    pub(super) fn text(&self, e: Expr, run: usize) -> String {
        enum Part {
            Tree(Expr),
            Text(&'static str),
        }
        let mut text = String::new();
        let mut stack = vec![Part::Tree(e)];
        while let Some(part) = stack.pop() {
            if text.len() > 120 {
                text.push_str(" ...");
                break;
            }
            match part {
                Part::Text(t) => text.push_str(t),
                Part::Tree(e) => match self.node(e) {
                    Node::Undefined => text.push_str("undefined"),
                    Node::Leaf { rank, run: of } if of == run => text.push_str(&format!("in@{rank}")),
                    Node::Leaf { rank, run: of } => text.push_str(&format!("in@{rank} of run {of}")),
                    Node::Address { rank, out, run: of } => {
                        let buffer = if out { "out" } else { "in" };
                        text.push_str(&format!("address of {buffer}@{rank} of run {of}"));
                    }
                    Node::Fold(a, b) => stack.extend([
                        Part::Text(")"),
                        Part::Tree(b),
                        Part::Text(" + "),
                        Part::Tree(a),
                        Part::Text("("),
                    ]),
                },
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_trees_have_equal_ids_and_hashes_forget_the_run() {
        let mut x = Exprs::new(3, 2);
        let (a, b, c) = (x.leaf(0, 0), x.leaf(1, 0), x.leaf(2, 0));
        let ab = x.fold(a, b);
        assert_eq!(ab, x.fold(a, b));
        let left = x.fold(ab, c);
        let bc = x.fold(b, c);
        let right = x.fold(a, bc);
        assert_ne!(left, right);
        assert_ne!(x.hash(left), x.hash(right));
        assert_eq!(x.text(left, 0), "((in@0 + in@1) + in@2)");
        assert_eq!(x.leaves(right, 9), vec![(0, 0), (1, 0), (2, 0)]);
        let (a, b) = (x.leaf(0, 1), x.leaf(1, 1));
        let later = x.fold(a, b);
        assert_ne!(later, ab);
        assert_eq!(x.hash(later), x.hash(ab));
    }

    #[test]
    fn ids_decode() {
        let x = Exprs::new(3, 2);
        assert_eq!(x.node(x.leaf(2, 1)), Node::Leaf { rank: 2, run: 1 });
        assert_eq!(x.node(x.address(1, true, 1)), Node::Address { rank: 1, out: true, run: 1 });
        assert_eq!(x.node(x.address(2, false, 0)), Node::Address { rank: 2, out: false, run: 0 });
        assert_eq!(x.node(UNDEFINED), Node::Undefined);
    }
}
