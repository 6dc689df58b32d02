//! Proves every algorithm of the table for every number of ranks up to 64.

use lineweave_core::verify::sweep::{units, Density};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

#[test]
fn every_algorithm_is_proved_up_to_64_ranks() {
    let units = units(64);
    let (next, plans) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Relaxed: a number is handed out once, and the scope's end publishes the sums.
                while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let n = unit.run(Density::Representative, &mut |case| {
                        if let Err(failure) = &case.outcome {
                            let mut failures = failures.lock().unwrap();
                            failures.push((unit.ranks, format!("{}: {failure}", case.name(unit.algorithm))));
                        }
                    });
                    plans.fetch_add(n, Ordering::Relaxed);
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    println!("verified: {} plans, {} violations", plans.load(Ordering::Relaxed), failures.len());
    for (_, failure) in failures.iter().take(20) {
        println!("{failure}");
    }
    assert!(plans.load(Ordering::Relaxed) > 0);
    assert!(failures.is_empty(), "{} of them are wrong; the smallest are above", failures.len());
}
