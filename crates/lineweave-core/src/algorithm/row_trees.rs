//! Trees for a reduction along a row of processors, generated for costs and length: Luczynski et al. 2024.
//!
//! Processor v of the row is virtual rank v, the root at the row's end, and each subtree is a run of processors, so
//! that messages do not cross. What a tree costs with b units of data:
//!
//! max(receive b C, link b E / (p - 1) + hop (p - 1)) + depth D
//!
//! where C is the most children of one processor, E the sum of the lengths of all edges and D the height. A chain
//! has the least E and C and the greatest D, a star the reverse; for lengths in between neither is good.
//!
//! [`generate`] finds the least by dynamic programming over (processors, height, children): the last child of a root of
//! n processors stands at some i and has the n - i processors from there below it; what remains is a root of i
//! processors with a child less. Trees whose edges cross are not looked at; for up to 7 processors the tests try all trees
//! and find none that is better.

use super::trees::Tree;

/// Costs of a reduction along a row, in any one unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowCosts {
    /// For a unit of data that a processor receives.
    pub receive: u64,
    /// For a unit of data on a link.
    pub link: u64,
    /// For a hop on the way.
    pub hop: u64,
    /// For a message that needs the one before.
    pub depth: u64,
}

impl RowCosts {
    /// Wavelets and cycles of a mesh that streams, where a processor is `ramp` cycles from its router.
    pub fn streaming(ramp: u64) -> RowCosts {
        RowCosts { receive: 1, link: 1, hop: 1, depth: 2 * ramp + 1 }
    }

    /// (p - 1) times the time with contention, energy and depth as given: whole numbers compare exactly.
    fn scaled(self, p: usize, b: u64, contention: u64, energy: u64, depth: u64) -> u128 {
        let hops = p.saturating_sub(1).max(1) as u128;
        let wide = u128::from;
        let busy = wide(self.receive) * wide(b) * wide(contention) * hops;
        let flow = wide(self.link) * wide(b) * wide(energy) + wide(self.hop) * hops * hops;
        busy.max(flow) + wide(self.depth) * wide(depth) * hops
    }

    /// The time of `tree` for `b` units of data.
    pub fn time(self, tree: &Tree, b: u64) -> f64 {
        self.unscaled(tree.len(), self.of(tree, b))
    }

    fn of(self, tree: &Tree, b: u64) -> u128 {
        self.scaled(tree.len(), b, tree.degree() as u64, energy(tree), tree.depth() as u64)
    }

    fn unscaled(self, p: usize, scaled: u128) -> f64 {
        match p {
            0 | 1 => 0.0,
            _ => scaled as f64 / (p - 1) as f64,
        }
    }
}

/// The sum of the lengths of a tree's edges.
pub fn energy(tree: &Tree) -> u64 {
    tree.parent.iter().enumerate().filter_map(|(v, p)| p.map(|p| v.abs_diff(p) as u64)).sum()
}

/// Chains in groups of about the square root of p, then a chain of the groups' first.
pub fn two_phase(p: usize) -> Tree {
    let group = (1..=p).find(|g| g * g >= p).unwrap_or(1);
    Tree::of(p, |v| if v % group == 0 { v - group } else { v - 1 })
}

/// Nothing has this little.
const NEVER: u32 = u32::MAX;
/// Up to this many processors every split is looked at; beyond, those near the best one of one processor less.
const EXACT: usize = 128;
/// Number of splits looked at on either side of the best one of one processor less.
const WINDOW: usize = 12;

/// Least energy of trees of one height: for each number of children of the root (0 ..= most) and each number of
/// processors (0 ..= p), and where the last child then stands.
struct Layer {
    p: usize,
    energy: Vec<u32>,
    split: Vec<u16>,
}

impl Layer {
    fn new(p: usize, rows: usize) -> Layer {
        let mut layer = Layer { p, energy: vec![NEVER; rows * (p + 1)], split: vec![0; rows * (p + 1)] };
        for row in 0..rows {
            layer.energy[row * (p + 1) + 1] = 0;
        }
        layer
    }

    fn at(&self, children: usize, n: usize) -> u32 {
        self.energy[children * (self.p + 1) + n]
    }

    /// Fills a row from those of one child less (`before`, the same row where children are not counted), `below`
    /// being what a child's subtree of n processors costs.
    fn fill(&mut self, children: usize, before: usize, below: impl Fn(usize) -> u32) {
        let mut near = 1;
        for n in 2..=self.p {
            let tries = match n <= EXACT {
                true => 1..n,
                false => near.max(WINDOW + 1) - WINDOW..(near + WINDOW + 2).min(n),
            };
            let mut best = (NEVER, near as u16);
            for i in tries {
                let (rest, child) = (self.at(before, i), below(n - i));
                if rest != NEVER && child != NEVER {
                    best = best.min((rest + child + i as u32, i as u16));
                }
            }
            let at = children * (self.p + 1) + n;
            (self.energy[at], self.split[at]) = best;
            near = usize::from(best.1);
        }
    }
}

/// Least energies of trees of which no processor has more than `most` children, by height from 0.
struct Capped {
    p: usize,
    most: usize,
    layers: Vec<Layer>,
}

impl Capped {
    fn new(p: usize, most: usize) -> Capped {
        Capped { p, most, layers: vec![Layer::new(p, most + 1)] }
    }

    /// The least energy of all with one height more; `None` when that is no less than before.
    fn higher(&mut self) -> Option<u32> {
        let last = &self.layers[self.layers.len() - 1];
        let mut layer = Layer::new(self.p, self.most + 1);
        for children in 1..=self.most {
            layer.fill(children, children - 1, |n| last.at(self.most, n));
        }
        let (before, now) = (last.at(self.most, self.p), layer.at(self.most, self.p));
        self.layers.push(layer);
        (now < before || now == NEVER).then_some(now)
    }

    /// The tree of `height` that costs least.
    fn tree(&self, height: usize) -> Tree {
        let mut tree = Tree { parent: vec![None; self.p], children: vec![Vec::new(); self.p] };
        let mut pending = vec![(0, self.p, height, self.most)];
        while let Some((root, n, height, children)) = pending.pop() {
            if n < 2 {
                continue;
            }
            let i = usize::from(self.layers[height].split[children * (self.p + 1) + n]);
            tree.parent[root + i] = Some(root);
            tree.children[root].push(root + i);
            pending.push((root, i, height, children - 1));
            pending.push((root + i, n - i, height - 1, self.most));
        }
        tree.children.iter_mut().for_each(|c| c.sort_unstable());
        tree
    }
}

/// Least energies of trees of any number of children, by height from 1: of one for p processors each.
fn least_energies(p: usize) -> Vec<u32> {
    let mut below = Layer::new(p, 1);
    let mut out: Vec<u32> = Vec::new();
    loop {
        let mut layer = Layer::new(p, 1);
        layer.fill(0, 0, |n| below.at(0, n));
        let now = layer.at(0, p);
        if out.last().is_some_and(|&before| now >= before) {
            return out;
        }
        out.push(now);
        below = layer;
    }
}

/// The fixed trees: star, chain, binary, two-phase.
pub fn fixed(p: usize) -> [(&'static str, Tree); 4] {
    [
        ("star", Tree::flat(p)),
        ("chain", Tree::chain(p)),
        ("binary", Tree::halving(p)),
        ("two-phase", two_phase(p)),
    ]
}

/// The tree of least cost for `b` units of data on a row of `p`; the fixed ones are among those looked at.
pub fn generate(p: usize, b: u64, costs: RowCosts) -> Tree {
    let mut best: Option<(u128, Tree)> = None;
    for (_, tree) in fixed(p.max(1)) {
        let cost = costs.of(&tree, b);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, tree));
        }
    }
    let (mut least, mut tree) = best.unwrap_or_else(|| (0, Tree::flat(p)));
    if p < 3 {
        return tree;
    }
    let free = least_energies(p);
    for most in 2..p {
        // No tree with so many children and this height can cost less than one of the least energy for the height.
        let hopeful = |height: usize, least: u128| {
            let energy = u64::from(free[(height - 1).min(free.len() - 1)]);
            costs.scaled(p, b, most as u64, energy, height as u64) < least
        };
        let Some(highest) = (1..p).rev().find(|&height| hopeful(height, least)) else { break };
        let mut capped = Capped::new(p, most);
        // Whether more children would lead to less energy at some height.
        let mut binds = false;
        for height in 1..=highest {
            let Some(energy) = capped.higher() else { break };
            let unbound = free[(height - 1).min(free.len() - 1)];
            binds |= energy > unbound;
            if energy == NEVER {
                continue;
            }
            let cost = costs.scaled(p, b, most as u64, u64::from(energy), height as u64);
            if cost < least {
                (least, tree) = (cost, capped.tree(height));
            }
        }
        if !binds {
            break;
        }
    }
    tree
}

/// A lower bound of any reduction of `b` units along a row of `p`, also of one that sends parts of the data by different
/// trees: for the best height, the energy of the trees of that height that have least, and one unit of contention each.
pub fn bound(p: usize, b: u64, costs: RowCosts) -> f64 {
    if p < 2 {
        return 0.0;
    }
    let heights = least_energies(p);
    let at = |(i, &e): (usize, &u32)| costs.scaled(p, b, 1, u64::from(e), i as u64 + 1);
    costs.unscaled(p, heights.iter().enumerate().map(at).min().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every tree over a row of p with processor 0 as its root, crossing or not.
    fn every(p: usize, mut look: impl FnMut(&Tree)) {
        let mut parent = vec![0usize; p];
        loop {
            let mut children = vec![Vec::new(); p];
            (1..p).for_each(|v| children[parent[v]].push(v));
            let (mut reached, mut pending) = (0, vec![0]);
            while let Some(v) = pending.pop() {
                reached += 1;
                pending.extend(&children[v]);
            }
            if reached == p {
                let above = (0..p).map(|v| (v > 0).then_some(parent[v])).collect();
                look(&Tree { parent: above, children });
            }
            let Some(v) = (1..p).find(|&v| parent[v] + 1 < p) else { return };
            parent[v] += 1;
            parent[1..v].iter_mut().for_each(|q| *q = 0);
        }
    }

    /// The height of a tree whose parents may have greater numbers.
    fn height(tree: &Tree) -> u64 {
        let up = |v: usize| std::iter::successors(Some(v), |&v| tree.parent[v]).count() as u64 - 1;
        (0..tree.len()).map(up).max().unwrap_or(0)
    }

    #[test]
    fn no_tree_is_better_than_the_generated_one() {
        for p in 2..7 {
            for ramp in [0, 2, 5] {
                for b in [1, 3, 10, 40] {
                    let costs = RowCosts::streaming(ramp);
                    let ours = costs.of(&generate(p, b, costs), b);
                    let bound = bound(p, b, costs);
                    every(p, |tree| {
                        let cost = costs.scaled(p, b, tree.degree() as u64, energy(tree), height(tree));
                        assert!(ours <= cost, "{p} {ramp} {b}: {tree:?}");
                        assert!(bound <= costs.unscaled(p, cost) + 1e-9);
                    });
                }
            }
        }
    }

    #[test]
    fn trees_are_what_their_costs_say() {
        let costs = RowCosts::streaming(2);
        for p in [3, 8, 16, 61, 64, 150] {
            for b in [1, 16, 256, 4096] {
                let tree = generate(p, b, costs);
                assert_eq!(tree.len(), p);
                let sizes = tree.sizes();
                for v in 0..p {
                    let mut next = v + 1;
                    for &child in &tree.children[v] {
                        assert_eq!(child, next, "subtrees are runs of processors");
                        next += sizes[child];
                    }
                }
                assert!(fixed(p).iter().all(|(_, t)| costs.time(&tree, b) <= costs.time(t, b)));
                assert!(bound(p, b, costs) <= costs.time(&tree, b));
            }
        }
    }

    #[test]
    fn one_wavelet_is_for_flat_trees_and_many_for_chains() {
        let costs = RowCosts::streaming(2);
        assert_eq!(generate(64, 1 << 20, costs).depth(), 63);
        assert!(generate(64, 1, costs).depth() < 6);
    }

    /// Beyond 128 only splits near the last one are looked at: the same comes out as with all of them.
    #[test]
    fn splits_move_little() {
        let mut all = Layer::new(200, 1);
        let mut below = Layer::new(200, 1);
        for _ in 0..8 {
            let mut near = Layer::new(200, 1);
            near.fill(0, 0, |n| below.at(0, n));
            for n in 2..=200 {
                let full = (1..n).filter_map(|i| {
                    let (a, b) = (near.at(0, i), below.at(0, n - i));
                    (a != NEVER && b != NEVER).then(|| a + b + i as u32)
                });
                assert_eq!(near.at(0, n), full.min().unwrap_or(NEVER));
            }
            all = below;
            below = near;
        }
        assert!(all.at(0, 200) > below.at(0, 200));
    }
}
