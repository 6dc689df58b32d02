//! Ranks that take turns on one CPU: for whom a rank waits first, and for whom it keeps its CPU.
//!
//! 1. Waits that follow one another may be done in any order. Those for ranks on this CPU come first: they need it, so it is handed
//!    over at once, and meanwhile the others arrive on theirs.
//! 2. A rank that has heard of everybody on its CPU has nobody left to hand it to. Only then does it poll for long for the others
//!    ([`Budget::apart`](crate::wait::Budget::apart)); ranks that did so earlier held up their neighbours, and took twice as long in an
//!    allreduce of a word among 4 and 8 ranks on 2 CPUs.

use lineweave_core::plan::{FlagRef, Op, Part, Region, Take};
use lineweave_core::topology::Shape;
use lineweave_core::units::Rank;
use std::collections::{HashMap, HashSet};

/// One rank's knowledge of the ranks that set its flags. Empty where every rank has a CPU of its own, or may run on any: then there is one
/// way to wait.
#[derive(Debug, Default)]
pub(super) struct WaitOrder {
    setters: HashMap<FlagRef, usize>,
    /// Other ranks on this rank's CPU.
    near: HashSet<usize>,
    /// Ranks of `near` that this rank has not heard of in this run.
    unheard: HashSet<usize>,
}

impl WaitOrder {
    pub fn of(part: &Part, shape: &Shape, rank: usize) -> WaitOrder {
        if shape.oversubscription() <= 1 {
            return WaitOrder::default();
        }
        let cpu = |q: usize| shape.cpu(Rank::from(q)).os;
        let near: HashSet<usize> =
            (0..part.plan.ranks).filter(|&q| q != rank && cpu(q) == cpu(rank)).collect();
        let setters = part.setters.iter().map(|(&flag, setter)| (flag, setter.index())).collect();
        WaitOrder { setters, unheard: near.clone(), near }
    }

    /// A rank's program with its waits in the best order.
    pub fn order(&self, program: &[Op]) -> Vec<Op> {
        let mut ops = program.to_vec();
        for waits in ops.chunk_by_mut(|a, b| is_wait(a) && is_wait(b)).filter(|_| !self.near.is_empty()) {
            if disjoint(waits) {
                waits.sort_by_key(|op| !matches!(op, Op::Wait { flag, .. } if self.is_near(*flag)));
            }
        }
        ops
    }

    /// Returns whether the next wait, for this value, is for a rank on another CPU while nobody needs this one.
    pub fn apart(&mut self, flag: FlagRef, value: i32) -> bool {
        let Some(setter) = self.setters.get(&flag) else { return false };
        if self.near.contains(setter) {
            if value > 0 {
                self.unheard.remove(setter);
            }
            return false;
        }
        self.unheard.is_empty()
    }

    fn is_near(&self, flag: FlagRef) -> bool {
        self.setters.get(&flag).is_some_and(|setter| self.near.contains(setter))
    }
}

fn is_wait(op: &Op) -> bool {
    matches!(op, Op::Wait { .. })
}

/// Returns whether no two of these waits take to the same place.
fn disjoint(waits: &[Op]) -> bool {
    let mut taken: Vec<Region> = Vec::new();
    waits.iter().all(|op| match op {
        Op::Wait { take: Some(Take::Bytes(region)), .. } => {
            let apart = taken.iter().all(|other| !other.overlaps(region));
            taken.push(*region);
            apart
        }
        Op::Wait { take: Some(Take::Address(_)), .. } => false,
        Op::Wait { take: None, .. } | Op::Set { .. } | Op::Add { .. } | Op::Move { .. } | Op::Fold { .. } => {
            true
        }
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lineweave_core::algorithm::{self, Problem};
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::Params;

    /// Four ranks on two CPUs, neighbours together.
    fn shape() -> Shape {
        let two = Shape::flat(2);
        Shape::on([0, 0, 1, 1].map(|cpu| two.cpu(Rank(cpu)).clone()).to_vec())
    }

    fn turns(collective: Collective, name: &str, rank: usize, shape: &Shape) -> (Vec<usize>, Vec<bool>) {
        let bytes = if collective.moves_data() { 8 } else { 0 };
        let problem = Problem { grain: 8, ..Problem::flat(collective, 4, bytes) };
        let algorithm = algorithm::find(collective, name).expect("it is in the table");
        let plan = algorithm.plan(&problem, &Params::new()).expect("a plan");
        let mut turns = WaitOrder::of(&Part::whole(plan.clone(), true), shape, rank);
        let waits = turns.order(&plan.programs[rank]);
        let setter = |flag| plan.ops().find(|(_, op)| matches!(op, Op::Set { flag: f, .. } if *f == flag));
        waits
            .iter()
            .filter_map(|op| match op {
                Op::Wait { flag, value, .. } => {
                    Some((setter(*flag).expect("somebody sets it").0.index(), turns.apart(*flag, *value)))
                }
                Op::Move { .. } | Op::Fold { .. } | Op::Set { .. } | Op::Add { .. } => None,
            })
            .unzip()
    }

    #[test]
    fn neighbours_are_waited_for_first_and_the_others_for_longer() {
        for (collective, name) in
            [(Collective::Barrier, "all-to-all"), (Collective::Allreduce, "all-read-all")]
        {
            for (rank, order) in [(0, [1, 2, 3]), (3, [2, 0, 1])] {
                let expected = (order.to_vec(), vec![false, true, true]);
                assert_eq!(turns(collective, name, rank, &shape()), expected, "{collective}, rank {rank}");
            }
            let (order, apart) = turns(collective, name, 3, &Shape::flat(4));
            assert_eq!((order, apart), (vec![0, 1, 2], vec![false; 3]), "ranks with CPUs of their own");
        }
    }

    #[test]
    fn who_has_not_heard_of_its_neighbours_keeps_nothing_from_them() {
        let (_, apart) = turns(Collective::Barrier, "centralized", 3, &shape());
        assert_eq!(apart, [false], "the root's release says nothing of rank 2");
    }
}
