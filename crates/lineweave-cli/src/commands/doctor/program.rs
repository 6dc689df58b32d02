//! `lineweave doctor -- PROGRAM`: the settings of a program's MPI and OpenMP that would make it faster, and lineweave itself, by running it with
//! each.
//!
//! 1. One round runs the program with each setting, with lineweave, and by default.
//! 2. Further rounds run the settings near the best, lineweave and the default, in turns. A ratio is the median of the rounds' ratios.
//! 3. A program of MPI runs once more with lineweave, which leaves all calls to the MPI and counts and times them.

use crate::bench::installed::Mpi;
use crate::bench::mpi::ratio;
use crate::capture::{capture, Captured};
use crate::commands::run::detect;
use crate::error::CliError;
use crate::openmp::script::choices;
use crate::openmp::settings::{bindings, waits};
use crate::openmp::{label, Runtime};
use crate::output::table;
use crate::script::{export_lines, exports, fact, Variables, WHAT};
use crate::session::Session;
use lineweave_core::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Number of settings that are tried in all rounds.
const FINALISTS: usize = 3;
/// Ratio to the default's time below which a setting is recommended, if all of the ratio's interval lies below 1.
const FASTER: f64 = 0.97;
/// Number of rounds from which a setting is recommended.
const ENOUGH: usize = 3;
/// Number of collectives that are shown.
const CALLS: usize = 8;

/// The program, and how it is tried.
#[derive(clap::Args, Debug)]
pub struct Program {
    /// Runs of the program with each setting near the best
    #[arg(long, value_name = "N", default_value = "5", requires = "program", value_parser = clap::value_parser!(u8).range(1..=50), help_heading = "For a program")]
    rounds: u8,
    /// Seconds that a run may take
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "600",
        requires = "program",
        help_heading = "For a program"
    )]
    limit: u32,
    /// A file of export lines that is tried too, such as `lineweave tune --for` writes; may be repeated
    #[arg(long = "with", value_name = "FILE.sh", requires = "program", help_heading = "For a program")]
    with: Vec<PathBuf>,
    /// The runtime of OpenMP that the program loads late, as Python packages do: libgomp or libomp
    #[arg(long, value_name = "RUNTIME", requires = "program", value_parser = runtime, help_heading = "For a program")]
    openmp: Option<Runtime>,
    /// A program of MPI or OpenMP, with its launcher and arguments: its settings are tried
    #[arg(last = true, value_name = "PROGRAM", help_heading = "For a program")]
    program: Vec<OsString>,
}

fn runtime(text: &str) -> Result<Runtime, String> {
    Runtime::of(text).ok_or_else(|| "expected libgomp or libomp".to_owned())
}

impl Program {
    /// Returns whether there is a program.
    pub fn is_given(&self) -> bool {
        !self.program.is_empty()
    }
}

/// The name of the setting that is lineweave itself.
const LINEWEAVE: &str = "lineweave run";

/// A setting, and the times of the runs with it in ns.
struct Tried {
    name: String,
    variables: Variables,
    times: Vec<f64>,
}

impl Tried {
    fn new(name: String, variables: Variables) -> Tried {
        Tried { name, variables, times: Vec::new() }
    }

    /// Returns the command that runs the program with this setting.
    fn command(&self, program: &[OsString]) -> Result<Command, CliError> {
        let mut command = match self.name == LINEWEAVE {
            true => {
                let mut command = Command::new(std::env::current_exe().map_err(CliError::OwnFile)?);
                command.args(["run", "--"]).args(program);
                command
            }
            false => {
                let mut command = Command::new(&program[0]);
                command.args(&program[1..]);
                command
            }
        };
        command.envs(self.variables.iter().cloned());
        Ok(command)
    }
}

/// A setting that was tried in all rounds. Printed as `doctor-setting` by `lineweave doctor -- PROGRAM`, the default first.
#[derive(Serialize)]
struct TriedObject<'a> {
    /// The variables on one line, or the file that has them.
    name: &'a str,
    settings: BTreeMap<&'a str, &'a str>,
    /// Time of each run of the program.
    runs_ns: &'a [f64],
    /// Time with the settings divided by the default's: the median of the rounds' ratios.
    ratio: f64,
    /// The ratio's 95 % interval by ranks, or the extremes of fewer than 6 rounds.
    interval: [f64; 2],
    /// True for the fastest of those that are clearly faster.
    recommended: bool,
}

/// A collective of the program, by the class of its length. Printed as `doctor-call` by `lineweave doctor -- PROGRAM`, the longest in all first.
#[derive(Deserialize, Serialize)]
struct Call {
    collective: String,
    /// The longest message of its class; `None` for the last class.
    at_most_bytes: Option<u64>,
    /// Calls of all ranks.
    #[serde(rename(deserialize = "passed"))]
    calls: u64,
    #[serde(rename(deserialize = "passed_median_us"))]
    median_us: Option<f64>,
    #[serde(rename(deserialize = "passed_total_ms"))]
    total_ms: f64,
}

/// Tries the settings and shows what they change.
pub fn run(arguments: &Program, session: &mut Session) -> Result<(), CliError> {
    let [program, rest @ ..] = &arguments.program[..] else { return Ok(()) };
    let path = detect::find(Path::new(program)).ok_or_else(|| CliError::NoProgram {
        program: program.to_string_lossy().into_owned(),
        hint: String::new(),
    })?;
    let found = detect::look(&path, rest, None);
    let mpi =
        arguments.program.iter().find(|word| is_launcher(word)).and_then(|word| Mpi::of_launcher(word).ok());
    let openmp = arguments.openmp.or_else(|| found.openmp.as_deref().and_then(Runtime::of_library));
    let mut all = settings(arguments, mpi.as_ref(), openmp)?;
    if all.len() == 1 {
        return Err(not_tried(
            arguments,
            "it is no launcher of an MPI and loads no OpenMP that can be seen; name a runtime that it loads late by --openmp, or settings by --with FILE.sh",
        ));
    }
    try_all(arguments, &mut all, session)?;
    show(&all, session)?;
    match mpi.is_some() {
        true => calls(arguments, session),
        false => Ok(()),
    }
}

/// Returns whether a word of a command line starts ranks, by its name: below a prefix such as /usr an MPI has other programs beside it.
fn is_launcher(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned();
    ["mpirun", "mpiexec", "orterun", "prterun"].iter().any(|launcher| name.starts_with(launcher))
}

/// Reads a file of `export` lines; of one for several numbers of threads, those for this one.
fn read(file: &Path, threads: usize) -> Result<Variables, CliError> {
    let text = std::fs::read_to_string(file).map_err(|e| CliError::read(file, WHAT, e))?;
    let malformed = |why: String| CliError::malformed(file, WHAT, why);
    if fact(&text, "runtime").is_none() {
        return exports(&text).map_err(malformed);
    }
    let choice = choices(&text).map_err(malformed)?.into_iter().find(|(of, _)| *of == threads);
    choice.map(|(_, variables)| variables).ok_or_else(|| malformed(format!("nothing for {threads} threads")))
}

/// Returns the default and the settings that are tried.
fn settings(arguments: &Program, mpi: Option<&Mpi>, openmp: Option<Runtime>) -> Result<Vec<Tried>, CliError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut variables = vec![Variables::new()];
    variables.extend(mpi.into_iter().flat_map(Mpi::waits));
    variables.extend(openmp.into_iter().flat_map(waits));
    // Ranks that are not bound apart would be bound to the same CPUs.
    if openmp.is_some() && mpi.is_none() {
        variables.extend(bindings(cpus).into_iter().filter(|b| !b.is_empty()));
    }
    let mut all: Vec<Tried> = variables.into_iter().map(|v| Tried::new(label(&v), v)).collect();
    if mpi.is_some() || openmp.is_some() {
        all.push(Tried::new(LINEWEAVE.to_owned(), vec![("LINEWEAVE_QUIET".to_owned(), "1".to_owned())]));
    }
    let asked = std::env::var("OMP_NUM_THREADS").ok();
    let threads = asked.and_then(|list| list.split(',').next()?.trim().parse().ok()).unwrap_or(cpus);
    for file in &arguments.with {
        all.push(Tried::new(file.display().to_string(), read(file, threads)?));
    }
    Ok(all)
}

fn not_tried(arguments: &Program, why: &str) -> CliError {
    let words: Vec<_> = arguments.program.iter().map(|word| word.to_string_lossy()).collect();
    CliError::NotTried { program: words.join(" "), why: why.to_owned() }
}

/// Runs the program in rounds: once with all settings, then with those near the best.
fn try_all(arguments: &Program, all: &mut Vec<Tried>, session: &mut Session) -> Result<(), CliError> {
    let rounds = usize::from(arguments.rounds);
    let bar = session.out.progress((all.len() + (rounds - 1) * (FINALISTS + 2)) as u64);
    for round in 0..rounds {
        if round == 1 {
            keep_best(all);
        }
        let mut order: Vec<usize> = (0..all.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for i in order {
            bar.set_message(format!("round {}: {}", round + 1, all[i].name));
            let mut command = all[i].command(&arguments.program)?;
            let Captured { ended, took, .. } =
                capture(&mut command, Duration::from_secs(arguments.limit.into()));
            bar.inc(1);
            match ended {
                Ok(()) => all[i].times.push(took.as_nanos() as f64),
                Err(how) if i == 0 => return Err(not_tried(arguments, &how)),
                Err(how) => session.out.warn(&format!("with {}: {how}", all[i].name)),
            }
        }
        // A setting with which the program fails is none.
        all.retain(|tried| tried.times.len() == round + 1);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Keeps the default, lineweave and the fastest settings.
fn keep_best(all: &mut Vec<Tried>) {
    let (ours, mut others): (Vec<Tried>, _) = all.split_off(1).into_iter().partition(|t| t.name == LINEWEAVE);
    others.sort_by(|a, b| a.times[0].total_cmp(&b.times[0]));
    all.extend(others.into_iter().take(FINALISTS).chain(ours));
}

fn show(all: &[Tried], session: &mut Session) -> Result<(), CliError> {
    let Some((default, _)) = all.split_first() else { return Ok(()) };
    let rows: Vec<(&Tried, f64, [f64; 2])> = all
        .iter()
        .map(|tried| {
            let (ratio, interval) = ratio(&tried.times, &default.times);
            (tried, ratio, interval)
        })
        .collect();
    let clear =
        |row: &&(&Tried, f64, [f64; 2])| row.1 <= FASTER && row.2[1] < 1.0 && row.0.times.len() >= ENOUGH;
    let best = rows.iter().filter(clear).min_by(|a, b| a.1.total_cmp(&b.1)).map(|row| row.0.name.as_str());
    let out = &mut session.out;
    let mut lines = table(&["setting", "time", "ratio", "interval"], &[1, 2, 3]);
    for (tried, ratio, interval) in &rows {
        let object = TriedObject {
            name: &tried.name,
            settings: tried.variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect(),
            runs_ns: &tried.times,
            ratio: *ratio,
            interval: *interval,
            recommended: best == Some(&tried.name),
        };
        out.object("doctor-setting", &object)?;
        lines.add_row([
            tried.name.clone(),
            Nanos(crate::bench::mpi::median(&tried.times)).to_string(),
            format!("{ratio:.2}"),
            format!("{:.2} to {:.2}", interval[0], interval[1]),
        ]);
    }
    out.table(&lines)?;
    let chosen = all.iter().find(|tried| Some(tried.name.as_str()) == best);
    match chosen {
        Some(tried) if tried.name == LINEWEAVE => {
            out.line("clearly faster than by default: put `lineweave run --` before the command")
        }
        Some(tried) => {
            out.line("clearly faster than by default; in a job script:")?;
            out.text(&export_lines(&tried.variables))
        }
        None => out.line(&format!("no setting makes it clearly faster ({} runs each)", default.times.len())),
    }
}

/// Counts the program's collectives and times them under its own MPI.
fn calls(arguments: &Program, session: &mut Session) -> Result<(), CliError> {
    let directory = tempfile::tempdir().map_err(CliError::Output)?;
    let file = directory.path().join("calls");
    let own = std::env::current_exe().map_err(CliError::OwnFile)?;
    let mut command = Command::new(own);
    command.arg("run").arg("--report").arg(&file).arg("--").args(&arguments.program);
    // Every call goes on to the MPI.
    command.env("LINEWEAVE_MPI_AFTER", u32::MAX.to_string()).env("LINEWEAVE_QUIET", "1");
    let Captured { ended, .. } = capture(&mut command, Duration::from_secs(arguments.limit.into()));
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if let (Err(how), true) = (&ended, text.is_empty()) {
        session.out.warn(&format!("its collectives could not be counted: {how}"));
    }
    let mut list: Vec<Call> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    list.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
    let out = &mut session.out;
    list.iter().try_for_each(|call| out.object("doctor-call", call))?;
    if list.is_empty() {
        return out.line("no collective call of MPI was seen in it");
    }
    out.line("its collectives by time, under its own MPI, all ranks together:")?;
    let mut lines = table(&["collective", "bytes", "calls", "median", "total"], &[2, 3, 4]);
    for call in list.iter().take(CALLS) {
        let bytes = match call.at_most_bytes {
            Some(0) => Bytes(0).to_string(),
            Some(most) => format!("to {}", Bytes(most)),
            None => "more".to_owned(),
        };
        let median = call.median_us.map(|us| Nanos(us * 1e3).to_string()).unwrap_or_default();
        let total = Nanos(call.total_ms * 1e6).to_string();
        lines.add_row([call.collective.clone(), bytes, call.calls.to_string(), median, total]);
    }
    out.table(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(name: &str, ms: f64) -> Tried {
        Tried { times: vec![ms * 1e6], ..Tried::new(name.to_owned(), Variables::new()) }
    }

    #[test]
    fn the_default_lineweave_and_the_fastest_go_on() {
        let all = [("default", 5.0), (LINEWEAVE, 11.0), ("a", 9.0), ("b", 2.0), ("c", 4.0), ("d", 3.0)];
        let mut all: Vec<Tried> = all.map(|(name, ms)| tried(name, ms)).into();
        keep_best(&mut all);
        assert_eq!(
            all.iter().map(|t| t.name.as_str()).collect::<Vec<_>>(),
            ["default", "b", "d", "c", LINEWEAVE]
        );
    }

    #[test]
    fn launchers_are_known_by_their_names() {
        assert!(is_launcher(OsStr::new("/opt/mpich/bin/mpiexec.hydra")) && is_launcher(OsStr::new("mpirun")));
        assert!(!is_launcher(OsStr::new("/usr/bin/sleep")) && !is_launcher(OsStr::new("./mpi_app")));
    }

    #[test]
    fn a_file_for_several_numbers_of_threads_gives_those_of_the_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# runtime: libgomp\n7 | 7,*)\nexport A=1\n;;\nesac\n").unwrap();
        let one = [("A".to_owned(), "1".to_owned())];
        assert_eq!(read(file.path(), 7).unwrap(), one);
        let refused = read(file.path(), 3).unwrap_err().to_string();
        assert!(refused.contains("nothing for 3 threads"), "{refused}");
        std::fs::write(file.path(), "export A=1\n").unwrap();
        assert_eq!(read(file.path(), 3).unwrap(), one);
    }

    #[test]
    fn calls_are_read_from_a_report() {
        let line = r#"{"schema":1,"kind":"mpi-collective","collective":"bcast","at_most_bytes":64,"taken":0,"passed":10,
            "passed_total_ms":0.5,"passed_median_us":null,"passed_because":{}}"#;
        let call: Call = serde_json::from_str(line).unwrap();
        assert_eq!((call.calls, call.median_us, call.at_most_bytes), (10, None, Some(64)));
        assert!(serde_json::to_string(&call).unwrap().contains("\"calls\":10"));
        assert!(serde_json::from_str::<Call>(r#"{"schema":1,"kind":"mpi-job"}"#).is_err());
    }
}
