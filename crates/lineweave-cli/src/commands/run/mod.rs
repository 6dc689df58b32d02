//! `lineweave run`: runs a program of MPI or OpenMP with preloaded libraries that take over its collectives and barriers; with `-n` a program of
//! lineweave's own, once for each rank.
//!
//! It detects the MPI that the program loads and whether it loads OpenMP, sets `LD_PRELOAD`, and becomes the program. If the program loads
//! neither, the programs that it starts are examined as they are loaded (`mpi/chooser`), which calls this command again. If nothing can be
//! preloaded, rank 0 says so in one line, and the program runs as it would without lineweave.

pub mod detect;
mod elf;
pub mod launcher;
mod openmp;
mod python;
mod ranks;

use crate::error::CliError;
use crate::output::name_of;
use crate::session::Session;
use detect::{Abi, Aside};
use lineweave::cpus::UsableCpus;
use lineweave::settings::Settings;
use lineweave::sync::sleep;
use lineweave::topology::Hardware;
use lineweave::tuning::check_named;
use openmp::Runtime;
use rustix::fs::{access, Access};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Arguments of `lineweave run`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Start N processes as the ranks of one team; a Python script runs in its interpreter
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["report", "link", "trace", "tool", "mpi", "openmp"])]
    ranks: Option<usize>,
    /// Write what was taken over of MPI, as JSON Lines, to this file at the end
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// After the first collective call of all ranks, measure messages between the first two nodes and write the times to this file
    #[arg(long, value_name = "FILE")]
    link: Option<PathBuf>,
    /// Write a timeline of all collective calls, who waited for whom, to this file, which ui.perfetto.dev opens
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// A profiler on PMPI that is to see the program's calls of MPI; may be repeated
    #[arg(long, value_name = "LIBRARY")]
    tool: Vec<PathBuf>,
    /// The MPI that the program loads [default: found out]
    #[arg(long, value_enum)]
    mpi: Option<Abi>,
    /// The runtime of OpenMP that the program loads late, as Python packages do: gnu, llvm or a file; it is loaded first
    #[arg(long, value_name = "RUNTIME")]
    openmp: Option<Runtime>,
    /// The program's name for itself: it is here again, from where it was loaded
    #[arg(long, hide = true, value_name = "NAME", allow_hyphen_values = true)]
    chosen: Option<OsString>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The variables in which launchers pass the rank.
const RANKS: [&str; 5] = ["PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "SLURM_PROCID"];
/// The variable that lists the libraries that the system's loader preloads.
pub(super) const PRELOAD: &str = "LD_PRELOAD";
/// The library that examines programs as they are loaded (`mpi/chooser`), and the variable that tells it the file of this command.
pub(super) const CHOOSER: &str = "liblineweave_chooser.so";
pub(super) const COMMAND: &str = "LINEWEAVE_RUN_COMMAND";
/// Tools for MPI programs that are started by others.
const TOOLS: &str = "LINEWEAVE_RUN_TOOLS";
/// The late runtime of OpenMP of a program that is started by others.
const OPENMP: &str = "LINEWEAVE_RUN_OPENMP";

/// Time in which a job that rank 0 refuses has ended.
const TOLD: Duration = Duration::from_secs(1);

/// Returns this process's rank, if a launcher started it.
fn rank() -> Option<OsString> {
    RANKS.iter().find_map(std::env::var_os)
}

/// Returns whether this rank prints messages for all ranks.
fn speaks() -> bool {
    rank().is_none_or(|rank| rank == "0")
}

/// Becomes the program.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (settings, warnings) = session.settings()?;
    let say = |session: &Session, text: &str| {
        if speaks() && !settings.run.quiet {
            session.out.warn(text);
        }
    };
    for warning in warnings {
        say(session, &warning.to_string());
    }
    let [program, rest @ ..] = &arguments.program[..] else { return Ok(()) };
    let path = startable(program, arguments.ranks.is_some())?;
    if let Some(ranks) = arguments.ranks {
        check_profile(&settings)?;
        return ranks::run(ranks, program, &path, rest, &session.out);
    }
    let files = [
        ("--report", "LINEWEAVE_MPI_REPORT", &arguments.report),
        ("--link", "LINEWEAVE_MPI_LINK", &arguments.link),
        ("--trace", "LINEWEAVE_MPI_TRACE", &arguments.trace),
    ];
    for (option, _, file) in files.iter().filter(|_| speaks()) {
        file.as_deref().map_or(Ok(()), |file| writable(file, option))?;
    }
    let tools = tools(arguments)?;
    let found = detect::look(&path, rest, arguments.mpi);
    if found.mpi.is_ok() {
        match check_profile(&settings) {
            // If rank 0 has the same profile, it says so, and this rank is ended meanwhile.
            Err(error) if !speaks() => {
                sleep(TOLD);
                return Err(error);
            }
            checked => checked?,
        }
    }
    let mut wanted = Vec::new();
    let runtime = runtime(arguments)?.filter(|_| settings.run.openmp);
    let openmp = (found.openmp.is_some() || runtime.is_some()) && settings.run.openmp;
    if openmp {
        wanted.push("liblineweave_openmp.so".to_owned());
    }
    match &found.mpi {
        Ok(abi) => wanted.push(format!("liblineweave_mpi_{}.so", name_of(abi))),
        Err(Aside::NoMpi(_)) if openmp || found.openmp.is_some() || arguments.chosen.is_some() => {}
        Err(why) if openmp && found.openmp.is_some() => {
            say(session, &format!("{why}; only its OpenMP runs with lineweave"))
        }
        Err(why) if found.starter => {
            say(session, &format!("{why}; programs that it starts run with lineweave"))
        }
        Err(why) => say(session, &format!("{why}; it runs without lineweave")),
    }
    if (found.starter || found.late) && arguments.chosen.is_none() {
        wanted.push(CHOOSER.to_owned());
    }
    let mut libraries = Vec::new();
    for file in wanted {
        match library(&file) {
            Ok(path) => libraries.push(path),
            Err(why) => say(session, &format!("{why}; it runs without that")),
        }
    }
    let mut command = Command::new(program);
    let is_env = path.file_name().is_some_and(|name| name == "env");
    command.args(rest.iter().map(|word| if is_env { with_ours(word, &libraries) } else { word.clone() }));
    if let Some(runtime) = &runtime {
        // What our library leaves goes on to the next.
        libraries.push(runtime.file()?);
        command.env(OPENMP, runtime.text());
    }
    if let Some(name) = &arguments.chosen {
        command.arg0(name);
    }
    let before = std::env::var_os(PRELOAD).unwrap_or_default();
    // A shell that starts the program has no use for them.
    let (tools, later) = if found.starter { (Vec::new(), tools) } else { (tools, Vec::new()) };
    if !libraries.is_empty() || !tools.is_empty() {
        command.env(PRELOAD, preload(&libraries, &tools, &before));
    }
    if !later.is_empty() {
        command.env(TOOLS, later.join(OsStr::new(":")));
    }
    if found.starter || arguments.trace.is_some() {
        // By its path, wherever what is started stands.
        command.env(COMMAND, std::env::current_exe().unwrap_or_default());
    }
    for (_, name, file) in files {
        if let Some(file) = file.as_ref().filter(|_| found.mpi.is_ok() || found.starter) {
            command.env(name, std::path::absolute(file).unwrap_or_else(|_| file.clone()));
        }
    }
    // A rank that stays behind its shell would take the other ranks' records for left over.
    let starts_job = found.starter && arguments.chosen.is_none() && rank().is_none();
    if let Some(file) = arguments.trace.as_ref().filter(|_| starts_job) {
        return watched(command, program, file, session);
    }
    Err(CliError::Program { program: program.to_string_lossy().into_owned(), reason: command.exec() })
}

/// Returns a word of `env`: what it preloads, with our libraries behind it.
fn with_ours(word: &OsStr, libraries: &[PathBuf]) -> OsString {
    match word.to_str().and_then(|word| word.strip_prefix("LD_PRELOAD=")) {
        Some(named) if !libraries.is_empty() => {
            let tools: Vec<_> = names(named).map(OsString::from).collect();
            [OsStr::new("LD_PRELOAD="), &preload(libraries, &tools, OsStr::new(""))].into_iter().collect()
        }
        _ => word.to_owned(),
    }
}

/// The tools that were named, here or where the job began.
fn tools(arguments: &Arguments) -> Result<Vec<OsString>, CliError> {
    if arguments.tool.is_empty() {
        let named = std::env::var_os(TOOLS).unwrap_or_default();
        return Ok(names(&named.to_string_lossy()).map(OsString::from).collect());
    }
    // Without a slash the loader looks for it.
    let found = |tool: &PathBuf| match std::path::absolute(tool) {
        Ok(path) if path.is_file() => Ok(path.into_os_string()),
        _ if tool.components().count() == 1 => Ok(tool.clone().into_os_string()),
        _ => Err(CliError::NoLibrary(format!(
            "--tool {}: expected a shared library, found no file",
            tool.display()
        ))),
    };
    arguments.tool.iter().map(found).collect()
}

/// The late runtime of OpenMP, named here or where the job began.
fn runtime(arguments: &Arguments) -> Result<Option<Runtime>, CliError> {
    match (&arguments.openmp, std::env::var(OPENMP)) {
        (Some(named), _) => Ok(Some(named.clone())),
        (None, Ok(before)) => before.parse().map(Some).map_err(CliError::NoLibrary),
        (None, Err(_)) => Ok(None),
    }
}

/// Runs what starts a job and stays, so that the job's timeline is written also if a rank dies. Ends with the program's exit status.
fn watched(
    mut command: Command,
    program: &OsStr,
    file: &Path,
    session: &mut Session,
) -> Result<(), CliError> {
    let failed = |reason| CliError::Program { program: program.to_string_lossy().into_owned(), reason };
    let status = command.status().map_err(failed)?;
    if crate::trace::folder(file).is_dir() {
        super::trace::of_job(file, session)?;
    }
    match status.code().or_else(|| status.signal().map(|signal| 128 + signal)) {
        Some(0) | None => Ok(()),
        Some(code) => std::process::exit(code),
    }
}

/// The file of a program that the system would start.
fn startable(program: &OsStr, as_ranks: bool) -> Result<PathBuf, CliError> {
    let name = program.to_string_lossy().into_owned();
    // With `-n`, a script is started by its interpreter.
    if as_ranks && name.ends_with(".py") && Path::new(program).is_file() {
        return Ok(program.into());
    }
    let Some(path) = detect::find(Path::new(program)) else {
        let hint = match (Path::new(program).is_file(), name.ends_with(".py")) {
            (true, true) => format!(
                "; a file of that name is here: `lineweave run -n 4 {name}` starts 4 ranks of it, `lineweave run -- python3 {name}` one program"
            ),
            (true, false) => format!("; a file of that name is here: start it as ./{name}"),
            (false, _) => String::new(),
        };
        return Err(CliError::NoProgram { program: name, hint });
    };
    let reason = match (path.is_file(), access(&path, Access::EXEC_OK)) {
        (true, Ok(())) => return Ok(path),
        (true, Err(reason)) => {
            let with_python = match name.ends_with(".py") {
                true => format!("start it by `lineweave run -- python3 {name}`, or "),
                false => String::new(),
            };
            let reason = io::Error::from(reason);
            let told = format!("{reason}; {with_python}make it executable by `chmod +x {}`", path.display());
            io::Error::new(reason.kind(), told)
        }
        (false, _) => io::ErrorKind::IsADirectory.into(),
    };
    Err(CliError::Program { program: name, reason })
}

/// Checks before a job that its report can be written, which would otherwise fail after it.
fn writable(file: &Path, option: &'static str) -> Result<(), CliError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let looked = if file.exists() { file } else { folder };
    let reason = match (file.is_dir(), access(looked, Access::WRITE_OK)) {
        (false, Ok(())) => return Ok(()),
        (false, Err(reason)) => reason.into(),
        (true, _) => io::ErrorKind::IsADirectory.into(),
    };
    Err(CliError::Write { path: file.to_owned(), option, reason })
}

/// Refuses a job whose settings name a profile that cannot be used, before any rank begins.
fn check_profile(settings: &Settings) -> Result<(), CliError> {
    let Some(file) = settings.profile.as_deref().filter(|_| !settings.run.profile_optional) else {
        return Ok(());
    };
    // Where the machine cannot be read, the ranks compare it with the profile when they meet.
    let Ok(hardware) = Hardware::load(&settings.topology) else { return Ok(()) };
    let usable = hardware.placeable(&UsableCpus::of_this_thread().cpus);
    check_named(file, &hardware, &usable).map_err(CliError::RefusedProfile)
}

/// Returns the path of a library: beside this command where it was built, below its prefix where it was installed.
pub(super) fn library(file: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this command's own file: {e}"))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(file), beside.join("../lib/lineweave").join(file)];
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.ok_or_else(|| {
        format!("{file} is neither beside lineweave nor in its ../lib/lineweave; build it with `make mpi`")
    })
}

/// Ours first, then what was there, without others of ours that are for an MPI: they were for another program.
/// Tools come before ours: they see each call, and what they call by PMPI is ours (`mpi/src/entries.c`). Those of OpenMP's tool interface come
/// behind our library for OpenMP, which finds them in the runtime's place (`openmp/src/watch.c`).
pub(super) fn preload(libraries: &[PathBuf], tools: &[OsString], before: &OsStr) -> OsString {
    let ours = libraries.iter().map(|path| path.as_os_str().to_owned());
    let before = before.to_string_lossy();
    let kept = names(&before).filter(|path| {
        !is_ours(path)
            && !tools.iter().any(|tool| tool == path)
            && !libraries.iter().any(|own| own == Path::new(path))
    });
    let (first, behind): (Vec<&str>, Vec<&str>) = kept.partition(|path| has_mpi(Path::new(path)));
    let words = |list: Vec<&str>| list.into_iter().map(OsString::from).collect::<Vec<_>>();
    let ahead = [tools.to_vec(), words(first)].concat();
    let watches = ahead.iter().any(|tool| has(Path::new(tool), |name| name == b"ompt_start_tool"));
    let (openmp, ours): (Vec<_>, Vec<_>) =
        ours.partition(|own| watches && Path::new(own).ends_with("liblineweave_openmp.so"));
    [openmp, ahead, ours, words(behind)].concat().join(OsStr::new(":"))
}

/// The names in a list of libraries to preload.
fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split([':', ' ']).filter(|name| !name.is_empty())
}

fn is_ours(path: &str) -> bool {
    ["liblineweave_mpi_", "liblineweave_openmp."]
        .iter()
        .any(|name| path.rsplit('/').next().is_some_and(|file| file.starts_with(name)))
}

/// Returns whether a library has functions of MPI itself. (To call them, as the program's own libraries may, is another thing.)
fn has_mpi(path: &Path) -> bool {
    has(path, |name| name.starts_with(b"MPI_") || name.starts_with(b"mpi_"))
}

/// Returns whether a library defines such a name.
fn has(path: &Path, wanted: impl Fn(&[u8]) -> bool) -> bool {
    // Reading something other than a file may never end.
    path.is_file() && elf::defines(path, wanted).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_behind() {
        let ours = ["/a.so", "/o.so"].map(PathBuf::from);
        assert_eq!(preload(&ours[..1], &[], OsStr::new("")), "/a.so");
        assert_eq!(preload(&ours, &[], OsStr::new("/b.so:/c.so")), "/a.so:/o.so:/b.so:/c.so");
        let other = OsStr::new("/x/liblineweave_mpi_mpich.so:/x/liblineweave_chooser.so /c.so");
        assert_eq!(preload(&ours[..1], &[], other), "/a.so:/x/liblineweave_chooser.so:/c.so");
        let files = ["/no/such.so", env!("CARGO_MANIFEST_DIR"), "/dev/zero"];
        assert!(files.iter().all(|file| !has_mpi(Path::new(file))));
    }

    #[test]
    fn what_env_preloads_comes_before_ours() {
        let ours = ["/a.so".into()];
        assert_eq!(with_ours(OsStr::new("LD_PRELOAD=/t.so /u.so"), &ours), "LD_PRELOAD=/t.so:/u.so:/a.so");
        assert_eq!(with_ours(OsStr::new("LD_PRELOAD=/t.so"), &[]), "LD_PRELOAD=/t.so");
        assert_eq!(with_ours(OsStr::new("./app"), &ours), "./app");
    }

    #[test]
    fn a_tool_comes_first_and_once() {
        let tool = [OsString::from("/t.so")];
        assert_eq!(preload(&["/a.so".into()], &tool, OsStr::new("/b.so:/t.so")), "/t.so:/a.so:/b.so");
    }
}
