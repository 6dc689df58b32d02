//! Runs of ranks that share CPUs and run ahead of each other, round a ring of banks. A rank that has its turn goes as many runs ahead as
//! there are banks; then it waits until the others have had theirs. So a lap of the ring takes some turns, whose number does not depend
//! on the ring's length, and the work of its runs, which grows with it: laps of two short rings tell both.

use super::{compile, play, Cost, Options};
use crate::model::Model;
use crate::plan::{Plan, Reuse};
use crate::topology::Shape;
use crate::units::{Nanos, Rank};

/// Banks of the two rings that are played, and laps of each that are timed.
const FULL: ([usize; 2], usize) = ([8, 32], 2);
/// Banks and laps where few runs are asked for, to put plans in an order.
const ROUGH: ([usize; 2], usize) = ([2, 6], 1);
/// Most runs that are few.
const FEW: usize = 4;

/// Returns whether ranks run ahead of each other round a longer ring than those that are played.
pub fn is_long(shape: &Shape, plan: &Plan, options: &Options) -> bool {
    let ahead = plan.reuse == Reuse::Ring && plan.collective.one_way();
    options.runs > 1 && shape.oversubscription() > 1 && ahead && options.banks > FULL.0[1]
}

/// Returns the number of runs after which a run comes back to the same slots.
pub fn apart(plan: &Plan, options: &Options) -> f64 {
    let slots = plan.slots.iter().sum::<usize>();
    match plan.reuse {
        Reuse::Same => 1.0,
        Reuse::Ring if options.walk > 0 && slots > 0 => options.walk as f64 / slots as f64,
        Reuse::Ring => options.banks as f64,
    }
}

/// Returns the cost of a plan from run to run, from laps of two short rings of banks, the first of which is not timed.
///
/// # Errors
/// The first rank, and its op, that names what the plan does not have.
pub fn cost(model: &Model, shape: &Shape, plan: &Plan, options: &Options) -> Result<Cost, (Rank, usize)> {
    let ([short, long], laps) = if options.runs <= FEW { ROUGH } else { FULL };
    let lap = |banks: usize| {
        let runs = (1 + laps) * banks;
        let limit = options.limit * runs as f64 / options.runs as f64;
        let options = Options { banks, runs, limit, ..*options };
        let program = compile::compile(plan, model.line_bytes, &options)?;
        Ok(play::play(model, shape, plan, &program, &options, Some(laps * banks)))
    };
    let (less, more) = (lap(short)?, lap(long)?);
    let each = |a: Nanos, b: Nanos| {
        let (a, b) = (a.0 * short as f64, b.0 * long as f64);
        let run = ((b - a) / (long - short) as f64).max(0.0);
        Nanos((b + run * (options.banks - long) as f64) / options.banks as f64)
    };
    let per_rank = less.per_rank.iter().zip(&more.per_rank).map(|(&a, &b)| each(a, b)).collect();
    Ok(Cost { total: each(less.total, more.total), per_rank, ..more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{self, Problem};
    use crate::collective::Collective;
    use crate::machine::topology;
    use crate::model::Values;
    use crate::plan::Params;

    /// Two short rings tell what several laps of the whole one take.
    #[test]
    fn laps_of_short_rings_cost_what_laps_of_a_long_one_do() {
        let model = Values::default().model();
        let (mut seen, mut off) = (0.0, 0.0);
        for collective in [Collective::Bcast, Collective::Reduce, Collective::Gather, Collective::Scan] {
            for algorithm in algorithm::table(collective) {
                for ranks in [3, 4, 8] {
                    let shape = Shape::place(ranks, &topology("pack:1 l3:1 core:2").expect("a topology"));
                    let Ok(plan) = algorithm.plan(&Problem::flat(collective, ranks, 64), &Params::new())
                    else {
                        continue;
                    };
                    let options = Options { runs: 8, banks: 64, ..Options::default() };
                    if !is_long(&shape, &plan, &options) {
                        continue;
                    }
                    let told = cost(&model, &shape, &plan, &options).expect("a cost").total.0;
                    let laps = Options { runs: 5 * 64, ..options };
                    let program = compile::compile(&plan, model.line_bytes, &laps).expect("a program");
                    let played = play::play(&model, &shape, &plan, &program, &laps, Some(4 * 64)).total.0;
                    let factor = (told / played).ln().abs();
                    assert!(factor.exp() < 1.9, "{}, {ranks} ranks: {told} for {played}", plan.name());
                    (seen, off) = (seen + 1.0, off + factor);
                }
            }
        }
        let off: f64 = off / seen;
        assert!(seen > 40.0 && off.exp() < 1.2, "{seen} plans, off by {}", off.exp());
    }
}
