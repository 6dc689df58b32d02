//! The ranks of an MPI under its own launcher: the program is built once, and started as often as is asked.

use super::HostError;
use crate::bench::installed::Mpi;
use crate::capture::{capture, Captured};
use crate::interrupt;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

pub(super) const PROGRAM: &str = include_str!("../../bench/mpi/channel.c");
/// The time limit of a launch.
const PATIENCE: Duration = Duration::from_secs(180);

/// The facts that ranks report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    pub ranks: usize,
    pub nodes: usize,
    /// Number of CPUs of the first rank's node.
    pub cpus: usize,
    /// The library's version string.
    pub version: String,
}

/// One case's times in ns, one for each batch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// A task of `channel.c`: a collective, or `pingpong`.
    pub task: String,
    pub bytes: u64,
    /// Times, at least one.
    pub times: Vec<f64>,
}

/// A launch that did not end well.
#[derive(Clone, PartialEq, Debug)]
pub struct Failed {
    /// The lines that were measured before the failure.
    pub before: Vec<Line>,
    /// The last line of the launch's output.
    pub how: String,
}

/// The program that ranks run, and the way to start it.
#[derive(Debug)]
pub struct Host {
    pub mpi: Mpi,
    /// The command line of the launcher.
    pub command: String,
    pub facts: Facts,
    /// The number of ranks for which it is decided whether they share CPUs.
    pub crowd: usize,
    words: Vec<OsString>,
    program: std::path::PathBuf,
    directory: TempDir,
}

impl Host {
    /// Builds the program for the launcher's MPI, or the one below `prefix`, and starts it once to get the facts from its ranks.
    pub fn start(words: &[OsString], prefix: Option<&Path>) -> Result<Host, HostError> {
        let Some(launcher) = words.first() else {
            return Err(HostError::NoMpi("no launcher is given".to_owned()));
        };
        let mpi = match prefix {
            Some(prefix) => Mpi::below(prefix),
            None => Mpi::of_launcher(launcher),
        };
        let mpi = mpi.map_err(HostError::NoMpi)?;
        let directory =
            tempfile::Builder::new().prefix("lineweave-mpi-").tempdir().map_err(HostError::Directory)?;
        interrupt::removes(directory.path());
        let program = mpi.build("channel", PROGRAM, directory.path()).map_err(HostError::Build)?;
        let command =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        let unknown = Facts { ranks: 0, nodes: 0, cpus: 0, version: String::new() };
        let mut host =
            Host { mpi, command, facts: unknown, crowd: 0, words: words.to_vec(), program, directory };
        let broken = |how: String| HostError::Broken { command: host.command.clone(), how };
        let said = host.said(&[], 0, &[], PATIENCE).map_err(|(_, how)| broken(how))?;
        let facts = said.lines().find_map(facts).ok_or_else(|| broken("no rank answered".to_owned()))?;
        let command = host.command.clone();
        match facts {
            Facts { nodes, .. } if nodes > 1 => Err(HostError::Nodes { command, nodes }),
            Facts { ranks, .. } if ranks < 2 => Err(HostError::Alone { command, ranks }),
            facts => {
                host.crowd = facts.ranks;
                host.facts = facts;
                Ok(host)
            }
        }
    }

    /// Starts the ranks once, and returns the times of their tasks, written `bcast:64`.
    pub fn launch(&self, tasks: &[String], window_ms: u32) -> Result<Vec<Line>, Failed> {
        self.launch_within(tasks, window_ms, &[], PATIENCE)
    }

    /// As [`Host::launch`], with these variables and for as long as `limit`.
    pub(super) fn launch_within(
        &self,
        tasks: &[String],
        window_ms: u32,
        variables: &[(String, String)],
        limit: Duration,
    ) -> Result<Vec<Line>, Failed> {
        match self.said(tasks, window_ms, variables, limit) {
            Ok(text) => Ok(lines(&text)),
            Err((text, how)) => Err(Failed { before: lines(&text), how }),
        }
    }

    /// Returns the directory of the program, which is removed with this value.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the settings for ranks that share CPUs.
    pub fn crowded(&self) -> &'static [(&'static str, &'static str)] {
        self.mpi.crowded(self.crowd, self.facts.cpus)
    }

    fn said(
        &self,
        tasks: &[String],
        window_ms: u32,
        variables: &[(String, String)],
        limit: Duration,
    ) -> Result<String, (String, String)> {
        let mut command = Command::new(&self.words[0]);
        self.mpi.environment(&mut command);
        for (name, value) in self.crowded() {
            command.env(name, value);
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.args(&self.words[1..]).arg(&self.program).arg(window_ms.to_string()).args(tasks);
        let Captured { out, ended, .. } = capture(&mut command, limit);
        match ended {
            Ok(()) => Ok(out),
            Err(how) => Err((out, how)),
        }
    }
}

/// Reads `mpi RANKS NODES CPUS VERSION`.
fn facts(line: &str) -> Option<Facts> {
    let mut words = line.strip_prefix("mpi ")?.splitn(4, ' ');
    let mut number = || words.next()?.parse().ok();
    let (ranks, nodes, cpus) = (number()?, number()?, number()?);
    Some(Facts { ranks, nodes, cpus, version: words.next()?.trim().to_owned() })
}

/// Returns the lines `task bytes ns ns ...` of a launch; other lines come from the launcher.
pub fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (task, bytes) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let times: Option<Vec<f64>> = words.map(|w| w.parse().ok()).collect();
        Some(Line { task, bytes, times: times.filter(|t| !t.is_empty())? })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_say_what_they_are() {
        let found = facts("mpi 4 1 2 Open MPI v5.0.11, package: x").unwrap();
        assert_eq!((found.ranks, found.nodes, found.cpus), (4, 1, 2));
        assert_eq!(found.version, "Open MPI v5.0.11, package: x");
        assert_eq!(facts("mpirun noticed that"), None);
        assert_eq!(facts("mpi 4"), None);
    }

    #[test]
    fn lines_of_launchers_are_passed_over() {
        let found =
            lines("WARNING: 3 things\nmpi 2 1 2 Open MPI\nbcast 8 10.0 12.5\nbarrier 0 3\nbcast 64\n");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].task.as_str(), found[0].bytes, found[0].times.len()), ("bcast", 8, 2));
    }

    #[test]
    fn launchers_that_are_none_are_refused() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(matches!(Host::start(&[], None), Err(HostError::NoMpi(_))));
        let error = Host::start(&words("no-such-mpirun -n 2"), None).unwrap_err().to_string();
        assert!(error.starts_with("no-such-mpirun is not to be found; give an MPI's launcher"), "{error}");
        let error =
            Host::start(&words("/bin/true -n 2"), Some(Path::new("/no/such"))).unwrap_err().to_string();
        assert!(error.contains("/no/such"), "{error}");
    }
}
