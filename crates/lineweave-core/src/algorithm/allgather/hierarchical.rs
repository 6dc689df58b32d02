//! Hierarchical: a block crosses to another group once, and its members read it there.
//!
//! 1. Each rank puts its block into its box.
//! 2. The members of a group share out the blocks of all other groups, and each copies its share into its box.
//! 3. Everybody copies the blocks of its group from their owners, and the others from the members who fetched them.
//!
//! Where `all-read-all` carries every block over the far link once a rank, this carries it once a group, and all members
//! fetch at once instead of a leader alone (as in Ramos & Hoefler 2013, section 4.3, and Open MPI's XHC). Any P; on
//! a shape without levels it is `all-read-all`.

use super::super::pieces::{copy, input, keep_own, output, trivial, Packed, LAYOUT};
use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};
use crate::topology::Level;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "hierarchical",
    about: "each block is fetched once by a group and read there by its members",
    source: "Ramos & Hoefler 2013, section 4.3; Open MPI XHC",
    params: &[
        ParamSpec {
            name: "level",
            default: "auto",
            about: "groups: core, l3, numa, package; auto: the outermost",
        },
        LAYOUT,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.bytes == 0 {
        return Vec::new();
    }
    problem.shape.useful_levels().into_iter().map(|l| Params::new().with("level", l)).collect()
}

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read(LAYOUT.name, Layout::Alone)?;
    let level = match params.get("level") {
        None | Some("auto") => problem.shape.useful_levels().last().copied().unwrap_or(Level::Machine),
        Some(_) => params.read("level", Level::Machine)?,
    };
    let (p, grid) = (b.ranks(), problem.grid());
    if trivial(b, &grid) {
        return Ok(());
    }
    b.ring();
    let len = |j: usize| grid.len(j, j);
    let groups = problem.shape.groups(level);
    // What each member of each group fetches, packed.
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); p];
    for group in groups.iter().filter(|g| g.len() > 1) {
        let far: Vec<usize> = (0..p).filter(|j| !group.contains(j)).collect();
        for (m, &rank) in group.iter().enumerate() {
            shares[rank] = far[block(far.len(), 1, group.len(), m)].to_vec();
        }
    }
    let packed: Vec<Packed> = shares.iter().map(|s| Packed::new(s.iter().map(|&j| len(j)))).collect();
    let slot = b.slot(grid.bytes);
    let relay = b.slot(packed.iter().map(Packed::total).max().unwrap_or(0));
    let written = b.flags("written", layout, 1);
    let fetched = b.flags("fetched", layout, 1);
    for group in &groups {
        for (m, &rank) in group.iter().enumerate() {
            let out = |j: usize| output(grid.taken(rank, j));
            // 1. The own block.
            b.mov(rank, input(0..len(rank)), boxed(rank, slot, 0..len(rank)));
            b.set(rank, written.at(rank, 0), 1);
            // 2. The share of the far ones; whoever is alone takes them where they belong.
            for (n, &j) in shares[rank].iter().enumerate() {
                b.wait(rank, written.at(j, 0), 1);
                b.mov(rank, boxed(j, slot, 0..len(j)), boxed(rank, relay, packed[rank].at(n)));
            }
            if packed[rank].total() > 0 {
                b.set(rank, fetched.at(rank, 0), 1);
            }
            keep_own(b, &grid, rank);
            // 3. The near ones, then the far ones.
            let near = (1..group.len()).map(|d| group[(m + d) % group.len()]);
            let alone = (0..p).filter(|&j| group.len() == 1 && j != rank);
            for j in near.clone().chain(alone) {
                b.wait(rank, written.at(j, 0), 1);
                b.mov(rank, boxed(j, slot, 0..len(j)), out(j));
            }
            for q in std::iter::once(rank).chain(near).filter(|&q| packed[q].total() > 0) {
                if q != rank {
                    b.wait(rank, fetched.at(q, 0), 1);
                }
                let blocks = shares[q].iter().enumerate();
                copy(b, rank, blocks.map(|(n, &j)| [boxed(q, relay, packed[q].at(n)), out(j)]));
            }
        }
    }
    Ok(())
}
