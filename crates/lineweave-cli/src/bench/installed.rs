//! An installed MPI: the place of its library, its binary interface, and how programs are built and started for it.
//!
//! Programs of one C file need no header of an MPI, so one compiler builds them for all MPIs, Intel's runtime included.

use crate::commands::run::detect;
use crate::script::{variables, Variables};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

const INTERFACES: [(&str, &str, &str, &str); 2] = [
    ("openmpi", "LWM_OPENMPI", "libmpi.so.40", include_str!("../../abi/openmpi.h")),
    ("mpich", "LWM_MPICH", "libmpi.so.12", include_str!("../../abi/mpich.h")),
];
/// The headers of the programs.
pub const HEADERS: [(&str, &str); 3] = [
    ("calls.h", include_str!("../../bench/mpi/calls.h")),
    ("turns.h", include_str!("../../bench/mpi/turns.h")),
    ("waits.h", include_str!("../../bench/mpi/waits.h")),
];
/// Directories below a prefix in which libraries lie.
const LIBRARIES: [&str; 5] = ["lib", "lib64", "lib/release", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
/// MPICH's settings for ranks that share CPUs.
const THROTTLED: &[(&str, &str)] =
    &[("MPIR_CVAR_CH4_PROGRESS_THROTTLE", "1"), ("MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT", "8")];
/// Longest time of a launch in seconds, after which `timeout` ends it: a launcher's children obey `timeout`.
pub const PATIENCE: &str = "300";

/// An installed MPI.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mpi {
    /// The last part of the prefix, such as `openmpi`.
    pub name: String,
    prefix: PathBuf,
    library: PathBuf,
    /// The name of the MPI's binary interface, one of [`INTERFACES`].
    abi: &'static str,
    define: &'static str,
    /// True if waiting ranks spin without yielding, unless a setting changes that.
    spins: bool,
}

impl Mpi {
    /// Returns the MPI below a prefix.
    pub fn below(prefix: &Path) -> Result<Mpi, String> {
        let prefix = prefix.canonicalize().map_err(|e| format!("{}: {e}", prefix.display()))?;
        let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !prefix.join("bin/mpirun").exists() {
            return Err(format!("{}: there is no bin/mpirun", prefix.display()));
        }
        Mpi::in_prefix(prefix, name)
    }

    /// Returns the MPI that a launcher belongs to: below the folder of its `bin`, as it is called or as its links end.
    pub fn of_launcher(launcher: &OsStr) -> Result<Mpi, String> {
        let file = detect::find(Path::new(launcher))
            .ok_or_else(|| format!("{} is not to be found", Path::new(launcher).display()))?;
        let prefix = |file: &Path| Some(file.parent()?.parent()?.to_owned());
        let named = |prefix: PathBuf| {
            let name = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Mpi::in_prefix(prefix, name)
        };
        let called = prefix(&file).map_or_else(|| Err(String::new()), named);
        let linked = || file.canonicalize().ok().and_then(|f| prefix(&f)).map(named);
        called.or_else(|why| linked().unwrap_or(Err(why)))
    }

    fn in_prefix(prefix: PathBuf, name: String) -> Result<Mpi, String> {
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

    /// Builds a program of one C file that needs no header of an MPI, in `directory`.
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
        for (name, text) in HEADERS {
            write(sources.join(name), text)?;
        }
        for (abi, _, _, text) in INTERFACES {
            write(sources.join(format!("abi/{abi}.h")), text)?;
        }
        let built = sources.join(format!("{program}-{}", self.abi));
        let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        command.args(["-O2", &format!("-D{}", self.define), "-I"]).arg(&sources).arg(file);
        command.arg("-o").arg(&built).arg(&self.library).args(["-Wl,--allow-shlib-undefined", "-ldl"]);
        let output = command.output().map_err(|e| format!("cannot start the C compiler: {e}"))?;
        match output.status.success() {
            true => Ok(built),
            false => {
                Err(format!("the C compiler refused it: {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
        }
    }

    /// Returns the launcher for so many ranks on so many CPUs; the caller adds the program.
    pub fn launcher(&self, ranks: usize, cpus: usize) -> Command {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE).arg(self.prefix.join("bin/mpirun"));
        if self.abi == "openmpi" {
            command.arg("--oversubscribe");
        }
        if self.spins && ranks <= cpus {
            // Two ranks of MPICH that share a CPU take ten times as long, with lineweave and without.
            command.args(["-bind-to", "core"]);
        }
        command.arg("-n").arg(ranks.to_string());
        // A rank that is not bound would have a BLAS thread for each CPU, and those threads spin.
        command.env("OMP_NUM_THREADS", "1");
        self.environment(&mut command);
        for (name, value) in self.crowded(ranks, cpus) {
            command.env(name, value);
        }
        command
    }

    /// Sets the environment that the MPI's launcher and programs need.
    pub fn environment(&self, command: &mut Command) {
        let before = |first: OsString, name: &str| {
            let mut path = first;
            if let Some(rest) = std::env::var_os(name).filter(|rest| !rest.is_empty()) {
                path.push(":");
                path.push(rest);
            }
            path
        };
        command.env("PATH", before(self.prefix.join("bin").into_os_string(), "PATH"));
        let library = self.library.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
        command.env("LD_LIBRARY_PATH", before(library, "LD_LIBRARY_PATH"));
        command.env("LINEWEAVE_QUIET", "1").env("I_MPI_ROOT", &self.prefix);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }

    /// Returns the settings that this MPI needs where ranks outnumber CPUs: a barrier of MPICH's among 4 ranks on 2 CPUs takes 22 us with them and 8 ms without.
    pub fn crowded(&self, ranks: usize, cpus: usize) -> &'static [(&'static str, &'static str)] {
        match self.spins && ranks > cpus {
            true => THROTTLED,
            false => &[],
        }
    }

    /// Returns the settings for the way that ranks wait, without the default: they matter where ranks have to share CPUs.
    ///
    /// Sources: Open MPI's `mpi_yield_when_idle`; Intel MPI's reference, `I_MPI_THREAD_YIELD`; MPICH's `MPIR_CVAR_CH4_PROGRESS_THROTTLE`.
    pub fn waits(&self) -> Vec<Variables> {
        match (self.abi, self.spins) {
            ("openmpi", _) => vec![variables(&[("OMPI_MCA_mpi_yield_when_idle", "1")])],
            (_, true) => vec![variables(THROTTLED)],
            (_, false) => ["1", "2", "3"].map(|how| variables(&[("I_MPI_THREAD_YIELD", how)])).into(),
        }
    }

    /// Returns the path of a program that is installed beside the launcher.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.prefix.join("bin").join(name)
    }

    /// Returns the path of the MPI's library.
    pub fn library(&self) -> &Path {
        &self.library
    }
}
