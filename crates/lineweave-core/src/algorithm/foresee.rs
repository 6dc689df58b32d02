//! How many ops a plan will have, told from smaller ones: what could not be held is refused before it is made.

use super::{Algorithm, Problem};
use crate::plan::{Blocks, Params, PlanError, MAX_OPS};
use crate::topology::Shape;

impl Algorithm {
    /// Refuses a plan that would be too large before it is made. Chunks follow each other alike, so ops grow with a
    /// long message as they do between two shorter ones; where each rank has blocks for all, they grow with the square of
    /// the ranks at most.
    pub(super) fn foresee(&self, problem: &Problem, params: &Params) -> Result<(), PlanError> {
        const SHORT: usize = 4 << 20;
        const FEW: usize = 512;
        let (bytes, ranks) = (problem.bytes, problem.ranks());
        let ops = |bytes: usize, ranks: usize| -> Result<f64, PlanError> {
            let mut smaller =
                Problem { bytes: (bytes / problem.grain).max(1) * problem.grain, ..problem.clone() };
            if ranks < problem.ranks() {
                (smaller.shape, smaller.root) = (Shape::flat(ranks), 0);
            }
            let made = self.make(&smaller, params, MAX_OPS);
            // What is said is said of the whole.
            let made = made.map_err(|e| match e {
                PlanError::TooLarge { ops, .. } => self.too_large(problem, ops, MAX_OPS),
                other => other,
            })?;
            Ok(made.programs.iter().map(Vec::len).sum::<usize>() as f64)
        };
        let dense = problem.blocks == Blocks::Dense;
        let expected = if dense && self.collective.has_blocks() && ranks >= 4 * FEW {
            let (one, two) = (ops(bytes, FEW)?, ops(bytes, 2 * FEW)?);
            // a r + b r^2 through both.
            let square = ((two - 2.0 * one) / 2.0).max(0.0);
            let r = ranks as f64 / FEW as f64;
            (one - square).max(0.0) * r + square * r * r
        } else if dense && bytes > 4 * SHORT {
            let (one, two) = (ops(SHORT, ranks)?, ops(2 * SHORT, ranks)?);
            two + (two - one).max(0.0) * (bytes as f64 / SHORT as f64 - 2.0)
        } else {
            return Ok(());
        };
        match expected <= MAX_OPS as f64 {
            true => Ok(()),
            false => Err(self.too_large(problem, expected as usize, MAX_OPS)),
        }
    }

    pub(super) fn too_large(&self, problem: &Problem, ops: usize, most: usize) -> PlanError {
        PlanError::TooLarge {
            algorithm: format!("{}/{}", self.collective, self.name),
            bytes: problem.bytes,
            ranks: problem.ranks(),
            ops,
            most,
        }
    }
}
