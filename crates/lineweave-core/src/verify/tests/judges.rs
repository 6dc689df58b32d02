//! The checker beside its second judge, on plans of every algorithm.

use super::*;

/// Plans of every algorithm that are small enough to be looked at step by step.
fn small_plans() -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::new();
    for algorithm in algorithm::all() {
        let (bytes, grain) = if algorithm.collective.moves_data() { (960, 8) } else { (0, 1) };
        for (ranks, direct) in [(3, false), (4, true)] {
            let problem = Problem { direct, grain, ..Problem::flat(algorithm.collective, ranks, bytes) };
            for params in (algorithm.candidates)(&problem).into_iter().take(3) {
                plans.push(algorithm.plan(&problem, &params).unwrap());
            }
        }
    }
    plans
}

#[test]
fn more_runs_prove_no_more() {
    for plan in small_plans() {
        assert_eq!(verify_runs(&plan, 5), verify(&plan), "{}", plan.name());
        for mutant in mutants(&plan).step_by(7) {
            assert_eq!(
                verify_runs(&mutant.plan, 5).is_ok(),
                verify(&mutant.plan).is_ok(),
                "{} with {:?} at rank {} op {}",
                plan.name(),
                mutant.change,
                mutant.rank,
                mutant.op
            );
        }
    }
}

#[test]
fn both_judges_agree() {
    let mut agreed = 0;
    for plan in small_plans() {
        let proof = verify(&plan).unwrap_or_else(|v| panic!("{}: {v}", plan.name()));
        assert!(reference::equivalent(&plan, &plan), "{}", plan.name());
        for mutant in mutants(&plan).step_by(3).filter(|m| m.change != Change::SecondWriter) {
            let good = match verify(&mutant.plan) {
                Ok(p) => p.result_hash == proof.result_hash,
                // What the second judge does not look at.
                Err(
                    Violation::Shape { .. } | Violation::SecondWriter { .. } | Violation::NoAddress { .. },
                ) => continue,
                Err(Violation::Undefined { .. } | Violation::CounterOverlap { .. }) => continue,
                Err(_) => false,
            };
            agreed += 1;
            assert_eq!(
                reference::equivalent(&plan, &mutant.plan),
                good,
                "{} with {:?} at rank {} op {} `{}`",
                plan.name(),
                mutant.change,
                mutant.rank,
                mutant.op,
                mutant.text
            );
        }
    }
    assert!(agreed > 20, "{agreed}");
}
