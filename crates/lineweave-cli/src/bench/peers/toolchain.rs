//! The system's compilers and OpenMP runtimes, and the build of a peer's program with them.

use super::table::{Compiler, HEADER};
use lineweave::cache;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The installed compilers and runtimes that can build peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Toolchain {
    /// GNU's C compiler and its version; clang's OpenMP would bind to LLVM's runtime.
    pub cc: Option<(PathBuf, String)>,
    pub cxx: Option<(PathBuf, String)>,
    pub libomp: Option<PathBuf>,
}

/// The source of a program, one file beside the header that all share.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub program: &'a str,
    pub file: &'a str,
    pub text: &'a str,
    pub compiler: Compiler,
}

/// Reason why a program was not made.
#[derive(Debug)]
pub enum BuildError {
    /// A tool is not installed, or too old: the peer is skipped.
    Missing(String),
    /// The directory for the programs cannot be used.
    Directory(io::Error),
}

impl Toolchain {
    /// Looks for the installed compilers and runtimes.
    pub fn discover() -> Toolchain {
        Toolchain { cc: version_of("gcc"), cxx: version_of("g++"), libomp: find_libomp() }
    }

    /// Makes a program in `directory` unless it is there, and returns its path. The file name holds a digest of everything that
    /// the program is made from, so that a new source or compiler makes a new program.
    pub fn make(&self, source: &Source<'_>, directory: &Path) -> Result<PathBuf, BuildError> {
        let (compiler, libomp) = self.needs(source.compiler)?;
        let mut digest = DefaultHasher::new();
        (source.text, HEADER, &source.compiler, compiler, libomp).hash(&mut digest);
        let name = format!("{}-{:016x}", source.program, digest.finish());
        let program = directory.join(&name);
        if cache::counts(&program) {
            return Ok(program);
        }
        // Each attempt has a directory of its own: two benchmarks, or two threads of one, may start at once.
        fs::create_dir_all(directory).map_err(BuildError::Directory)?;
        let work = tempfile::tempdir_in(directory).map_err(BuildError::Directory)?;
        let made = compile(source, &compiler.0, libomp, work.path())?;
        fs::rename(made, &program).map_err(BuildError::Directory)?;
        Ok(program)
    }

    /// Returns the compiler and the library that a program needs.
    fn needs(&self, compiler: Compiler) -> Result<(&(PathBuf, String), Option<&Path>), BuildError> {
        let c = || self.cc.as_ref().ok_or_else(|| missing("gcc is not installed".to_owned()));
        match compiler {
            Compiler::C | Compiler::COpenmpGnu => Ok((c()?, None)),
            Compiler::Cxx20 => {
                let cxx = self.cxx.as_ref();
                Ok((cxx.ok_or_else(|| missing("g++ is not installed".to_owned()))?, None))
            }
            Compiler::COpenmpLlvm => {
                let libomp = self.libomp.as_deref().ok_or_else(|| {
                    missing("LLVM's OpenMP runtime is not installed (Debian: libomp-dev)".to_owned())
                })?;
                Ok((c()?, Some(libomp)))
            }
        }
    }
}

fn missing(why: String) -> BuildError {
    BuildError::Missing(why)
}

/// Compiles and links in `work`; returns the program's path there.
fn compile(
    made: &Source<'_>,
    compiler: &Path,
    libomp: Option<&Path>,
    work: &Path,
) -> Result<PathBuf, BuildError> {
    let (source, program) = (work.join(made.file), work.join("program"));
    fs::write(&source, made.text).map_err(BuildError::Directory)?;
    fs::write(work.join(HEADER.0), HEADER.1).map_err(BuildError::Directory)?;
    let standard = match made.compiler {
        Compiler::C | Compiler::COpenmpGnu | Compiler::COpenmpLlvm => "-std=gnu11",
        Compiler::Cxx20 => "-std=c++20",
    };
    let run = |arguments: &[&OsStr]| {
        let output = Command::new(compiler)
            .args(["-O2", "-pthread"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| missing(format!("{} cannot be started: {e}", compiler.display())))?;
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().find(|line| line.contains("error")).or_else(|| errors.lines().next());
        let reason = first.unwrap_or("no message").replace(&*work.to_string_lossy(), "");
        Err(missing(format!("{} cannot build {}: {reason}", compiler.display(), made.file)))
    };
    let (source, out) = (source.as_os_str(), program.as_os_str());
    let (o, c, m, dl) = (OsStr::new("-o"), OsStr::new("-c"), OsStr::new("-lm"), OsStr::new("-ldl"));
    let (standard, openmp) = (OsStr::new(standard), OsStr::new("-fopenmp"));
    match (made.compiler, libomp) {
        (Compiler::C | Compiler::Cxx20, _) => run(&[standard, source, o, out, m])?,
        (Compiler::COpenmpGnu, _) | (Compiler::COpenmpLlvm, None) => {
            run(&[standard, openmp, source, o, out, m, dl])?;
        }
        (Compiler::COpenmpLlvm, Some(library)) => {
            // Linked without -fopenmp, so that GNU's runtime is not there to answer first.
            let object = work.join("object.o");
            run(&[standard, openmp, c, source, o, object.as_os_str()])?;
            let mut rpath = OsStr::new("-Wl,-rpath,").to_owned();
            rpath.push(library.parent().unwrap_or(Path::new("/")));
            run(&[object.as_os_str(), o, out, library.as_os_str(), &rpath, m, dl])?;
        }
    }
    Ok(program)
}

/// Returns the path of a command, as the shell would find it, and the first line that the command prints for
/// `--version`.
fn version_of(command: &str) -> Option<(PathBuf, String)> {
    let output = Command::new(command).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| (PathBuf::from(command), text.lines().next().unwrap_or("").to_owned()))
}

/// Returns LLVM's runtime from the places where distributions put it: first the newest of its versioned directories,
/// then the common ones.
fn find_libomp() -> Option<PathBuf> {
    let mut versioned: Vec<(u32, PathBuf)> = Vec::new();
    let mut common = vec![PathBuf::from("/usr/lib64"), "/usr/local/lib".into(), "/usr/lib".into()];
    for entry in fs::read_dir("/usr/lib").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(version) = name.strip_prefix("llvm-").and_then(|v| v.parse().ok()) {
            versioned.push((version, entry.path().join("lib")));
        } else if name.contains("-linux-") {
            common.push(entry.path());
        }
    }
    versioned.sort_by(|a, b| b.cmp(a));
    versioned
        .into_iter()
        .map(|(_, directory)| directory)
        .chain(common)
        .flat_map(|directory| ["libomp.so", "libomp.so.5"].map(|name| directory.join(name)))
        .find(|path| path.exists())
}
