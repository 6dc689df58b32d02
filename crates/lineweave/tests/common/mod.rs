//! What every rank of a conformance team does: the same list of cases, each compared with a straightforward
//! reference. Run by threads and by processes.

use lineweave::communicator::{Buffers, Communicator};
use lineweave::kernel::{fold_fn, Element, ElementType, Operator};
use lineweave::{CallSpec, Error};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Footprint, Grid};
use lineweave_core::topology::Shape;
use lineweave_core::units::LINE;
use lineweave_core::verify::sweep;
use std::ops::Range;

pub mod blocks;
pub mod lengths;
pub mod messages;
mod random;
pub mod shared;
pub mod uneven;
pub mod wide;

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

/// Every type with every operator it has, through the calls a program makes, at sizes around the window.
pub fn types_and_operators(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let mut cases = 0;
    macro_rules! with {
        ($($t:ty),*) => { $( cases += of_type::<$t>(comm, counts)?; )* };
    }
    with!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, half::f16, half::bf16);
    Ok(cases)
}

/// Conversion from a small number and back, to compare in one type.
trait Small: Element + PartialEq + std::fmt::Debug {
    fn from_small(n: u32) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! small {
    ($($t:ty),*) => { $( impl Small for $t {
        fn from_small(n: u32) -> Self { n as $t }
        fn to_f64(self) -> f64 { self as f64 }
    } )* };
}
small!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl Small for half::f16 {
    fn from_small(n: u32) -> Self {
        half::f16::from_f32(n as f32)
    }
    fn to_f64(self) -> f64 {
        half::f16::to_f64(self)
    }
}

impl Small for half::bf16 {
    fn from_small(n: u32) -> Self {
        half::bf16::from_f32(n as f32)
    }
    fn to_f64(self) -> f64 {
        half::bf16::to_f64(self)
    }
}

/// The reference: one rank's contributions after another's, in 64-bit arithmetic, wrapped as the type wraps.
fn reference<T: Small>(operator: Operator, values: &[u32]) -> f64 {
    let first = f64::from(values[0]);
    // One rank's contribution is the result as it is, as in MPI.
    if values.len() == 1 {
        return first;
    }
    let truth = |b: bool| f64::from(u8::from(b));
    let fold =
        |f: fn(u64, u64) -> u64| values[1..].iter().fold(u64::from(values[0]), |a, &b| f(a, u64::from(b)));
    let wrapped = |n: u64| if T::TYPE.is_float() { n as f64 } else { wrap(T::TYPE, n) };
    match operator {
        Operator::Sum => wrapped(fold(|a, b| a + b)),
        Operator::Avg => {
            let sum = wrapped(fold(|a, b| a + b));
            let mean = sum / values.len() as f64;
            match T::TYPE {
                ElementType::F64 => mean,
                ElementType::F32 => f64::from(mean as f32),
                ElementType::F16 => half::f16::from_f64(mean).to_f64(),
                ElementType::BF16 => half::bf16::from_f64(mean).to_f64(),
                _ => mean.trunc(),
            }
        }
        Operator::Prod => wrapped(fold(|a, b| a.wrapping_mul(b))),
        Operator::Min => values.iter().map(|&v| f64::from(v)).fold(first, f64::min),
        Operator::Max => values.iter().map(|&v| f64::from(v)).fold(first, f64::max),
        Operator::BitAnd => wrapped(fold(|a, b| a & b)),
        Operator::BitOr => wrapped(fold(|a, b| a | b)),
        Operator::BitXor => wrapped(fold(|a, b| a ^ b)),
        Operator::LogicalAnd => truth(values.iter().all(|&v| v != 0)),
        Operator::LogicalOr => truth(values.iter().any(|&v| v != 0)),
        Operator::LogicalXor => truth(values.iter().filter(|&&v| v != 0).count() % 2 == 1),
        Operator::MinLoc | Operator::MaxLoc | Operator::User(_) => unreachable!("numbers have no {operator}"),
    }
}

fn wrap(element: ElementType, n: u64) -> f64 {
    match element {
        ElementType::I8 => f64::from(n as i8),
        ElementType::U8 => f64::from(n as u8),
        ElementType::I16 => f64::from(n as i16),
        ElementType::U16 => f64::from(n as u16),
        _ => n as f64,
    }
}

fn of_type<T: Small>(comm: &mut Communicator, counts: &[usize]) -> Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for operator in Operator::ALL {
        if fold_fn(operator, T::TYPE).is_err() {
            let refused = comm.allreduce_in_place(&mut [T::from_small(1)], operator);
            if !matches!(refused, Err(Error::Operator(_))) {
                return Err(format!("{operator:?} of {:?} was not refused: {refused:?}", T::TYPE));
            }
            continue;
        }
        for &count in counts {
            // Products stay exact in every type while few ranks contribute more than 1.
            let value = |r: usize, i: usize| {
                let v = contribution(r, i, count);
                if operator == Operator::Prod && r > 3 {
                    v.min(1)
                } else {
                    v
                }
            };
            let input: Vec<T> = (0..count).map(|i| T::from_small(value(rank, i))).collect();
            let expected = |i: usize| {
                let values: Vec<u32> = (0..ranks).map(|r| value(r, i)).collect();
                reference::<T>(operator, &values)
            };
            let check = |what: &str, found: &[T]| {
                match found
                .iter()
                .enumerate()
                .find(|(i, v)| v.to_f64() != expected(*i))
            {
                None => Ok(()),
                Some((i, v)) => Err(format!(
                    "{what} {operator:?} of {count} {:?} on {ranks} ranks: rank {rank} element {i} is {v:?}, expected {}",
                    T::TYPE,
                    expected(i)
                )),
            }
            };
            let mut output = vec![T::from_small(99); count];
            comm.allreduce(&input, &mut output, operator).map_err(say)?;
            check("allreduce", &output)?;
            let mut same = input.clone();
            comm.allreduce_in_place(&mut same, operator).map_err(say)?;
            check("allreduce in place", &same)?;
            let root = count % ranks;
            let mut output = vec![T::from_small(99); if rank == root { count } else { 0 }];
            comm.reduce(&input, &mut output, operator, root).map_err(say)?;
            check("reduce", &output)?;
            cases += 3;
        }
    }
    for &count in counts {
        let root = count % ranks;
        let mut buffer: Vec<T> = (0..count).map(|i| T::from_small(contribution(rank, i, 1))).collect();
        comm.bcast(&mut buffer, root).map_err(say)?;
        if let Some(i) = (0..count).find(|&i| buffer[i] != T::from_small(contribution(root, i, 1))) {
            return Err(format!(
                "bcast of {count} {:?} from {root}: rank {rank} element {i} is {:?}",
                T::TYPE,
                buffer[i]
            ));
        }
        comm.barrier().map_err(say)?;
        cases += 2;
    }
    Ok(cases)
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
