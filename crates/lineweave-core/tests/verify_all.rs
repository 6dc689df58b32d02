//! Proves every algorithm of the table for every number of ranks up to 64.

use lineweave_core::verify::sweep::{units, Density};
use std::sync::Mutex;

#[test]
fn every_algorithm_is_proved_up_to_64_ranks() {
    let units = Mutex::new(units(64).into_iter());
    // The number of plans, and the failures with the smallest problems first.
    let found = Mutex::new((0, Vec::new()));
    let work = || loop {
        let next = units.lock().unwrap().next();
        let Some(unit) = next else { return };
        let mut failures = Vec::new();
        let plans = unit.run(Density::Representative, &mut |case| {
            if let Err(failure) = &case.outcome {
                failures.push((unit.ranks, format!("{}: {failure}", case.name(unit.algorithm))));
            }
        });
        let mut found = found.lock().unwrap();
        found.0 += plans;
        found.1.append(&mut failures);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let (plans, mut failures) = found.into_inner().unwrap();
    failures.sort();
    println!("tally: plans verified {plans}");
    for (_, failure) in failures.iter().take(20) {
        println!("{failure}");
    }
    assert!(plans > 0);
    assert!(failures.is_empty(), "{} of them are wrong; the smallest are above", failures.len());
}
