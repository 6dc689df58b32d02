//! Places of ranks: the CPUs of a machine and the levels of caches and memory that they share.
//!
//! This module only holds values. Reading them from the machine, an XML file or a synthetic string is the
//! runtime crate's work.

mod alike;
mod placement;

pub use placement::Placement;

use crate::names::{named, read_back};
use crate::units::Rank;
use serde::{Deserialize, Serialize};

/// Level that two CPUs can have in common, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One core: SMT siblings.
    Core,
    /// One last-level cache.
    L3,
    /// One NUMA node.
    Numa,
    /// One package (socket).
    Package,
    /// One machine, and nothing nearer.
    Machine,
}

named!(Level, Core = "core", L3 = "l3", Numa = "numa", Package = "package", Machine = "machine");
read_back!(Level, String, |name| {
    format!("unknown level `{name}`: expected core, l3, numa, package or machine")
});

/// One CPU (hardware thread) and what it belongs to. Ids are unique over the whole machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cpu {
    /// The operating system's number.
    pub os: usize,
    /// The core it is a hardware thread of.
    pub core: usize,
    /// The last-level cache above it.
    pub l3: usize,
    /// Its NUMA node.
    pub numa: usize,
    /// Its package.
    pub package: usize,
    /// Core kind, 0 the slowest, where the machine has several.
    pub kind: usize,
}

impl Cpu {
    /// Returns the number of the core, cache, node or package to which the CPU belongs at a level; 0 for the machine.
    pub fn id(&self, level: Level) -> usize {
        match level {
            Level::Core => self.core,
            Level::L3 => self.l3,
            Level::Numa => self.numa,
            Level::Package => self.package,
            Level::Machine => 0,
        }
    }

    /// The nearest level that two CPUs share.
    pub fn common(&self, other: &Cpu) -> Level {
        Level::ALL.into_iter().find(|&l| self.id(l) == other.id(l)).unwrap_or(Level::Machine)
    }
}

/// The CPUs of a machine in the order in which ranks are placed on them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Topology {
    /// CPUs, neighbours first (hwloc's logical order).
    pub cpus: Vec<Cpu>,
}

impl Topology {
    /// This topology followed by copies of itself, as further packages, until it has `cpus` CPUs at least: for
    /// asking what a larger machine of the kind would do. Empty stays empty.
    #[must_use]
    pub fn repeated(&self, cpus: usize) -> Topology {
        let n = self.cpus.len();
        if n == 0 || n >= cpus {
            return self.clone();
        }
        let next = |id: fn(&Cpu) -> usize| self.cpus.iter().map(id).max().unwrap_or(0) + 1;
        let steps = [next(|c| c.os), next(|c| c.core), next(|c| c.l3), next(|c| c.numa), next(|c| c.package)];
        let copy = |at: usize| {
            let (cpu, times) = (&self.cpus[at % n], at / n);
            Cpu {
                os: cpu.os + times * steps[0],
                core: cpu.core + times * steps[1],
                l3: cpu.l3 + times * steps[2],
                numa: cpu.numa + times * steps[3],
                package: cpu.package + times * steps[4],
                kind: cpu.kind,
            }
        };
        Topology { cpus: (0..cpus.div_ceil(n) * n).map(copy).collect() }
    }
}

/// The ranks of a communicator on a topology: for each rank a CPU, and for each level the group it is in.
///
/// Several ranks may sit on one CPU: then ranks outnumber CPUs, and whoever waits must hand over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    cpus: Vec<Cpu>,
}

impl Shape {
    /// `ranks` ranks, each on a core of its own under one last-level cache.
    pub fn flat(ranks: usize) -> Shape {
        let cpus = (0..ranks).map(|r| Cpu { os: r, core: r, l3: 0, numa: 0, package: 0, kind: 0 }).collect();
        Shape { cpus }
    }

    /// `ranks` ranks on `topology`, neighbours on neighbouring CPUs; when ranks outnumber CPUs, each CPU
    /// takes a block of consecutive ranks.
    pub fn place(ranks: usize, topology: &Topology) -> Shape {
        let n = topology.cpus.len();
        if n == 0 {
            return Shape::flat(ranks);
        }
        let slot = |r: usize| if ranks <= n { r } else { r * n / ranks };
        Shape { cpus: (0..ranks).map(|r| topology.cpus[slot(r)].clone()).collect() }
    }

    /// Ranks on exactly these CPUs.
    pub fn on(cpus: Vec<Cpu>) -> Shape {
        Shape { cpus }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.cpus.len()
    }

    /// The CPU of a rank.
    pub fn cpu(&self, rank: Rank) -> &Cpu {
        &self.cpus[rank.index()]
    }

    /// The nearest level that two ranks share.
    pub fn distance(&self, a: Rank, b: Rank) -> Level {
        self.cpus[a.index()].common(&self.cpus[b.index()])
    }

    /// The ranks of each group at `level`, groups in order of their first rank, ranks ascending.
    pub fn groups(&self, level: Level) -> Vec<Vec<usize>> {
        let mut ids: Vec<usize> = Vec::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (rank, cpu) in self.cpus.iter().enumerate() {
            let id = cpu.id(level);
            match ids.iter().position(|&i| i == id) {
                Some(g) => groups[g].push(rank),
                None => {
                    ids.push(id);
                    groups.push(vec![rank]);
                }
            }
        }
        groups
    }

    /// The levels that split the ranks into more than one group, at least one of them of several ranks and
    /// different from the next nearer level's: those at which a hierarchical plan can differ from a flat one.
    pub fn useful_levels(&self) -> Vec<Level> {
        let mut useful = Vec::new();
        let mut last: Option<Vec<Vec<usize>>> = None;
        for level in [Level::Core, Level::L3, Level::Numa, Level::Package] {
            let groups = self.groups(level);
            if groups.len() > 1 && groups.len() < self.ranks() && last.as_ref() != Some(&groups) {
                useful.push(level);
                last = Some(groups);
            }
        }
        useful
    }

    /// The largest number of ranks on one CPU.
    pub fn oversubscription(&self) -> usize {
        let mut count = std::collections::BTreeMap::new();
        for cpu in &self.cpus {
            *count.entry(cpu.os).or_insert(0usize) += 1;
        }
        count.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_packages() -> Topology {
        let cpus = (0..8)
            .map(|c| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 4, package: c / 4, kind: 0 })
            .collect();
        Topology { cpus }
    }

    #[test]
    fn distance_is_the_nearest_common_level() {
        let shape = Shape::place(8, &two_packages());
        assert_eq!(shape.distance(Rank(0), Rank(1)), Level::Core);
        assert_eq!(shape.distance(Rank(0), Rank(2)), Level::L3);
        assert_eq!(shape.distance(Rank(0), Rank(7)), Level::Machine);
    }

    #[test]
    fn a_repeated_topology_has_more_packages_of_the_same_kind() {
        let four = two_packages().repeated(13);
        assert_eq!(four.cpus.len(), 16);
        let shape = Shape::place(16, &four);
        assert_eq!(shape.groups(Level::Package).len(), 4);
        assert_eq!(shape.groups(Level::Core).len(), 8);
        assert_eq!(shape.oversubscription(), 1);
        assert_eq!(shape.distance(Rank(8), Rank(9)), Level::Core);
        assert_eq!(two_packages().repeated(8), two_packages());
    }

    #[test]
    fn levels_that_group_alike_are_named_once() {
        assert_eq!(Shape::place(8, &two_packages()).useful_levels(), vec![Level::Core, Level::L3]);
        assert!(Shape::flat(8).useful_levels().is_empty());
    }

    #[test]
    fn surplus_ranks_share_cpus_in_blocks() {
        let shape = Shape::place(16, &two_packages());
        assert_eq!(shape.cpu(Rank(0)).os, shape.cpu(Rank(1)).os);
        assert_eq!(shape.oversubscription(), 2);
    }
}
