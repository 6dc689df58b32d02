//! A broadcast level by level: among the leaders of packages, then of NUMA nodes, and so on down to cores.
//!
//! `levels=l3:flat,numa:binomial,machine:chain(chunk=16384)` says: among the leaders of the NUMA nodes a chain, among
//! those of a NUMA node's L3 groups a binomial tree, within an L3 group flat. A leader is the root where it is in
//! the group, otherwise the first rank. Outer levels come first in each rank's program. Any P and root; groups
//! of one cost nothing, and on a shape without levels it is the `machine` level alone.

use super::super::levels::{given, stages, Levels};
use super::super::{Algorithm, ParamSpec, Participants, Place, Problem};
use super::topology_tree::default_spec;
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "hierarchical",
    about: "level by level, with an algorithm of its own for each",
    source: "Rico-Gallego & Diaz-Martin 2015, section 2; MPICH and UCC hierarchies",
    params: &[ParamSpec {
        name: "levels",
        default: "auto",
        about: "what each level plays: l3:flat,numa:binomial,machine:chain(chunk=16384)",
    }],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let useful = problem.shape.useful_levels();
    if useful.is_empty() {
        return Vec::new(); // Every level would be the machine.
    }
    let inner: &[&str] = if problem.bytes <= 4096 {
        &["flat", "binomial", "knomial(k=4)"]
    } else {
        &["flat", "flat(chunk=16384;slots=2;notify=each)", "chain"]
    };
    let outer: &[&str] =
        if problem.bytes <= 4096 { &["flat", "binomial"] } else { &["flat", "chain", "binomial"] };
    // The innermost level alone, and all of them: with the same algorithm below the machine.
    let mut sets = vec![vec![useful[0]], useful.clone()];
    sets.extend(useful.last().map(|&l| vec![l]));
    sets.dedup();
    let mut out = Vec::new();
    for levels in sets {
        for inner in inner {
            for outer in outer {
                let params = given(&levels, inner, outer);
                if !out.contains(&params) {
                    out.push(params);
                }
            }
        }
    }
    out.truncate(24);
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let levels = params.read("levels", Levels::Auto)?;
    // Below the root, a leader has the message where it arrived.
    let from: Vec<Place> = (0..s.len()).map(|i| if i == s.root { s.from[i] } else { s.to }).collect();
    for stage in stages(&problem.shape, s, &levels, default_spec).iter().rev() {
        let algorithm = stage.spec.find(Collective::Bcast)?;
        b.alike(&stage.groups, |b, group| {
            (algorithm.emit)(b, problem, &group.participants(s, &from, s.to), &stage.spec.params)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cpu, Shape, Topology};

    fn four_groups_of_four() -> Shape {
        let cpus =
            (0..16).map(|c| Cpu { os: c, core: c, l3: c / 4, numa: c / 8, package: 0, kind: 0 }).collect();
        Shape::place(16, &Topology { cpus })
    }

    fn problem(root: usize) -> Problem {
        let shape = four_groups_of_four();
        Problem { shape, root, ..Problem::flat(Collective::Bcast, 16, 4096) }
    }

    #[test]
    fn groups_side_by_side_share_their_slots() {
        let params = Params::new().with("levels", "l3:flat,machine:flat");
        let plan = ALGORITHM.plan(&problem(0), &params).unwrap();
        assert_eq!(plan.slots, vec![4096, 4096]);
        assert_eq!(plan.flags.len(), 2);
    }

    #[test]
    fn levels_without_a_broadcast_are_refused() {
        for levels in ["l3:flat,l3:flat", "machine:hierarchical", "l3:nothing", "machine:flat(k=3)"] {
            let params = Params::new().with("levels", levels);
            assert!(ALGORITHM.plan(&problem(0), &params).is_err(), "{levels}");
        }
    }
}
