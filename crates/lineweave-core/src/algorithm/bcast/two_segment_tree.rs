//! Open MPI's shared-memory broadcast: a g-ary tree in which each rank's box holds two segments.
//!
//! Rico-Gallego & Diaz-Martin 2015, section 4.2. A child copies each segment from its parent's box first to its
//! own box, for its children, then (from the parent's box again) to its user buffer. Transfers of all levels
//! overlap; [`transfers`] gives the pipeline stage of each as Figs. 13 and 14 label them. Any P and root.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, chunk_grid};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const G: ParamSpec = ParamSpec { name: "g", default: "2", about: "children of a rank" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "two-segment-tree",
    about: "Open MPI coll/sm: g-ary tree, two segments a box, each segment copied on and then out",
    source: "Rico-Gallego & Diaz-Martin 2015, Figs. 13 and 14",
    params: &[
        G,
        settings::LAYOUT,
        settings::NOTIFY,
        settings::CARRY,
        ParamSpec { default: "8192", ..settings::CHUNK },
        ParamSpec { default: "2", ..settings::SLOTS },
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    if p < 3 || problem.bytes <= Layout::Alone.payload() {
        return Vec::new(); // With one reader or one line there is no pipeline: other trees cover those.
    }
    let mut out = Vec::new();
    for g in [2, 3, 4, 8].into_iter().filter(|&g| g < p) {
        out.push(Params::new().with("g", g));
        for chunk in chunk_grid(problem.bytes).into_iter().take(3) {
            out.push(Params::new().with("g", g).with("chunk", chunk));
        }
    }
    out
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let g = params.int("g", 2, 1..129)?;
    let relay = Relay { chunk: 8 << 10, slots: 2, twice: true, ..Relay::PLAIN }.read(params)?;
    relay.emit(b, s, &Tree::kary(s.len(), g), &cyclic(s));
    Ok(())
}

/// Destination of a transfer of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A segment `b` of the rank's own box.
    Box,
    /// A segment `u` of its user buffer.
    User,
}

/// One transfer of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Virtual rank that copies.
    pub rank: usize,
    /// Segment of the message.
    pub segment: usize,
    /// Into what.
    pub target: Target,
    /// Pipeline stage, from 1.
    pub stage: usize,
}

/// The pipeline stage of the transfer of `segment` to `target` by a rank at `level` of a tree whose deepest
/// level is `deepest` (Rico-Gallego & Diaz-Martin 2015, Fig. 13).
///
/// The root fills a box segment every second stage; each level follows one stage later and copies to its
/// user buffer in the stage after that. A level is in step: its leaves copy to their user buffers when its
/// inner ranks do. The deepest level has no box to fill and copies at once.
pub fn stage(level: usize, deepest: usize, segment: usize, target: Target) -> usize {
    let written = 1 + 2 * segment + level;
    match target {
        Target::Box => written,
        Target::User => written + usize::from(level < deepest),
    }
}

/// Every transfer of a broadcast of `segments` segments to `p` ranks down a tree of degree `g`, with its
/// stage. The number of transfers of a stage is the concurrency tau of its cost L(S, tau) in Fig. 14.
pub fn transfers(p: usize, g: usize, segments: usize) -> Vec<Transfer> {
    let tree = Tree::kary(p, g);
    let (levels, deepest) = (tree.levels(), tree.depth());
    let mut out = Vec::new();
    for (rank, &level) in levels.iter().enumerate() {
        for segment in 0..segments {
            let mut push = |target| {
                let stage = stage(level, deepest, segment, target);
                out.push(Transfer { rank, segment, target, stage });
            };
            if !tree.children[rank].is_empty() {
                push(Target::Box);
            }
            if rank > 0 {
                push(Target::User);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FlagRef, Op, Space};
    use std::collections::HashMap;

    fn in_stage(p: usize, g: usize, k: usize, stage: usize) -> Vec<Transfer> {
        transfers(p, g, k).into_iter().filter(|t| t.stage == stage).collect()
    }

    /// "Segment b00 is written in stage 1 and again in stage 5. Segments b01, u10, u20 and b30 are written
    /// concurrently at stage 3." "The cost of stage 4 is L(S, 2^1 + 2^2 + 2^0) = L(S, 7)."
    #[test]
    fn stages_are_those_of_rico_gallego_figures_13_and_14() {
        let b00: Vec<usize> = transfers(8, 2, 4)
            .iter()
            .filter(|t| t.rank == 0 && t.segment % 2 == 0)
            .map(|t| t.stage)
            .collect();
        assert_eq!(b00, vec![1, 5]);
        let third: Vec<(usize, usize, Target)> =
            in_stage(8, 2, 4, 3).iter().map(|t| (t.rank, t.segment, t.target)).collect();
        use Target::{Box, User};
        assert_eq!(third, vec![(0, 1, Box), (1, 0, User), (2, 0, User), (3, 0, Box)]);
        let counts: Vec<usize> = (1..=11).map(|n| in_stage(8, 2, 4, n).len()).collect();
        assert_eq!(counts, vec![1, 2, 4, 7, 4, 7, 4, 7, 3, 5, 0]);
    }

    /// The labels are a schedule of the very plan: whatever a transfer waits for, by flags or because its
    /// rank is busy, carries a smaller label.
    #[test]
    fn the_plan_can_run_in_the_stages_of_figure_13() {
        for (p, g, k, root) in [(8, 2, 4, 0), (8, 2, 4, 3), (13, 3, 5, 0), (2, 2, 3, 1), (40, 4, 7, 11)] {
            let problem = Problem { root, ..Problem::flat(Collective::Bcast, p, 256 * k) };
            let params = Params::new().with("g", g).with("chunk", 256);
            let plan = ALGORITHM.plan(&problem, &params).unwrap();
            let tree = Tree::kary(p, g);
            let (levels, deepest) = (tree.levels(), tree.depth());
            let mut reached: HashMap<(FlagRef, i32), usize> = HashMap::new();
            let mut at = vec![(0, 0); p]; // Next op and last stage of each rank.
            let mut moved = 0;
            loop {
                let before = at.clone();
                for (rank, (next, last)) in at.iter_mut().enumerate() {
                    let v = (rank + p - root) % p;
                    let program = &plan.programs[rank];
                    while let Some(op) = program.get(*next) {
                        match *op {
                            Op::Move { dst, .. } => {
                                let (target, segment) = if dst.space == Space::Out {
                                    (Target::User, dst.offset / 256)
                                } else {
                                    // Segments of a box are written in order.
                                    let boxed = |o: &&Op| matches!(o, Op::Move { dst, .. } if !dst.space.is_private());
                                    (Target::Box, program[..*next].iter().filter(boxed).count())
                                };
                                let label = stage(levels[v], deepest, segment, target);
                                assert!(label > *last, "p={p} rank {rank}: {target:?} {segment}");
                                *last = label;
                                moved += 1;
                            }
                            Op::Set { flag, value, .. } => drop(reached.insert((flag, value), *last)),
                            Op::Wait { flag, value, .. } if value > 0 => match reached.get(&(flag, value)) {
                                Some(&stage) => *last = stage.max(*last),
                                None => break,
                            },
                            Op::Wait { .. } => {}
                            Op::Fold { .. } | Op::Add { .. } => unreachable!("a broadcast does neither"),
                        }
                        *next += 1;
                    }
                }
                if at == before {
                    break;
                }
            }
            assert_eq!(moved, transfers(p, g, k).len());
            assert_eq!(plan.slots, vec![256; 2]);
        }
    }
}
