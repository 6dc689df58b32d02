//! The checker beside its second judge, on plans of every algorithm.

use super::*;
use crate::algorithm::Algorithm;
use crate::plan::{Blocks, Uneven};

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

/// Lengths up to a plan's own at which something changes: none, one element, and one less and one more than where an op begins or ends.
fn borders(plan: &Plan, pitch: usize) -> std::collections::BTreeSet<usize> {
    let users = |r: &Region| !matches!(r.space, Space::Acc | Space::Slot { .. });
    let mut found = vec![0, plan.bytes];
    for (_, op) in plan.ops() {
        let ends = |r: Region| [r.offset % pitch, r.offset % pitch + r.len];
        found.extend(op.regions().filter(users).flat_map(ends));
    }
    let near = |n: &usize| [n.saturating_sub(plan.grain), *n, n + plan.grain];
    found.iter().flat_map(near).filter(|&n| n <= plan.bytes && n % plan.grain == 0).collect()
}

/// Plans of an algorithm to be cut, by its first `many` candidates: among 2 to 5 ranks, of each root. Blocks lie apart where there are some.
fn whole_plans(algorithm: &'static Algorithm, many: usize) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (ranks, direct) in [(2, false), (3, true), (4, false), (5, false)] {
        let roots = if algorithm.collective.rooted() { ranks } else { 1 };
        for root in 0..roots {
            let (bytes, grain) = (240, 8);
            let blocks =
                if algorithm.collective.has_blocks() { Blocks::Apart(bytes + grain) } else { Blocks::Dense };
            let flat = Problem::flat(algorithm.collective, ranks, bytes);
            let problem = Problem { direct, grain, root, blocks, ..flat };
            let tried = (algorithm.candidates)(&problem).into_iter().take(many);
            plans.extend(tried.map(|params| algorithm.plan(&problem, &params).unwrap()));
        }
    }
    plans
}

#[test]
fn a_plan_that_is_cut_delivers_what_is_left_and_touches_nothing_else() {
    let (mut plans, mut judged) = (0, 0);
    let mut whole = std::collections::BTreeSet::new();
    for algorithm in algorithm::all().filter(|a| a.collective.moves_data()) {
        for plan in whole_plans(algorithm, 3) {
            let proof = verify(&plan).unwrap();
            plans += 1;
            if !proof.shortens {
                whole.insert(plan.name());
                continue;
            }
            let pitch = plan.pitch().unwrap();
            let (name, params, ranks, root) = (plan.name(), &plan.params, plan.ranks, plan.root);
            for bytes in borders(&plan, pitch) {
                let cut = plan.cut(bytes, pitch).unwrap();
                assert!(
                    reference::is_cut_of(&cut, &plan),
                    "{name} {params}, {ranks} ranks, root {root}: {bytes} bytes"
                );
                judged += 1;
            }
            if algorithm.collective.has_blocks() {
                let nearer = plan.cut(plan.bytes, plan.bytes + 64).unwrap();
                assert_eq!(verify(&nearer).map(|p| p.shortens), Ok(true), "{name}");
            }
        }
    }
    assert!(judged >= 3 * plans, "{judged} of {plans} plans");
    assert_eq!(whole.into_iter().collect::<Vec<_>>(), Vec::<String>::new(), "have plans of their own");
}

/// Blocks of lengths out of these, each table another mixture: for each rank, or for each pair.
fn tables(collective: Collective, ranks: usize, lengths: &[usize]) -> Vec<Uneven> {
    let many = if collective == Collective::Alltoall { ranks * ranks } else { ranks };
    let steps = [1, 3, lengths.len() / 2 + 1];
    let tables = (0..lengths.len()).zip(steps.iter().cycle()).map(|(first, step)| {
        (0..many).map(|i| lengths[(first + i * step + i * i) % lengths.len()]).collect::<Vec<_>>()
    });
    let uneven = |counts: Vec<usize>| match collective {
        Collective::Alltoall => Uneven::by_pair(ranks, counts),
        _ => Uneven::by_rank(counts),
    };
    tables.map(uneven).collect()
}

#[test]
fn a_plan_that_is_cut_to_uneven_blocks_delivers_each_and_touches_nothing_else() {
    let (mut plans, mut judged, mut proved) = (0, 0, 0);
    for algorithm in algorithm::all().filter(|a| a.collective.has_blocks()) {
        for plan in whole_plans(algorithm, 2) {
            let (name, params, ranks, root) = (plan.name(), &plan.params, plan.ranks, plan.root);
            assert!(verify(&plan).unwrap().shortens, "{name}");
            plans += 1;
            let lengths: Vec<usize> = borders(&plan, plan.pitch().unwrap()).into_iter().collect();
            for uneven in tables(algorithm.collective, ranks, &lengths) {
                let counts = uneven.counts().to_vec();
                let cut = plan.cut_to(uneven).unwrap();
                assert!(
                    reference::is_cut_to(&cut, &plan),
                    "{name} {params}, {ranks} ranks, root {root}: {counts:?}"
                );
                judged += 1;
                // Nothing that was not written is read, unless from slot to slot: then the first judge proves it as it is.
                proved += usize::from(verify(&cut).is_ok());
            }
        }
    }
    assert!(
        judged >= 3 * plans && proved > judged / 4,
        "{judged} of {plans} plans judged, {proved} proved as they are"
    );
}

#[test]
fn a_plan_whose_blocks_lie_in_others_places_is_not_cut() {
    let mut b = Builder::new(Collective::Gather, "test", &Params::new(), 2, 0, 8, 1);
    b.blocks(Blocks::Apart(16));
    let (slot, full) = (b.slot(8), b.flags("full", Layout::Alone, 1));
    let (own, there) = (Region::new(Space::In, 0..8), Region::new(Space::Slot { rank: Rank(0), slot }, 0..8));
    let out = |at| Region::new(Space::Out, at..at + 8);
    b.mov(1, own, there);
    b.set(1, full.at(0, 0), 1);
    b.wait(0, full.at(0, 0), 1);
    // The second block goes by way of the first one's place.
    b.mov(0, there, out(0));
    b.mov(0, out(0), out(16));
    b.mov(0, own, out(0));
    b.ring();
    let plan = b.finish();
    assert_eq!(verify(&plan).map(|proof| proof.shortens), Ok(false));
    let judged = |counts: [usize; 2]| {
        reference::is_cut_to(&plan.cut_to(Uneven::by_rank(counts.to_vec())).unwrap(), &plan)
    };
    assert!(judged([8, 8]) && !judged([0, 8]), "and the other judge says why");
}

#[test]
fn a_plan_whose_bytes_lie_elsewhere_in_a_buffer_is_not_cut() {
    let mut b = Builder::new(Collective::Bcast, "test", &Params::new(), 2, 0, 16, 1);
    let (slot, full) = (b.slot(16), b.flags("full", Layout::Alone, 1));
    let half = |space, at| Region::new(space, at..at + 8);
    let there = Space::Slot { rank: Rank(1), slot };
    b.mov(0, Region::new(Space::In, 0..16), Region::new(there, 0..16));
    b.set(0, full.at(1, 0), 1);
    b.wait(1, full.at(1, 0), 1);
    // The first half goes by way of the second one's place.
    b.mov(1, half(there, 0), half(Space::Out, 8));
    b.mov(1, half(Space::Out, 8), half(Space::Out, 0));
    b.mov(1, half(there, 8), half(Space::Out, 8));
    b.ring();
    let plan = b.finish();
    assert_eq!(verify(&plan).map(|proof| proof.shortens), Ok(false));
    assert!(!reference::is_cut_of(&plan.cut(8, usize::MAX).unwrap(), &plan), "and the other judge says why");
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
