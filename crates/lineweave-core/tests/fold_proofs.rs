//! The defaults of every barrier, reduce and allreduce are proved: any P up to 64, any root, awkward sizes. The
//! candidates are in `verify_all.rs`.

use lineweave_core::algorithm::{table, Algorithm, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Params, PlanError};
use lineweave_core::topology::{Cpu, Shape};
use lineweave_core::verify::{verify, Proof};

const FOLDING: [Collective; 2] = [Collective::Reduce, Collective::Allreduce];

/// Two threads a core, two cores a cache, two caches a package: every group is ragged for most P.
fn layered(p: usize) -> Shape {
    let cpu = |c: usize| Cpu { os: c, core: c / 2, l3: c / 6, numa: c / 12, package: c / 24, kind: 0 };
    Shape::on((0..p).map(cpu).collect())
}

fn problem(collective: Collective, p: usize, bytes: usize, grain: usize) -> Problem {
    let bytes = if collective.moves_data() { bytes } else { 0 };
    Problem { shape: layered(p), grain, direct: true, ..Problem::flat(collective, p, bytes) }
}

fn prove(algorithm: &Algorithm, problem: &Problem, params: &Params) -> Proof {
    let about = || {
        format!(
            "{algorithm:?} {params} p={} root={} bytes={} grain={}",
            problem.ranks(),
            problem.root,
            problem.bytes,
            problem.grain
        )
    };
    let plan = algorithm.plan(problem, params).unwrap_or_else(|e| panic!("{}: {e}", about()));
    verify(&plan).unwrap_or_else(|v| panic!("{}: {v}", about()))
}

#[test]
fn defaults_hold_for_every_number_of_ranks() {
    for collective in [Collective::Barrier, Collective::Reduce, Collective::Allreduce] {
        for algorithm in table(collective) {
            for p in 1..=64 {
                for (bytes, grain) in [(8, 8), (264, 8)] {
                    prove(algorithm, &problem(collective, p, bytes, grain), &Params::new());
                }
            }
        }
    }
}

#[test]
fn every_root_and_awkward_sizes() {
    for collective in FOLDING {
        for algorithm in table(collective) {
            for p in [1, 2, 3, 6, 11] {
                for root in 0..if collective.rooted() { p } else { 1 } {
                    for (bytes, grain) in
                        [(0, 8), (1, 1), (20, 4), (28, 4), (57, 1), (60, 4), (8192, 8), (8200, 8), (16388, 4)]
                    {
                        let problem = Problem { root, ..problem(collective, p, bytes, grain) };
                        prove(algorithm, &problem, &Params::new());
                    }
                }
            }
        }
    }
}

/// Small chunks put many windows through few slots: more chunks than slots, as many, fewer, one element each.
#[test]
fn chunks_of_every_number_fit_their_slots() {
    let chunked = |a: &&&Algorithm| a.params.iter().any(|p| p.name == "chunk");
    for collective in FOLDING {
        for algorithm in table(collective).iter().filter(chunked) {
            for p in [2, 3, 5, 8] {
                for elements in [1, 2, 3, 7, 8, 9, 16, 17] {
                    for chunk in [1, 8, 16, 64, 1000] {
                        let problem = problem(collective, p, elements * 8, 8);
                        let params = Params::new().with("chunk", chunk);
                        prove(algorithm, &problem, &params);
                        if algorithm.params.iter().any(|p| p.name == "slots") {
                            // A ring of boxes passes on what it takes: with one slot each would wait for the next.
                            let least = if algorithm.name == "pipelined-ring" { 2 } else { 1 };
                            for slots in [least, 3] {
                                prove(algorithm, &problem, &params.clone().with("slots", slots));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_does_not_apply_says_so() {
    let flat = |direct| Problem { direct, ..problem(Collective::Allreduce, 4, 64, 8) };
    let direct = table(Collective::Allreduce).iter().find(|a| a.name == "direct").expect("in the table");
    assert!(matches!(direct.plan(&flat(false), &Params::new()), Err(PlanError::NotApplicable { .. })));
    assert!((direct.candidates)(&flat(false)).is_empty());
    let packed = Params::new().with("layout", "packed");
    assert!(matches!(direct.plan(&flat(true), &packed), Err(PlanError::BadParameter { .. })));
}

/// Neighbours fold first and the lower rank's value is on the left wherever the algorithm has a choice.
#[test]
fn contributions_are_folded_in_rank_order() {
    let ordered = [
        (Collective::Reduce, &["flat", "binomial", "tree", "pipelined", "direct", "slices"][..]),
        (
            Collective::Allreduce,
            &["recursive-doubling", "all-read-all", "reduce-bcast", "rabenseifner", "slices", "direct"][..],
        ),
    ];
    for (collective, names) in ordered {
        for algorithm in table(collective).iter().filter(|a| names.contains(&a.name)) {
            for p in [2, 3, 4, 6, 7, 8, 13, 21] {
                for bytes in [8, 1024] {
                    let proof = prove(algorithm, &problem(collective, p, bytes, 8), &Params::new());
                    assert!(proof.rank_order, "{algorithm:?} p={p} bytes={bytes}");
                }
            }
        }
    }
}

/// One buffer may serve as input and output.
#[test]
fn folding_in_place_is_safe() {
    for collective in FOLDING {
        for algorithm in table(collective) {
            for p in [2, 3, 7, 12] {
                for bytes in [8, 1024] {
                    let root = if collective.rooted() { p - 1 } else { 0 };
                    let problem = Problem { root, ..problem(collective, p, bytes, 8) };
                    assert!(
                        prove(algorithm, &problem, &Params::new()).in_place,
                        "{algorithm:?} p={p} bytes={bytes}"
                    );
                }
            }
        }
    }
}
