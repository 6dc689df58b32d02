//! One pass: every crew comes together once and visits its cells, and takes readings between them.

use super::cell::{Memory, ProbeContext, ProbeTeam, Role};
use super::machine_state::{MachineStateProbe, StateSample};
use super::random::Random;
use super::state::{Log, Open, Taken, Visit, SECTION};
use super::timing::{Rules, Samples};
use super::{budget_of, crowded, ProbeSet, Progress};
use lineweave::internal::Scratch;
use lineweave::kernel::Operator;
use lineweave::settings::Settings;
use lineweave::team::{Team, TeamConfig};
use lineweave::tuning::{Origin, Tuning};
use lineweave::Communicator;
use lineweave::Error;
use lineweave_core::model::Values;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a rank's buffer besides the largest copy.
const ROOM: usize = 256 << 10;
const PAGE: usize = 4096;
/// No wait of a probe is longer: a rank that is lost ends the measurement, not the program.
const PATIENCE: Duration = Duration::from_secs(20);

/// Report of a crew; reports come in the order of what happened.
enum Report {
    StateSample(StateSample),
    Cell(usize, Samples),
}

/// Function by which a crew takes a reading.
pub type Read<'a> =
    dyn Fn(&MachineStateProbe, &mut ProbeContext<'_>) -> Result<StateSample, Error> + Sync + 'a;

/// Measurements while they come in.
pub struct Passes<'a> {
    pub set: &'a ProbeSet,
    pub crews: &'a [ProbeTeam],
    pub cells: Vec<Open>,
    pub log: Log,
    pub read: &'a Read<'a>,
    pub start: Instant,
}

impl Passes<'_> {
    /// Visits these cells once, those of a crew that finds the machine in another state than is described only until it does.
    pub fn run(
        &mut self,
        pass: usize,
        wanted: &[usize],
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Error> {
        let Passes { set, crews, cells, log, read, start } = self;
        let mut random = Random::new(set.seed.wrapping_add(pass as u64));
        let mut order: Vec<usize> = (0..crews.len()).collect();
        random.shuffle(&mut order);
        let all: f64 = cells.iter().map(|c| c.task.weight).sum();
        let passes = set.passes.max(1);
        let (mut done, total) = (0, cells.len() * passes);
        for crew in order {
            let mut visits: Vec<usize> = wanted.iter().copied().filter(|&i| cells[i].crew == crew).collect();
            if visits.is_empty() {
                continue;
            }
            random.shuffle(&mut visits);
            // A pass that is late leaves each cell a little less.
            let left = set.budget.mul_f64(pass as f64 / passes as f64).saturating_sub(start.elapsed());
            let planned = set.budget.mul_f64((1.0 - done as f64 / cells.len().max(1) as f64) / passes as f64);
            let hurry = (left.as_secs_f64() / planned.as_secs_f64().max(1e-9)).clamp(0.2, 1.0);
            let plan: Vec<(usize, Duration)> =
                visits.iter().map(|&i| (i, budget_of(&cells[i].task, all, set).mul_f64(hurry))).collect();
            let seed = set.seed.wrapping_mul(1_000).wrapping_add((pass * crews.len() + crew) as u64);
            let (sender, receiver) = channel::<Report>();
            let mut reports = Vec::new();
            std::thread::scope(|scope| {
                let who =
                    Who { set, crew: &crews[crew], read: *read, like: log.described.get(crew).copied() };
                let tasks = &*cells;
                let team = scope.spawn(move || visit(&who, tasks, &plan, seed, sender));
                for report in receiver {
                    match report {
                        Report::StateSample(reading) => log.taken.push(Taken { crew, pass, reading }),
                        Report::Cell(index, samples) => {
                            done += 1;
                            let key = &tasks[index].task.keys[0];
                            let fraction = ((pass - 1) * tasks.len() + done) as f64 / total.max(1) as f64;
                            progress(Progress {
                                fraction: fraction.min(1.0),
                                pass,
                                cell: key.to_string(),
                                median_ns: samples.stats().map_or(0.0, |s| s.median),
                            });
                            reports.push((index, Visit { samples, before: log.taken.len() - 1 }));
                        }
                    }
                }
                team.join().unwrap_or_else(|_| Err(Error::Failed("a probe panicked".to_owned())))
            })?;
            for (index, visit) in reports {
                cells[index].visits.push(visit);
            }
        }
        Ok(())
    }
}

/// Crew that visits cells, and the machine on which it does.
struct Who<'a> {
    set: &'a ProbeSet,
    crew: &'a ProbeTeam,
    read: &'a Read<'a>,
    /// Reading that the crew's own must be like for the crew to go on; nothing while all are welcome.
    like: Option<StateSample>,
}

/// A crew comes together and visits cells, each for its time, with readings between them.
fn visit(
    who: &Who<'_>,
    cells: &[Open],
    plan: &[(usize, Duration)],
    seed: u64,
    sender: Sender<Report>,
) -> Result<(), Error> {
    let Who { set, crew, .. } = who;
    // Buffers outlive the threads, so that no rank's end can pull them from under a peer.
    let memories: Vec<Mutex<Memory>> = crew
        .cpus
        .iter()
        .map(|_| {
            Mutex::new(Memory {
                input: Scratch::default(),
                output: Scratch::default(),
                shared: Scratch::default(),
            })
        })
        .collect();
    let sender = Mutex::new(sender);
    Team::with(config(set, crew))?.threads(|mut comm| {
        let rank = comm.rank();
        let bytes = set.largest + ROOM;
        let (input, output, own) = {
            let mut memory = memories[rank].lock().unwrap_or_else(PoisonError::into_inner);
            (
                touched(&mut memory.input, bytes)?,
                touched(&mut memory.output, bytes)?,
                touched(&mut memory.shared, bytes)?,
            )
        };
        let shared = addresses(&mut comm, own)?;
        let gauge = MachineStateProbe::of(&mut comm)?;
        let tell = |report: Report| {
            if rank == 0 {
                let sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
                // Nobody listens any more when the caller has gone: then there is nobody to tell.
                let _ = sender.send(report);
            }
        };
        let (comm, random) = (&mut comm, Random::new(seed));
        let mut hand = ProbeContext { comm, input, output, bytes, shared: &shared, random };
        // All ranks read the same, so that all go on or none does.
        let read = |hand: &mut ProbeContext<'_>| -> Result<bool, Error> {
            let reading = (who.read)(&gauge, hand)?;
            tell(Report::StateSample(reading));
            Ok(who.like.is_none_or(|like| reading.change(&like).is_none()))
        };
        let mut welcome = read(&mut hand)?;
        for section in sections(plan) {
            if !welcome {
                break;
            }
            for &(index, budget) in section {
                hand.random = Random::new(seed.wrapping_add(index as u64));
                let samples = (cells[index].task.take)(&mut hand, &rules(crew, budget))?;
                tell(Report::Cell(index, samples));
            }
            welcome = read(&mut hand)?;
        }
        // Peers may still use this rank's buffers until here.
        hand.comm.barrier()
    })?;
    Ok(())
}

/// Cells that follow each other without a reading between them.
fn sections(plan: &[(usize, Duration)]) -> impl Iterator<Item = &[(usize, Duration)]> {
    let mut passed = Duration::ZERO;
    plan.chunk_by(move |(_, before), (_, next)| {
        passed += *before;
        let together = passed + *next <= SECTION;
        if !together {
            passed = Duration::ZERO;
        }
        together
    })
}

/// Ranks pinned to the crew's CPUs, with generic costs: what measures must not depend on what was measured.
fn config(set: &ProbeSet, crew: &ProbeTeam) -> TeamConfig {
    let why = "a machine that is being measured".to_owned();
    let origin = Origin::Machine { name: "generic".to_owned(), why };
    let tuning = Tuning::of_model(Values::default().model(), origin);
    let settings = Settings::default();
    let usable = if crowded(crew) { 1 } else { crew.cpus.len() };
    let mut config = TeamConfig::with(crew.cpus.len(), &settings, &set.topology, usable, tuning);
    config.cpus.clone_from(&crew.cpus);
    config.bind = true;
    config.check = false;
    // Nothing else may take a CPU.
    config.threads.choose = false;
    // Probes tell what it costs to come back to a place by when that was.
    config.walk = false;
    config.timeout_ms = Some(PATIENCE.as_millis() as u64);
    config
}

fn rules(crew: &ProbeTeam, budget: Duration) -> Rules {
    let batch = match crew.role {
        Role::Solo | Role::Pair | Role::Trio | Role::Crowd => Duration::from_micros(20),
        // Ten times as long as handing the CPU over.
        Role::SameCpu => Duration::from_micros(100),
    };
    Rules {
        // The passes together are to be narrow, not each.
        precision: 0.01,
        least: 40,
        most: 2_000,
        budget,
        batch,
        warm: Duration::from_micros(200),
        reruns: 4,
    }
}

/// A buffer of zeros, every page of it written by the calling thread, so that it lies near its CPU.
fn touched(buffer: &mut Scratch, bytes: usize) -> Result<*mut u8, Error> {
    buffer.grow(bytes)?;
    // The allocator may have had its pages from another thread.
    // SAFETY: this thread alone knows the buffer yet, which holds nothing.
    unsafe { lineweave::internal::renew(buffer.start(), buffer.bytes()) };
    for page in (0..buffer.bytes()).step_by(PAGE) {
        // SAFETY: within the buffer, which this thread alone knows yet.
        unsafe { buffer.start().add(page).write_volatile(0) };
    }
    Ok(buffer.start())
}

/// Returns the address of every rank's shared buffer.
fn addresses(comm: &mut Communicator, own: *mut u8) -> Result<Vec<*mut u8>, Error> {
    let mut all = vec![0u64; comm.ranks()];
    all[comm.rank()] = own as u64;
    comm.allreduce_in_place(&mut all, Operator::Max)?;
    Ok(all.into_iter().map(|a| a as *mut u8).collect())
}
