//! The programs, part by part, and how each is launched.

use super::{together, torch, App, Figure, Way};
use crate::bench::installed::{Mpi, PATIENCE};
use crate::bench::python::interpreter;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

const PROGRAMS: [(&str, &str); 5] = [
    ("ranks.py", include_str!("../../../bench/apps/ranks.py")),
    ("ddp.py", include_str!("../../../bench/apps/ddp.py")),
    ("tensor_parallel.py", include_str!("../../../bench/apps/tensor_parallel.py")),
    ("model.py", include_str!("../../../bench/apps/model.py")),
    ("fft.py", include_str!("../../../bench/apps/fft.py")),
];
const GRADIENTS: &str = include_str!("../../../bench/apps/gradients.c");
const INSTALL: &str = include_str!("../../../bench/apps/install");
const EXAML: &str = "/usr/lib/examl/bin/examl-sse3";
const EXAML_DATA: &str = "/usr/share/doc/examl/testData";
const TO_INSTALL: &str = "type: lineweave bench apps --install";

/// A group of programs of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// torch's `DistributedDataParallel`, gloo and lineweave.
    Ddp,
    /// A transformer divided by torch.distributed.tensor.parallel.
    TensorParallel,
    /// llama.cpp, whose threads are OpenMP's.
    Openmp,
    /// Programs of MPI.
    Mpi,
}

/// The order for programs: directories, MPIs, and numbers of workers.
pub struct Ask<'a> {
    pub directory: &'a Path,
    /// The file of this `lineweave` command.
    pub lineweave: &'a Path,
    /// Prefixes of the MPIs to run under.
    pub mpis: &'a [PathBuf],
    /// Numbers of ranks and threads.
    pub workers: &'a [usize],
    /// CPUs that may be used.
    pub cpus: usize,
    /// Seconds that a program of torch measures for.
    pub seconds: f64,
}

impl Ask<'_> {
    pub(super) fn python(&self) -> PathBuf {
        let own = self.directory.join("python/bin/python");
        match env::var_os("PYTHON").is_none_or(|p| p.is_empty()) && own.exists() {
            true => own,
            false => interpreter(),
        }
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.directory.join("programs").join(name)
    }

    /// Returns the Python that has these modules, or the reason why there is none.
    pub(super) fn has(&self, modules: &[&str]) -> Result<PathBuf, String> {
        let python = self.python();
        let look = "import importlib.util as u, sys; print(*(m for m in sys.argv[1:] if not u.find_spec(m)))";
        let output = Command::new(&python).args(["-c", look]).args(modules).stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("{}: {e}; {TO_INSTALL}", python.display()))?;
        match String::from_utf8_lossy(&output.stdout).trim() {
            "" if output.status.success() => Ok(python),
            missing => Err(format!("{} has no {missing}; {TO_INSTALL}", python.display())),
        }
    }
}

/// Installs the packages that the programs need.
pub fn install(directory: &Path, lineweave: &Path) -> Result<(), String> {
    let script = directory.join("install");
    let made = fs::create_dir_all(directory).and_then(|()| fs::write(&script, INSTALL));
    made.map_err(|e| format!("{}: {e}", script.display()))?;
    // The wheel that `make wheel` put beside this command's folder, or the one of this version.
    let wheels = lineweave.parent().and_then(Path::parent).map(|target| target.join("wheels"));
    let files = wheels.and_then(|w| fs::read_dir(w).ok()).into_iter().flatten().flatten();
    let wheel = files.map(|f| f.path()).find(|f| f.extension() == Some(OsStr::new("whl")));
    let wheel = wheel.unwrap_or_else(|| concat!("lineweave==", env!("CARGO_PKG_VERSION")).into());
    let status = Command::new("bash").arg(&script).arg(directory).arg(wheel).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} ended with {status}", script.display())),
        Err(e) => Err(format!("cannot start bash: {e}")),
    }
}

/// Returns the programs of a part; for a program that cannot run, the reason.
pub fn apps(part: Part, ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let written = fs::create_dir_all(ask.directory.join("programs"))
        .and_then(|()| PROGRAMS.iter().try_for_each(|(name, text)| fs::write(ask.program(name), text)));
    if let Err(e) = written {
        return vec![Err(format!("{}: {e}", ask.directory.display()))];
    }
    match part {
        Part::Ddp => torch::ddp(ask),
        Part::TensorParallel => torch::tensor_parallel(ask),
        Part::Openmp => llama(ask),
        Part::Mpi => [examl(ask), mpi(ask)].into_iter().flatten().collect(),
    }
}

/// One result of llama-bench.
#[derive(Deserialize)]
struct Speed {
    n_prompt: u64,
    n_gen: u64,
    avg_ns: f64,
}

fn llama(ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let (bench, model) = (ask.directory.join("llama/bin/llama-bench"), ask.directory.join("model.gguf"));
    if !bench.exists() {
        return vec![Err(format!("there is no {}; {TO_INSTALL}", bench.display()))];
    }
    if !model.exists() {
        let write = |python: PathBuf| {
            let mut command = Command::new(python);
            command.arg(ask.program("model.py")).arg(&model);
            together(vec![command])
        };
        if let Err(why) = ask.has(&["gguf"]).and_then(write) {
            return vec![Err(format!("a model cannot be written: {why}"))];
        }
    }
    // Where threads outnumber CPUs, the runtime has a better setting than its default; both are measured.
    let settings =
        |&threads: &usize| [Some(("", threads)), (threads > ask.cpus).then_some(("passive", threads))];
    let app = |(policy, threads): (&'static str, usize)| {
        let (bench, model, lineweave) = (bench.clone(), model.clone(), ask.lineweave.to_owned());
        let launch = move |way: Way| {
            let mut command = Command::new("timeout");
            command.arg(PATIENCE);
            if way == Way::Without && !policy.is_empty() {
                command.env("OMP_WAIT_POLICY", policy);
            }
            if way != Way::Without {
                command.arg(&lineweave).arg("run").arg("--").env("LINEWEAVE_QUIET", "1");
            }
            command.arg(&bench).arg("-m").arg(&model).arg("-t").arg(threads.to_string());
            command.args(["-p", "64", "-n", "32", "-r", "3", "-o", "json"]);
            let (said, _) = together(vec![command])?;
            let speeds: Vec<Speed> =
                serde_json::from_str(&said).map_err(|e| format!("llama-bench printed no results: {e}"))?;
            let figure = |s: &Speed| {
                let (of, tokens) =
                    if s.n_gen > 0 { ("token", s.n_gen) } else { ("prompt token", s.n_prompt) };
                Figure {
                    of: of.to_owned(),
                    seconds: s.avg_ns / 1e9 / tokens.max(1) as f64,
                    communication: None,
                }
            };
            Ok(speeds.iter().map(figure).collect())
        };
        let at = if policy.is_empty() { String::new() } else { format!(", {policy}") };
        Ok(App {
            part: Part::Openmp,
            program: format!("llama.cpp, libgomp{at}"),
            workers: threads,
            runs: "prompt of 64, 32 tokens",
            counts: false,
            launch: Box::new(launch),
        })
    };
    ask.workers.iter().flat_map(settings).flatten().map(app).collect()
}

/// Runs an MPI job and returns its wall time from start to end, and the share of collectives in it, by `--report`.
fn job(
    mut launcher: Command,
    program: &[&OsStr],
    ranks: usize,
    lineweave: &Path,
    way: Way,
) -> Result<Vec<Figure>, String> {
    let report = env::temp_dir().join(format!("lineweave-bench-apps-{}.jsonl", std::process::id()));
    if way != Way::Without {
        launcher.arg(lineweave).arg("run").arg("--report").arg(&report).arg("--");
    }
    if way == Way::Counted {
        launcher.env("LINEWEAVE_MPI_AFTER", u32::MAX.to_string());
    }
    launcher.args(program).env("LINEWEAVE_QUIET", "1");
    let (_, seconds) = together(vec![launcher])?;
    let communication = match way {
        Way::Without => None,
        Way::With | Way::Counted => {
            let text = fs::read_to_string(&report).unwrap_or_default();
            let _ = fs::remove_file(&report);
            let total: f64 = text.lines().map(collectives_ms).sum();
            (!text.is_empty()).then(|| total / 1e3 / ranks as f64 / seconds)
        }
    };
    Ok(vec![Figure { of: "run".into(), seconds, communication }])
}

/// Returns the time in collectives that a line of a report tells, over all ranks.
fn collectives_ms(line: &str) -> f64 {
    let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    ["taken_total_ms", "passed_total_ms"].iter().filter_map(|key| line[key].as_f64()).sum()
}

fn mpi(ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let mut all = Vec::new();
    if ask.mpis.is_empty() {
        all.push(Err(format!("no MPI is to be found; name them with --mpi, or {TO_INSTALL}")));
    }
    let python = ask.has(&["mpi4py", "mpi4py_fft", "numpy"]);
    if let Err(why) = &python {
        all.push(Err(format!("mpi4py-fft: {why}")));
    }
    for prefix in ask.mpis {
        let found =
            Mpi::below(prefix).and_then(|mpi| Ok((mpi.build("gradients", GRADIENTS, ask.directory)?, mpi)));
        let (gradients, mpi) = match found {
            Ok(found) => found,
            Err(why) => {
                all.push(Err(why));
                continue;
            }
        };
        let mut programs =
            vec![("conjugate gradients (ours)", "grid of 128 x 128, 30 times", vec![gradients])];
        if let Ok(python) = &python {
            programs.push((
                "mpi4py-fft",
                "64 x 64 x 64, 40 times",
                vec![python.clone(), ask.program("fft.py")],
            ));
        }
        for (name, runs, command) in programs {
            for &ranks in ask.workers {
                let (mpi, command) = (mpi.clone(), command.clone());
                let (lineweave, cpus) = (ask.lineweave.to_owned(), ask.cpus);
                let program = format!("{name}, {}", mpi.name);
                let launch = move |way: Way| {
                    let words: Vec<&OsStr> = command.iter().map(|w| w.as_os_str()).collect();
                    job(mpi.launcher(ranks, cpus), &words, ranks, &lineweave, way)
                };
                let app = App {
                    part: Part::Mpi,
                    program,
                    workers: ranks,
                    runs,
                    counts: true,
                    launch: Box::new(launch),
                };
                all.push(Ok(app));
            }
        }
    }
    all
}

/// Returns the runs of Debian's ExaML (likelihood of a phylogenetic tree) under Debian's Open MPI.
fn examl(ask: &Ask<'_>) -> Vec<Result<App, String>> {
    let launcher = Path::new("/usr/bin/mpirun.openmpi");
    if !Path::new(EXAML).exists() || !launcher.exists() {
        return vec![Err("ExaML is not installed; type: apt-get install examl openmpi-bin".into())];
    }
    let home = ask.directory.join("examl");
    let prepare = format!(
        "mkdir -p . && gunzip -c {EXAML_DATA}/49.gz >49 && rm -f *.49 49.binary && parse-examl -s 49 -q {EXAML_DATA}/49.model -m DNA -n 49"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &prepare]).current_dir(&home);
    let prepared =
        fs::create_dir_all(&home).map_err(|e| e.to_string()).and_then(|()| together(vec![command]));
    if let Err(why) = prepared {
        return vec![Err(format!("ExaML's data cannot be prepared: {why}"))];
    }
    let app = |&ranks: &usize| {
        let (home, lineweave) = (home.clone(), ask.lineweave.to_owned());
        let launch = move |way: Way| {
            // ExaML refuses to overwrite the files of an earlier run.
            let output = home.join("output");
            let _ = fs::remove_dir_all(&output);
            fs::create_dir(&output).map_err(|e| format!("{}: {e}", output.display()))?;
            let mut command = Command::new("timeout");
            command.arg(PATIENCE).arg(launcher).args(["--oversubscribe", "-n", &ranks.to_string()]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.current_dir(&output);
            let tree = format!("{EXAML_DATA}/49.tree");
            let words = [EXAML, "-t", &tree, "-m", "GAMMA", "-s", "../49.binary", "-n", "T", "-f", "e"];
            job(command, &words.map(OsStr::new), ranks, &lineweave, way)
        };
        let program = "ExaML, Debian's openmpi".to_owned();
        Ok(App {
            part: Part::Mpi,
            program,
            workers: ranks,
            runs: "a tree of 49 species",
            counts: true,
            launch: Box::new(launch),
        })
    };
    ask.workers.iter().map(app).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_s_lines_add_up() {
        let line =
            r#"{"kind":"mpi-collective","taken_total_ms":1.5,"passed_total_ms":0.25,"saved_total_ms":9.0}"#;
        assert_eq!(collectives_ms(line), 1.75);
        assert_eq!(collectives_ms("{\"kind\":\"mpi-job\",\"teams_total_ms\":3.0}"), 0.0);
        assert_eq!(collectives_ms("no json"), 0.0);
    }

    #[test]
    fn what_is_missing_is_said_with_the_line_to_type() {
        let directory = env::temp_dir().join(format!("lineweave-apps-{}", std::process::id()));
        let (lineweave, mpis) = (Path::new("/no/lineweave"), []);
        let ask = Ask { directory: &directory, lineweave, mpis: &mpis, workers: &[2], cpus: 2, seconds: 0.1 };
        let of_openmp: Vec<String> = apps(Part::Openmp, &ask).into_iter().filter_map(Result::err).collect();
        assert_eq!(of_openmp.len(), 1);
        assert!(of_openmp[0].contains("bench apps --install"), "{of_openmp:?}");
        let of_mpi: Vec<String> = apps(Part::Mpi, &ask).into_iter().filter_map(Result::err).collect();
        assert!(of_mpi.iter().any(|why| why.starts_with("no MPI is to be found")), "{of_mpi:?}");
        fs::remove_dir_all(&directory).unwrap();
    }
}
