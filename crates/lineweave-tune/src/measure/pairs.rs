//! Probe `pair`: how far any two CPUs are apart: a flag raised to and fro on one line, halved.
//!
//! One thread waits on each CPU; two at a time measure, since pairs that do so at once share the way. Distances are found
//! from these cells (`models/classes.rs` of `lineweave-lab`), not assumed from the topology.
//!
//! Of more than 64 CPUs one a core takes part, and of more cores an even choice: pairs grow with the square.

use super::cell::SampleKey;
use super::clock::Clock;
use super::machine_state::StateSample;
use super::random::Random;
use super::state::usual;
use super::timing::Samples;
use lineweave::flag;
use lineweave::internal::pin;
use lineweave::internal::Scratch;
use lineweave::sync::{spin_loop, AtomicU64};
use lineweave::Error;
use lineweave_core::profile::Unidentified;
use lineweave_core::topology::{Cpu, Topology};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::time::{Duration, Instant};

/// The most CPUs that take part.
const MOST: usize = 64;
/// Round trips before the first sample.
const WARM: u64 = 20;
/// Round trips of a sample.
const ROUNDS: u64 = 50;
/// Samples of a meeting.
const SAMPLES: u64 = 9;
/// Flags that a meeting raises, one after the other.
const RAISES: u64 = WARM + ROUNDS * SAMPLES;
/// A peer that does not answer for so long is lost.
const PATIENCE: Duration = Duration::from_secs(5);
const LINE: usize = 64;

/// The pairs of a machine while their samples come in.
pub struct Pairs {
    cpus: Vec<Cpu>,
    /// Of the pair i < j of `cpus`, in the order of i and then of j: those of each sweep.
    samples: Vec<Vec<Samples>>,
    /// Every flag raised so far is at most this.
    base: u64,
    /// Why CPUs or all of them are left out.
    pub unidentified: Vec<Unidentified>,
}

/// Task of a thread: meet the peer whose line is at `line`.
struct Meeting {
    line: usize,
    base: u64,
    /// Calls and takes the time; the other one answers.
    calls: bool,
}

/// Result of a meeting, from its caller; nothing when the peer did not answer.
type Outcome = Option<Vec<f64>>;

impl Pairs {
    /// Those of a topology's CPUs.
    pub fn of(topology: &Topology) -> Pairs {
        let all = &topology.cpus;
        let mut unidentified = Vec::new();
        let mut missing = |what: &str, because: String| {
            unidentified.push(Unidentified { what: what.to_owned(), because });
        };
        let cpus = chosen(all);
        if all.len() < 2 {
            missing("pair", format!("a pair needs 2 CPUs, and {} can be used", all.len()));
        } else if cpus.len() < all.len() {
            let (some, all) = (cpus.len(), all.len());
            missing("pair[all]", format!("{some} of {all} CPUs were paired: the time is for {MOST}"));
        }
        let count = cpus.len() * cpus.len().saturating_sub(1) / 2;
        Pairs { samples: vec![Vec::new(); count], cpus, base: 0, unidentified }
    }

    /// Each pair meets once, in a random order.
    pub fn sweep(&mut self, random: &mut Random) -> Result<(), Error> {
        let n = self.cpus.len();
        let mut order: Vec<(usize, usize)> = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect();
        random.shuffle(&mut order);
        if order.is_empty() {
            return Ok(());
        }
        // Lines outlive the threads.
        let mut lines: Vec<Scratch> = (0..n).map(|_| Scratch::default()).collect();
        lines.iter_mut().try_for_each(|line| line.grow(LINE))?;
        std::thread::scope(|scope| {
            let (report, outcomes) = channel::<Outcome>();
            let mut hands: Vec<Sender<Meeting>> = Vec::new();
            let mut ready = Vec::new();
            for (cpu, line) in self.cpus.iter().zip(&lines) {
                let (hand, meetings) = channel();
                let (tell, told) = channel();
                let (report, os, line) = (report.clone(), cpu.os, line.start() as usize);
                std::thread::Builder::new()
                    .spawn_scoped(scope, move || work(os, line, &meetings, &tell, &report))
                    .map_err(|e| Error::System {
                        what: "starting a thread that measures".to_owned(),
                        reason: e.to_string(),
                        advice: "",
                    })?;
                hands.push(hand);
                ready.push(told);
            }
            // A CPU that no thread may be bound to says nothing about distances.
            let bound: Vec<bool> = ready.iter().map(|told| told.recv().unwrap_or(false)).collect();
            for (cpu, _) in self.cpus.iter().zip(&bound).filter(|(_, &bound)| !bound) {
                let because = "no thread may be bound to it".to_owned();
                let what = format!("pair[{}]", cpu.os);
                if self.unidentified.iter().all(|u| u.what != what) {
                    self.unidentified.push(Unidentified { what, because });
                }
            }
            for (i, j) in order.into_iter().filter(|&(i, j)| bound[i] && bound[j]) {
                let (line, base) = (lines[i].start() as usize, self.base);
                self.base += RAISES;
                // The one that answers first: it is there when the caller begins. A thread that has gone answers nobody.
                let meet = |who: usize, calls| hands[who].send(Meeting { line, base, calls }).is_ok();
                if !meet(j, false) || !meet(i, true) {
                    continue;
                }
                let outcome = outcomes.recv_timeout(2 * PATIENCE).ok().flatten();
                let values = outcome.into_iter().map(|values| Samples { values, disturbed: 0 });
                self.samples[index(n, i, j)].extend(values);
            }
            Ok(())
        })
    }

    /// One cell a pair, of the sweeps that found it as most did.
    pub fn cells(&self) -> impl Iterator<Item = (SampleKey, Samples)> + '_ {
        let n = self.cpus.len();
        let pairs = (0..n).flat_map(move |i| (i + 1..n).map(move |j| (i, j)));
        pairs.map(move |(i, j)| {
            let (a, b) = (&self.cpus[i], &self.cpus[j]);
            (SampleKey::new("pair").with("a", a.os).with("b", b.os), alike(&self.samples[index(n, i, j)]))
        })
    }
}

/// Merges the samples of the sweeps that found a pair as most did; the others are set aside.
fn alike(sweeps: &[Samples]) -> Samples {
    let reading = |s: &Samples| StateSample([s.stats().map(|s| s.median), None, None]);
    let readings: Vec<StateSample> = sweeps.iter().map(reading).collect();
    let usual = usual(&readings).unwrap_or_default();
    let mut all = Samples::default();
    for (sweep, reading) in sweeps.iter().zip(&readings) {
        match reading.change(&usual) {
            None => all.merge(sweep),
            Some(_) => all.disturbed += sweep.values.len(),
        }
    }
    all
}

/// Returns the index of the pair i < j of `n` in a list of all of them.
fn index(n: usize, i: usize, j: usize) -> usize {
    i * (2 * n - i - 1) / 2 + j - i - 1
}

/// The CPUs that take part.
fn chosen(all: &[Cpu]) -> Vec<Cpu> {
    if all.len() <= MOST {
        return all.to_vec();
    }
    let mut cores: Vec<Cpu> = Vec::new();
    for cpu in all {
        if cores.iter().all(|c| c.core != cpu.core) {
            cores.push(cpu.clone());
        }
    }
    let step = cores.len().div_ceil(MOST);
    cores.into_iter().step_by(step).collect()
}

/// A thread on CPU `os` that meets others until nobody asks it to any more.
fn work(
    os: usize,
    line: usize,
    meetings: &Receiver<Meeting>,
    ready: &Sender<bool>,
    report: &Sender<Outcome>,
) {
    let bound = pin(os).is_ok();
    // The first touch: the line lies near this CPU.
    // SAFETY: a buffer of a line that outlives this thread and that nobody else uses yet.
    unsafe { (line as *mut u8).write_volatile(0) };
    // Whoever listened has gone when the measurement failed: then this thread ends too.
    if ready.send(bound).is_err() {
        return;
    }
    while let Ok(meeting) = meetings.recv() {
        let outcome = meet(&meeting);
        if meeting.calls && report.send(outcome).is_err() {
            return;
        }
    }
}

/// Half the round trips of a meeting, in ns, one value a sample.
fn meet(meeting: &Meeting) -> Outcome {
    let words = meeting.line as *const [AtomicU64; 2];
    // SAFETY: the line of a thread of this sweep, aligned and zeroed, only used as these words since its first touch, and
    // freed after the threads have ended.
    let words = unsafe { &*words };
    let (mine, theirs) = if meeting.calls { (&words[0], &words[1]) } else { (&words[1], &words[0]) };
    let clock = Clock::get();
    let trips = |from: u64, count: u64| {
        for i in from..from + count {
            let value = meeting.base + i + 1;
            if meeting.calls {
                flag::raise(mine, value);
                reach(theirs, value)?;
            } else {
                reach(theirs, value)?;
                flag::raise(mine, value);
            }
        }
        Some(())
    };
    if !meeting.calls {
        trips(0, RAISES)?;
        return None;
    }
    trips(0, WARM)?;
    let sample = |s: u64| {
        let start = clock.now();
        trips(WARM + s * ROUNDS, ROUNDS)?;
        Some(clock.since(start) / (2 * ROUNDS) as f64)
    };
    (0..SAMPLES).map(sample).collect()
}

/// Waits for a flag; nothing when it is not raised in time.
#[inline(always)]
fn reach(flag: &AtomicU64, value: u64) -> Option<()> {
    for _ in 0..1 << 14 {
        if flag::reached(flag, value) {
            return Some(());
        }
        spin_loop();
    }
    reach_late(flag, value)
}

#[cold]
fn reach_late(flag: &AtomicU64, value: u64) -> Option<()> {
    let start = Instant::now();
    while !flag::reached(flag, value) {
        if start.elapsed() > PATIENCE {
            return None;
        }
        rustix::thread::sched_yield();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::cpus::UsableCpus;
    use std::collections::BTreeSet;

    fn machine(cpus: usize) -> Topology {
        let cpu = |c: usize| Cpu { os: c, core: c / 2, l3: c / 16, numa: c / 64, package: c / 64, kind: 0 };
        Topology { cpus: (0..cpus).map(cpu).collect() }
    }

    #[test]
    fn every_pair_has_a_place_of_its_own() {
        for n in [2, 3, 7, 64] {
            let places: Vec<usize> = (0..n).flat_map(|i| (i + 1..n).map(move |j| index(n, i, j))).collect();
            assert_eq!(places, (0..n * (n - 1) / 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn large_machines_pair_an_even_choice_of_their_cores_and_say_so() {
        assert_eq!(Pairs::of(&machine(64)).cpus.len(), 64);
        for (cpus, taking_part) in [(128, 64), (192, 48), (576, 58)] {
            let pairs = Pairs::of(&machine(cpus));
            assert_eq!(pairs.cpus.len(), taking_part, "{cpus} CPUs");
            assert!(pairs.unidentified[0].because.contains(&format!("of {cpus} CPUs")));
            // Every last-level cache has a CPU among them.
            let caches = cpus / 16;
            assert!((0..caches).all(|l3| pairs.cpus.iter().any(|c| c.l3 == l3)), "{cpus} CPUs");
        }
    }

    #[test]
    fn a_sweep_in_which_two_cpus_were_elsewhere_is_set_aside() {
        let sweep = |ns: f64| Samples { values: vec![ns; 9], disturbed: 0 };
        let all = alike(&[sweep(30.0), sweep(160.0), sweep(34.0), sweep(26.0), sweep(155.0)]);
        assert_eq!((all.values.len(), all.disturbed), (27, 18));
        assert!(all.values.iter().all(|&ns| ns < 40.0), "{all:?}");
        assert_eq!(alike(&[]), Samples::default());
    }

    #[test]
    fn one_cpu_is_no_pair() {
        let mut pairs = Pairs::of(&machine(1));
        pairs.sweep(&mut Random::new(1)).expect("nothing to do");
        assert_eq!(pairs.unidentified[0].what, "pair");
        assert_eq!(pairs.cells().count(), 0);
    }

    #[test]
    fn the_pairs_of_this_machine_make_a_matrix() {
        let usable = UsableCpus::of_this_thread();
        let few = usable.cpus.iter().take(3);
        let topology = Topology {
            cpus: few.map(|&os| Cpu { os, core: os, l3: 0, numa: 0, package: 0, kind: 0 }).collect(),
        };
        let mut pairs = Pairs::of(&topology);
        for seed in 0..2 {
            pairs.sweep(&mut Random::new(seed)).expect("threads");
        }
        let n = topology.cpus.len();
        let list: BTreeSet<(usize, usize)> = pairs
            .cells()
            .map(|(key, samples)| {
                assert_eq!(samples.values.len(), 2 * SAMPLES as usize, "{key}");
                let stats = samples.stats().expect("samples");
                let cpu = |name: &str| key.factors[name].parse().expect("a number");
                assert!(stats.median.is_finite() && stats.median > 0.0, "{key}: {} ns", stats.median);
                (cpu("a"), cpu("b"))
            })
            .collect();
        let cpus = &topology.cpus;
        let every = (0..n).flat_map(|i| (i + 1..n).map(move |j| (cpus[i].os, cpus[j].os)));
        assert_eq!(list, every.collect());
    }
}
