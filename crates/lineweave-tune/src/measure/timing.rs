//! Timing what all ranks of a team do together: batches, statistics, and when to stop.
//!
//! 1. Ranks enter a barrier, do one operation untimed, and then a batch of operations back to back, each timing
//!    its own. The batch's time is the maximum over ranks: a collective is done when its last rank is.
//! 2. Some batches make a window. Before and after it every rank looks for what may have disturbed it
//!    (involuntary context switches, migration, CPU time stolen by the hypervisor).
//! 3. An allreduce gives every rank the same times and the same verdict, so that all go on or stop together.
//!    A disturbed window is set aside, counted, and run again, a bounded number of times.
//! 4. They stop when the interval of the median is narrow enough, or when time is up.

use super::batch::batch_length;
use super::clock::Clock;
use lineweave::kernel::Operator;
use lineweave::Communicator;
use lineweave::Error;
use lineweave_core::profile::Stats;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Rules on when to stop, and what to believe.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// Stop when half the interval of the median is at most this part of it ...
    pub precision: f64,
    /// ... and there are this many samples.
    pub least: usize,
    /// Stop at this many samples.
    pub most: usize,
    /// Stop after this time, with at least one sample.
    pub budget: Duration,
    /// Length of a batch, when an operation is shorter.
    pub batch: Duration,
    /// Run and not timed, before anything else.
    pub warm: Duration,
    /// Disturbed windows that are run again; further ones are kept.
    pub reruns: usize,
}

impl Default for Rules {
    /// 2 % within 200 ms; batches of 20 us are a thousand ticks of the slowest clock in use.
    fn default() -> Self {
        Rules {
            precision: 0.02,
            least: 60,
            most: 5_000,
            budget: Duration::from_millis(200),
            batch: Duration::from_micros(20),
            warm: Duration::from_millis(1),
            reruns: 20,
        }
    }
}

/// So many samples of a pass count even where another has fewer.
const FEWEST: usize = 8;

/// Samples so far, in ns an operation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Samples {
    /// The samples kept.
    pub values: Vec<f64>,
    /// Number of samples that were set aside with a cause.
    pub disturbed: usize,
}

impl Samples {
    /// Their statistics, if there are any.
    pub fn stats(&self) -> Option<Stats> {
        Stats::of(&self.values, self.disturbed)
    }

    /// Takes in more samples.
    pub fn merge(&mut self, other: &Samples) {
        self.values.extend_from_slice(&other.values);
        self.disturbed += other.disturbed;
    }

    /// As many samples of each pass, from all of its time. A pass on a machine that is uneasy goes on until its interval is narrow:
    /// it has up to fifty times as many as another, and would alone say what the median is.
    pub fn of_passes<'a>(passes: impl IntoIterator<Item = &'a Samples> + Clone) -> Samples {
        let passes = || passes.clone().into_iter().filter(|p| !p.values.is_empty());
        let each = passes().map(|p| p.values.len()).min().unwrap_or(0).max(FEWEST);
        let mut all = Samples::default();
        for pass in passes() {
            let (have, take) = (pass.values.len(), each.min(pass.values.len()));
            all.values.extend((0..take).map(|i| pass.values[i * have / take]));
            all.disturbed += pass.disturbed * take / have;
        }
        all
    }
}

/// Does an operation so many times. The loop is the caller's, as a program's would be: an indirect call between two
/// barriers of 35 ns makes them barriers of 75.
pub type Batch<'a> = dyn FnMut(&mut Communicator, usize) -> Result<(), Error> + 'a;

/// Times an operation of a whole team; every rank must call it with the same rules, and gets the same samples: ns an operation.
pub fn collect_samples(
    comm: &mut Communicator,
    rules: &Rules,
    ops: &mut Batch<'_>,
) -> Result<Samples, Error> {
    let clock = Clock::get();
    let mut batch = |comm: &mut Communicator, count: usize| -> Result<f64, Error> {
        comm.barrier()?;
        ops(comm, 1)?;
        let start = clock.now();
        ops(comm, count)?;
        Ok(clock.since(start) / count as f64)
    };
    let count = batch_length(comm, rules, &mut batch)?;
    gather(comm, rules, &mut |comm| batch(comm, count))
}

/// As [`collect_samples`], but a batch's time is the last rank's exit less the first rank's entry, on the clock that
/// all CPUs share (docs/explanation/measuring.md, rule 4). Where ranks outnumber CPUs, or may run ahead of each other, the time that
/// each takes by itself is not the time that all of them take: a late rank finds its data waiting.
pub fn collect_elapsed(
    comm: &mut Communicator,
    rules: &Rules,
    ops: &mut Batch<'_>,
) -> Result<Samples, Error> {
    let mut batch = |comm: &mut Communicator, count: usize| -> Result<f64, Error> {
        comm.barrier()?;
        ops(comm, 1)?;
        let mut first = [shared_clock()];
        ops(comm, count)?;
        let last = shared_clock();
        comm.allreduce_in_place(&mut first, Operator::Min)?;
        Ok((last - first[0]) / count as f64)
    };
    let count = batch_length(comm, rules, &mut batch)?;
    gather(comm, rules, &mut |comm| batch(comm, count))
}

/// ns since the machine started, the same on every CPU and in every process; exact to less than 1 ns for 50 days.
fn shared_clock() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// As [`collect_samples`] for operations that time themselves: each call returns the ns that this rank took,
/// 0 where it is not this rank that counts. A sample is the maximum over ranks.
pub fn collect_timed(
    comm: &mut Communicator,
    rules: &Rules,
    op: &mut dyn FnMut(&mut Communicator) -> Result<f64, Error>,
) -> Result<Samples, Error> {
    let start = Instant::now();
    while agreed(comm, start.elapsed().as_secs_f64())? < rules.warm.as_secs_f64() {
        op(comm)?;
    }
    gather(comm, rules, op)
}

/// The most of what ranks say.
fn agreed(comm: &mut Communicator, mine: f64) -> Result<f64, Error> {
    let mut most = [mine];
    comm.allreduce_in_place(&mut most, Operator::Max)?;
    Ok(most[0])
}

/// The most batches of a window: its times travel in one allreduce.
const WINDOW: usize = 32;
/// Length of a window: looking for disturbances costs some tens of us, a few percent of it.
const WINDOW_SECONDS: f64 = 1.5e-3;

/// Steps 2 to 4.
fn gather(
    comm: &mut Communicator,
    rules: &Rules,
    sample: &mut dyn FnMut(&mut Communicator) -> Result<f64, Error>,
) -> Result<Samples, Error> {
    let mut samples = Samples::default();
    let mut watch = Watchman::new(comm.rank() == 0, comm.shape().oversubscription() > 1);
    let (mut reruns, mut length) = (rules.reruns, 1usize);
    let start = Instant::now();
    loop {
        let mut shared = [0.0f64; WINDOW + 3];
        watch.begin();
        let began = Instant::now();
        for time in &mut shared[..length] {
            *time = sample(comm)?;
        }
        shared[WINDOW] = began.elapsed().as_secs_f64();
        shared[WINDOW + 1] = if watch.disturbed() { 1.0 } else { 0.0 };
        shared[WINDOW + 2] = start.elapsed().as_secs_f64();
        comm.allreduce_in_place(&mut shared, Operator::Max)?;
        let [took, disturbed, passed] = [shared[WINDOW], shared[WINDOW + 1], shared[WINDOW + 2]];
        let late = passed >= rules.budget.as_secs_f64();
        if disturbed > 0.0 && reruns > 0 && !(late && samples.values.is_empty()) {
            reruns -= 1;
            samples.disturbed += length;
        } else {
            samples.values.extend_from_slice(&shared[..length]);
        }
        let n = samples.values.len();
        if n > 0 && (late || n >= rules.most || (n >= rules.least && narrow(&samples, rules.precision))) {
            return Ok(samples);
        }
        let each = took / length as f64;
        length = (WINDOW_SECONDS / each.max(1e-9)).clamp(1.0, WINDOW as f64) as usize;
    }
}

fn narrow(samples: &Samples, precision: f64) -> bool {
    samples.stats().is_some_and(|s| s.ci_high - s.ci_low <= 2.0 * precision * s.median)
}

/// Looks for what disturbs a measurement of this thread. What the system does not tell is taken as calm.
struct Watchman {
    status: Option<File>,
    /// Held by one rank of the team: it is the whole machine's.
    stat: Option<File>,
    switches: Option<u64>,
    steal: Option<u64>,
    cpu: usize,
}

impl Watchman {
    /// `machine`: looks at the whole machine too. `crowded`: several ranks share a CPU, so that losing it is
    /// part of what is measured.
    fn new(machine: bool, crowded: bool) -> Watchman {
        Watchman {
            status: if crowded { None } else { File::open("/proc/thread-self/status").ok() },
            stat: if machine { File::open("/proc/stat").ok() } else { None },
            switches: None,
            steal: None,
            cpu: 0,
        }
    }

    fn begin(&mut self) {
        self.switches = self.count_switches();
        self.steal = self.count_steal();
        self.cpu = lineweave::internal::current_cpu();
    }

    fn disturbed(&self) -> bool {
        let moved = self.status.is_some() && self.cpu != lineweave::internal::current_cpu();
        moved || self.switches != self.count_switches() || self.steal != self.count_steal()
    }

    /// Times that this thread lost its CPU although it had more to do.
    fn count_switches(&self) -> Option<u64> {
        let text = read_some::<4096>(self.status.as_ref()?)?;
        let line = text.lines().find_map(|l| l.strip_prefix("nonvoluntary_ctxt_switches:"))?;
        line.trim().parse().ok()
    }

    /// The hypervisor's takings, in the kernel's ticks: the eighth number after `cpu` (proc(5)).
    fn count_steal(&self) -> Option<u64> {
        let text = read_some::<256>(self.stat.as_ref()?)?;
        text.lines().next()?.split_ascii_whitespace().nth(8)?.parse().ok()
    }
}

/// The beginning of a file of the kernel's.
fn read_some<const N: usize>(file: &File) -> Option<String> {
    let mut bytes = [0u8; N];
    let n = file.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..n]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::team;

    fn brief() -> Rules {
        Rules { budget: Duration::from_millis(20), ..Rules::default() }
    }

    #[test]
    fn a_pass_that_took_more_samples_does_not_outvote_the_others() {
        let pass = |value: f64, count: usize| Samples { values: vec![value; count], disturbed: count / 10 };
        let passes = [pass(26.0, 40), pass(27.0, 50), pass(110.0, 2_000), Samples::default()];
        let stats = Samples::of_passes(&passes).stats().expect("samples");
        assert_eq!((stats.median, stats.samples, stats.disturbed), (27.0, 120, 12));
        // One that had no time for more than a sample does not leave the others with one.
        let stats = Samples::of_passes(&[pass(26.0, 1), pass(27.0, 50)]).stats().expect("samples");
        assert_eq!((stats.median, stats.samples), (27.0, 9));
        assert!(Samples::of_passes(&[]).stats().is_none());
    }

    #[test]
    fn every_rank_gets_the_same_statistics() {
        for ranks in [1, 2, 5] {
            let all = team::threads(ranks, |mut comm| {
                collect_samples(&mut comm, &brief(), &mut |c, n| (0..n).try_for_each(|_| c.barrier()))
            })
            .expect("a measurement");
            assert!(all.iter().all(|s| *s == all[0]), "{all:?}");
            let stats = all[0].stats().expect("samples");
            assert!(stats.samples > 0 && stats.ci_low <= stats.median && stats.median <= stats.ci_high);
        }
    }

    #[test]
    fn the_slowest_rank_counts() {
        let all = team::threads(2, |mut comm| {
            let rank = comm.rank() as f64;
            // Ends when enough samples agree, however slow the machine is.
            let patient = Rules { budget: Duration::from_secs(60), ..brief() };
            collect_timed(&mut comm, &patient, &mut |_| Ok(100.0 * rank))
        })
        .expect("a measurement");
        let stats = all[0].stats().expect("samples");
        assert_eq!((stats.median, stats.min), (100.0, 100.0));
        assert!(stats.samples >= brief().least);
    }

    #[test]
    fn elapsed_time_includes_what_no_rank_waits_for() {
        // The second rank comes late and finds everything ready: by itself it takes no time.
        let all = team::threads(2, |mut comm| {
            let late = comm.rank() == 1;
            collect_elapsed(&mut comm, &Rules { least: 2, most: 4, ..brief() }, &mut |_, count| {
                let pause = if late { 0 } else { 2 * count as u64 };
                std::thread::sleep(Duration::from_millis(pause));
                Ok(())
            })
        })
        .expect("a measurement");
        assert!(all[0].values.iter().all(|ns| *ns >= 2e6), "{:?}", all[0]);
        assert_eq!(all[0], all[1]);
    }

    #[test]
    fn an_error_of_the_operation_ends_it() {
        let outcome = team::threads(2, |mut comm| {
            collect_samples(&mut comm, &brief(), &mut |c, _| c.bcast(&mut [0u8], 7)).map(|_| ())
        });
        assert!(matches!(outcome, Err(Error::Root { root: 7, .. })), "{outcome:?}");
    }

    #[test]
    fn this_thread_s_switches_and_the_machine_s_steal_can_be_read() {
        let watch = Watchman::new(true, false);
        assert!(watch.count_switches().is_some());
        assert!(watch.count_steal().is_some());
    }
}
