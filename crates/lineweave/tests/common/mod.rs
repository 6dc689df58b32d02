//! What every rank of a conformance team does: the same list of cases, each compared with a straightforward
//! reference. Run by threads and by processes.

use lineweave::communicator::{Buffers, Communicator};
use lineweave::kernel::{fold_fn, ElementType, Operator};
use lineweave::{CallSpec, Error};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Footprint, Grid};
use lineweave_core::topology::Shape;
use lineweave_core::units::LINE;
use lineweave_core::verify::sweep;
use std::ops::Range;

#[allow(dead_code, reason = "each program uses some of it")]
pub mod call;
pub mod calls;
pub mod lengths;
pub mod messages;
mod random;
mod sample;
pub mod shared;
pub mod uneven;

/// A failed comparison, for the harness that runs ranks as processes.
pub type Outcome = Result<usize, String>;

/// Elements behind an output, which nobody may touch.
const GUARD: usize = 300;

pub fn say(e: Error) -> String {
    e.to_string()
}

/// What rank `r` contributes at element `i` of case `salt`: small, so that sums are exact in every type.
fn contribution(r: usize, i: usize, salt: usize) -> u32 {
    ((r * 7 + i * 3 + salt) % 4) as u32
}

/// Every algorithm with every candidate parameter set, run several times in a row on changing data.
pub fn algorithms(comm: &mut Communicator, sizes: &[usize], direct: bool) -> Outcome {
    algorithms_in(comm, sizes, direct, None)
}

/// Runs the plans of every algorithm; where there is a room for their buffers, those that reach into it.
fn algorithms_in(
    comm: &mut Communicator,
    sizes: &[usize],
    direct: bool,
    mut room: Option<&mut [lineweave::SharedBuffer<u32>; 2]>,
) -> Outcome {
    let ranks = comm.ranks();
    let mut cases = 0;
    for collective in Collective::ALL {
        let mut roots = if collective.rooted() { vec![0, ranks / 2, ranks - 1] } else { vec![0] };
        roots.dedup();
        let sizes = if collective.moves_data() { sizes } else { &[0] };
        for algorithm in algorithm::table(collective) {
            for (turn, &elements) in sizes.iter().enumerate() {
                // Blocks add up to more than one message does.
                let elements = if collective.has_blocks() { elements.min(1501) } else { elements };
                for &root in &roots {
                    let problem = Problem {
                        collective,
                        shape: Shape::flat(ranks),
                        root,
                        bytes: elements * 4,
                        blocks: sweep::blocks(collective, ranks, turn, elements * 4, 4),
                        grain: if collective.folds() { 4 } else { 1 },
                        direct,
                    };
                    for params in algorithm.trials(&problem) {
                        cases += run_case(comm, algorithm, &problem, &params, room.as_deref_mut())?;
                    }
                }
            }
        }
    }
    Ok(cases)
}

/// Runs one case; where there is a room for its buffers, only if its plan reaches into it.
fn run_case(
    comm: &mut Communicator,
    algorithm: &algorithm::Algorithm,
    problem: &Problem,
    params: &lineweave_core::plan::Params,
    mut room: Option<&mut [lineweave::SharedBuffer<u32>; 2]>,
) -> Outcome {
    let Ok(plan) = algorithm.plan(problem, params) else { return Ok(0) };
    if plan.direct && !problem.direct || !plan.direct && room.is_some() {
        return Ok(0);
    }
    let capacity = comm.segment().geometry().zones(lineweave::segment::BankClass::Large).slots;
    if Footprint::of(&plan, LINE).total() > capacity {
        return Ok(0);
    }
    let id = comm.prepare(&plan).map_err(say)?;
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let grid = problem.grid();
    let given = grid.input_bytes(rank) / 4;
    let taken = (grid.output_bytes(rank) / 4).max(problem.bytes / 4);
    let fold = fold_fn(Operator::Sum, ElementType::U32).map_err(|e| e.to_string())?;
    for run in 0..5 {
        let mut own = (vec![0; given], vec![0; taken]);
        let (input, output): (&mut [u32], &mut [u32]) = match &mut room {
            None => (&mut own.0, &mut own.1),
            Some([input, output]) => (&mut input[..given], &mut output[..taken]),
        };
        input.iter_mut().enumerate().for_each(|(i, x)| *x = contribution(rank, i, run));
        output.fill(u32::MAX);
        let buffers =
            Buffers { input: input.as_ptr().cast(), output: output.as_mut_ptr().cast(), fold: fold.into() };
        // SAFETY: both buffers are as long as the plan's message and live for the run; all ranks run the
        // same cases in the same order.
        unsafe { comm.run(id, buffers) }.map_err(say)?;
        let untouched = output.iter().map(|_| u32::MAX).collect();
        let expected = expected(&grid, rank, run, untouched);
        for (i, (&found, &wanted)) in output.iter().zip(&expected).enumerate() {
            if found != wanted {
                return Err(format!(
                    "{} {params} on {ranks} ranks, root {}, {} bytes, run {run}: rank {rank} element {i} is {found}, expected {wanted}",
                    plan.name(), problem.root, problem.bytes
                ));
            }
        }
    }
    Ok(1)
}

/// What the elements of a rank's `out` must be, where they were `before`.
fn expected(grid: &Grid<'_>, rank: usize, salt: usize, before: Vec<u32>) -> Vec<u32> {
    let (p, root) = (grid.ranks, grid.root);
    let mut out = before;
    let n = grid.output_bytes(rank) / 4;
    let sum = |ranks: Range<usize>, i: usize| ranks.map(|r| contribution(r, i, salt)).sum::<u32>();
    match grid.collective {
        Collective::Barrier => {}
        Collective::Bcast => (0..n).for_each(|i| out[i] = contribution(root, i, salt)),
        Collective::Reduce | Collective::Allreduce => (0..n).for_each(|i| out[i] = sum(0..p, i)),
        Collective::Scan => (0..n).for_each(|i| out[i] = sum(0..rank + 1, i)),
        Collective::Exscan => (0..n).for_each(|i| out[i] = sum(0..rank, i)),
        Collective::ReduceScatter => {
            let start = grid.given(0, rank).start / 4;
            (0..n).for_each(|i| out[i] = sum(0..p, start + i));
        }
        Collective::Scatter => {
            let start = grid.given(root, rank).start / 4;
            (0..n).for_each(|i| out[i] = contribution(root, start + i, salt));
        }
        Collective::Gather | Collective::Allgather | Collective::Alltoall => {
            for giver in (0..p).filter(|_| n > 0) {
                let (from, to) = (grid.given(giver, rank), grid.taken(rank, giver));
                for i in 0..to.len() / 4 {
                    out[to.start / 4 + i] = contribution(giver, from.start / 4 + i, salt);
                }
            }
        }
    }
    out
}

/// Calls in an order that changes collective, size and root all the time, so that banks, windows and plans
/// follow each other in every way.
pub fn mixed(comm: &mut Communicator, rounds: usize) -> Outcome {
    mixed_with(comm, rounds, 0)
}

/// The same calls on other data, for each `salt`.
pub fn mixed_with(comm: &mut Communicator, rounds: usize, salt: usize) -> Outcome {
    let ranks = comm.ranks();
    let mut random = random::Random(12345);
    for round in 0..rounds {
        let count = random.of(&[0, 1, 3, 7, 16, 100, 1025, 40_000]);
        let root = random.below(ranks);
        let collective = random.of(&Collective::ALL);
        let count = if collective.has_blocks() { count.min(16_384 / ranks) } else { count };
        let operator = collective.folds().then_some(Operator::Sum);
        let call = CallSpec {
            collective,
            element: ElementType::U32,
            count,
            operator,
            root: if collective.rooted() { root } else { 0 },
        };
        checked(comm, &call, round + salt).map_err(|e| format!("round {round}, {e}"))?;
    }
    Ok(rounds)
}

/// A call with elements of type `u32`, compared with a reference.
pub fn checked(comm: &mut Communicator, call: &CallSpec, salt: usize) -> Result<(), String> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let CallSpec { collective, count, root, .. } = *call;
    let blocks = Blocks::Dense;
    let grid = Grid { collective, ranks, root, bytes: count * 4, blocks: &blocks };
    let (given, taken) = (grid.input_bytes(rank) / 4, grid.output_bytes(rank) / 4);
    let input: Vec<u32> = (0..given.max(count)).map(|i| contribution(rank, i, salt)).collect();
    let mut output = vec![u32::MAX; taken.max(count) + GUARD];
    let expected = expected(&grid, rank, salt, output.clone());
    // SAFETY: both buffers are as long as the collective needs for the length of the call.
    unsafe { comm.call(call, input.as_ptr().cast(), output.as_mut_ptr().cast()) }.map_err(say)?;
    for (i, (&found, &wanted)) in output.iter().zip(&expected).enumerate() {
        if found != wanted {
            return Err(format!(
                "{collective} of {count} on {ranks} ranks, root {root}: rank {rank} element {i} is {found}, expected {wanted}"
            ));
        }
    }
    Ok(())
}
