//! Collectives of the MPIs found here, with lineweave before them and without: the program `bench/mpi/collectives.c`.
//!
//! The program needs no MPI's headers, so one compiler builds it for all, Intel's runtime included. Launches alternate between
//! all subjects; a launch's figure is the median of its batches, and ratios are taken between launches of one round, so that
//! what slows the machine for a while slows both.

use super::peers::stats;
use lineweave_core::profile::Stats;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = include_str!("../../bench/mpi/collectives.c");
const INTERFACES: [(&str, &str, &str, &str); 2] = [
    ("openmpi", "LWM_OPENMPI", "libmpi.so.40", include_str!("../../abi/openmpi.h")),
    ("mpich", "LWM_MPICH", "libmpi.so.12", include_str!("../../abi/mpich.h")),
];
/// Where libraries lie below a prefix.
const LIBRARIES: [&str; 4] = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
/// The longest a launch may last before it is given up, in seconds: by `timeout`, which the launchers' children heed.
pub const PATIENCE: &str = "300";

/// What buffers calls have: `bench/mpi/collectives.c`.
pub const BUFFERS: [&str; 3] = ["reuse", "fresh", "worked"];

/// An installed MPI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mpi {
    /// The prefix's last part, such as `openmpi`.
    pub name: String,
    prefix: PathBuf,
    library: PathBuf,
    /// Which of [`INTERFACES`] it has, and the macro that chooses it.
    abi: &'static str,
    define: &'static str,
    /// Spins without yielding, unless told to.
    spins: bool,
}

/// What is measured once.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Case {
    /// Collective.
    pub collective: String,
    /// Length of the message or of one block.
    pub bytes: usize,
    /// One of [`BUFFERS`].
    pub buffers: &'static str,
}

/// What to measure.
#[derive(Clone, PartialEq, Debug)]
pub struct Order {
    /// Ranks.
    pub ranks: usize,
    /// CPUs that may be used; with more ranks each MPI gets its best setting for that.
    pub cpus: usize,
    /// Collectives' names.
    pub collectives: Vec<String>,
    /// Lengths.
    pub bytes: Vec<usize>,
    /// Milliseconds a case.
    pub window_ms: u32,
    /// Launches a subject.
    pub launches: usize,
}

/// Medians of a subject's launches, in ns, by case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Which MPI.
    pub mpi: String,
    /// Whether lineweave was before it.
    pub lineweave: bool,
    /// Ranks.
    pub ranks: usize,
    /// What was measured.
    #[serde(flatten)]
    pub case: Case,
    /// Each launch's median over batches; a batch's time is the slowest rank's.
    pub launches_ns: Vec<f64>,
    /// Their median.
    pub median_ns: f64,
}

/// lineweave beside the fastest MPI for a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ratio {
    /// The MPI that lineweave was before.
    pub mpi: String,
    /// Ranks.
    pub ranks: usize,
    /// What was measured.
    #[serde(flatten)]
    pub case: Case,
    /// With lineweave, over the same MPI without: the median of the rounds' ratios.
    pub to_host: f64,
    /// Their 95 % interval by ranks, or their extremes where rounds are fewer than 6.
    pub to_host_interval: [f64; 2],
    /// The fastest MPI without lineweave.
    pub best: String,
    /// With lineweave, over that one.
    pub to_best: f64,
    /// The same for this ratio.
    pub to_best_interval: [f64; 2],
}

impl Mpi {
    /// The MPI below a prefix.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub fn below(prefix: &Path) -> Result<Mpi, String> {
        let prefix = prefix.canonicalize().map_err(|e| format!("{}: {e}", prefix.display()))?;
        let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !prefix.join("bin/mpirun").exists() {
            return Err(format!("{}: there is no bin/mpirun", prefix.display()));
        }
        let found = INTERFACES.iter().find_map(|interface| {
            let libraries = LIBRARIES.iter().map(|l| prefix.join(l).join(interface.2));
            Some((interface, libraries.into_iter().find(|l| l.exists())?))
        });
        let Some((&(abi, define, ..), library)) = found else {
            return Err(format!("{}: neither libmpi.so.40 nor libmpi.so.12 below it", prefix.display()));
        };
        let spins = prefix.join("bin/mpichversion").exists();
        Ok(Mpi { name, prefix, library, abi, define, spins })
    }

    /// Builds a program of one C file that needs no MPI's header, in `directory`.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn build(&self, program: &str, source: &str, directory: &Path) -> Result<PathBuf, String> {
        self.compile(program, source, directory).map_err(|e| format!("{}: {e}", self.name))
    }

    fn compile(&self, program: &str, source: &str, directory: &Path) -> Result<PathBuf, String> {
        let sources = directory.join(format!("mpi-{}", self.name));
        let write = |file: PathBuf, text: &str| {
            let made = std::fs::create_dir_all(file.parent().unwrap_or(directory))
                .and_then(|()| std::fs::write(&file, text));
            made.map_err(|e| format!("{}: {e}", file.display()))
        };
        let file = sources.join(format!("{program}.c"));
        write(file.clone(), source)?;
        for (abi, _, _, text) in INTERFACES {
            write(sources.join(format!("abi/{abi}.h")), text)?;
        }
        let built = sources.join(format!("{program}-{}", self.abi));
        let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.args(["-O2", &format!("-D{}", self.define), "-I"]).arg(&sources).arg(file);
        command.arg("-o").arg(&built).arg(&self.library).arg("-Wl,--allow-shlib-undefined");
        let output = command.output().map_err(|e| format!("cannot start the C compiler: {e}"))?;
        match output.status.success() {
            true => Ok(built),
            false => {
                Err(format!("the C compiler refused it: {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
        }
    }

    /// The launcher of so many ranks on so many CPUs; the program is still to be added.
    pub fn launcher(&self, ranks: usize, cpus: usize) -> Command {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE).arg(self.prefix.join("bin/mpirun"));
        if self.abi == "openmpi" {
            command.arg("--oversubscribe");
        }
        if self.spins && ranks <= cpus {
            // Where two ranks of MPICH's come to lie on one CPU they take ten times as long, with lineweave and without.
            command.args(["-bind-to", "core"]);
        }
        command.arg("-n").arg(ranks.to_string());
        // Each rank that is not bound would have a BLAS thread for each CPU, and they spin.
        command.env("OMP_NUM_THREADS", "1");
        let mut path = self.prefix.join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path).env("LINEWEAVE_QUIET", "1").env("I_MPI_ROOT", &self.prefix);
        command.env("LD_LIBRARY_PATH", self.library.parent().unwrap_or(Path::new("/")));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        if self.spins && ranks > cpus {
            // A barrier of MPICH's among 4 ranks on 2 CPUs takes 8 ms otherwise, and 22 us so.
            command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1");
            command.env("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "8");
        }
        command
    }

    /// Launches the program of [`collectives`] once and returns each case's median.
    fn launch(
        &self,
        program: &Path,
        order: &Order,
        buffers: &'static str,
        lineweave: Option<&Path>,
    ) -> Result<BTreeMap<Case, f64>, String> {
        let mut command = self.launcher(order.ranks, order.cpus);
        if let Some(lineweave) = lineweave {
            command.arg(lineweave).arg("run").arg("--");
        }
        let list = |items: Vec<String>| items.join(",");
        command.arg(program).arg(buffers).arg(order.window_ms.to_string());
        command.arg(list(order.collectives.clone()));
        command.arg(list(order.bytes.iter().map(usize::to_string).collect()));
        let output = command.output().map_err(|e| format!("{}: cannot start mpirun: {e}", self.name))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("it said nothing");
            return Err(format!("{}: mpirun ended with {}: {last}", self.name, output.status));
        }
        Ok(medians(&String::from_utf8_lossy(&output.stdout), buffers))
    }
}

/// The program that times collectives, built for an MPI in `directory`.
///
/// # Errors
/// Why it cannot be.
pub fn collectives(mpi: &Mpi, directory: &Path) -> Result<PathBuf, String> {
    mpi.build("collectives", PROGRAM, directory)
}

/// The median of each line `collective bytes ns ns ...`; other lines are a launcher's.
fn medians(text: &str, buffers: &'static str) -> BTreeMap<Case, f64> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (collective, bytes) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let times: Option<Vec<f64>> = words.map(|w| w.parse().ok()).collect();
        Some((Case { collective, bytes, buffers }, median(&times.filter(|t| !t.is_empty())?)))
    };
    text.lines().filter_map(line).collect()
}

/// Measures all MPIs by the program built for each, with and without the command `lineweave` before the program. `step` is told each launch.
///
/// # Errors
/// Why a launch failed: a wrong answer, too.
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
                // Who goes first changes from round to round.
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

/// What the rows say of lineweave beside its host and beside the best.
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

/// The median of the rounds' ratios, and its interval.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> (f64, [f64; 2]) {
    let each: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    let Stats { median, ci_low, ci_high, .. } = stats(&each, 0);
    (median, [ci_low, ci_high])
}

/// Of at least one value.
pub fn median(values: &[f64]) -> f64 {
    stats(values, 0).median
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
