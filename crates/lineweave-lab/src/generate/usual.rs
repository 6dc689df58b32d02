//! The trees that others have, which know no latencies.

use super::{joined, Case, GenerateError, Timed, FOLDS};
use crate::optimise::matrix::Schedule;
use lineweave_core::algorithm::bcast::topology_tree;
use lineweave_core::algorithm::levels::Levels;
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::algorithm::Participants;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::topology::Level;

/// Their names, in the order of [`usual`].
pub const USUAL: [&str; 6] = ["flat", "binomial", "k-nomial", "topology", "XHC", "hyper"];

/// Radices of which the best is taken.
const RADICES: [usize; 9] = [3, 4, 5, 6, 8, 11, 16, 24, 32];
/// Children of a thread at each step of libomp's hyper barrier (`KMP_PLAIN_BARRIER=2,2`).
const HYPER: usize = 4;

/// Each with the flags and folds of generated trees:
///
/// - flat: everybody is a child of the root;
/// - binomial, and k-nomial with the best of several radices, by rank number;
/// - topology: everybody in a cache is a child of its leader, leaders likewise in a node, and beyond a binomial tree
///   (`bcast/topology-tree`);
/// - XHC: groups by cache, node and package, whose members all poll one flag of their leader, as Open MPI's XHC has them;
/// - hyper: libomp's hyper barrier, a tree by the digits of the rank number to the base of four.
///
/// # Errors
/// As [`super::generate`].
pub fn usual(case: &Case) -> Result<[Timed; USUAL.len()], GenerateError> {
    let p = case.shape.ranks();
    let of = |tree: Tree| case.fastest(plans(case, &by_number(&tree, case.root())));
    Ok([
        of(Tree::flat(p))?,
        of(Tree::binomial(p))?,
        case.fastest(k_nomial(case))?,
        case.fastest(plans(case, &by_topology(case)?))?,
        case.time(xhc(case))?,
        of(Tree::digits(p, HYPER))?,
    ])
}

/// The plans of the k-nomial trees.
fn k_nomial(case: &Case) -> Vec<Spec> {
    let tree = |k: usize| by_number(&Tree::knomial(case.shape.ranks(), k), case.root());
    RADICES.into_iter().flat_map(|k| plans(case, &tree(k))).collect()
}

/// The plans of all of these that have a line for each edge.
pub(super) fn trees(case: &Case) -> Result<Vec<Spec>, GenerateError> {
    let p = case.shape.ranks();
    let mut out = plans(case, &by_topology(case)?);
    for tree in [Tree::flat(p), Tree::binomial(p), Tree::digits(p, HYPER)] {
        out.extend(plans(case, &by_number(&tree, case.root())));
    }
    out.extend(k_nomial(case));
    Ok(out)
}

fn plans(case: &Case, tree: &Schedule) -> Vec<Spec> {
    let (goes_up, goes_down) = case.ways();
    let down = goes_down.then(|| case.edges(tree.param()));
    let up = goes_up.then(|| tree.clone().backwards().param());
    match up {
        Some(up) => FOLDS
            .iter()
            .filter_map(|fold| joined(Some(case.folding(up.clone(), fold)), down.clone()))
            .collect(),
        None => joined(None, down).into_iter().collect(),
    }
}

/// The tree with virtual rank 0 at the root and the others behind it in a cycle.
fn by_number(tree: &Tree, root: usize) -> Schedule {
    let rank = |v: usize| (root + v) % tree.len();
    let mut schedule = Schedule::alone(tree.len(), root);
    for (v, children) in tree.children.iter().enumerate() {
        schedule.children[rank(v)] = children.iter().map(|&c| rank(c)).collect();
    }
    schedule
}

fn by_topology(case: &Case) -> Result<Schedule, GenerateError> {
    let problem = case.problem();
    let participants = Participants { root: case.root(), ..Participants::all(&problem) };
    let (tree, members) = topology_tree::joined(&problem, &participants, &Levels::Auto)?;
    let mut schedule = Schedule::alone(members.len(), case.root());
    for (v, children) in tree.children.iter().enumerate() {
        schedule.children[members[v]] = children.iter().map(|&c| members[c]).collect();
    }
    Ok(schedule)
}

/// Flat groups at every level, with one flag of the leader that its group polls.
fn xhc(case: &Case) -> Spec {
    let layout = case.layout();
    let levels = |each: &str, last: &str| {
        let mut list: Vec<String> =
            case.shape.useful_levels().iter().map(|l| format!("{l}:{each}")).collect();
        list.push(format!("{}:{last}", Level::Machine));
        list.join(",")
    };
    let (flat, polled) = (format!("flat(layout={layout})"), format!("flat(notify=shared;layout={layout})"));
    let centralized = format!("centralized(layout={layout})");
    let params = Params::new();
    let (name, params) = match case.collective {
        Collective::Barrier => ("hierarchical", params.with("levels", levels(&centralized, &centralized))),
        Collective::Reduce => ("hierarchical", params.with("levels", levels(&flat, &flat))),
        Collective::Allreduce => {
            let last = format!("reduce-bcast(reduce={flat};bcast={polled})");
            (
                "hierarchical",
                params.with("levels", levels(&flat, &last)).with("down", levels(&polled, &polled)),
            )
        }
        _ => {
            let params = params.with("levels", levels("flat", "flat")).with("notify", "shared");
            ("topology-tree", params.with("layout", layout))
        }
    };
    Spec { params, ..Spec::named(name) }
}
