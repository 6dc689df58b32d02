//! One tree shaped by the topology, level by level, with chunks in flight through all levels at once.
//!
//! Where `hierarchical` runs one algorithm after another, here the trees of all levels are joined into one: a
//! leader hands each chunk on, to leaders further in and to its own group, as it arrives. What OC-Bcast leaves
//! open (Petrovic et al. 2012, section 4.1: "a tree taking into account the topology"). Any P and root; on a shape
//! without levels it is the tree of level `machine`.

use super::super::levels::{given, stages, Levels, Spec};
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem, MAX_RANKS};
use super::degrees::degrees;
use super::relay::Relay;
use super::settings::{self, chunk_grid};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};
use crate::topology::Level;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "topology-tree",
    about: "one tree shaped by the topology, pipelined through all its levels",
    source: "Petrovic et al. 2012, section 4.1; Open MPI XHC",
    params: &[
        ParamSpec {
            name: "levels",
            default: "auto",
            about: "tree of each level: flat, chain, binomial, knomial(k=4), kary(k=2), degrees(degrees=3,2)",
        },
        settings::LAYOUT,
        settings::NOTIFY,
        settings::CARRY,
        ParamSpec { default: "16384", ..settings::CHUNK },
        ParamSpec { default: "2", ..settings::SLOTS },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let useful = problem.shape.useful_levels();
    if useful.is_empty() {
        return Vec::new(); // The plain trees are that already.
    }
    let mut base = Vec::new();
    for inner in ["flat", "chain"] {
        for outer in ["flat", "chain", "binomial"] {
            base.push(given(&useful, inner, outer));
        }
    }
    let mut out = Vec::new();
    for params in base {
        if problem.bytes <= Layout::Alone.payload() {
            out.push(params);
            continue;
        }
        out.push(params.clone().with("chunk", 0).with("slots", 0));
        for chunk in chunk_grid(problem.bytes).into_iter().skip(1) {
            out.push(params.clone().with("chunk", chunk));
        }
    }
    out.truncate(24);
    out
}

/// Near ranks read one line together; far ones take turns.
pub(super) fn default_spec(level: Level) -> Spec {
    match level {
        Level::Core | Level::L3 | Level::Numa => Spec::named("flat"),
        Level::Package | Level::Machine => Spec::named("binomial"),
    }
}

/// The tree over `p` ranks that a level asks for.
fn tree(spec: &Spec, p: usize) -> Result<Tree, PlanError> {
    let bad = |expected: &str| PlanError::bad("levels", spec, expected);
    let takes: &[&str] = match spec.name.as_str() {
        "flat" | "chain" | "binomial" => &[],
        "knomial" | "kary" => &["k"],
        "degrees" => &["degrees"],
        _ => return Err(bad("flat, chain, binomial, knomial, kary or degrees")),
    };
    if let Some(name) = spec.params.0.keys().find(|n| !takes.contains(&n.as_str())) {
        return Err(bad(&format!("no parameter `{name}` of {}", spec.name)));
    }
    Ok(match spec.name.as_str() {
        "flat" => Tree::flat(p),
        "chain" => Tree::chain(p),
        "binomial" => Tree::binomial(p),
        "knomial" => Tree::knomial(p, spec.params.int("k", 4, 2..MAX_RANKS + 1)?),
        "kary" => Tree::kary(p, spec.params.int("k", 2, 1..MAX_RANKS + 1)?),
        _ => Tree::by_degrees(p, &degrees(&spec.params, p)?),
    })
}

/// The joined tree, and the member that each of its virtual ranks is.
///
/// # Errors
/// A [`PlanError`] when a level's tree is out of range.
pub fn joined(problem: &Problem, s: &Participants, levels: &Levels) -> Result<(Tree, Vec<usize>), PlanError> {
    // Children by member, those of outer levels first: the farthest way is the longest.
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); s.len()];
    for stage in stages(&problem.shape, s, levels, default_spec).iter().rev() {
        for group in &stage.groups {
            let size = group.members.len();
            let shape = tree(&stage.spec, size)?;
            let member = |v: usize| group.members[(group.leader + v) % size];
            for (v, children) in shape.children.iter().enumerate() {
                below[member(v)].extend(children.iter().map(|&c| member(c)));
            }
        }
    }
    Ok(Tree::breadth_first(s.root, &below))
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let levels = params.read("levels", Levels::Auto)?;
    let relay = Relay { chunk: 16 << 10, slots: 2, ..Relay::PLAIN }.read(params)?;
    let (tree, members) = joined(problem, s, &levels)?;
    relay.emit(b, s, &tree, &members);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Cpu, Shape};

    fn problem(root: usize) -> Problem {
        let cpus = (0..16).map(|c| Cpu { os: c, core: c, l3: c / 4, numa: c / 8, package: 0, kind: 0 });
        Problem { shape: Shape::on(cpus.collect()), root, ..Problem::flat(Collective::Bcast, 16, 1 << 20) }
    }

    #[test]
    fn a_rank_s_parent_is_its_group_s_leader_or_a_leader_s_peer() {
        let problem = problem(6);
        let levels = "l3:flat,numa:flat,machine:chain".parse().unwrap();
        let (tree, members) = joined(&problem, &Participants::all(&problem), &levels).unwrap();
        let parent = |rank: usize| {
            let v = members.iter().position(|&m| m == rank).unwrap();
            tree.parent[v].map(|p| members[p])
        };
        assert_eq!(parent(6), None);
        assert_eq!((parent(8), parent(12), parent(0)), (Some(6), Some(8), Some(6)));
        assert_eq!((parent(3), parent(4), parent(7), parent(15)), (Some(0), Some(6), Some(6), Some(12)));
        assert_eq!(tree.len(), 16);
    }

    #[test]
    fn a_level_that_is_no_tree_is_refused() {
        for levels in ["l3:ring", "l3:flat(k=2)", "machine:knomial(k=1)", "machine:degrees(degrees=0)"] {
            let params = Params::new().with("levels", levels);
            assert!(ALGORITHM.plan(&problem(0), &params).is_err(), "{levels}");
        }
    }
}
