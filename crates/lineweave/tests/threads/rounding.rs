//! Sums of 16-bit floats: rounded once where a plan makes each sum in one place, after each addition where results are to be
//! reproducible, and the same bits at all ranks either way.

use super::reproducible::plans;
use half::{bf16, f16};
use lineweave::communicator::Buffers;
use lineweave::kernel::{ElementType, Fold};
use lineweave::settings::Settings;
use lineweave::team::{Team, TeamConfig};
use lineweave::{Communicator, Error, Operator};
use lineweave_core::collective::{split, Collective};
use lineweave_core::plan::{Part, Plan};
use std::collections::BTreeMap;
use std::ops::Range;

/// What rank `r` contributes at element `i`. Sums of these are exact in f32 and in f16, and many are not in bf16.
fn part(r: usize, i: usize) -> f32 {
    [1.0, 1.0 / 256.0, 1.0 / 256.0, -1.0 / 128.0, 2.0][(r + i) % 5]
}

/// By the brackets of reproducible sums, rounded after each addition.
fn fixed(ranks: Range<usize>, i: usize) -> bf16 {
    if ranks.len() == 1 {
        return bf16::from_f32(part(ranks.start, i));
    }
    let mid = ranks.start + split(ranks.len());
    bf16::from_f32(fixed(ranks.start..mid, i).to_f32() + fixed(mid..ranks.end, i).to_f32())
}

fn run(comm: &mut Communicator, plan: &Plan, element: ElementType, input: &[u16]) -> Result<Vec<u16>, Error> {
    let id = comm.prepare(plan)?;
    let mut output = vec![0u16; input.len()];
    let fold = Fold::of(Operator::Sum, element).expect("sums are defined");
    let buffers = Buffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), fold };
    // SAFETY: both buffers are as long as the plan's; all ranks run the same plans in the same order.
    unsafe { comm.run(id, buffers) }?;
    Ok(output)
}

fn team(ranks: usize, reproducible: bool, f: impl Fn(&mut Communicator) -> Result<(), Error> + Sync) {
    let settings = Settings { box_bytes: 1 << 20, reproducible, ..Settings::default() };
    let team = Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team");
    team.threads(|mut comm| f(&mut comm)).unwrap_or_else(|e| panic!("{ranks} ranks: {e}"));
}

#[test]
fn sums_that_are_made_in_one_place_are_rounded_once() {
    for ranks in [3, 4, 5] {
        for elements in [7, 3000] {
            let plans: Vec<(Plan, bool)> = plans(Collective::Allreduce, ranks, 0, elements, 2)
                .into_iter()
                .map(|plan| (plan.clone(), Part::whole(plan, false).sums_whole))
                .collect();
            let mut by_name: BTreeMap<String, bool> = BTreeMap::new();
            for (plan, whole) in &plans {
                *by_name.entry(plan.name()).or_default() |= whole;
            }
            for name in ["slices", "fold-back", "all-read-all", "direct"] {
                assert!(by_name[&format!("allreduce/{name}")], "{name}: {by_name:?}");
            }
            assert!(!by_name["allreduce/ring"] && !by_name["allreduce/recursive-doubling"], "{by_name:?}");
            let exact = |i: usize| (0..ranks).map(|r| part(r, i)).sum::<f32>();
            team(ranks, false, |comm| {
                let rank = comm.rank();
                let input: Vec<bf16> = (0..elements).map(|i| bf16::from_f32(part(rank, i))).collect();
                let input: Vec<u16> = input.iter().map(|x| x.to_bits()).collect();
                let once: Vec<u16> = (0..elements).map(|i| bf16::from_f32(exact(i)).to_bits()).collect();
                let halves: Vec<u16> =
                    (0..elements).map(|i| f16::from_f32(part(rank, i)).to_bits()).collect();
                let sums: Vec<u16> = (0..elements).map(|i| f16::from_f32(exact(i)).to_bits()).collect();
                // Integers of the same size go the same way, and are only combined.
                let numbers: Vec<u16> = (0..elements).map(|i| (i * (rank + 1)) as u16).collect();
                let totals: Vec<u16> = (0..elements).map(|i| (i * ranks * (ranks + 1) / 2) as u16).collect();
                for (plan, whole) in &plans {
                    let named = || format!("{} {} at rank {rank}", plan.name(), plan.params);
                    let found = run(comm, plan, ElementType::BF16, &input)?;
                    assert!(!whole || found == once, "{}", named());
                    assert_eq!(
                        run(comm, plan, ElementType::F16, &halves)?,
                        sums,
                        "exact in f16: {}",
                        named()
                    );
                    assert_eq!(run(comm, plan, ElementType::U16, &numbers)?, totals, "{}", named());
                    let mut first = found.clone();
                    comm.bcast(&mut first, 0)?;
                    assert_eq!(first, found, "the same bits at all ranks: {}", named());
                }
                Ok(())
            });
        }
    }
}

#[test]
fn reproducible_sums_are_rounded_after_each_addition() {
    let (ranks, elements) = (3, 700);
    let plans: Vec<Plan> = plans(Collective::Allreduce, ranks, 0, elements, 2)
        .into_iter()
        .filter(|plan| lineweave_core::verify::verify(plan).expect("algorithms are right").fixed_order)
        .collect();
    assert!(plans.iter().any(|plan| Part::whole(plan.clone(), false).sums_whole));
    let wanted: Vec<u16> = (0..elements).map(|i| fixed(0..ranks, i).to_bits()).collect();
    let exact = |i: usize| bf16::from_f32((0..ranks).map(|r| part(r, i)).sum::<f32>()).to_bits();
    assert!((0..elements).any(|i| exact(i) != wanted[i]), "rounding once would differ");
    team(ranks, true, |comm| {
        let rank = comm.rank();
        let input: Vec<u16> = (0..elements).map(|i| bf16::from_f32(part(rank, i)).to_bits()).collect();
        for plan in &plans {
            assert_eq!(
                run(comm, plan, ElementType::BF16, &input)?,
                wanted,
                "{} {}",
                plan.name(),
                plan.params
            );
        }
        Ok(())
    });
}
