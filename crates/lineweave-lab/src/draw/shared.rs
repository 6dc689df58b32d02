//! Large machines: CPUs that share a cache, as one.

use lineweave_core::topology::{Cpu, Level, Topology};
use std::collections::BTreeMap;

/// CPUs beyond which a machine is drawn by its caches.
pub(super) const LARGE: usize = 96;
/// Leaves at most.
const MOST: usize = 64;
/// CPUs of the leaf that is drawn open, at most.
pub(super) const OPEN: usize = 24;

/// CPUs that are drawn as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Leaf {
    /// A name for people.
    pub(super) name: String,
    /// Short name, for places with little room.
    pub(super) short: String,
    /// The package.
    pub(super) package: usize,
    /// Indices in the topology.
    pub(super) cpus: Vec<usize>,
}

/// Returns the leaves of a machine, in the order of its CPUs: those that share the nearest level of which there are not too many, or as
/// many CPUs each where no level is.
pub(super) fn leaves(topology: &Topology) -> Vec<Leaf> {
    let cpus = &topology.cpus;
    for (level, word) in [(Level::L3, "L3"), (Level::Numa, "NUMA"), (Level::Package, "package")] {
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut found: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, cpu) in cpus.iter().enumerate() {
            let at = *found.entry(cpu.id(level)).or_insert_with(|| {
                let id = cpu.id(level);
                let (name, short) = (format!("{word} {id}"), id.to_string());
                leaves.push(Leaf { name, short, package: cpu.package, cpus: Vec::new() });
                leaves.len() - 1
            });
            leaves[at].cpus.push(i);
        }
        if (2..=MOST).contains(&leaves.len()) {
            return leaves;
        }
    }
    let each = cpus.len().div_ceil(MOST / 2).max(1);
    let leaf = |part: &[Cpu], first: usize| {
        let (from, to) = (part[0].os, part[part.len() - 1].os);
        Leaf {
            name: format!("CPUs {from} to {to}"),
            short: from.to_string(),
            package: part[0].package,
            cpus: (first..first + part.len()).collect(),
        }
    };
    cpus.chunks(each).enumerate().map(|(i, part)| leaf(part, i * each)).collect()
}

/// Returns for each CPU its leaf.
pub(super) fn leaf_of(leaves: &[Leaf], cpus: usize) -> Vec<usize> {
    let mut of = vec![0; cpus];
    for (i, leaf) in leaves.iter().enumerate() {
        leaf.cpus.iter().for_each(|&cpu| of[cpu] = i);
    }
    of
}

/// Returns how many CPUs hear through each pair of a tree: the taker, and all whom it tells.
pub(super) fn through(tree: &[(usize, usize)], cpus: usize) -> Vec<usize> {
    let mut heard = vec![1usize; cpus];
    // Who is told last tells nobody any more.
    for &(giver, taker) in tree.iter().rev() {
        if let (Some(&more), Some(_)) = (heard.get(taker), heard.get(giver)) {
            heard[giver] += more;
        }
    }
    tree.iter().map(|&(_, taker)| heard.get(taker).copied().unwrap_or(1)).collect()
}

/// Returns the first of those who tell others and whom nobody tells.
pub(super) fn root_of(tree: &[(usize, usize)]) -> Option<usize> {
    tree.iter().map(|t| t.0).find(|root| tree.iter().all(|t| t.1 != *root))
}

/// Returns the pairs of leaves that a tree joins: how many pairs, and how many CPUs hear through them.
pub(super) fn joined(
    tree: &[(usize, usize)],
    leaves: &[Leaf],
    cpus: usize,
) -> BTreeMap<(usize, usize), (usize, usize)> {
    let of = leaf_of(leaves, cpus);
    let mut joined: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for (&(giver, taker), heard) in tree.iter().zip(through(tree, cpus)) {
        if let (Some(&a), Some(&b)) = (of.get(giver), of.get(taker)) {
            let edge = joined.entry((a, b)).or_default();
            *edge = (edge.0 + 1, edge.1 + heard);
        }
    }
    joined
}

/// The tooltip of an edge between two leaves.
pub(super) fn tells(leaves: &[Leaf], (a, b): (usize, usize), (pairs, heard): (usize, usize)) -> String {
    let (a, b) = (&leaves[a].name, &leaves[b].name);
    format!("{a} tells {b}: {pairs} times, and {heard} CPUs hear through that")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_share_a_cache_are_a_leaf() {
        let cpu = |os: usize| Cpu { os, core: os, l3: os / 16, numa: os / 256, package: os / 256, kind: 0 };
        let large = Topology { cpus: (0..512).map(cpu).collect() };
        let found = leaves(&large);
        assert_eq!(
            (found.len(), &*found[31].name, found[31].package, found[31].cpus.len()),
            (32, "L3 31", 1, 16)
        );
        let flat =
            Topology { cpus: (0..200).map(|os| Cpu { l3: 0, numa: 0, package: 0, ..cpu(os) }).collect() };
        let found = leaves(&flat);
        assert_eq!((found.len(), &*found[1].name), (29, "CPUs 7 to 13"));
        // A chain 0, 16, 17: two hear through the first pair.
        let joined = joined(&[(0, 16), (16, 17)], &leaves(&large), 512);
        assert_eq!(joined, BTreeMap::from([((0, 1), (1, 2)), ((1, 1), (1, 1))]));
    }
}
