//! Forecast of a plan's number of ops from smaller plans: a plan that could not be held is refused before it is made.

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

    /// Refuses a plan for a long message that would have far more ops than so many, without counting each of them: allreduces of 16 MiB among 64 ranks
    /// have plans of millions, and counting those took four fifths of the time of choosing.
    pub(super) fn foresee_within(
        &self,
        problem: &Problem,
        params: &Params,
        most: usize,
    ) -> Result<(), PlanError> {
        const LONG: usize = 4 << 20;
        const PARTS: usize = 64;
        // Of a message that is longer still a part would be too long to count.
        let huge = problem.bytes / PARTS > LONG && problem.blocks == Blocks::Dense;
        if problem.bytes < LONG || problem.collective.has_blocks() && !huge {
            return Ok(());
        }
        let ops = |bytes: usize| {
            let smaller =
                Problem { bytes: (bytes / problem.grain).max(1) * problem.grain, ..problem.clone() };
            match self.emitted(&smaller, params, most, |_| ()) {
                Ok(builder) => Some(builder.ops()),
                Err(PlanError::TooLarge { ops, .. }) => Some(ops),
                // What does not apply to a part may apply to the whole.
                Err(_) => None,
            }
        };
        let short = if huge { LONG } else { problem.bytes / PARTS };
        let (Some(one), Some(two)) = (ops(short), ops(2 * short)) else { return Ok(()) };
        let expected = two + two.saturating_sub(one).saturating_mul(problem.bytes / short - 2);
        match expected <= 2 * most {
            true => Ok(()),
            false => Err(self.too_large(problem, expected, most)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm;

    #[test]
    fn what_is_foreseen_is_what_is_counted() {
        let mut seen = 0;
        for algorithm in algorithm::all().filter(|a| a.collective.moves_data() && !a.collective.has_blocks())
        {
            let problem = Problem { grain: 8, ..Problem::flat(algorithm.collective, 6, 8 << 20) };
            for params in (algorithm.candidates)(&problem) {
                let Ok(plan) = algorithm.make(&problem, &params, MAX_OPS) else { continue };
                let counted = plan.programs.iter().map(Vec::len).sum::<usize>();
                let name = format!("{} {params}", plan.name());
                match algorithm.foresee_within(&problem, &params, counted / 4) {
                    Err(PlanError::TooLarge { ops, .. }) => {
                        assert!(ops.abs_diff(counted) * 50 <= counted, "{name}: {ops} for {counted}");
                        seen += 1;
                    }
                    other => assert_eq!(other, Ok(()), "{name}"),
                }
                assert_eq!(algorithm.foresee_within(&problem, &params, counted), Ok(()), "{name}");
            }
        }
        assert!(seen > 30, "{seen} plans");
    }

    /// Counting the ops of a part of a TiB would take minutes.
    #[test]
    fn a_message_of_any_length_is_foreseen_by_short_ones() {
        for algorithm in algorithm::all().filter(|a| a.collective.moves_data()) {
            let problem = Problem { grain: 8, ..Problem::flat(algorithm.collective, 6, 1 << 44) };
            for params in (algorithm.candidates)(&problem) {
                if let Err(PlanError::TooLarge { ops, .. }) =
                    algorithm.foresee_within(&problem, &params, 1 << 16)
                {
                    assert!(ops > 1 << 16, "{} {params}: {ops}", algorithm.name);
                }
            }
        }
    }
}
