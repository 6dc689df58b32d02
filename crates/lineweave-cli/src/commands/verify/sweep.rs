//! A sweep over every plan of some algorithms, on all usable CPUs.

use super::{Changed, Totals, Violation};
use crate::error::CliError;
use crate::session::Session;
use lineweave::cpus::UsableCpus;
use lineweave_core::algorithm::Algorithm;
use lineweave_core::verify::mutate::{sample, Change};
use lineweave_core::verify::sweep::{units_of, Density, Unit};
use std::sync::{Mutex, PoisonError};

/// Most mutants of one plan by one kind of change, evenly spread over the plan.
const MUTANTS: usize = 15;
/// Longest message in elements whose plans are also mutated: judging a mutant that passes examines every element
/// separately.
const LONGEST_CHANGED: usize = 1024;
/// Most counter-examples that are printed; the smallest come first, since they say most.
const SHOWN: usize = 20;

#[derive(Default)]
struct Findings {
    plans: usize,
    changed: Changed,
    missed: Vec<String>,
    /// Violations, each with its number of ranks.
    violations: Vec<(usize, Violation)>,
}

/// Proves the plans of these algorithms for 1 to `ranks` ranks and prints the violations.
pub(super) fn run(
    algorithms: &[&'static Algorithm],
    ranks: usize,
    full: bool,
    mutate: bool,
    session: &mut Session,
) -> Result<Totals, CliError> {
    let list = units_of(algorithms, ranks);
    // The work grows with about the square of the number of ranks.
    let weight = |unit: &Unit| (unit.ranks * unit.ranks) as u64;
    let bar = session.out.progress_of_work(list.iter().map(weight).sum());
    let density = if full { Density::Full } else { Density::Representative };
    let queue = Mutex::new(list.into_iter());
    let found = Mutex::new(Findings::default());
    let work = || loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(unit) = next else { break };
        let mine = prove(&unit, density, mutate);
        let mut all = found.lock().unwrap_or_else(PoisonError::into_inner);
        all.plans += mine.plans;
        all.changed.add(mine.changed);
        all.violations.extend(mine.violations);
        all.missed.extend(mine.missed);
        bar.set_message(format!("{} plans, {} violations", all.plans, all.violations.len()));
        bar.inc(weight(&unit));
    };
    std::thread::scope(|scope| {
        for _ in 1..UsableCpus::of_this_thread().effective {
            scope.spawn(work);
        }
        work();
    });
    bar.finish_and_clear();
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.violations.sort_by(|(n, a), (m, b)| n.cmp(m).then_with(|| a.plan.cmp(&b.plan)));
    for (_, violation) in found.violations.iter().take(SHOWN) {
        violation.print(session)?;
    }
    for mutant in found.missed.iter().take(SHOWN) {
        session.out.warn(&format!("missed: {mutant}"));
    }
    let changed = mutate.then_some(found.changed);
    Ok(Totals { plans: found.plans, violations: found.violations.len(), changed })
}

/// Proves all plans of one algorithm for one number of ranks.
fn prove(unit: &Unit, density: Density, mutate: bool) -> Findings {
    let mut found = Findings::default();
    let Findings { changed, missed, violations, .. } = &mut found;
    found.plans = unit.run(density, &mut |case| {
        let name = || case.name(unit.algorithm);
        match &case.outcome {
            Err(failure) => {
                violations.push((unit.ranks, Violation { plan: name(), violation: failure.to_string() }));
            }
            Ok(proof) if mutate && case.problem.bytes <= LONGEST_CHANGED => {
                let Ok(plan) = unit.algorithm.plan(case.problem, case.params) else { return };
                let note = &mut |mutant| missed.push(format!("{}: {mutant}", name()));
                for mutant in Change::ALL.into_iter().flat_map(|change| sample(&plan, change, MUTANTS)) {
                    changed.judge(&plan, proof, &mutant, note);
                }
            }
            Ok(_) => {}
        }
    });
    found
}
