//! Ranks that sit alike. A plan for one root serves another that sits like it, when ranks change parts and all distances stay.

use super::{Cpu, Shape};
use crate::units::Rank;
use std::collections::{BTreeMap, BTreeSet};

/// Ranks that share something, and the groups within.
struct Group {
    /// In the order of the groups within.
    ranks: Vec<usize>,
    kind: usize,
    within: Vec<Group>,
}

impl Group {
    fn of(shape: &Shape, ranks: Vec<usize>, ids: &[fn(&Cpu) -> usize]) -> Group {
        let cpu = |rank: usize| shape.cpu(Rank::from(rank));
        let kind = cpu(ranks[0]).kind;
        let Some((id, nearer)) = ids.split_first() else {
            return Group { ranks, kind, within: Vec::new() };
        };
        let mut order: Vec<Vec<usize>> = Vec::new();
        let mut known: BTreeMap<usize, usize> = BTreeMap::new();
        for rank in ranks {
            let at = *known.entry(id(cpu(rank))).or_insert(order.len());
            if at == order.len() {
                order.push(Vec::new());
            }
            order[at].push(rank);
        }
        let within: Vec<Group> = order.into_iter().map(|ranks| Group::of(shape, ranks, nearer)).collect();
        Group { ranks: within.iter().flat_map(|g| g.ranks.iter().copied()).collect(), kind, within }
    }

    /// Returns whether ranks in the order of both have the same distances.
    fn is_like(&self, other: &Group) -> bool {
        let same = |(a, b): (&Group, &Group)| a.is_like(b);
        let parts = (self.ranks.len(), self.within.len(), self.kind);
        parts == (other.ranks.len(), other.within.len(), other.kind)
            && self.within.iter().zip(&other.within).all(same)
    }
}

impl Shape {
    /// Returns the representative of `rank`'s symmetry class, and a distance-preserving permutation of ranks with `parts[representative] == rank`.
    pub fn alike(&self, rank: usize) -> (usize, Vec<usize>) {
        let mut parts: Vec<usize> = (0..self.ranks()).collect();
        let mut first = rank;
        let ids: [fn(&Cpu) -> usize; 5] = [|c| c.package, |c| c.numa, |c| c.l3, |c| c.core, |c| c.os];
        let all = Group::of(self, parts.clone(), &ids);
        let mut group = &all;
        while let Some(own) = group.within.iter().find(|g| g.ranks.contains(&first)) {
            let stand = group.within.iter().find(|g| g.is_like(own)).unwrap_or(own);
            let place = own.ranks.iter().position(|&r| r == first).unwrap_or(0);
            if stand.ranks != own.ranks {
                stand.ranks.iter().zip(&own.ranks).for_each(|(&a, &b)| parts.swap(a, b));
            }
            (first, group) = (stand.ranks[place], stand);
        }
        // Ranks of one CPU.
        parts.swap(group.ranks[0], first);
        first = group.ranks[0];
        match self.stays(&parts) {
            true => (first, parts),
            false => (rank, (0..self.ranks()).collect()),
        }
    }

    /// Returns whether ranks that share something still do when each is replaced by another. Levels need not lie within one another.
    fn stays(&self, parts: &[usize]) -> bool {
        let ids: [fn(&Cpu) -> usize; 6] =
            [|c| c.os, |c| c.core, |c| c.l3, |c| c.numa, |c| c.package, |c| c.kind];
        ids.iter().enumerate().all(|(level, id)| {
            let pairs: BTreeSet<(usize, usize)> =
                self.cpus.iter().zip(parts).map(|(cpu, &other)| (id(cpu), id(&self.cpus[other]))).collect();
            let count =
                |end: fn(&(usize, usize)) -> usize| pairs.iter().map(end).collect::<BTreeSet<_>>().len();
            let kinds_stay = level < 5 || pairs.iter().all(|(a, b)| a == b);
            kinds_stay && count(|p| p.0) == pairs.len() && count(|p| p.1) == pairs.len()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    fn machine(cpus: usize, cpu: impl Fn(usize) -> Cpu) -> Topology {
        Topology { cpus: (0..cpus).map(cpu).collect() }
    }

    /// Every rank stands for itself or has one that does, with all distances as they were. How many stand for others.
    fn firsts(shape: &Shape) -> usize {
        let mut firsts = BTreeSet::new();
        for rank in 0..shape.ranks() {
            let (first, parts) = shape.alike(rank);
            assert!(first <= rank);
            assert_eq!((parts[first], shape.alike(first).0), (rank, first));
            assert_eq!(parts.iter().collect::<BTreeSet<_>>().len(), shape.ranks());
            for (a, b) in (0..shape.ranks()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let [x, y, u, v] = [a, b, parts[a], parts[b]].map(Rank::from);
                assert_eq!(shape.distance(x, y), shape.distance(u, v));
                let shared = |a, b| shape.cpu(a).os == shape.cpu(b).os;
                assert_eq!(shared(x, y), shared(u, v));
                assert_eq!(shape.cpu(x).kind, shape.cpu(u).kind);
            }
            firsts.insert(first);
        }
        firsts.len()
    }

    #[test]
    fn ranks_of_an_even_machine_sit_alike_and_others_stand_for_themselves() {
        let even = |c: usize| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 8, package: c / 8, kind: 0 };
        for ranks in [1, 2, 4, 8, 16, 32] {
            assert_eq!(firsts(&Shape::place(ranks, &machine(16, even))), 1, "{ranks} ranks");
        }
        assert_eq!(firsts(&Shape::flat(7)), 1);
        // Of 5 ranks the last has a cache for itself; of 3 on 2 CPUs two share one.
        assert_eq!(firsts(&Shape::place(5, &machine(16, even))), 2);
        assert_eq!(firsts(&Shape::place(3, &machine(2, even))), 2);
        let kinds = |c: usize| Cpu { os: c, core: c, l3: 0, numa: 0, package: 0, kind: c / 2 };
        assert_eq!(firsts(&Shape::place(4, &machine(4, kinds))), 2);
    }

    #[test]
    fn levels_that_do_not_nest_are_not_mistaken_for_such_that_do() {
        let odd = |c: usize| Cpu { os: c, core: c, l3: [0, 1, 0, 2][c], numa: c / 2, package: 0, kind: 0 };
        firsts(&Shape::place(4, &machine(4, odd)));
    }
}
