//! Detection of the MPI that a program will load, and of a runtime of OpenMP, without running the program.
//!
//! If a program names only libraries of MPI and of the system, these names decide. Otherwise its loader lists the libraries that it would load (as
//! `ldd` does), which takes a process. A script is followed to its interpreter.
//! For mpi4py, Python tells the libmpi that it would open; that does not start MPI. For JAX, the library that `MPITRAMPOLINE_LIB` names is linked
//! to the MPI.
//!
//! A program that needs no library of ours may start one that does. The chooser (`mpi/chooser`) decides that when the other program is loaded. If the
//! other program is among the arguments, its libraries are preloaded from the start: that saves a start, and valgrind would not follow another.

use super::elf::{self, Executable};
use super::python;
use clap::ValueEnum;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A binary interface of MPI, for which there is one library of ours, whose file name has the interface's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Abi {
    /// Open MPI 5 and 4
    Openmpi,
    /// MPICH from 3.1 on, Intel MPI, MVAPICH
    Mpich,
    /// The standard interface of MPI-5
    Standard,
}

impl Abi {
    /// Returns the interface of a library by its name: `None` for a library that is no MPI, an error for an unknown MPI.
    fn of_library(name: &str) -> Option<Result<Abi, String>> {
        match name {
            "libmpi.so.40" => return Some(Ok(Abi::Openmpi)),
            "libmpi.so.12" | "libmpich.so.12" | "libmpi_cray.so.12" => return Some(Ok(Abi::Mpich)),
            "libmpi_abi.so.0" | "libmpi_abi.so.1" => return Some(Ok(Abi::Standard)),
            _ => {}
        }
        let mpi = ["libmpi.so", "libmpi_abi.so", "libmpich.so"].iter().any(|n| name.starts_with(n));
        mpi.then(|| Err(name.to_owned()))
    }
}

/// Reason why nothing can be preloaded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aside {
    /// The program loads no libraries.
    Static(PathBuf),
    /// The program has privileges, and the system ignores `LD_PRELOAD` for it.
    Privileged(PathBuf),
    /// The program is for another kind of machine.
    Foreign(PathBuf),
    /// The program loads no MPI that could be detected.
    NoMpi(PathBuf),
    /// The program loads an MPI whose interface is not known.
    Unknown(String),
    /// The file could not be read, or its loader not be asked.
    Unreadable(PathBuf, String),
}

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aside::Static(path) => write!(f, "{} is linked statically, and nothing can be put before it", path.display()),
            Aside::Privileged(path) => {
                write!(f, "{} runs with other rights than its caller's, so the system preloads nothing", path.display())
            }
            Aside::Foreign(path) => write!(f, "{} is a program of another word length or byte order", path.display()),
            Aside::NoMpi(path) => write!(
                f,
                "{} loads no MPI and no OpenMP that can be seen; an MPI that it opens later has lineweave if it asks \
                 the loader for its functions (dlsym), else name it by --mpi openmpi, mpich or standard",
                path.display()
            ),
            Aside::Unknown(name) => write!(
                f,
                "the MPI that the program loads, {name}, has an interface that is not known; known are libmpi.so.40 (Open MPI), \
                 libmpi.so.12 (MPICH, Intel MPI) and libmpi_abi.so.1"
            ),
            Aside::Unreadable(path, why) => write!(f, "{} cannot be looked into: {why}", path.display()),
        }
    }
}

/// The libraries that a program loads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The program's MPI, or the reason why none is preloaded.
    pub mpi: Result<Abi, Aside>,
    /// The name of the runtime of OpenMP that the program loads when it starts, if it loads one.
    pub openmp: Option<String>,
    /// True if the program loads neither, and may start a program that does.
    pub starter: bool,
    /// True if the MPI was given and the program does not load it when it starts: it may open it later.
    pub late: bool,
}

/// Returns the libraries that the program in this file loads, called with `arguments`; `mpi` if the MPI is known.
pub fn look(path: &Path, arguments: &[OsString], mpi: Option<Abi>) -> Found {
    let mut search = Search { known: mpi, openmp: None, late: false };
    let found = search.of_file(path, 0);
    let none = matches!(found, Err(Aside::NoMpi(_) | Aside::Static(_)));
    let starter = none && mpi.is_none() && search.openmp.is_none();
    let started = starter.then(|| arguments.iter().find_map(|word| needs(Path::new(word)))).flatten();
    let found = match started {
        Some(program) => search.of_file(&program, 0),
        None => found,
    };
    Found {
        mpi: mpi.ok_or(()).or(found),
        openmp: search.openmp,
        starter,
        late: search.late || (none && mpi.is_some()),
    }
}

/// Returns the file of a program if it names an MPI or a runtime of OpenMP itself, or is a Python.
fn needs(name: &Path) -> Option<PathBuf> {
    let path = find(name)?;
    let named = || names(&path, |name| Abi::of_library(name).is_some() || is_openmp(name));
    // A library among the arguments is no program.
    let starts = || matches!(elf::read(&path), Ok(Executable::Dynamic(_)));
    (is_python(&path) || (named() && starts())).then_some(path)
}

/// Returns whether a program names an MPI itself.
pub fn links_mpi(path: &Path) -> bool {
    names(path, |name| Abi::of_library(name).is_some())
}

fn names(path: &Path, wanted: impl Fn(&str) -> bool) -> bool {
    elf::needed(path).ok().flatten().is_some_and(|named| named.iter().any(|name| wanted(name)))
}

/// Returns the file of a program, as the shell would find it.
pub fn find(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.exists().then(|| name.to_owned());
    }
    let runs = |path: &PathBuf| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(runs)
}

/// Most interpreters in a chain of interpreters.
const DEEPEST: usize = 4;

/// A search through programs that start other programs.
struct Search {
    /// The MPI, if it is already known.
    known: Option<Abi>,
    /// The runtime of OpenMP that some program loads.
    openmp: Option<String>,
    /// True if the MPI is one that a Python opens by MPItrampoline.
    late: bool,
}

impl Search {
    fn of_file(&mut self, path: &Path, depth: usize) -> Result<Abi, Aside> {
        let unreadable = |e: std::io::Error| Aside::Unreadable(path.to_owned(), e.to_string());
        // The bits of setuid and setgid.
        if path.metadata().map_err(unreadable)?.permissions().mode() & 0o6000 != 0 {
            return Err(Aside::Privileged(path.to_owned()));
        }
        match elf::read(path).map_err(unreadable)? {
            Executable::Static => Err(Aside::Static(path.to_owned())),
            Executable::Foreign => Err(Aside::Foreign(path.to_owned())),
            Executable::Other => Err(Aside::NoMpi(path.to_owned())),
            Executable::Dynamic(loader) => match self.of_program(path, &loader) {
                Err(Aside::NoMpi(_)) if is_python(path) && self.known.is_none() => {
                    let wrapped = self.by_trampoline(&loader);
                    python::of(path).or_else(|why| wrapped.unwrap_or(Err(why)))
                }
                found => found,
            },
            Executable::Script(line) if depth < DEEPEST => {
                let mut words = line.split_whitespace().filter(|w| !w.starts_with('-'));
                let mut interpreter = words.next().unwrap_or_default();
                if interpreter.ends_with("/env") {
                    interpreter = words.next().unwrap_or_default();
                }
                match find(Path::new(interpreter)) {
                    Some(interpreter) => match self.of_file(&interpreter, depth + 1) {
                        // The message should name the script, and not the shell that runs it.
                        Err(Aside::NoMpi(_)) => Err(Aside::NoMpi(path.to_owned())),
                        found => found,
                    },
                    None => Err(Aside::Unreadable(
                        path.to_owned(),
                        format!("its interpreter `{interpreter}` is not there"),
                    )),
                }
            }
            Executable::Script(_) => Err(Aside::NoMpi(path.to_owned())),
        }
    }

    /// Returns the MPI that the library of MPItrampoline is linked to, if a user names one.
    fn by_trampoline(&mut self, loader: &Path) -> Option<Result<Abi, Aside>> {
        let wrapper = PathBuf::from(std::env::var_os("MPITRAMPOLINE_LIB")?);
        let found = of_list(&list(&wrapper, loader, "").ok()?)?;
        self.late = found.is_ok();
        Some(found)
    }

    /// Returns the MPI among the libraries that the loader would load for a program.
    fn of_program(&mut self, path: &Path, loader: &Path) -> Result<Abi, Aside> {
        let named = elf::needed(path).ok().flatten().unwrap_or_default();
        let text = match !named.is_empty() && named.iter().all(|name| brings_no_other(name)) {
            true => named.join("\n"),
            false => list(path, loader, "")?,
        };
        self.openmp =
            self.openmp.take().or_else(|| libraries(&text).find(|l| is_openmp(l)).map(str::to_owned));
        of_list(&text).unwrap_or_else(|| Err(Aside::NoMpi(path.to_owned())))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_python(path: &Path) -> bool {
    let name = file_name(path);
    name.starts_with("python") || name.starts_with("pypy")
}

/// Returns the loader's own list of the libraries that it would load, with one that is preloaded by its name. It does not start the program.
pub fn list(path: &Path, loader: &Path, preloaded: &str) -> Result<String, Aside> {
    let unreadable = |why: String| Aside::Unreadable(path.to_owned(), why);
    let mut command = Command::new(loader);
    command.arg("--list").arg(path).env("LD_PRELOAD", preloaded).stdin(Stdio::null());
    let listed = command.output().map_err(|e| unreadable(e.to_string()))?;
    Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
}

/// Returns the names of the files in a loader's list.
fn libraries(list: &str) -> impl Iterator<Item = &str> {
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.map(|name| name.rsplit('/').next().unwrap_or(name))
}

/// Returns whether a library loads no MPI and no runtime of OpenMP that the program does not name: an MPI, or one of the system's and the compiler's.
fn brings_no_other(name: &str) -> bool {
    const SYSTEM: [&str; 9] = [
        "libc.so",
        "libm.so",
        "libpthread.so",
        "libdl.so",
        "librt.so",
        "libgcc_s.so",
        "libstdc++.so",
        "libgfortran.so",
        "libquadmath.so",
    ];
    let is_mpi = Abi::of_library(name).is_some_and(|abi| abi.is_ok());
    is_mpi || name.starts_with("ld-linux") || SYSTEM.iter().any(|system| name.starts_with(system))
}

/// Returns whether a library is a runtime of OpenMP: GNU's, LLVM's, or Intel's, which has LLVM's interface.
pub(super) fn is_openmp(name: &str) -> bool {
    ["libgomp.so", "libgomp-", "libomp.so", "libomp5.so", "libiomp5.so"].iter().any(|n| name.starts_with(n))
}

/// Returns the first MPI in a loader's list.
pub fn of_list(text: &str) -> Option<Result<Abi, Aside>> {
    libraries(text).find_map(Abi::of_library).map(|found| found.map_err(Aside::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_libraries_names_the_interface() {
        let list = |name: &str| {
            format!("\tlinux-vdso.so.1 (0x1)\n\t{name} => /opt/lib/{name} (0x2)\n\tlibc.so.6 => /c (0x3)\n")
        };
        assert_eq!(of_list(&list("libmpi.so.40")), Some(Ok(Abi::Openmpi)));
        assert_eq!(of_list(&list("libmpi.so.12")), Some(Ok(Abi::Mpich)));
        assert_eq!(of_list(&list("libmpich.so.12")), Some(Ok(Abi::Mpich)));
        assert_eq!(of_list(&list("libmpi_abi.so.1")), Some(Ok(Abi::Standard)));
        assert_eq!(of_list(&list("libmpi.so.20")), Some(Err(Aside::Unknown("libmpi.so.20".into()))));
        assert_eq!(of_list(&list("libm.so.6")), None);
        assert_eq!(of_list("\t/opt/x/libmpi.so.40 (0x2)\n"), Some(Ok(Abi::Openmpi)));
    }

    #[test]
    fn libraries_that_may_load_others_are_asked_about() {
        for name in [
            "libc.so.6",
            "libm.so.6",
            "libmpi.so.40",
            "libmpich.so.12",
            "libgfortran.so.5",
            "ld-linux-x86-64.so.2",
        ] {
            assert!(brings_no_other(name), "{name}");
        }
        for name in [
            "libgomp.so.1",
            "libomp.so.5",
            "libopenblas.so.0",
            "libmpi.so.20",
            // Linked with --as-needed, a Fortran program names it and not libmpi.
            "libmpi_mpifh.so.40",
            "libcrypt.so.1",
            "./libmine.so",
        ] {
            assert!(!brings_no_other(name), "{name}");
        }
    }

    #[test]
    fn what_is_started_without_this_command_names_the_same_libraries() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let source = std::fs::read_to_string(root.join("mpi/start/start.c")).expect("readable");
        let (_, table) = source.split_once("KNOWN[] = {").expect("its table");
        let (table, _) = table.split_once("};").expect("its end");
        let rows: Vec<Vec<&str>> = table
            .split('{')
            .skip(1)
            .map(|row| row.split(['"', ',', '}', ' ']).filter(|w| !w.is_empty()).collect())
            .collect();
        assert!(rows.iter().filter(|row| row[2] == "false").count() > 9);
        for row in rows {
            let kind = ["0", "1", "2", "3"].iter().position(|kind| *kind == row[1]).expect("a kind");
            let abi = [None, Some(Abi::Openmpi), Some(Abi::Mpich), Some(Abi::Standard)][kind];
            assert_eq!(Abi::of_library(row[0]), abi.map(Ok), "{}", row[0]);
            assert_eq!(row[2] == "true", abi.is_some(), "{}", row[0]);
            assert!(brings_no_other(row[0]), "{}", row[0]);
        }
    }

    #[test]
    fn runtimes_of_openmp_are_known_by_name() {
        for name in ["libgomp.so.1", "libgomp-a34b3233.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"] {
            assert!(is_openmp(name), "{name}");
        }
        assert!(!is_openmp("libcomp.so") && !is_openmp("libompd.so"));
    }

    #[test]
    fn what_loads_no_mpi_is_stepped_aside_for() {
        let file = |name: &str| find(Path::new(name)).expect("on the PATH");
        let shell = look(&file("sh"), &[], None);
        assert!(
            matches!(&shell, Found { mpi: Err(Aside::NoMpi(_)), openmp: None, starter: true, late: false }),
            "{shell:?}"
        );
        assert!(find(Path::new("lineweave-no-such-program")).is_none());
        let told = look(&file("sh"), &[], Some(Abi::Mpich));
        assert_eq!(told, Found { mpi: Ok(Abi::Mpich), openmp: None, starter: false, late: true });
    }
}
