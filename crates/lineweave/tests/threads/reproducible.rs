//! Reproducible results: the same bits over all algorithms that may be chosen, box sizes, sizes of windows and kinds of
//! teams, for sums that every other bracket would change. And without being asked for, they do change.

use lineweave::communicator::Buffers;
use lineweave::kernel::{fold_fn, ElementType};
use lineweave::settings::Settings;
use lineweave::team::{Team, TeamConfig};
use lineweave::{CallSpec, Communicator, Error, Operator};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::{split, Collective};
use lineweave_core::plan::{Blocks, Grid, Plan};
use lineweave_core::topology::Shape;
use lineweave_core::verify::verify;
use std::collections::BTreeSet;
use std::ops::Range;

const FOLDING: [Collective; 5] = [
    Collective::Reduce,
    Collective::Allreduce,
    Collective::ReduceScatter,
    Collective::Scan,
    Collective::Exscan,
];

/// What rank `r` contributes at element `i`: large numbers that cancel, and small ones that drown in them or not.
fn part(r: usize, i: usize) -> f64 {
    let large = [1e16, -1e16, 3.0, 1e8][(r + i) % 4];
    large + (r * 7 + i % 11) as f64 + 0.1
}

/// The contract, spelled out.
fn fixed(ranks: Range<usize>, i: usize) -> f64 {
    if ranks.len() == 1 {
        return part(ranks.start, i);
    }
    let mid = ranks.start + split(ranks.len());
    fixed(ranks.start..mid, i) + fixed(mid..ranks.end, i)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// The result of a rank that the contract says.
fn expected(grid: &Grid<'_>, rank: usize) -> Vec<f64> {
    let n = grid.output_bytes(rank) / 8;
    let p = grid.ranks;
    let of = |ranks: Range<usize>, from: usize| (0..n).map(|i| fixed(ranks.clone(), from + i)).collect();
    match grid.collective {
        Collective::Scan => of(0..rank + 1, 0),
        Collective::Exscan if rank > 0 => of(0..rank, 0),
        Collective::ReduceScatter => of(0..p, grid.given(0, rank).start / 8),
        _ => of(0..p, 0),
    }
}

fn team<T: Send>(
    ranks: usize,
    box_bytes: usize,
    reproducible: bool,
    f: impl Fn(&mut Communicator) -> Result<T, Error> + Sync,
) -> Vec<T> {
    let settings = Settings { box_bytes, reproducible, ..Settings::default() };
    let team = Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team");
    team.threads(|mut comm| f(&mut comm)).unwrap_or_else(|e| panic!("{ranks} ranks: {e}"))
}

/// Runs a plan once and returns this rank's result.
fn result(comm: &mut Communicator, plan: &Plan) -> Result<Vec<f64>, Error> {
    let id = comm.prepare(plan)?;
    let (rank, grid) = (comm.rank(), plan.grid());
    let input: Vec<f64> = (0..grid.input_bytes(rank) / 8).map(|i| part(rank, i)).collect();
    let mut output = vec![0.0; grid.output_bytes(rank) / 8];
    let fold = fold_fn(Operator::Sum, ElementType::F64).expect("sums are defined").into();
    let buffers = Buffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), fold };
    // SAFETY: both buffers are as long as the plan's for this rank; all ranks run the same plans in the same order.
    unsafe { comm.run(id, buffers) }?;
    Ok(output)
}

/// Returns every plan that an algorithm may be asked for, for so many elements of `grain` bytes.
pub fn plans(collective: Collective, ranks: usize, root: usize, elements: usize, grain: usize) -> Vec<Plan> {
    let mut plans = Vec::new();
    for algorithm in algorithm::table(collective) {
        for direct in [false, true] {
            let shape = Shape::flat(ranks);
            let bytes = elements * grain;
            let problem = Problem { shape, direct, root, grain, ..Problem::flat(collective, ranks, bytes) };
            let mut sets = algorithm.trials(&problem);
            sets.extend(algorithm.reproducible_candidates(&problem));
            plans.extend(sets.iter().filter_map(|params| algorithm.plan(&problem, params).ok()));
        }
    }
    plans
}

#[test]
fn every_algorithm_that_qualifies_gives_the_same_bits_and_others_differ() {
    let (mut qualify, mut others) = (0, BTreeSet::new());
    for ranks in [3, 5, 8] {
        let outcomes = team(ranks, 1 << 20, false, |comm| {
            let rank = comm.rank();
            let (mut qualify, mut others) = (0, BTreeSet::new());
            for collective in FOLDING {
                let root = if collective.rooted() { ranks - 1 } else { 0 };
                for elements in [1, 6, 700] {
                    for plan in plans(collective, ranks, root, elements, 8) {
                        let proof = verify(&plan).expect("algorithms are right");
                        let found = bits(&result(comm, &plan)?);
                        let wanted = bits(&expected(&plan.grid(), rank));
                        if proof.fixed_order {
                            assert_eq!(found, wanted, "{} {} at rank {rank}", plan.name(), plan.params);
                            qualify += 1;
                        } else if found != wanted {
                            others.insert(plan.name());
                        }
                    }
                }
            }
            Ok((qualify, others))
        });
        for (n, different) in outcomes {
            qualify += n;
            others.extend(different);
        }
    }
    assert!(qualify > 300, "{qualify} results only");
    // What the contract is for: without it, the choice of the algorithm can be seen in the result.
    assert!(others.len() > 10, "only {others:?} give other bits");
}

#[test]
fn calls_have_the_same_bits_whatever_the_boxes_and_the_algorithm() {
    for ranks in [2, 3, 6, 7] {
        for (box_bytes, asked) in [(4 << 10, true), (64 << 10, false), (1 << 20, true)] {
            team(ranks, box_bytes, asked, |comm| {
                comm.set_reproducible(true);
                for elements in [1, 5, 129, 5000, 40_000] {
                    calls(comm, elements)?;
                }
                Ok(())
            });
        }
    }
}

fn calls(comm: &mut Communicator, elements: usize) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    for collective in FOLDING {
        let root = if collective.rooted() { ranks / 2 } else { 0 };
        let count = if collective.has_blocks() { elements.div_ceil(ranks) } else { elements };
        let (element, operator) = (ElementType::F64, Some(Operator::Sum));
        let call = CallSpec { collective, element, count, operator, root };
        let grid = Grid { collective, ranks, root, bytes: count * 8, blocks: &Blocks::Dense };
        let input: Vec<f64> = (0..call.input_bytes(rank, ranks) / 8).map(|i| part(rank, i)).collect();
        let mut output = vec![0.0; call.output_bytes(rank, ranks) / 8];
        // SAFETY: both buffers are as long as the call says.
        unsafe { comm.call(&call, input.as_ptr().cast(), output.as_mut_ptr().cast()) }?;
        assert!(
            bits(&output) == bits(&expected(&grid, rank)),
            "{collective} of {count} on {ranks} ranks at rank {rank}: {:?}",
            comm.chosen(&call)
        );
    }
    Ok(())
}

#[test]
fn a_forced_algorithm_gives_way_to_the_contract() {
    let (mut settings, _) = Settings::read([(
        "LINEWEAVE_ALGORITHM".to_owned(),
        "allreduce=ring;reduce=flat;scan=chain".to_owned(),
    )])
    .expect("settings");
    settings.reproducible = true;
    let team = Team::with(TeamConfig::new(5, &settings).expect("a configuration")).expect("a team");
    let names = team
        .threads(|mut comm| {
            calls(&mut comm, 900)?;
            let (element, operator) = (ElementType::F64, Some(Operator::Sum));
            let call = CallSpec { collective: Collective::Allreduce, element, count: 900, operator, root: 0 };
            let fixed = comm.chosen(&call)?.algorithm.name;
            assert!(comm.set_reproducible(false));
            Ok([fixed, comm.chosen(&call)?.algorithm.name])
        })
        .expect("the team runs");
    assert!(names.iter().all(|[fixed, free]| *fixed != "ring" && *free == "ring"), "{names:?}");
}
