//! A tree given edge by edge, for machines whose distances follow no hierarchy.
//!
//! `lineweave lab optimise reduce` makes the edges from latencies between ranks (`optimise::matrix`). A parent folds its
//! children's partial results in the edges' order, which need not be that of ranks. Any P; the edges begin at the
//! root. Without edges it is the tree that tells the nearest first, upwards.
//!
//! Waits that follow each other overlap, and folds in between end that; but what is folded at last delays the result. So
//! children that come together are heard in one row, and folded before the next row: `0-4,0-2,0/5`.

use super::super::edges;
use super::super::pieces::LAYOUT;
use super::super::{Algorithm, ParamSpec, Problem};
use super::up::{up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "edges",
    about: "a tree given edge by edge, as made from latencies between ranks",
    source: "Bhat, Raghavendra & Prasanna 2003",
    params: &[
        edges::EDGES,
        LAYOUT,
        ParamSpec {
            name: "fold",
            default: "each",
            about: "a few bytes: each as it comes; last, when all of a row's are there (0/5 in edges begins the next)",
        },
    ],
    candidates,
    emit: |b, problem, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let last = params.one_of("fold", false, &[("each", false), ("last", true)])?;
        let rows = edges::rows(params, problem, s)?;
        let together = last.then_some(&rows.begins[..]);
        let travel = Travel { layout, at_parent: false, direct: false, rows: together };
        up(b, &s.in_order(&rows.order), &rows.tree, travel)
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    match problem.shape.useful_levels().is_empty() {
        true => Vec::new(), // Without levels all are as near.
        false => vec![Params::new(), Params::new().with("fold", "last")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Op;
    use crate::verify::verify;

    #[test]
    fn rows_are_folded_by_halves_and_proved() {
        for (edges, folds) in [
            // Eight values, then one more.
            ("0-1,0-2,0-3,0-4,0-5,0-6,0-7,0/8", [3, 1]),
            ("0-1,0/2,0-3,0-4,0-5,0-6,0-7,0-8", [1, 3]),
            ("0-1,0-2,0/3,0-4,0/5,0-6,0-7,0-8", [4, 3]),
            ("0-1,0-2,0-3,0-4,0-5,0-6,0-7,0-8", [4, 0]),
        ] {
            // Beside the flag, and in a buffer of its own.
            for bytes in [8, 48, 64] {
                let problem = Problem { grain: 8, ..Problem::flat(Collective::Reduce, 9, bytes) };
                let of = |fold: &str| {
                    let params = Params::new().with("edges", edges).with("fold", fold);
                    let plan = ALGORITHM.plan(&problem, &params).unwrap();
                    verify(&plan).unwrap_or_else(|v| panic!("{edges} {fold} {bytes}: {v}"));
                    plan.programs[0].iter().filter(|op| matches!(op, Op::Fold { .. })).count()
                };
                let rows: usize = folds.iter().sum();
                assert_eq!(
                    (of("last"), of("each")),
                    (if bytes < 64 { rows } else { 8 }, 8),
                    "{edges} {bytes}"
                );
            }
        }
    }
}
