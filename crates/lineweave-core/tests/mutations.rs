//! Breaks every algorithm's plans in every way there is, one op at a time: the checker must notice.

use lineweave_core::algorithm::{self, Algorithm, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Params, Plan};
use lineweave_core::topology::{Cpu, Shape, Topology};
use lineweave_core::verify::mutate::{judge, sample, Change, Verdict};
use lineweave_core::verify::sweep::blocks;
use lineweave_core::verify::verify;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// At most this many mutants of one plan by one change, spread over it. `lineweave verify --mutate` makes all.
const MOST: usize = 2;

/// Two ranks, odd numbers, a power of two; payloads that fit a flag's line, whole blocks, several windows.
fn problems(collective: Collective) -> Vec<Problem> {
    let topology = Topology {
        cpus: (0..8)
            .map(|os| Cpu { os, core: os / 2, l3: os / 4, numa: os / 4, package: os / 4, kind: 0 })
            .collect(),
    };
    let sizes: &[(usize, usize)] = match collective {
        Collective::Barrier => &[(0, 1)],
        Collective::Bcast => &[(8, 1), (960, 8), (98_304, 2048)],
        Collective::Reduce | Collective::Allreduce | Collective::Scan | Collective::Exscan => {
            &[(8, 8), (960, 8), (98_304, 2048)]
        }
        Collective::Gather | Collective::Scatter | Collective::Allgather | Collective::Alltoall => {
            &[(8, 1), (960, 96), (24, 8)]
        }
        Collective::ReduceScatter => &[(8, 8), (960, 96), (64, 16)],
    };
    let mut problems = Vec::new();
    for ranks in [2, 3, 5, 8] {
        for (turn, &(bytes, grain)) in sizes.iter().enumerate() {
            let blocks = blocks(collective, ranks, turn, bytes, grain);
            let root = if collective.rooted() { ranks / 2 } else { 0 };
            for direct in [false, true] {
                for shape in [Shape::flat(ranks), Shape::place(ranks, &topology)] {
                    let blocks = blocks.clone();
                    problems.push(Problem { collective, shape, root, bytes, blocks, grain, direct });
                }
            }
        }
    }
    problems
}

/// What became of the mutants of one algorithm.
#[derive(Default)]
struct Tally {
    caught: BTreeMap<Change, usize>,
    harmless: BTreeMap<Change, usize>,
    missed: Vec<String>,
}

/// The plans of an algorithm that differ, each with the parameters that it was first met with.
fn plans(algorithm: &Algorithm) -> Vec<(Plan, Params)> {
    let mut found: Vec<(Plan, Params)> = Vec::new();
    for problem in problems(algorithm.collective) {
        for params in algorithm.trials(&problem) {
            let plan = algorithm.plan(&problem, &params).unwrap();
            if !found.iter().any(|(seen, _)| *seen == plan) {
                found.push((plan, params));
            }
        }
    }
    found
}

fn mutate(plan: &Plan, params: &Params) -> Tally {
    let mut tally = Tally::default();
    let proof = verify(plan).unwrap_or_else(|v| panic!("{}: {v}", plan.name()));
    for mutant in Change::ALL.into_iter().flat_map(|change| sample(plan, change, MOST)) {
        match judge(plan, &proof, &mutant) {
            Verdict::Harmless => *tally.harmless.entry(mutant.change).or_default() += 1,
            Verdict::Caught(_) => *tally.caught.entry(mutant.change).or_default() += 1,
            Verdict::Missed => tally.missed.push(format!(
                "{} {params} of {} ranks, {} bytes: {:?} at rank {} op {} `{}`",
                plan.name(),
                plan.ranks,
                plan.bytes,
                mutant.change,
                mutant.rank,
                mutant.op,
                mutant.text
            )),
        }
    }
    tally
}

/// The changes that must have broken some plan of every algorithm of a collective.
fn required(collective: Collective) -> &'static [Change] {
    match collective {
        Collective::Barrier => &[Change::DropWait, Change::LowerThreshold, Change::SecondWriter],
        Collective::Bcast
        | Collective::Gather
        | Collective::Scatter
        | Collective::Allgather
        | Collective::Alltoall => {
            &[Change::DropWait, Change::LowerThreshold, Change::SecondWriter, Change::Shorten]
        }
        Collective::Reduce
        | Collective::Allreduce
        | Collective::ReduceScatter
        | Collective::Scan
        | Collective::Exscan => &[
            Change::DropWait,
            Change::LowerThreshold,
            Change::SecondWriter,
            Change::SwapOperands,
            Change::Shorten,
        ],
    }
}

#[test]
fn every_mutation_is_caught() {
    let algorithms: Vec<&'static Algorithm> = algorithm::all().collect();
    // By plan: some algorithms have many more than others.
    let jobs: Vec<(usize, Plan, Params)> = algorithms
        .iter()
        .enumerate()
        .flat_map(|(i, a)| plans(a).into_iter().map(move |(plan, params)| (i, plan, params)))
        .collect();
    let next = Mutex::new(jobs.iter());
    let tallies: Mutex<Vec<Tally>> = Mutex::new(algorithms.iter().map(|_| Tally::default()).collect());
    let work = || loop {
        let Some((i, plan, params)) = next.lock().unwrap().next() else { return };
        let one = mutate(plan, params);
        let tally = &mut tallies.lock().unwrap()[*i];
        one.caught.into_iter().for_each(|(change, n)| *tally.caught.entry(change).or_default() += n);
        one.harmless.into_iter().for_each(|(change, n)| *tally.harmless.entry(change).or_default() += n);
        tally.missed.extend(one.missed);
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let tallies: Vec<(&Algorithm, Tally)> =
        algorithms.iter().copied().zip(tallies.into_inner().unwrap()).collect();
    let mut caught: BTreeMap<Change, usize> = BTreeMap::new();
    let mut complaints = Vec::new();
    for (algorithm, tally) in &tallies {
        tally.caught.iter().for_each(|(&change, n)| *caught.entry(change).or_default() += n);
        complaints.extend(tally.missed.iter().map(|m| format!("missed: {m}")));
        for change in required(algorithm.collective) {
            if !tally.caught.contains_key(change) {
                complaints.push(format!("{algorithm:?}: no {change:?} broke a plan"));
            }
        }
        // Where there are slots to confuse, confusing them must have broken something.
        for change in [Change::SwapSlots, Change::SwapOwners] {
            if tally.harmless.contains_key(&change) && !tally.caught.contains_key(&change) {
                complaints.push(format!("{algorithm:?}: {change:?} never broke a plan"));
            }
        }
        println!("{algorithm:?}: caught {:?}, proved harmless {:?}", tally.caught, tally.harmless);
    }
    // Slots and carried payloads are two ways to the same end: not every algorithm has slots.
    for change in Change::ALL {
        assert!(caught.contains_key(&change), "no {change:?} broke any plan");
    }
    println!("tally: mutations caught {}", caught.values().sum::<usize>());
    println!("tally: mutations missed {}", tallies.iter().map(|(_, t)| t.missed.len()).sum::<usize>());
    complaints.iter().take(40).for_each(|line| println!("{line}"));
    assert!(complaints.is_empty(), "{} complaints; the first are above", complaints.len());
}
