//! A rank's part of a plan, made without holding the rest, is what it would be if it were taken out of the whole.

use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Part;
use lineweave_core::select::Question;
use lineweave_core::topology::{Cpu, Shape, Topology};
use std::collections::HashMap;

#[test]
fn a_part_is_the_same_made_alone_or_out_of_the_whole() {
    let cpus = (0..8).map(|c| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 4, package: c / 4, kind: 0 });
    let machine = Topology { cpus: cpus.collect() };
    let (mut parts, mut digests) = (0, HashMap::new());
    // On CPUs of their own, and 13 on 8.
    for ranks in [1, 2, 3, 7, 8, 13] {
        let shape = Shape::place(ranks, &machine);
        let crowded = shape.oversubscription() > 1;
        for collective in Collective::ALL {
            for bytes in if collective.moves_data() { vec![0, 8, 72, 4096] } else { vec![0] } {
                let question = Question::flat(collective, ranks, bytes, 8);
                let question = Question { direct: true, shape: shape.clone(), root: ranks / 2, ..question };
                let problem = question.window(bytes);
                for algorithm in algorithm::table(collective) {
                    for params in algorithm.trials(&problem) {
                        for params in [params.clone(), params.with("home", "setter")] {
                            let Ok(plan) = algorithm.plan(&problem, &params) else { continue };
                            let whole = Part::whole(plan.clone(), crowded);
                            let facts = (whole.ops, whole.span, whole.leaves_room_for_a_generation());
                            let expected =
                                (plan.ops().count(), plan.span(), plan.leaves_room_for_a_generation());
                            assert_eq!(facts, expected, "{} {params}", plan.name());
                            let before = digests.insert(whole.digest, (plan.to_string(), ranks));
                            assert!(
                                before.is_none_or(|b| b == (plan.to_string(), ranks)),
                                "two plans, one digest"
                            );
                            for rank in 0..ranks {
                                let alone =
                                    algorithm.part(&problem, &params, rank).expect("the whole was made");
                                assert_eq!(
                                    alone,
                                    whole.clone().only(rank),
                                    "{} {params}, rank {rank}",
                                    plan.name()
                                );
                                assert_eq!(alone.held(), plan.programs[rank].len());
                                parts += 1;
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(parts > 10_000, "{parts} parts");
    println!("tally: parts of plans compared {parts}");
}

#[test]
fn a_part_of_a_large_exchange_takes_little_memory() {
    let problem = Question::flat(Collective::Alltoall, 512, 64, 1).window(64);
    let algorithm = algorithm::table(Collective::Alltoall)
        .iter()
        .find(|a| a.part(&problem, &Default::default(), 3).is_ok_and(|part| part.ops > 512 * 511))
        .expect("an algorithm in which everybody has something for everybody");
    let part = algorithm.part(&problem, &Default::default(), 3).expect("a part");
    assert!(part.held() < part.ops / 256, "{} of {}", part.held(), part.ops);
    let others = part.plan.programs.iter().enumerate().filter(|(rank, _)| *rank != 3);
    assert!(others.map(|(_, program)| program.capacity()).all(|room| room == 0));
}
