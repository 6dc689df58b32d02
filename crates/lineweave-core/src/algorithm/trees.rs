//! Tree shapes over virtual ranks, for every algorithm that has a tree.
//!
//! A [`Tree`] spans virtual ranks `0 .. p` with virtual rank 0 as its root; [`Participants::rank_of_virtual`] maps
//! them to ranks. Offered: [`Tree::flat`], [`Tree::binomial`], [`Tree::aligned`], [`Tree::halving`], [`Tree::digits`],
//! [`Tree::knomial`], [`Tree::kary`], [`Tree::chain`], [`Tree::by_degrees`] (with [`degrees_for`] and [`default_degrees`] to make the degrees) and
//! [`Tree::fibonacci`]; [`Tree::preorder`] renumbers any of them so that each subtree is a run of consecutive
//! virtual ranks, which a fold in rank order and a scatter want. In all of them a parent's number is smaller
//! than its children's, and children stand in the order in which a broadcast informs them.
//!
//! [`Participants::rank_of_virtual`]: super::Participants::rank_of_virtual

use crate::plan::{Region, Space};
use crate::units::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A rooted tree over virtual ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// The parent of each virtual rank; none for virtual rank 0.
    pub parent: Vec<Option<usize>>,
    /// The children of each virtual rank, the one to inform first in front.
    pub children: Vec<Vec<usize>>,
}

impl Tree {
    /// A tree from the parent of each virtual rank above 0; children in ascending order.
    pub(super) fn of(p: usize, parent: impl Fn(usize) -> usize) -> Tree {
        let mut tree = Tree { parent: vec![None; p], children: vec![Vec::new(); p] };
        for v in 1..p {
            tree.adopt(parent(v), v);
        }
        tree
    }

    fn adopt(&mut self, parent: usize, child: usize) {
        self.parent[child] = Some(parent);
        self.children[parent].push(child);
    }

    /// The number of virtual ranks.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Returns whether there is no rank at all.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Everybody is a child of the root.
    pub fn flat(p: usize) -> Tree {
        Tree::of(p, |_| 0)
    }

    /// The parent of a virtual rank is that without its lowest bit, so that the subtrees of a rank are runs of 1, 2, 4, ...
    /// consecutive ones: folded in this order they have the brackets of [`split`](crate::collective::split).
    pub fn aligned(p: usize) -> Tree {
        Tree::of(p, |v| v & (v - 1))
    }

    /// As [`Tree::aligned`], to base `k`: the parent of a virtual rank is that rank with its lowest digit above 0 made 0. The farthest
    /// child, with the largest subtree, comes first. The tree of libomp's hyper barrier, in which `k` is a power of two.
    pub fn digits(p: usize, k: usize) -> Tree {
        let k = k.max(2);
        let mut tree = Tree::of(p, |v| {
            let mut power = 1;
            while v / power % k == 0 {
                power *= k;
            }
            v - v / power % k * power
        });
        tree.children.iter_mut().for_each(|c| c.reverse());
        tree
    }

    /// Each virtual rank has one child, the next.
    pub fn chain(p: usize) -> Tree {
        Tree::of(p, |v| v - 1)
    }

    /// Binomial: the parent of `v` is `v` without its highest bit. The children of `v` are `v + 2^i` for all
    /// `2^i > v`, nearest (and largest subtree) first.
    pub fn binomial(p: usize) -> Tree {
        Tree::knomial(p, 2)
    }

    /// Binomial, numbered for halving: the parent of `v` is `v` without its lowest bit. Subtrees are consecutive
    /// and aligned to powers of two; the farthest child, with the largest subtree, comes first. A scatter goes
    /// down it, and a fold up it combines neighbours.
    pub fn halving(p: usize) -> Tree {
        Tree::digits(p, 2)
    }

    /// K-nomial (`k >= 2`; a smaller `k` is taken as 2): the parent of `v` is `v` without its highest digit to
    /// base `k`, so in each round every informed rank informs `k - 1` more.
    pub fn knomial(p: usize, k: usize) -> Tree {
        let k = k.max(2);
        Tree::of(p, |v| {
            let mut power = 1;
            while v / power >= k {
                power *= k;
            }
            v % power
        })
    }

    /// K-ary (`k >= 1`; 0 is taken as 1), numbered level by level: the children of `v` are `kv+1 ..= kv+k`.
    pub fn kary(p: usize, k: usize) -> Tree {
        let k = k.max(1);
        Tree::of(p, |v| (v - 1) / k)
    }

    /// Every rank of level `i` has up to `degrees[i]` children (Ramos & Hoefler 2013, Eq. 4.3). Levels beyond
    /// the list take its last degree (1 when the list is empty or says 0). A level that is not full is shared
    /// out evenly among its parents, so that no line has more readers than it must.
    pub fn by_degrees(p: usize, degrees: &[usize]) -> Tree {
        let mut tree = Tree { parent: vec![None; p], children: vec![Vec::new(); p] };
        let (mut level, mut next, mut parents) = (0, 1, 0..1);
        while next < p {
            let degree = degrees.get(level).or(degrees.last()).copied().unwrap_or(1).max(1);
            let width = parents.len();
            let born = width.saturating_mul(degree).min(p - next);
            let first = next;
            for (i, parent) in parents.enumerate() {
                for _ in 0..born / width + usize::from(i < born % width) {
                    tree.adopt(parent, next);
                    next += 1;
                }
            }
            parents = first..next;
            level += 1;
        }
        tree
    }

    /// The optimal one-item broadcast tree of Karp et al. 1993 in LogP with gap at most overhead: an informed
    /// rank sends every `o`, and what is sent arrives `o + L + o` later. `o_over_l` is the ratio o / L; 0 (and
    /// anything that is not a positive number) gives the flat tree, and a large ratio the Fibonacci tree.
    /// Virtual ranks are numbered by arrival.
    pub fn fibonacci(p: usize, o_over_l: f64) -> Tree {
        // Integer time, so that ties are broken alike everywhere: L is a million ticks.
        const L: u64 = 1_000_000;
        let o = (o_over_l.clamp(0.0, 1e3) * L as f64).round() as u64;
        let mut tree = Tree { parent: vec![None; p], children: vec![Vec::new(); p] };
        // When the next message of each informed rank would arrive, earliest first, lower rank first.
        let mut arrivals = BinaryHeap::from([Reverse((2 * o + L, 0))]);
        for v in 1..p {
            let Some(Reverse((at, parent))) = arrivals.pop() else { break };
            tree.adopt(parent, v);
            arrivals.push(Reverse((at + o, parent)));
            arrivals.push(Reverse((at + 2 * o + L, v)));
        }
        tree
    }

    /// The level of each virtual rank, the root's being 0.
    pub fn levels(&self) -> Vec<usize> {
        let mut levels: Vec<usize> = Vec::with_capacity(self.len());
        for parent in &self.parent {
            levels.push(parent.map_or(0, |p| levels[p] + 1));
        }
        levels
    }

    /// The number of edges from the root to the farthest leaf.
    pub fn depth(&self) -> usize {
        self.levels().into_iter().max().unwrap_or(0)
    }

    /// The largest number of children.
    pub fn degree(&self) -> usize {
        self.children.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The number of ranks in the subtree of each virtual rank, itself included.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![1; self.len()];
        for v in (1..self.len()).rev() {
            if let Some(parent) = self.parent[v] {
                sizes[parent] += sizes[v];
            }
        }
        sizes
    }

    /// Returns the index of a virtual rank among the children of its parent, from 0; 0 for the root.
    pub fn position(&self, v: usize) -> usize {
        self.parent[v].and_then(|p| self.children[p].iter().position(|&c| c == v)).unwrap_or(0)
    }

    /// [`Tree::preorder`], and which virtual rank each of its virtual ranks was.
    pub fn renumbered(&self) -> (Tree, Vec<usize>) {
        let mut order = Vec::with_capacity(self.len());
        let mut stack: Vec<usize> = (0..self.len().min(1)).collect();
        while let Some(v) = stack.pop() {
            order.push(v);
            stack.extend(self.children[v].iter().rev());
        }
        let mut number = vec![0; self.len()];
        order.iter().enumerate().for_each(|(n, &v)| number[v] = n);
        let tree = Tree {
            parent: order.iter().map(|&v| self.parent[v].map(|p| number[p])).collect(),
            children: order.iter().map(|&v| self.children[v].iter().map(|&c| number[c]).collect()).collect(),
        };
        (tree, order)
    }

    /// Returns the tree of the same shape, numbered depth first: the subtree of `v` is `v .. v + sizes()[v]`.
    #[must_use]
    pub fn preorder(&self) -> Tree {
        self.renumbered().0
    }

    /// Returns the tree from `root` of members whose children are `below` them, numbered level by level, and the
    /// member that each of its virtual ranks is.
    pub fn breadth_first(root: usize, below: &[Vec<usize>]) -> (Tree, Vec<usize>) {
        let mut tree = Tree { parent: vec![None], children: vec![Vec::new()] };
        let mut members = vec![root];
        let mut v = 0;
        while let Some(&member) = members.get(v) {
            for &child in &below[member] {
                tree.parent.push(Some(v));
                tree.children[v].push(members.len());
                tree.children.push(Vec::new());
                members.push(child);
            }
            v += 1;
        }
        (tree, members)
    }
}

/// Degrees of a tree of `levels` levels (at least 1) that holds `p` ranks, decreasing downwards and as small as
/// that allows: Ramos & Hoefler 2013, Eq. 4.4, with k decreasing down the tree.
pub fn degrees_for(p: usize, levels: usize) -> Vec<usize> {
    let reach = |degrees: &[usize]| {
        let (mut width, mut total) = (1usize, 1usize);
        for &k in degrees {
            width = width.saturating_mul(k);
            total = total.saturating_add(width);
        }
        total
    };
    let levels = levels.max(1);
    let mut k = 1;
    while reach(&vec![k; levels]) < p {
        k += 1;
    }
    let mut degrees = vec![k; levels];
    // From the leaves up, take children away while everybody still has a place.
    for level in (0..levels).rev() {
        while degrees[level] > 1 {
            degrees[level] -= 1;
            if reach(&degrees) < p {
                degrees[level] += 1;
                break;
            }
        }
    }
    while degrees.len() > 1 && reach(&degrees[..degrees.len() - 1]) >= p {
        degrees.pop();
    }
    degrees
}

/// Degrees for `p` ranks where nothing is known about the machine: the least sum over levels of
/// `c k + b` (Ramos & Hoefler 2013, Eq. 4.5) with `b = 6 c`, the ratio of the paper's Xeon Phi
/// for buffers in exclusive state (b = 320.5 ns, c = 56.2 ns).
pub fn default_degrees(p: usize) -> Vec<usize> {
    const B_OVER_C: usize = 6;
    let cost = |degrees: &[usize]| degrees.iter().map(|k| k + B_OVER_C).sum::<usize>();
    let deepest = super::ranks::ceil_log(p, 2).max(1);
    (1..=deepest).map(|levels| degrees_for(p, levels)).min_by_key(|d| cost(d)).unwrap_or_else(|| vec![1])
}

/// The bytes `range` of slot `slot` in the box of `rank`.
pub fn boxed(rank: usize, slot: u16, range: Range<usize>) -> Region {
    Region::new(Space::Slot { rank: Rank::from(rank), slot }, range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_shapes(p: usize) -> Vec<Tree> {
        let mut trees = vec![Tree::flat(p), Tree::chain(p), Tree::binomial(p), Tree::halving(p)];
        trees.extend((2..7).map(|k| Tree::knomial(p, k)));
        trees.extend((1..7).map(|k| Tree::kary(p, k)));
        trees.extend((2..5).map(|k| Tree::digits(p, k)));
        trees.extend([&[5, 3, 2][..], &[1], &[], &[4, 1]].map(|d| Tree::by_degrees(p, d)));
        trees.extend([0.0, 0.2, 1.0, 7.5].map(|r| Tree::fibonacci(p, r)));
        trees.push(Tree::by_degrees(p, &default_degrees(p)));
        trees
    }

    #[test]
    fn every_shape_spans_all_ranks_with_parents_first() {
        for p in 1..70 {
            for tree in all_shapes(p) {
                assert_eq!(tree.len(), p);
                assert_eq!(tree.parent[0], None);
                for v in 1..p {
                    let parent = tree.parent[v].expect("every rank but the root has a parent");
                    assert!(parent < v);
                    assert_eq!(tree.children[parent].iter().filter(|&&c| c == v).count(), 1);
                }
                assert_eq!(tree.children.iter().map(Vec::len).sum::<usize>(), p - 1);
                assert_eq!(tree.sizes()[0], p);
            }
        }
    }

    #[test]
    fn preorder_makes_subtrees_consecutive() {
        for tree in all_shapes(37) {
            let pre = tree.preorder();
            let sizes = pre.sizes();
            for v in 0..37 {
                let mut next = v + 1;
                for &child in &pre.children[v] {
                    assert_eq!(child, next);
                    assert_eq!(pre.parent[child], Some(v));
                    next += sizes[child];
                }
                assert_eq!(next, v + sizes[v]);
            }
            assert_eq!(pre.depth(), tree.depth());
            let (same, order) = tree.renumbered();
            assert_eq!(same, pre);
            for v in 1..37 {
                assert_eq!(pre.parent[v].map(|parent| order[parent]), tree.parent[order[v]]);
            }
        }
    }

    #[test]
    fn halving_makes_aligned_consecutive_subtrees() {
        for p in 1..70 {
            let tree = Tree::halving(p);
            let sizes = tree.sizes();
            for (v, &size) in sizes.iter().enumerate().skip(1) {
                assert_eq!(size, (1usize << v.trailing_zeros()).min(p - v));
                assert!(tree.children[v].iter().all(|&c| v < c && c < v + size));
            }
        }
        assert_eq!(Tree::halving(8).children[0], vec![4, 2, 1]);
        assert_eq!(Tree::digits(32, 4).children[16], vec![28, 24, 20, 19, 18, 17]);
    }

    #[test]
    fn depths_are_those_of_the_textbook() {
        assert_eq!(Tree::flat(9).depth(), 1);
        assert_eq!(Tree::chain(9).depth(), 8);
        assert_eq!(Tree::binomial(16).depth(), 4);
        assert_eq!(Tree::binomial(16).children[0], vec![1, 2, 4, 8]);
        assert_eq!(Tree::knomial(27, 3).depth(), 3);
        assert_eq!(Tree::kary(13, 3).depth(), 2);
        assert_eq!(Tree::kary(12, 7).children[1], vec![8, 9, 10, 11]);
    }

    #[test]
    fn a_degree_per_level_is_that_of_ramos_and_hoefler_figure_4_2() {
        let tree = Tree::by_degrees(10, &[3, 2]);
        assert_eq!(tree.children[0], vec![1, 2, 3]);
        assert!((1..=3).all(|v| tree.children[v].len() == 2));
        assert_eq!(tree.depth(), 2);
        // One rank fewer: one parent has a child less, none has two less.
        let counts: Vec<usize> = (1..=3).map(|v| Tree::by_degrees(9, &[3, 2]).children[v].len()).collect();
        assert_eq!(counts, vec![2, 2, 1]);
    }

    #[test]
    fn degrees_decrease_and_suffice() {
        for p in 1..300 {
            for levels in 1..6 {
                let degrees = degrees_for(p, levels);
                assert!(degrees.windows(2).all(|w| w[0] >= w[1]), "{p} {degrees:?}");
                assert!(Tree::by_degrees(p, &degrees).depth() <= degrees.len());
            }
        }
        assert_eq!(degrees_for(10, 2), vec![3, 2]);
    }

    /// The number of ranks informed grows as Fibonacci's numbers when overhead is all there is.
    #[test]
    fn a_large_overhead_gives_fibonacci_numbers() {
        let tree = Tree::fibonacci(60, 1e3);
        let mut at = vec![0usize; 60];
        for v in 1..60 {
            let parent = tree.parent[v].unwrap();
            at[v] = at[parent] + 2 + tree.position(v);
        }
        let informed = |t: usize| at.iter().filter(|&&a| a <= t).count();
        let counts: Vec<usize> = (0..9).map(informed).collect();
        assert_eq!(counts, vec![1, 1, 2, 3, 5, 8, 13, 21, 34]);
        assert_eq!(Tree::fibonacci(60, 0.0), Tree::flat(60));
    }
}
