//! `lineweave tune --for LIBRARY`: the settings of other libraries, MPIs and runtimes of OpenMP, measured and written in the form that each
//! reads; and `--check`, which compares such a file with the library's defaults.

mod check;
mod choose;
mod mpi;
mod mpi_check;
mod mpi_turns;
mod openmp;

use super::Arguments as Tune;
use crate::error::CliError;
use crate::files::{replace, to_write};
use crate::mpi::Flavour;
use crate::node::NodeInfo;
use crate::openmp::Runtime;
use crate::script::{fact, WHAT};
use crate::session::Session;
use clap::ValueEnum;
use lineweave::settings::Settings;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// For which library, and what to do.
#[derive(clap::Args, Debug, Default)]
pub struct ForOthers {
    /// Tune another library instead of lineweave, and write what that library reads: an MPI, whose launcher stands behind --, or a
    /// runtime of OpenMP
    #[arg(long = "for", value_name = "LIBRARY", group = "others", conflicts_with_all = ["seconds", "check"], help_heading = "For another library")]
    library: Option<Library>,
    /// Compare a library as it is with this file's settings in turns, instead of tuning
    #[arg(
        long,
        value_name = "FILE",
        group = "others",
        conflicts_with = "seconds",
        help_heading = "For another library"
    )]
    check: Option<PathBuf>,
    /// Time every plan, not only those that the model predicts to be near the fastest; with --check each of the MPI's algorithms. Takes
    /// several times as long
    #[arg(long, conflicts_with_all = ["library", "quick"])]
    pub(super) exhaustive: bool,
    /// Where to write the `export` lines; files that they name lie beside it [default: LIBRARY-RANKS.sh, LIBRARY.sh]
    #[arg(long, short, value_name = "FILE.sh", value_parser = to_write, requires = "library", help_heading = "For another library")]
    output: Option<PathBuf>,
    /// Show what would change and the gain, and write nothing
    #[arg(long, requires = "library", help_heading = "For another library")]
    dry_run: bool,
    /// Replace a file that is there
    #[arg(long, requires = "library", help_heading = "For another library")]
    force: bool,
    /// Launches of each setting [default: 5]
    #[arg(long, value_name = "N", requires = "others", value_parser = clap::value_parser!(u8).range(1..=50), help_heading = "For another library")]
    rounds: Option<u8>,
    /// Where the MPI is, if not where its launcher is
    #[arg(long, value_name = "PREFIX", requires = "launcher", help_heading = "For another library")]
    mpi: Option<PathBuf>,
    /// The MPI's launcher and its options, without a program: mpirun -n 2; without -n beside --ranks
    #[arg(last = true, value_name = "LAUNCHER", requires = "others", help_heading = "For another library")]
    launcher: Vec<OsString>,
}

/// A library that has settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Library {
    /// Open MPI 4 and 5
    Openmpi,
    /// MPICH from 4.0 on
    Mpich,
    /// Intel MPI
    Intel,
    /// GNU's runtime of OpenMP
    Libgomp,
    /// LLVM's runtime of OpenMP
    Libomp,
}

/// A library by its kind.
enum Kind {
    Mpi(Flavour),
    Openmp(Runtime),
}

impl Library {
    fn kind(self) -> Kind {
        match self {
            Library::Openmpi => Kind::Mpi(Flavour::Openmpi),
            Library::Mpich => Kind::Mpi(Flavour::Mpich),
            Library::Intel => Kind::Mpi(Flavour::Intel),
            Library::Libgomp => Kind::Openmp(Runtime::Libgomp),
            Library::Libomp => Kind::Openmp(Runtime::Libomp),
        }
    }
}

impl ForOthers {
    /// Returns whether another library is to be tuned or checked.
    pub fn are_asked(&self) -> bool {
        self.library.is_some() || self.check.is_some()
    }
}

/// Measures, chooses, shows and writes settings; or checks existing ones.
pub fn run(tune: &Tune, session: &mut Session) -> Result<(), CliError> {
    if let Some(file) = &tune.rules.check {
        let text = std::fs::read_to_string(file).map_err(|e| CliError::read(file, WHAT, e))?;
        return match fact(&text, "runtime").and_then(|runtime| Runtime::of(runtime.split(',').next()?)) {
            Some(runtime) => openmp::check(tune, runtime, file, &text, session),
            None => mpi_check::run(tune, file, &text, session),
        };
    }
    match tune.rules.library.map(Library::kind) {
        Some(Kind::Openmp(runtime)) => openmp::run(tune, runtime, session),
        Some(Kind::Mpi(flavour)) => mpi::run(tune, flavour, session),
        None => Ok(()),
    }
}

/// Returns the facts of a script's head that do not depend on the library: machine, date and command.
fn facts(command: String) -> Result<[(&'static str, String); 3], CliError> {
    let node = NodeInfo::gather(&Settings::default(), &[])?;
    Ok([
        ("machine", format!("{}, {} CPUs", node.fingerprint.cpu, node.fingerprint.cpus)),
        ("date", lineweave_tune::measure::utc::now()),
        ("command", command),
    ])
}

/// A file to be written, and the way to use it.
struct Kept<'a> {
    script: &'a Path,
    text: String,
    /// Files that the script names.
    files: &'a [(PathBuf, String)],
    /// The program that the script stands before.
    before: &'a str,
    /// The arguments of `--check` behind the file.
    checked: &'a str,
}

/// Writes the script and its files, unless a file with other settings exists.
fn keep(kept: &Kept<'_>, force: bool, session: &mut Session) -> Result<(), CliError> {
    let script = kept.script;
    if let (Ok(there), false) = (std::fs::read_to_string(script), force) {
        let changes = differences(&there, &kept.text);
        if !changes.is_empty() {
            session.out.line(&format!("{}, as it is (-) and as it would be (+):", script.display()))?;
            changes.iter().try_for_each(|line| session.out.line(line))?;
        }
        return Err(CliError::Kept { path: script.to_owned() });
    }
    for (path, text) in kept.files {
        replace(path, text, "-o")?;
    }
    replace(script, &kept.text, "-o")?;
    session.out.line(&format!(
        "kept in {0}: `. {0}` before {1}; `lineweave tune --check {0}{2}` compares it with the default",
        here(script).display(),
        kept.before,
        kept.checked
    ))
}

/// Returns a path that `.` takes for a file: without a slash, a shell searches PATH.
fn here(script: &Path) -> PathBuf {
    match script.components().count() {
        1 => Path::new(".").join(script),
        _ => script.to_owned(),
    }
}

/// Returns the lines that only one of the texts has, marked `-` and `+`.
fn differences(old: &str, new: &str) -> Vec<String> {
    let only = |a: &str, b: &str, mark: char| -> Vec<String> {
        a.lines().filter(|line| !b.lines().any(|l| l == *line)).map(|line| format!("{mark} {line}")).collect()
    };
    only(old, new, '-').into_iter().chain(only(new, old, '+')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_there_are_kept_and_what_differs_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("t.sh");
        let kept = |date: &str| Kept {
            script: &script,
            text: format!("# date: {date}\nexport A=1\n"),
            files: &[],
            before: "mpirun",
            checked: "",
        };
        let mut session =
            Session::new(crate::session::Globals { json: true, quiet: true, ..Default::default() });
        keep(&kept("1"), false, &mut session).unwrap();
        let first = std::fs::read_to_string(&script).unwrap();
        let again = keep(&kept("2"), false, &mut session);
        assert!(matches!(again, Err(CliError::Kept { .. })));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), first);
        keep(&kept("2"), true, &mut session).unwrap();
        let second = std::fs::read_to_string(&script).unwrap();
        assert_eq!(differences(&first, &second), ["- # date: 1", "+ # date: 2"]);
        assert_eq!(
            (here(Path::new("t.sh")), here(Path::new("/a/t.sh"))),
            ("./t.sh".into(), "/a/t.sh".into())
        );
    }
}
