//! Readings that show that the machine under a team is another one: the time of an exchange of flags, of a copy of what another rank has
//! just written, and of a step of a core's clock.
//!
//! A hypervisor moves CPUs between cores and caches, and heat slows them down (docs/explanation/findings.md). So a [`StateSample`] is taken before and after
//! whatever is measured. Of more ranks it takes no longer but for what each round of a barrier then takes: they share the rounds, and the
//! bytes.

use super::clock::Clock;
use super::plans;
use lineweave::communicator::{Buffers, PlanId};
use lineweave::kernel::Operator;
use lineweave::{Communicator, Error};
use lineweave_core::plan::{Layout, Params};
use lineweave_core::units::LINE;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// Bytes that rank 0 hands to all others together. On an EPYC whose two CPUs moved between caches the times of 256 KiB told the two states
/// apart; those of 16 KiB, which the cores fetch ahead, overlapped.
pub const COPIED: usize = 256 << 10;
/// The fewest that it hands to each.
const FEWEST: usize = 4 << 10;
/// Batches of each figure. The fastest counts: an interruption does not make another machine.
const BATCHES: usize = 8;
/// Rounds of exchanges of a batch, some microseconds.
const ROUNDS: usize = 64;
/// Multiplications of a batch, each of what the one before gave: some microseconds at any clock.
const STEPS: usize = 2_000;

/// Figure of a reading.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Figure {
    /// A barrier: of two ranks one exchange of flags on one line, of more the rounds of a dissemination.
    Handshake,
    /// [`COPIED`] bytes from rank 0 to the others, through its box.
    Copy,
    /// A step of a chain of multiplications on the slowest core.
    Clock,
}

impl Figure {
    /// All of them, in the order of a reading.
    pub const ALL: [Figure; 3] = [Figure::Handshake, Figure::Copy, Figure::Clock];

    /// In a profile and in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Handshake => "handshake",
            Figure::Copy => "copy",
            Figure::Clock => "clock",
        }
    }

    /// In a sentence that says how long it takes.
    pub fn noun(self) -> &'static str {
        match self {
            Figure::Handshake => "a handshake",
            Figure::Copy => "a copy of what another rank wrote",
            Figure::Clock => "a step of a core's clock",
        }
    }

    /// So many times as long or as short is another machine.
    fn band(self) -> f64 {
        match self {
            Figure::Handshake => 2.0,
            // Between cells, which leave more or less of the caches to it, it took 8 to 25 us while nothing moved.
            Figure::Copy => 3.0,
            Figure::Clock => 1.25,
        }
    }
}

/// Time of each figure, in ns. One rank, and ranks that share CPUs, have a clock alone: there the scheduler decides about the others.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct StateSample(pub [Option<f64>; 3]);

/// A figure that is not as it was, and how many times as long it takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// Figure that changed.
    pub figure: Figure,
    /// Below 1: it is shorter.
    pub times: f64,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} took {:.2} times as long", self.figure.noun(), self.times)
    }
}

impl StateSample {
    /// Returns the time of a figure, in ns.
    pub fn get(&self, figure: Figure) -> Option<f64> {
        self.0[figure as usize]
    }

    /// Returns the figure that makes this another machine than that of `other`: the one that is farthest beyond its band.
    pub fn change(&self, other: &StateSample) -> Option<Change> {
        let changes = Figure::ALL.into_iter().zip(self.0.into_iter().zip(other.0));
        let far = |c: &Change| c.times.ln().abs() / c.figure.band().ln();
        changes
            .filter_map(|(figure, (here, there))| Some(Change { figure, times: here? / there? }))
            .filter(|change| far(change) > 1.0)
            .max_by(|a, b| far(a).total_cmp(&far(b)))
    }

    /// The median of each figure.
    pub fn median(readings: &[StateSample]) -> StateSample {
        StateSample(std::array::from_fn(|i| {
            let mut values: Vec<f64> = readings.iter().filter_map(|r| r.0[i]).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        }))
    }
}

/// The plans of a team's readings.
#[derive(Debug)]
pub struct MachineStateProbe {
    exchange: Option<PlanId>,
    copy: Option<PlanId>,
}

impl MachineStateProbe {
    /// For a team; every rank of it must do this at once, as with [`Communicator::prepare`].
    pub fn of(comm: &mut Communicator) -> Result<MachineStateProbe, Error> {
        let ranks = comm.ranks();
        if ranks < 2 || comm.shape().oversubscription() > 1 {
            return Ok(MachineStateProbe { exchange: None, copy: None });
        }
        let (algorithm, layout) = match ranks {
            2 => ("exchange", Layout::Paired),
            _ => ("dissemination", Layout::Alone),
        };
        let exchange = plans::barrier(algorithm, ranks, &Params::new().with("layout", layout))?;
        let exchange = Some(comm.prepare(&exchange)?);
        let each = (COPIED / (ranks - 1)).max(FEWEST) / LINE * LINE;
        let copy = match comm.prepare(&plans::handed(ranks, each)?) {
            Ok(copy) => Some(copy),
            // Boxes that somebody has made smaller.
            Err(Error::NoPlan { .. }) => None,
            Err(e) => return Err(e),
        };
        Ok(MachineStateProbe { exchange, copy })
    }

    /// A reading, the same on every rank: of each batch the time of the slowest rank, of these the shortest.
    /// # Safety
    /// Both buffers hold [`COPIED`] bytes, are this rank's own and live until it returns; every rank must read at once.
    pub unsafe fn read(
        &self,
        comm: &mut Communicator,
        input: *mut u8,
        output: *mut u8,
    ) -> Result<StateSample, Error> {
        let buffers = Buffers { input, output, ..Buffers::NONE };
        let rounds = comm.ranks().max(2).next_power_of_two().ilog2() as usize;
        let mut taken = [[0.0; 3]; BATCHES];
        for batches in &mut taken {
            for (figure, plan, runs) in [(0, self.exchange, (ROUNDS / rounds).max(1)), (1, self.copy, 1)] {
                if let Some(plan) = plan {
                    // SAFETY: the caller's promise; neither plan folds, and all ranks run them in this order.
                    batches[figure] = unsafe { batch(comm, plan, runs, buffers) }?;
                }
            }
            batches[2] = step();
        }
        comm.allreduce_in_place(taken.as_flattened_mut(), Operator::Max)?;
        let fastest = |figure: usize| taken.iter().map(|b| b[figure]).reduce(f64::min).filter(|ns| *ns > 0.0);
        Ok(StateSample(std::array::from_fn(fastest)))
    }
}

/// ns a run, after one that is not timed.
///
/// # Safety
/// The conditions of [`Communicator::run`].
unsafe fn batch(comm: &mut Communicator, plan: PlanId, runs: usize, buffers: Buffers) -> Result<f64, Error> {
    let clock = Clock::get();
    comm.barrier()?;
    // SAFETY: the caller's promise.
    unsafe { comm.run(plan, buffers) }?;
    let start = clock.now();
    for _ in 0..runs {
        // SAFETY: the caller's promise.
        unsafe { comm.run(plan, buffers) }?;
    }
    Ok(clock.since(start) / runs as f64)
}

/// ns of one step of a chain that no core can shorten but by a faster clock.
fn step() -> f64 {
    let clock = Clock::get();
    let (mut x, factor) = (black_box(3u64), black_box(0x9e37_79b9_7f4a_7c15u64));
    let start = clock.now();
    for _ in 0..STEPS {
        x = (x ^ (x >> 7)).wrapping_mul(factor);
    }
    black_box(x);
    clock.since(start) / STEPS as f64
}
