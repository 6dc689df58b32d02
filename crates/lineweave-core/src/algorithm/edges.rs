//! Trees given edge by edge, for algorithms whose tree was made elsewhere: from measured latencies, say.
//!
//! The parameter `edges` reads `2-0,2-5,0-1`: member 2 is the root and deals with 0, then with 5, and 0 with 1. A parent's
//! own edge comes before those to its children; the order of a parent's edges is that of its children. In a reduction
//! `2/5` in place of `2-5` says that 2 folds what came before it waits for 5: its children are heard in rows.
//!
//! `auto` is the tree of one who knows the levels of the machine but no latency: see [`nearest_first`].

use super::trees::Tree;
use super::{ParamSpec, Participants, Problem};
use crate::plan::{Params, PlanError};
use crate::topology::Level;
use crate::units::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The parameter `edges`.
pub const EDGES: ParamSpec = ParamSpec {
    name: "edges",
    default: "auto",
    about: "parent-child, in order: 0-4,0-2,4-5; auto: nearest first",
};

/// A tree, the member that each of its virtual ranks is, and which virtual ranks begin a row of their parent's children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rows {
    /// The tree.
    pub tree: Tree,
    /// For each virtual rank its member.
    pub order: Vec<usize>,
    /// For each virtual rank whether its parent folds what came before.
    pub begins: Vec<bool>,
}

/// The tree that `params` gives over the participants, and the member that each of its virtual ranks is.
///
/// # Errors
/// [`PlanError::BadParameter`] when the edges are no tree over all members from the root, or have rows.
pub fn tree(params: &Params, problem: &Problem, s: &Participants) -> Result<(Tree, Vec<usize>), PlanError> {
    one_row(params, problem, s).map(|rows| (rows.tree, rows.order))
}

fn one_row(params: &Params, problem: &Problem, s: &Participants) -> Result<Rows, PlanError> {
    let found = rows(params, problem, s)?;
    match found.begins.contains(&true) {
        false => Ok(found),
        true => {
            Err(bad(params, "edges such as 0-1,0-2,1-3: rows, as in 0-1,0/2, are for reductions".to_owned()))
        }
    }
}

/// The tree that `params` gives over the participants, with rows.
///
/// # Errors
/// [`PlanError::BadParameter`] when the edges are no tree over all members from the root.
pub fn rows(params: &Params, problem: &Problem, s: &Participants) -> Result<Rows, PlanError> {
    match params.get("edges") {
        None | Some("auto") => {
            let (tree, order) = nearest_first(problem, s);
            let begins = vec![false; order.len()];
            Ok(Rows { tree, order, begins })
        }
        Some(text) => read(text, s.len(), s.root).map_err(|expected| bad(params, expected)),
    }
}

fn bad(params: &Params, expected: String) -> PlanError {
    let value = params.get("edges").unwrap_or_default().chars().take(60).collect::<String>();
    PlanError::bad("edges", value, expected)
}

/// Earliest arrival first, when a message takes twice as long for each level that lies between, and a rank sends one
/// in half the time that the nearest takes.
pub fn nearest_first(problem: &Problem, s: &Participants) -> (Tree, Vec<usize>) {
    const GAP: u64 = 1;
    let latency = |level: Level| 2u64 << level as u32;
    let groups: Vec<(Level, Vec<Members>)> = Level::ALL.map(|l| (l, members_by_group(problem, s, l))).into();
    // For each member its group at each level.
    let mut group_of = vec![vec![0; s.len()]; groups.len()];
    for (level, (_, all)) in groups.iter().enumerate() {
        for (g, group) in all.iter().enumerate() {
            group.members.iter().for_each(|&m| group_of[level][m] = g);
        }
    }
    let mut groups = groups;
    let mut tree = Tree { parent: vec![None], children: vec![Vec::new()] };
    let (mut order, mut number) = (vec![s.root], vec![usize::MAX; s.len()]);
    number[s.root] = 0;
    let mut free = vec![0u64; s.len()];
    let mut queue = BinaryHeap::from([Reverse((0, s.root))]);
    while order.len() < s.len() {
        let Some(Reverse((due, from))) = queue.pop() else { break };
        // The nearest that does not know yet.
        let found = groups.iter_mut().enumerate().find_map(|(level, (name, all))| {
            let group = &mut all[group_of[level][from]];
            while group.members.get(group.next).is_some_and(|&m| number[m] != usize::MAX) {
                group.next += 1;
            }
            group.members.get(group.next).map(|&to| (*name, to))
        });
        let Some((level, to)) = found else { continue };
        let arrives = free[from] + latency(level);
        if arrives > due {
            // Nearer ones have been told meanwhile.
            queue.push(Reverse((arrives, from)));
            continue;
        }
        let v = order.len();
        (number[to], free[to]) = (v, arrives);
        free[from] += GAP;
        order.push(to);
        tree.parent.push(Some(number[from]));
        tree.children.push(Vec::new());
        tree.children[number[from]].push(v);
        // Due as soon as the nearest could be reached; corrected when it is its turn.
        queue.push(Reverse((free[from], from)));
        queue.push(Reverse((free[to], to)));
    }
    (tree, order)
}

/// Participants that share something, and up to where they are known to know.
struct Members {
    members: Vec<usize>,
    next: usize,
}

fn members_by_group(problem: &Problem, s: &Participants, level: Level) -> Vec<Members> {
    let whole = || vec![Members { members: (0..s.len()).collect(), next: 0 }];
    let mut out: Vec<Members> = match level {
        Level::Machine => whole(),
        Level::Core | Level::L3 | Level::Numa | Level::Package => {
            let mut group = vec![0; problem.ranks()];
            let all = problem.shape.groups(level);
            for (g, ranks) in all.iter().enumerate() {
                ranks.iter().for_each(|&r| group[r] = g);
            }
            let mut split: Vec<Members> =
                all.iter().map(|_| Members { members: Vec::new(), next: 0 }).collect();
            for (i, &rank) in s.members.iter().enumerate() {
                split[group[Rank::from(rank).index()]].members.push(i);
            }
            split
        }
    };
    // From the root on, so that ranks after it come before those in front of it.
    for group in &mut out {
        let at = group.members.partition_point(|&m| m < s.root);
        group.members.rotate_left(at);
    }
    out
}

fn read(text: &str, members: usize, root: usize) -> Result<Rows, String> {
    let mut tree = Tree { parent: vec![None], children: vec![Vec::new()] };
    let (mut order, mut begins) = (vec![root], vec![false]);
    let mut number: Vec<Option<usize>> = vec![None; members];
    if let Some(of_root) = number.get_mut(root) {
        *of_root = Some(0);
    }
    for edge in text.split(',').filter(|e| !e.is_empty()) {
        let member = |text: &str| text.trim().parse().ok().filter(|&m: &usize| m < members);
        let ends = edge.split_once(['-', '/']).and_then(|(a, b)| Some((member(a)?, member(b)?)));
        let (parent, child) =
            ends.ok_or_else(|| format!("edges between members 0 to {}, such as 0-1,0-2,1-3", members - 1))?;
        let above = number[parent]
            .ok_or_else(|| format!("{parent} to be reached from {root} before it reaches {child}"))?;
        if number[child].is_some() {
            return Err(format!("each member to be reached once, and {child} is again"));
        }
        let v = order.len();
        number[child] = Some(v);
        order.push(child);
        begins.push(edge.contains('/'));
        tree.parent.push(Some(above));
        tree.children.push(Vec::new());
        tree.children[above].push(v);
    }
    match number.iter().position(Option::is_none) {
        None => Ok(Rows { tree, order, begins }),
        Some(left) => Err(format!("an edge to each of {members} members, none to {left}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::Collective;
    use crate::topology::{Cpu, Shape};

    fn given(edges: &str, members: usize, root: usize) -> Result<(Tree, Vec<usize>), PlanError> {
        let problem = Problem { root, ..Problem::flat(Collective::Bcast, members, 8) };
        tree(
            &Params::new().with("edges", edges),
            &problem,
            &Participants { root, ..Participants::all(&problem) },
        )
    }

    #[test]
    fn edges_are_a_tree_in_their_order() {
        let (tree, order) = given("2-0,2-3,0-1", 4, 2).unwrap();
        assert_eq!(order, vec![2, 0, 3, 1]);
        assert_eq!(tree.children, vec![vec![1, 2], vec![3], vec![], vec![]]);
        assert_eq!(tree.parent, vec![None, Some(0), Some(0), Some(1)]);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for bad in ["0-1", "0-1,0-2,0-1", "1-2,0-1", "0-1,0-7", "0-1,2", "0-0,0-1,0-2"] {
            assert!(given(bad, 3, 0).is_err(), "{bad}");
        }
        // Rows are a reduction's.
        assert!(given("0-1,0/2", 3, 0).unwrap_err().to_string().contains("for reductions"));
        assert!(given("auto", 3, 2).is_ok());
        assert!(given("", 1, 0).is_ok());
    }

    #[test]
    fn without_edges_the_nearest_are_told_first() {
        let cpus = (0..16).map(|c| Cpu { os: c, core: c, l3: c / 4, numa: c / 8, package: 0, kind: 0 });
        let shape = Shape::on(cpus.collect());
        for root in 0..16 {
            let problem = Problem { shape: shape.clone(), root, ..Problem::flat(Collective::Bcast, 16, 8) };
            let (tree, order) = nearest_first(&problem, &Participants::all(&problem));
            let mut told = order.clone();
            told.sort_unstable();
            assert_eq!(told, (0..16).collect::<Vec<_>>());
            assert_eq!(order[0], root);
            // The root's first message stays under its cache.
            let first = order[tree.children[0][0]];
            assert_eq!(first / 4, root / 4);
        }
    }
}
