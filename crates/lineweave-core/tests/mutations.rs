//! Breaks every algorithm's plans in every way there is, one op at a time: the checker must notice.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Cpu, Shape, Topology};
use lineweave_core::verify::mutate::{judge, mutants, Change, Verdict};
use lineweave_core::verify::verify;
use std::collections::BTreeMap;

/// At most this many mutants of one plan, evenly spread over it.
const MOST: usize = 400;

fn problems() -> Vec<Problem> {
    let topology = Topology {
        cpus: (0..8)
            .map(|os| Cpu { os, core: os / 2, l3: os / 4, numa: os / 4, package: os / 4, kind: 0 })
            .collect(),
    };
    let mut problems = Vec::new();
    for ranks in [2, 3, 5, 8] {
        for collective in Collective::ALL {
            let sizes: &[(usize, usize)] = match collective {
                Collective::Barrier => &[(0, 1)],
                Collective::Bcast => &[(8, 1), (960, 8), (98_304, 2048)],
                Collective::Reduce | Collective::Allreduce => &[(8, 8), (960, 8), (98_304, 2048)],
            };
            for &(bytes, grain) in sizes {
                let root = if collective.rooted() { ranks / 2 } else { 0 };
                for direct in [false, true] {
                    let flat = Shape::flat(ranks);
                    let levels = Shape::place(ranks, &topology);
                    for shape in [flat, levels] {
                        problems.push(Problem { collective, shape, root, bytes, grain, direct });
                    }
                }
            }
        }
    }
    problems
}

#[test]
fn every_mutation_is_caught() {
    let (mut made, mut caught, mut harmless) = (0, 0, 0);
    let mut by_change: BTreeMap<Change, usize> = BTreeMap::new();
    let mut missed = Vec::new();
    let mut seen = Vec::new();
    for problem in problems() {
        for &algorithm in algorithm::table(problem.collective) {
            for params in (algorithm.candidates)(&problem) {
                let plan = algorithm.plan(&problem, &params).unwrap();
                if seen.contains(&plan) {
                    continue;
                }
                let proof = verify(&plan).unwrap_or_else(|v| panic!("{}: {v}", plan.name()));
                let step = mutants(&plan).count().div_ceil(MOST).max(1);
                for mutant in mutants(&plan).step_by(step) {
                    match judge(&plan, &proof, &mutant) {
                        Verdict::Harmless => harmless += 1,
                        Verdict::Caught(_) => {
                            made += 1;
                            caught += 1;
                            *by_change.entry(mutant.change).or_default() += 1;
                        }
                        Verdict::Missed => {
                            made += 1;
                            missed.push(format!(
                                "{} {params} of {} ranks, {} bytes: {:?} at rank {} op {} `{}`",
                                plan.name(),
                                plan.ranks,
                                plan.bytes,
                                mutant.change,
                                mutant.rank,
                                mutant.op,
                                mutant.text
                            ));
                        }
                    }
                }
                seen.push(plan);
            }
        }
    }
    println!("mutations: {made} made, {caught} caught");
    println!("{harmless} more were proved harmless; caught by kind: {by_change:?}");
    for line in missed.iter().take(20) {
        println!("missed: {line}");
    }
    assert!(made > 0);
    assert!(missed.is_empty(), "{} mutations were missed", missed.len());
}
