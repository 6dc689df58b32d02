//! Every algorithm, for every number of ranks, root, size and shape that a proof should cover.

use super::{verify, Proof, Violation};
use crate::algorithm::{self, Algorithm, Problem};
use crate::collective::Collective;
use crate::plan::{Blocks, Params, Plan, PlanError, Uneven};
use crate::topology::{Cpu, Shape, Topology};
use std::sync::Arc;

/// Density of the sweep: the roots and sizes that are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Density {
    /// Every root and every size, though not every pair of them: the outermost and the middle root with every
    /// size, the other roots with one each, in turn; the larger sizes and the hierarchical shapes for some
    /// numbers of ranks only.
    Representative,
    /// Every root with every size, for every number of ranks.
    Full,
}

/// One algorithm for one number of ranks: what one worker takes at a time.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// The number of ranks.
    pub ranks: usize,
}

/// A plan of the sweep and what became of it.
#[derive(Debug)]
pub struct Case<'a> {
    /// Problem that the plan was made for.
    pub problem: &'a Problem,
    /// The parameters it was made with.
    pub params: &'a Params,
    /// The proof; or why there is none.
    pub outcome: Result<Proof, Failure>,
}

/// Why a case of the sweep failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A candidate that its own algorithm refuses.
    #[error("the algorithm offers these parameters but makes no plan: {0}")]
    NoPlan(#[from] PlanError),
    /// The plan is wrong.
    #[error("{0}")]
    Wrong(#[from] Violation),
}

impl Case<'_> {
    /// The case in words: `bcast/binomial layout=alone, 7 ranks, root 3, 57 bytes`.
    pub fn name(&self, algorithm: &Algorithm) -> String {
        let p = self.problem;
        format!(
            "{algorithm:?} {}, {} ranks{}, root {}, {} bytes{} in elements of {}{}",
            self.params,
            p.ranks(),
            if p.shape == Shape::flat(p.ranks()) { "" } else { " on levels" },
            p.root,
            p.bytes,
            match &p.blocks {
                Blocks::Dense => String::new(),
                Blocks::Apart(pitch) => format!(" of blocks of {pitch}"),
                Blocks::Uneven(u) => format!(" of blocks of {:?}", u.counts()),
            },
            p.grain,
            if p.direct { ", direct" } else { "" }
        )
    }
}

/// The units of a sweep of the whole table over 1 ..= `max_ranks` ranks.
pub fn units(max_ranks: usize) -> Vec<Unit> {
    units_of(&algorithm::all().collect::<Vec<_>>(), max_ranks)
}

/// The units of a sweep of some algorithms, the expensive ones first so that workers end together.
pub fn units_of(algorithms: &[&'static Algorithm], max_ranks: usize) -> Vec<Unit> {
    (1..=max_ranks)
        .rev()
        .flat_map(|ranks| algorithms.iter().map(move |&algorithm| Unit { algorithm, ranks }))
        .collect()
}

impl Unit {
    /// Proves every plan of this unit and hands each case to `each`; returns the number of plans.
    pub fn run(&self, density: Density, each: &mut dyn FnMut(&Case)) -> usize {
        let mut plans = 0;
        let roots = if self.algorithm.collective.rooted() { self.ranks } else { 1 };
        let sizes = sizes(self.algorithm.collective);
        for root in 0..roots {
            for (i, &(bytes, grain)) in sizes.iter().enumerate() {
                if wanted(density, self.ranks, roots, root, i, sizes.len()) {
                    let blocks = blocks(self.algorithm.collective, self.ranks, i, bytes, grain);
                    plans += self.problems(density, root, bytes, grain, &blocks, each);
                }
            }
        }
        plans
    }

    /// The plans of one root and size on every shape, with and without direct access, each plan once.
    fn problems(
        &self,
        density: Density,
        root: usize,
        bytes: usize,
        grain: usize,
        blocks: &Blocks,
        each: &mut dyn FnMut(&Case),
    ) -> usize {
        let mut seen: Vec<(Params, Plan)> = Vec::new();
        let mut shapes = vec![Shape::flat(self.ranks)];
        let outer = root == 0 || root + 1 == self.ranks || root == self.ranks / 2;
        if density == Density::Full || (outer && (self.ranks <= 17 || self.ranks % 8 == 0)) {
            shapes.extend(levels(self.ranks));
        }
        for shape in shapes {
            for direct in [false, true] {
                let problem = Problem {
                    collective: self.algorithm.collective,
                    shape: shape.clone(),
                    root,
                    bytes,
                    blocks: blocks.clone(),
                    grain,
                    direct,
                };
                for params in self.algorithm.trials(&problem) {
                    let outcome = match self.algorithm.plan(&problem, &params) {
                        Err(error) => Err(error.into()),
                        Ok(plan) => {
                            if seen.iter().any(|(q, other)| *q == params && *other == plan) {
                                continue;
                            }
                            let outcome = verify(&plan).map_err(Failure::from);
                            seen.push((params.clone(), plan));
                            outcome
                        }
                    };
                    each(&Case { problem: &problem, params: &params, outcome });
                }
            }
        }
        seen.len()
    }
}

/// Message and element sizes: nothing, one element, odd counts, the most a flag's line carries and one more, a
/// few lines, and many chunks with a ragged tail.
pub fn sizes(collective: Collective) -> &'static [(usize, usize)] {
    match collective {
        Collective::Barrier => &[(0, 1)],
        Collective::Bcast => &[(0, 1), (1, 1), (24, 1), (56, 1), (57, 1), (999, 1), (20_011, 1), (70_001, 1)],
        Collective::Reduce | Collective::Allreduce => {
            &[(0, 8), (8, 8), (24, 8), (56, 4), (64, 8), (1_004, 4), (20_008, 8), (70_002, 2)]
        }
        Collective::Scan | Collective::Exscan => {
            &[(0, 8), (8, 8), (24, 8), (56, 4), (64, 8), (1_004, 4), (20_008, 8), (40_002, 2)]
        }
        Collective::Gather | Collective::Scatter | Collective::Allgather | Collective::Alltoall => {
            &[(0, 1), (1, 1), (7, 1), (24, 1), (56, 1), (57, 1), (999, 1), (600, 1), (1_001, 1), (20_011, 1)]
        }
        Collective::ReduceScatter => {
            &[(0, 8), (8, 8), (6, 2), (8, 4), (56, 4), (64, 8), (1_004, 4), (600, 8), (4_002, 2), (20_008, 8)]
        }
    }
}

/// The blocks of a collective that exchanges some, size by size in turn: one after the other, a window of longer ones,
/// and of different lengths, some of them empty and some longer than the window.
pub fn blocks(collective: Collective, ranks: usize, turn: usize, bytes: usize, grain: usize) -> Blocks {
    if !collective.has_blocks() || bytes == 0 {
        return Blocks::Dense;
    }
    match turn % 3 {
        0 => Blocks::Dense,
        1 => Blocks::Apart(bytes + 3 * grain),
        _ => {
            let elements = bytes / grain;
            let count = |i: usize| elements * ((i * 7 + 3 * ranks) % 5) / 2 * grain;
            let uneven = |n: usize| {
                let mut counts: Vec<usize> = (0..n).map(count).collect();
                counts[n / 2] = bytes;
                counts
            };
            let whole = match collective {
                Collective::Alltoall => Uneven::by_pair(ranks, uneven(ranks * ranks)),
                _ => Uneven::by_rank(uneven(ranks)),
            };
            Blocks::Uneven(Arc::new(whole.window(0..bytes)))
        }
    }
}

fn wanted(density: Density, ranks: usize, roots: usize, root: usize, size: usize, sizes: usize) -> bool {
    if density == Density::Full {
        return true;
    }
    let large = size + 2 >= sizes && sizes > 1;
    if large && ranks > 17 && ranks % 16 > 1 {
        return false;
    }
    root == 0 || root + 1 == roots || root == roots / 2 || (root + ranks) % sizes == size
}

/// Hierarchical shapes: SMT pairs under shared caches in two packages; a ragged one; ranks that outnumber CPUs;
/// and neighbours in rank that are far apart.
fn levels(ranks: usize) -> Vec<Shape> {
    let cpu = |os: usize, smt: usize, l3: usize, numa: usize, package: usize| Cpu {
        os,
        core: os / smt,
        l3: os / l3,
        numa: os / numa,
        package: os / package,
        kind: 0,
    };
    let topology = |n: usize, f: &dyn Fn(usize) -> Cpu| Topology { cpus: (0..n).map(f).collect::<Vec<_>>() };
    if ranks < 3 {
        return Vec::new();
    }
    let tidy = topology(64, &|os| cpu(os, 2, 4, 8, 16));
    let ragged = topology(ranks, &|os| cpu(os, 1, 3, 5, 5));
    let few = topology(ranks.div_ceil(3), &|os| cpu(os, 1, 2, 2, 2));
    let scattered = Shape::on((0..ranks).map(|r| cpu((r * 7) % ranks.max(8), 1, 2, 4, 4)).collect());
    vec![Shape::place(ranks, &tidy), Shape::place(ranks, &ragged), Shape::place(ranks, &few), scattered]
}
