//! The runtime's program: built once, and started as often as is asked.

use super::OpenmpError;
use crate::bench::peers::{BuildError, Compiler, Source, Toolchain};
use crate::capture::{capture, Captured};
use crate::interrupt;
use crate::mpi::{lines, Line};
use crate::script::Variables;
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const PROGRAM: &str = include_str!("../../bench/openmp/constructs.c");
/// The time limit of a launch.
const PATIENCE: Duration = Duration::from_secs(60);

/// The constructs that the program times, in its order: the names that it prints.
pub const CONSTRUCTS: [&str; 6] = ["barrier", "for", "reduction", "taskwait", "region", "region-after-work"];

/// A runtime of OpenMP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// GNU's.
    Libgomp,
    /// LLVM's.
    Libomp,
}

impl Runtime {
    /// Returns the name, as options and scripts write it.
    pub fn name(self) -> &'static str {
        match self {
            Runtime::Libgomp => "libgomp",
            Runtime::Libomp => "libomp",
        }
    }

    /// Returns the runtime with this name.
    pub fn of(name: &str) -> Option<Runtime> {
        [Runtime::Libgomp, Runtime::Libomp].into_iter().find(|r| r.name() == name)
    }

    /// Returns the runtime that a library is, by its file.
    pub fn of_library(library: &str) -> Option<Runtime> {
        [Runtime::Libgomp, Runtime::Libomp].into_iter().find(|r| r.is(library))
    }

    /// Returns whether a library is this runtime, by its file.
    fn is(self, library: &str) -> bool {
        let file = library.rsplit('/').next().unwrap_or(library);
        match self {
            Runtime::Libgomp => file.starts_with("libgomp"),
            // Intel's runtime and LLVM's are the same code.
            Runtime::Libomp => file.starts_with("libomp") || file.starts_with("libiomp"),
        }
    }
}

/// The program of a runtime.
#[derive(Debug)]
pub struct Host {
    pub runtime: Runtime,
    /// The runtime's file, as the program's loader found it.
    pub library: String,
    program: PathBuf,
    _directory: TempDir,
}

impl Host {
    /// Builds the program, and starts it once.
    pub fn start(runtime: Runtime) -> Result<Host, OpenmpError> {
        let made = tempfile::Builder::new().prefix("lineweave-openmp-").tempdir();
        let directory = made.map_err(OpenmpError::Directory)?;
        interrupt::removes(directory.path());
        let compiler = match runtime {
            Runtime::Libgomp => Compiler::COpenmpGnu,
            Runtime::Libomp => Compiler::COpenmpLlvm,
        };
        let source = Source { program: runtime.name(), file: "constructs.c", text: PROGRAM, compiler };
        let program = Toolchain::discover().make(&source, directory.path()).map_err(|e| match e {
            BuildError::Missing(what) => OpenmpError::Missing(what),
            BuildError::Directory(why) => OpenmpError::Directory(why),
        })?;
        let mut host = Host { runtime, library: String::new(), program, _directory: directory };
        let broken = |how| OpenmpError::Broken { runtime: runtime.name(), threads: 2, how };
        let (library, _) = host.said(2, 1, &Variables::new()).map_err(broken)?;
        host.library = library;
        Ok(host)
    }

    /// Starts the program once with so many threads and these settings, and returns the time of each construct, each timed for
    /// `window_ms`. A setting that the runtime does not know is a failure.
    pub fn launch(&self, threads: usize, window_ms: u32, variables: &Variables) -> Result<Vec<Line>, String> {
        self.said(threads, window_ms, variables).map(|(_, lines)| lines)
    }

    fn said(
        &self,
        threads: usize,
        window_ms: u32,
        variables: &Variables,
    ) -> Result<(String, Vec<Line>), String> {
        let mut command = Command::new(&self.program);
        command.arg(window_ms.to_string());
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_setting)) {
            command.env_remove(name);
        }
        command.env("OMP_NUM_THREADS", threads.to_string());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let Captured { out, err, ended, .. } = capture(&mut command, PATIENCE);
        ended?;
        if let Some(refused) = err.lines().find(|line| refuses(line)) {
            return Err(refused.trim().to_owned());
        }
        let (given, library) = out.lines().find_map(head).ok_or_else(|| "it printed no times".to_owned())?;
        if given != threads {
            return Err(format!("asked for {threads} threads, the runtime gave {given}"));
        }
        if !self.runtime.is(&library) {
            return Err(format!(
                "expected its own library, found {library}; check LD_PRELOAD and LD_LIBRARY_PATH"
            ));
        }
        let times = lines(&out);
        match CONSTRUCTS.iter().find(|c| !times.iter().any(|line| line.task == **c)) {
            Some(absent) => Err(format!("it printed no time for {absent}")),
            None => Ok((library, times)),
        }
    }
}

/// Returns whether a variable is one that runtimes of OpenMP read.
pub fn is_setting(name: &str) -> bool {
    ["OMP_", "GOMP_", "KMP_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether a runtime says in this line that it does not take a setting.
fn refuses(line: &str) -> bool {
    line.starts_with("OMP: Warning") || line.starts_with("libgomp: Invalid")
}

/// Reads `openmp THREADS LIBRARY`.
fn head(line: &str) -> Option<(usize, String)> {
    let (threads, library) = line.strip_prefix("openmp ")?.split_once(' ')?;
    Some((threads.parse().ok()?, library.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_times_every_construct_with_the_threads_asked_for() {
        let host = match Host::start(Runtime::Libgomp) {
            Err(OpenmpError::Missing(why)) => {
                println!("SKIPPED: {why}");
                return;
            }
            host => host.unwrap(),
        };
        assert!(host.library.contains("libgomp"), "{}", host.library);
        let times = host.launch(3, 2, &Variables::new()).unwrap();
        assert_eq!(times.iter().map(|l| l.task.as_str()).collect::<Vec<_>>(), CONSTRUCTS);
        assert!(times.iter().all(|l| l.bytes == 3 && l.times.len() >= 3), "{times:?}");
        let limited = host.launch(3, 2, &vec![("OMP_THREAD_LIMIT".into(), "2".into())]);
        assert_eq!(limited.unwrap_err(), "asked for 3 threads, the runtime gave 2");
        let unknown = host.launch(3, 2, &vec![("OMP_WAIT_POLICY".into(), "sometimes".into())]);
        assert!(unknown.unwrap_err().contains("OMP_WAIT_POLICY"));
    }

    #[test]
    fn runtimes_are_known_by_their_files() {
        assert!(Runtime::Libomp.is("/opt/lib/libiomp5.so") && Runtime::Libomp.is("libomp.so.5"));
        assert!(!Runtime::Libgomp.is("/usr/lib/libgomp/libomp.so"));
        assert_eq!(Runtime::of("libomp"), Some(Runtime::Libomp));
        assert_eq!(Runtime::of("gomp"), None);
    }
}
