//! Plans in which ranks change parts are proved like those that they were made from, for every root and all that is chosen among.

use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::select::Question;
use lineweave_core::topology::{Cpu, Shape, Topology};
use lineweave_core::verify::verify;

#[test]
fn a_renamed_plan_is_right_for_the_other_root() {
    let cpus = (0..8).map(|c| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 4, package: c / 4, kind: 0 });
    let machine = Topology { cpus: cpus.collect() };
    let mut plans = 0;
    for collective in [Collective::Bcast, Collective::Reduce] {
        assert!(collective.can_be_renamed());
        for ranks in [2, 3, 4, 7, 8, 16] {
            let shape = Shape::place(ranks, &machine);
            for bytes in [8, 4096] {
                let question = Question {
                    direct: true,
                    shape: shape.clone(),
                    ..Question::flat(collective, ranks, bytes, 8)
                };
                for algorithm in algorithm::table(collective) {
                    for params in (algorithm.candidates)(&question.window(bytes)) {
                        let Ok(plan) = algorithm.plan(&question.window(bytes), &params) else { continue };
                        let proof = verify(&plan).expect("a plan of the table");
                        for root in 0..ranks {
                            let (first, parts) = shape.alike(root);
                            if first == 0 && root > 0 {
                                let renamed = plan.renamed(&parts);
                                assert_eq!(renamed.root.index(), root);
                                let found =
                                    verify(&renamed).unwrap_or_else(|v| panic!("{}: {v:?}", plan.name()));
                                let facts = [found.synchronizing, found.in_place];
                                assert_eq!(facts, [proof.synchronizing, proof.in_place], "{}", plan.name());
                                assert_eq!((found.ops, found.depth), (proof.ops, proof.depth));
                                plans += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(plans > 1000, "{plans} plans");
    println!("tally: renamed plans proved {plans}");
}
