//! Collectives of the MPIs found here, with and without lineweave in front of them, timed by the program `bench/mpi/collectives.c`.
//!
//! Launches alternate between all subjects. The figure of a launch is the median of its batches, and ratios are taken between launches of one round,
//! so that a temporary slowdown of the machine affects both.

use super::installed::Mpi;
use super::peers::stats;
use crate::capture::{capture, Captured};
use crate::mpi::{lines, Line};
use lineweave_core::profile::Stats;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PROGRAM: &str = include_str!("../../bench/mpi/collectives.c");
/// Kinds of buffers that calls use, as `bench/mpi/collectives.c` defines them.
pub const BUFFERS: [&str; 3] = ["reuse", "fresh", "worked"];

/// A case that is measured once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Case {
    pub collective: String,
    /// Length of the message or of one block.
    pub bytes: usize,
    /// The buffers of the calls (`bench/mpi/collectives.c`): `reuse`, `fresh` or `worked`.
    pub buffers: &'static str,
}

/// The order for a measurement: ranks, CPUs, collectives and lengths.
#[derive(Clone, PartialEq, Debug)]
pub struct Order {
    pub ranks: usize,
    /// Number of CPUs that may be used; with more ranks than CPUs, each MPI gets its best setting for that.
    pub cpus: usize,
    pub collectives: Vec<String>,
    pub bytes: Vec<usize>,
    /// Milliseconds that a case is measured for.
    pub window_ms: u32,
    /// Launches of each subject.
    pub launches: usize,
}

/// Medians of a subject's launches, in ns, by case. Printed as `mpi-time` by `lineweave bench mpi`, one object an MPI, with lineweave and without,
/// and case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    pub mpi: String,
    /// True if lineweave was in front of the MPI.
    pub lineweave: bool,
    pub ranks: usize,
    #[serde(flatten)]
    pub case: Case,
    /// Median over batches of each launch; the time of a batch is the slowest rank's.
    pub launches_ns: Vec<f64>,
    pub median_ns: f64,
}

/// Time of lineweave beside that of the fastest MPI, for one case. Printed as `mpi-ratio` by `lineweave bench mpi`, one object an MPI and case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The MPI that lineweave was in front of.
    pub mpi: String,
    pub ranks: usize,
    #[serde(flatten)]
    pub case: Case,
    /// Time with lineweave divided by that of the same MPI without: the median of the rounds' ratios.
    pub to_host: f64,
    /// The rank-based 95 % interval of `to_host`, or the extremes where there are fewer than 6 rounds.
    pub to_host_interval: [f64; 2],
    /// The fastest MPI without lineweave.
    pub best: String,
    /// Time with lineweave divided by that of the fastest MPI.
    pub to_best: f64,
    pub to_best_interval: [f64; 2],
}

impl Mpi {
    /// Launches the program of [`collectives`] once and returns each case's median.
    fn launch(
        &self,
        program: &Path,
        order: &Order,
        buffers: &'static str,
        lineweave: Option<&Path>,
    ) -> Result<BTreeMap<Case, f64>, String> {
        let mut command = self.started(order.ranks, order.cpus, program, lineweave);
        let list = |items: Vec<String>| items.join(",");
        command.arg(buffers).arg(order.window_ms.to_string());
        command.arg(list(order.collectives.clone()));
        command.arg(list(order.bytes.iter().map(usize::to_string).collect()));
        self.said(&mut command).map(|out| medians(&out, buffers))
    }

    /// Returns the launch of a program, with the command `lineweave` before it if there is one; the caller adds its arguments.
    pub fn started(&self, ranks: usize, cpus: usize, program: &Path, lineweave: Option<&Path>) -> Command {
        let mut command = self.launcher(ranks, cpus);
        if let Some(lineweave) = lineweave {
            command.arg(lineweave).arg("run").arg("--");
        }
        command.arg(program);
        command
    }

    /// Runs a launch and returns what it printed. `timeout` ends one that takes too long.
    pub fn said(&self, launch: &mut Command) -> Result<String, String> {
        let Captured { out, ended, .. } = capture(launch, Duration::MAX);
        ended.map_err(|why| format!("{}: mpirun: {why}", self.name))?;
        Ok(out)
    }
}

/// Builds the program that times collectives, for one MPI, in `directory`.
pub fn collectives(mpi: &Mpi, directory: &Path) -> Result<PathBuf, String> {
    mpi.build("collectives", PROGRAM, directory)
}

/// Returns the median of each line `collective bytes ns ns ...`; other lines come from a launcher.
fn medians(text: &str, buffers: &'static str) -> BTreeMap<Case, f64> {
    let case = |line: Line| {
        let case = Case { collective: line.task, bytes: usize::try_from(line.bytes).ok()?, buffers };
        Some((case, median(&line.times)))
    };
    lines(text).into_iter().filter_map(case).collect()
}

/// Measures all MPIs by the program built for each, with and without the command `lineweave` before the program. `step` is called before
/// each launch. A wrong answer is a failure.
pub fn measure(
    mpis: &[(Mpi, PathBuf)],
    order: &Order,
    lineweave: &Path,
    mut step: impl FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut rows: BTreeMap<(usize, bool, Case), Vec<f64>> = BTreeMap::new();
    for round in 0..order.launches {
        for buffers in BUFFERS {
            for (i, (mpi, program)) in mpis.iter().enumerate() {
                // The order changes from round to round.
                for with in [round % 2 == 0, round % 2 != 0] {
                    step(&format!(
                        "{}{}, {buffers}, {} ranks",
                        mpi.name,
                        if with { " with lineweave" } else { "" },
                        order.ranks
                    ));
                    for (case, time) in mpi.launch(program, order, buffers, with.then_some(lineweave))? {
                        rows.entry((i, with, case)).or_default().push(time);
                    }
                }
            }
        }
    }
    let row = |((i, lineweave, case), launches_ns): ((usize, bool, Case), Vec<f64>)| {
        let median_ns = median(&launches_ns);
        Row { mpi: mpis[i].0.name.clone(), lineweave, ranks: order.ranks, case, launches_ns, median_ns }
    };
    Ok(rows.into_iter().map(row).collect())
}

/// Returns the ratios of lineweave to its host MPI and to the fastest MPI.
pub fn ratios(rows: &[Row]) -> Vec<Ratio> {
    let plain = |case: &Case| rows.iter().filter(|r| !r.lineweave && r.case == *case).collect::<Vec<_>>();
    let mut all = Vec::new();
    for ours in rows.iter().filter(|r| r.lineweave) {
        let peers = plain(&ours.case);
        let best = peers.iter().min_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
        let host = peers.iter().find(|r| r.mpi == ours.mpi);
        if let (Some(best), Some(host)) = (best, host) {
            let (to_host, to_host_interval) = ratio(&ours.launches_ns, &host.launches_ns);
            let (to_best, to_best_interval) = ratio(&ours.launches_ns, &best.launches_ns);
            let (mpi, case, best) = (ours.mpi.clone(), ours.case.clone(), best.mpi.clone());
            all.push(Ratio {
                mpi,
                ranks: ours.ranks,
                case,
                to_host,
                to_host_interval,
                best,
                to_best,
                to_best_interval,
            });
        }
    }
    all
}

/// Returns the median of the rounds' ratios, and its interval.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> (f64, [f64; 2]) {
    let each: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let Stats { median, ci_low, ci_high, .. } = stats(&each, 0);
    (median, [ci_low, ci_high])
}

/// Returns the median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    stats(values, 0).median
}

/// Returns the value below which this share of the values lies; infinity for none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len() as f64 * share) as usize).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mpi: &str, lineweave: bool, launches_ns: &[f64]) -> Row {
        let case = Case { collective: "barrier".into(), bytes: 0, buffers: "reuse" };
        let median_ns = median(launches_ns);
        Row { mpi: mpi.into(), lineweave, ranks: 2, case, launches_ns: launches_ns.to_vec(), median_ns }
    }

    #[test]
    fn launchers_lines_are_passed_over_and_batches_become_a_median() {
        let text = "some warning\nbarrier 0 30.0 10.0 20.0\nallreduce 8 1.0 3.0\nbcast 8\n";
        let found: Vec<(String, f64)> =
            medians(text, "reuse").into_iter().map(|(c, m)| (c.collective, m)).collect();
        assert_eq!(found, [("allreduce".to_owned(), 2.0), ("barrier".to_owned(), 20.0)]);
    }

    #[test]
    fn ratios_are_to_the_own_host_and_to_the_best() {
        let rows = [
            row("a", false, &[100.0, 120.0, 110.0]),
            row("a", true, &[50.0, 60.0, 66.0]),
            row("b", false, &[40.0, 50.0, 60.0]),
            row("b", true, &[20.0, 25.0, 30.0]),
        ];
        let found = ratios(&rows);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].to_host, found[0].to_host_interval), (0.5, [0.5, 0.6]));
        assert_eq!((found[0].best.as_str(), found[0].to_best), ("b", 1.2));
        assert_eq!((found[1].to_host, found[1].to_best), (0.5, 0.5));
    }
}
