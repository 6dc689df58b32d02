//! Generated trees: a reduction along rows and columns of a mesh by the tree that costs least there.
//!
//! Luczynski et al. 2024. Members lie on a mesh row by row, `cores` of them at one place. In each place the others report
//! to the core that has the root's place in its own; each row is then reduced to the column of the root, and that
//! column to the root. A row has up to two sides, each with a tree for its length ([`row_trees`](super::super::row_trees)):
//! a star, a chain, a binary tree, two phases of chains, or (`tree=auto`) what dynamic programming finds for the
//! costs given. Chunks climb as in `pipelined`. Any P and root.

use super::super::pieces::LAYOUT;
use super::super::row_trees::{fixed, generate, RowCosts};
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem, MAX_RANKS};
use super::pipelined::{climb, Pipeline};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "generated",
    about: "trees along rows and columns, generated for the costs of a mesh",
    source: "Luczynski et al. 2024",
    params: &[
        ParamSpec { name: "tree", default: "auto", about: "auto, or one of star, chain, binary, two-phase" },
        ParamSpec { name: "columns", default: "0", about: "places of a row; 0: all are one row" },
        ParamSpec { name: "cores", default: "1", about: "ranks at a place" },
        ParamSpec {
            name: "costs",
            default: "1,1,1,5",
            about: "of a unit received, a unit on a link, a hop, and a message that needs the one before",
        },
        ParamSpec { name: "unit", default: "4", about: "bytes of a unit" },
        ParamSpec { name: "chunk", default: "8192", about: "bytes of a chunk" },
        ParamSpec { name: "slots", default: "2", about: "chunks a rank holds for its parent" },
        LAYOUT,
    ],
    // Who knows where on a mesh ranks lie gives the parameters.
    candidates: |_| Vec::new(),
    emit,
};

/// Members on a mesh.
#[derive(Clone, Copy, Debug)]
struct Mesh {
    members: usize,
    columns: usize,
    cores: usize,
}

impl Mesh {
    fn places(self) -> usize {
        self.members.div_ceil(self.cores)
    }

    /// The core that speaks for a place.
    fn lead(self, place: usize, root: usize) -> usize {
        (place * self.cores + root % self.cores).min(self.members - 1)
    }

    /// For each member but the root the one that it reports to; `shape` gives the tree of a side by its length.
    fn parents(self, root: usize, mut shape: impl FnMut(usize) -> Tree) -> Vec<Option<usize>> {
        let mut parent = vec![None; self.members];
        let (x, y) = (root / self.cores % self.columns, root / self.cores / self.columns);
        let rows = self.places().div_ceil(self.columns);
        let mut join = |places: &[usize]| {
            let tree = shape(places.len());
            for v in 1..places.len() {
                let above = tree.parent[v].unwrap_or(0);
                parent[self.lead(places[v], root)] = Some(self.lead(places[above], root));
            }
        };
        for row in 0..rows {
            let (first, end) = (row * self.columns, ((row + 1) * self.columns).min(self.places()));
            // A last row that does not reach the root's column goes to its own end, which stands in for it below.
            let meet = (first + x).min(end - 1);
            join(&(first..=meet).rev().collect::<Vec<_>>());
            join(&(meet..end).collect::<Vec<_>>());
        }
        let at = |row: usize| (row * self.columns + x).min(self.places() - 1);
        join(&(0..=y).rev().map(at).collect::<Vec<_>>());
        join(&(y..rows).map(at).collect::<Vec<_>>());
        for (member, above) in parent.iter_mut().enumerate() {
            let lead = self.lead(member / self.cores, root);
            if member != lead {
                *above = Some(lead);
            }
        }
        parent[root] = None;
        parent
    }
}

/// The tree of these parents, numbered so that each subtree is a run and lower ones come first, and the member that each
/// virtual rank is.
fn numbered(root: usize, parent: &[Option<usize>]) -> (Tree, Vec<usize>) {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); parent.len()];
    for (member, above) in parent.iter().enumerate() {
        if let Some(above) = above {
            below[*above].push(member);
        }
    }
    let (_, breadth) = Tree::breadth_first(root, &below);
    let mut height = vec![0usize; parent.len()];
    for &member in breadth.iter().rev() {
        below[member].sort_by_key(|&m| (height[m], m));
        height[member] = below[member].iter().map(|&m| height[m] + 1).max().unwrap_or(0);
    }
    let (tree, members) = Tree::breadth_first(root, &below);
    let (tree, order) = tree.renumbered();
    (tree, order.into_iter().map(|v| members[v]).collect())
}

fn costs(params: &Params) -> Result<RowCosts, PlanError> {
    let text = params.get("costs").unwrap_or("1,1,1,5");
    let numbers: Option<Vec<u64>> =
        text.split(',').map(|n| n.trim().parse().ok().filter(|&n: &u64| n <= 1 << 32)).collect();
    match numbers.as_deref() {
        Some(&[receive, link, hop, depth]) => Ok(RowCosts { receive, link, hop, depth }),
        _ => Err(PlanError::bad("costs", text, "four whole numbers, such as 1,1,1,5")),
    }
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let columns = match params.int("columns", 0, 0..MAX_RANKS + 1)? {
        0 => s.len().max(1),
        columns => columns,
    };
    let cores = params.int("cores", 1, 1..MAX_RANKS + 1)?;
    let units = s.bytes.div_ceil(params.int("unit", 4, 1..usize::MAX)?) as u64;
    let costs = costs(params)?;
    let name = params.get("tree").unwrap_or("auto");
    let mut known: Vec<Option<Tree>> = vec![None; s.len() + 1];
    if name != "auto" && !fixed(1).iter().any(|(n, _)| *n == name) {
        return Err(PlanError::bad("tree", name, "auto, star, chain, binary or two-phase"));
    }
    let shape = |p: usize| {
        let made = known[p].get_or_insert_with(|| {
            let given = fixed(p).into_iter().find(|(n, _)| *n == name);
            given.map_or_else(|| generate(p, units, costs), |(_, tree)| tree)
        });
        made.clone()
    };
    let mesh = Mesh { members: s.len(), columns, cores };
    let (tree, order) = numbered(s.root, &mesh.parents(s.root, shape));
    let how = Pipeline {
        chunk: params.int("chunk", 8192, 1..usize::MAX)?,
        depth: params.int("slots", 2, 1..1025)?,
        layout: params.read("layout", Layout::Alone)?,
    };
    climb(b, &s.in_order(&order), &tree, how);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_costs_and_trees_are_refused() {
        let problem = Problem::flat(Collective::Reduce, 5, 40);
        for (name, value) in [("costs", "1,1,1"), ("costs", "1,-1,1,5"), ("tree", "oak")] {
            assert!(ALGORITHM.plan(&problem, &Params::new().with(name, value)).is_err(), "{name}={value}");
        }
    }
}
