//! Orders and brackets that callers may ask for: there is a plan for each, and the checker knows which one keeps them.

use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::{split, Association, Collective};
use lineweave_core::model::Values;
use lineweave_core::plan::Params;
use lineweave_core::select::{select, Question, SelectError};
use lineweave_core::topology::Shape;
use lineweave_core::verify::verify;
use std::collections::{BTreeMap, BTreeSet};

const FOLDING: [Collective; 5] = [
    Collective::Reduce,
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Scan,
    Collective::Exscan,
];

fn roots(collective: Collective, p: usize) -> BTreeSet<usize> {
    if collective.rooted() {
        [0, p / 2, p - 1].into()
    } else {
        [0].into()
    }
}

#[test]
fn every_order_has_a_plan_for_any_ranks_root_and_size() {
    let model = Values::default().model();
    for collective in FOLDING {
        for p in [1, 2, 3, 4, 5, 7, 8, 12] {
            for root in roots(collective, p) {
                for (bytes, grain) in [(8, 8), (40, 8), (6000, 12), (200_000, 8)] {
                    for direct in [false, true] {
                        for association in [Association::RankOrder, Association::Fixed] {
                            let question = Question {
                                root,
                                direct,
                                association,
                                box_bytes: 64 << 10,
                                ..Question::flat(collective, p, bytes, grain)
                            };
                            let about = format!("{collective} p={p} root={root} {bytes} {association:?}");
                            let choice = select(&model, &question).unwrap_or_else(|e| panic!("{about}: {e}"));
                            let proof = verify(choice.plan()).unwrap_or_else(|v| panic!("{about}: {v}"));
                            assert!(proof.meets(association), "{about}: {}", choice.plan().name());
                            if let Some(tail) = choice.tail(&question).expect("the same question") {
                                let proof = verify(&tail).unwrap_or_else(|v| panic!("{about}: {v}"));
                                assert!(proof.meets(association), "{about}: the rest of {}", tail.name());
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All plans of a collective over 6 ranks: by whether their brackets are those of reproducible results, the
/// fingerprints of their results.
fn fingerprints(collective: Collective, bytes: usize) -> BTreeMap<bool, BTreeSet<u64>> {
    let mut found: BTreeMap<bool, BTreeSet<u64>> = BTreeMap::new();
    for algorithm in algorithm::table(collective) {
        for direct in [false, true] {
            let shape = Shape::flat(6);
            let problem = Problem { shape, direct, grain: 8, ..Problem::flat(collective, 6, bytes) };
            let mut sets = algorithm.reproducible_candidates(&problem);
            sets.extend(algorithm.trials(&problem));
            for params in sets {
                let plan = algorithm.plan(&problem, &params).expect("a candidate applies");
                let proof = verify(&plan).unwrap_or_else(|v| panic!("{} {params}: {v}", plan.name()));
                found.entry(proof.fixed_order).or_default().insert(proof.result_hash);
            }
        }
    }
    found
}

#[test]
fn reproducible_results_have_one_fingerprint_and_others_have_several() {
    for collective in [Collective::Reduce, Collective::Allreduce] {
        for bytes in [8, 48, 9600] {
            let found = fingerprints(collective, bytes);
            assert_eq!(found[&true].len(), 1, "{collective} of {bytes} bytes: {found:?}");
            assert!(found[&false].is_disjoint(&found[&true]), "{collective} of {bytes} bytes: {found:?}");
            assert!(found[&false].len() > 1, "{collective} of {bytes} bytes: {found:?}");
        }
    }
}

#[test]
fn a_chain_is_in_rank_order_and_a_tree_is_fixed() {
    let problem = Problem { grain: 8, ..Problem::flat(Collective::Allreduce, 7, 560) };
    let algorithm = algorithm::find(Collective::Allreduce, "all-read-all").expect("it exists");
    let chain = verify(&algorithm.plan(&problem, &Params::new()).expect("a plan")).expect("right");
    let tree = algorithm.plan(&problem, &Params::new().with("order", "tree")).expect("a plan");
    let tree = verify(&tree).expect("right");
    assert!(chain.rank_order && !chain.fixed_order);
    assert!(tree.rank_order && tree.fixed_order);
    assert!(algorithm.plan(&problem, &Params::new().with("order", "bush")).is_err());
    assert_eq!([2, 3, 4, 5, 8, 9].map(split), [1, 2, 2, 4, 4, 8]);
}

#[test]
fn elements_of_any_size_are_folded() {
    for collective in FOLDING {
        for algorithm in algorithm::table(collective) {
            for grain in [3, 12, 40, 1001] {
                for elements in [1, 5, 14] {
                    let p = 5;
                    let bytes = grain * elements;
                    let problem = Problem { grain, direct: true, ..Problem::flat(collective, p, bytes) };
                    for params in algorithm.trials(&problem) {
                        let plan = algorithm.plan(&problem, &params).expect("a candidate applies");
                        if let Err(v) = verify(&plan) {
                            panic!("{} {params}, {elements} elements of {grain} bytes: {v}", plan.name());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_question_that_nothing_answers_says_what_was_asked() {
    let model = Values::default().model();
    let question = Question {
        association: Association::Fixed,
        box_bytes: 64,
        ..Question::flat(Collective::Allreduce, 3, 4096, 4096)
    };
    let Err(SelectError::NothingFits { why, .. }) = select(&model, &question) else {
        panic!("an element larger than a box");
    };
    assert!(why.contains("brackets are those of reproducible results"), "{why}");
}
