//! Measuring what this machine costs: a profile, from which a model is fitted.
//!
//! 1. Crews are formed: for each distance that two CPUs can be apart, a pair; one rank alone; two on one CPU.
//! 2. Each probe offers cells to each crew, and names what this machine cannot tell.
//! 3. Passes: in each, every crew comes together anew, in fresh memory, and visits its cells in a random order.
//!    A machine that drifts (neighbours in a cloud, a CPU that warms up) so does to all cells alike.
//!    After it every two CPUs meet once.
//! 4. Of all passes those visits count that are of one state of the machine, which the gauge tells (`state.rs`); cells without
//!    enough of them are visited again.
//! 5. A cell's samples of these visits make its statistics; the gate flags what is odd.
//!
//! Probes time the functions that the engine calls, and are plans run by the engine where they can be.

mod attach;
mod batch;
mod cache;
mod cell;
pub mod clock;
mod copy;
mod crews;
mod fold;
mod gate;
mod machine_state;
mod line;
mod overhead;
mod pairs;
mod pass;
mod pingpong;
mod plans;
mod random;
mod signal;
mod star;
mod state;
mod stream;
pub mod timing;
mod trick;
mod states;
pub mod utc;
mod wake;

pub use clock::Clock;
pub use machine_state::{Change, Figure, MachineStateProbe, StateSample, COPIED};

use cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use lineweave::cpus::UsableCpus;
use lineweave::settings::Settings;
use lineweave::topology::Hardware;
use lineweave::Error;
use lineweave_core::profile::{Cell, Fingerprint, Profile, Stats, SCHEMA};
use lineweave_core::topology::Topology;
use pairs::Pairs;
use pass::Passes;
use random::Random;
pub use state::of_another_state;
use state::{Log, Open};
use std::time::{Duration, Instant};

/// Subject of a measurement, and its time.
#[derive(Clone, PartialEq, Debug)]
pub struct ProbeSet {
    /// The CPUs to measure, neighbours first.
    pub topology: Topology,
    /// The machine that the profile will belong to.
    pub machine: Fingerprint,
    /// The time for everything, a quarter less than it may take where the machine changes meanwhile; a pass that has begun is finished.
    pub budget: Duration,
    /// Passes over all cells.
    pub passes: usize,
    /// The largest copy in bytes.
    pub largest: usize,
    /// Of the random orders.
    pub seed: u64,
}

impl ProbeSet {
    /// This machine's usable CPUs, within 40 seconds.
    pub fn of_this_machine(settings: &Settings) -> Result<ProbeSet, Error> {
        let hardware = Hardware::load(&settings.topology).map_err(|e| Error::Topology(e.to_string()))?;
        let usable = UsableCpus::of_this_thread();
        Ok(ProbeSet {
            machine: hardware.fingerprint(&usable.cpus),
            topology: hardware.restrict(&usable.cpus).topology,
            budget: Duration::from_secs(38),
            passes: 10,
            largest: 16 << 20,
            seed: 1,
        })
    }

    /// Returns this set within 8 seconds, with wider intervals.
    #[must_use]
    pub fn quick(self) -> ProbeSet {
        ProbeSet { budget: Duration::from_millis(7_500), passes: 3, ..self }
    }
}

/// Progress of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct Progress {
    /// Part of the work that is done, 0 to 1.
    pub fraction: f64,
    /// The pass, from 1.
    pub pass: usize,
    /// The cell: probe and factors.
    pub cell: String,
    /// Its median in this pass, in ns.
    pub median_ns: f64,
}

/// The part of the time by which cells may be visited again.
const AGAIN: f64 = 0.25;
/// Between two tries to do so: a machine that is in another state stays in it for a while.
const PAUSE: Duration = Duration::from_millis(50);

/// Measures. `progress` is called after each visit of a cell; nothing is printed.
pub fn measure(set: &ProbeSet, progress: &mut dyn FnMut(Progress)) -> Result<Profile, Error> {
    let start = Instant::now();
    let clock = Clock::get();
    let cpus = set.topology.cpus.len();
    let mut found = ProbeTasks::default();
    let crews = crews::crews(&set.topology, &mut found);
    if crews.is_empty() {
        return Err(Error::Topology("measuring needs a CPU, and the topology has none".to_owned()));
    }
    line::beyond(cpus, &mut found);
    copy::beyond(cpus, &mut found);
    star::beyond(cpus, &mut found);
    attach::beyond(cpus, &mut found);
    let mut pairs = Pairs::of(&set.topology);
    let mut cells = Vec::new();
    for (crew, who) in crews.iter().enumerate() {
        let mut offer = offers(who, set.largest);
        cells.extend(offer.tasks.drain(..).map(|task| Open { crew, task, visits: Vec::new() }));
        offer.unidentified.into_iter().for_each(|u| found.missing(u.what, u.because));
    }
    // SAFETY: a rank's buffers are longer than what is copied and its own, and all ranks of a crew read at once.
    let read = |gauge: &MachineStateProbe, hand: &mut ProbeContext<'_>| unsafe {
        gauge.read(hand.comm, hand.input, hand.output)
    };
    let mut passes = Passes { set, crews: &crews, cells, log: Log::default(), read: &read, start };
    visit_all(&mut passes, &mut pairs, progress)?;
    let Passes { cells, log, .. } = passes;
    pairs.unidentified.iter().for_each(|u| found.missing(&u.what, &u.because));
    log.mixed(&cells).into_iter().for_each(|u| found.missing(u.what, u.because));
    let mut profile = Profile {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        measured_at: utc::now(),
        machine: set.machine.clone(),
        unidentified: found.unidentified,
        cells: timer(&clock),
    };
    profile.cells.extend(log.cells(&crews));
    profile.cells.extend(cells.iter().flat_map(|open| log.closed(open)));
    profile.cells.extend(pairs.cells().filter_map(|(key, samples)| Some(key.cell(samples.stats()?))));
    gate::examine(&mut profile.cells);
    Ok(profile)
}

/// The passes; and then, for as long as a quarter of the time for them, cells that lack visits in the state that is described.
fn visit_all(
    passes: &mut Passes<'_>,
    pairs: &mut Pairs,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let (set, start) = (passes.set, passes.start);
    let every: Vec<usize> = (0..passes.cells.len()).collect();
    let mut made = 0;
    while made == 0 || (made < set.passes && start.elapsed() <= set.budget) {
        made += 1;
        passes.run(made, &every, progress)?;
        pairs.sweep(&mut Random::new(set.seed.wrapping_add(made as u64)))?;
    }
    passes.log.decide(passes.crews.len());
    let enough = made.min(state::ENOUGH);
    for again in made + 1.. {
        let lacks = |i: &usize| passes.log.sound(&passes.cells[*i]).count() < enough;
        let lacking: Vec<usize> = every.iter().copied().filter(lacks).collect();
        if lacking.is_empty() || start.elapsed() > set.budget.mul_f64(1.0 + AGAIN) {
            break;
        }
        passes.run(again, &lacking, progress)?;
        lineweave::sync::sleep(PAUSE);
    }
    Ok(())
}

/// Returns the tasks that every probe offers to a crew.
fn offers(crew: &ProbeTeam, largest: usize) -> ProbeTasks {
    let mut offer = ProbeTasks::default();
    line::offer(crew, &mut offer);
    signal::offer(crew, &mut offer);
    star::offer(crew, &mut offer);
    pingpong::offer(crew, &mut offer);
    states::offer(crew, &mut offer);
    stream::offer(crew, largest, &mut offer);
    attach::offer(crew, largest, &mut offer);
    wake::offer(crew, &mut offer);
    trick::offer(crew, &mut offer);
    overhead::offer(crew, &mut offer);
    copy::offer(crew, largest, &mut offer);
    fold::offer(crew, largest, &mut offer);
    offer
}

/// Probe `timer`: what a tick is, and what reading the clock costs.
fn timer(clock: &Clock) -> Vec<Cell> {
    let cell = |what: &str, value: f64| {
        let key = SampleKey::new("timer").with("what", what).with("source", clock.source());
        Stats::of(&[value], 0).map(|stats| key.cell(stats))
    };
    [cell("tick", clock.tick_ns()), cell("read", clock.cost_ns())].into_iter().flatten().collect()
}

/// Returns the time of a task in one pass.
fn budget_of(task: &Task, all: f64, set: &ProbeSet) -> Duration {
    set.budget.mul_f64(task.weight / all / set.passes.max(1) as f64)
}

/// Returns whether two ranks of a crew share a CPU.
fn crowded(crew: &ProbeTeam) -> bool {
    crew.role == Role::SameCpu
}

#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod tests;
