//! The files that results are kept in: `<directory>/<machine>/<date>.jsonl`; the first line describes the machine.

use super::load::Load;
use crate::error::CliError;
use crate::files::{make_room, replace};
use crate::node::NodeInfo;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The machine, the time and the version that a record was measured with. Printed as `record` by `lineweave bench`, first, and the first line of a
/// file in `bench/record/`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Provenance {
    /// Time of the measurement in UTC, as RFC 3339.
    pub measured_at: String,
    pub version: &'static str,
    /// The commit of the surrounding sources, with `+` where they were changed; `None` outside a repository.
    pub commit: Option<String>,
    pub cpu: String,
    /// Number of CPUs that could be used.
    pub cpus: usize,
    pub topology: String,
    /// The profile's name for this machine.
    pub fingerprint: String,
    pub kernel: String,
    /// The source of the costs that plans were chosen by.
    pub chosen_by: String,
    /// Loads that shared the CPUs (`--beside`), such as `spin:1`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Load>,
}

impl Provenance {
    /// Collects the provenance of a measurement that is made now, on this machine.
    pub fn gather(node: &NodeInfo, chosen_by: String) -> Provenance {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Provenance {
            measured_at: lineweave_tune::measure::utc::now(),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            cpu: node.fingerprint.cpu.clone(),
            cpus: node.fingerprint.cpus,
            topology: node.fingerprint.topology.clone(),
            fingerprint: node.fingerprint_id.clone(),
            kernel: release.trim().to_owned(),
            chosen_by,
            beside: Vec::new(),
        }
    }

    /// Records the loads that share the CPUs.
    pub fn beside(self, loads: &[Load]) -> Provenance {
        Provenance { beside: loads.to_vec(), ..self }
    }

    /// Returns the machine's name, as the name of a directory.
    pub fn machine(&self) -> String {
        let plain: String = self
            .cpu
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let words: Vec<&str> = plain.split('-').filter(|w| !w.is_empty()).collect();
        format!("{}-{}cpu", words.join("-"), self.cpus)
    }

    /// Returns the file of this record below a directory.
    pub fn file(&self, directory: &Path) -> PathBuf {
        directory.join(self.machine()).join(format!("{}.jsonl", self.measured_at.replace(':', "-")))
    }
}

/// Writes the lines of a record.
pub fn write(file: &Path, lines: &[String]) -> Result<(), CliError> {
    let error = |reason| CliError::Write { path: file.to_owned(), option: "--record", reason };
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(error)?;
    }
    replace(file, &(lines.join("\n") + "\n"), "--record")
}

/// Name of the file in which the machine's latest times are kept, beside its profile, for `lineweave report`.
pub const KEPT_FILE: &str = "bench.jsonl";

/// Replaces what is kept of this machine with the lines of a record: of calls that it did not measure the earlier times stay. Returns the file.
pub fn keep(node: &NodeInfo, lines: &[String]) -> Result<PathBuf, CliError> {
    let directory = lineweave::tuning::cache_directory(&node.fingerprint).ok_or(CliError::NoCache)?;
    let file = directory.join(KEPT_FILE);
    make_room(&file)?;
    let before = lineweave::cache::text(&file).ok().flatten().unwrap_or_default();
    replace(&file, &merged(&before, lines), "XDG_CACHE_HOME")?;
    Ok(file)
}

/// Returns the first line of a record, its times, and the earlier times of calls that it did not measure.
fn merged(before: &str, lines: &[String]) -> String {
    let timed = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_time = value["kind"].as_str().is_some_and(|kind| ["bench", "mpi-time"].contains(&kind));
        // What every line of one call has alike, whoever carried it out.
        let call = ["kind", "mpi", "collective", "ranks", "team", "bytes"].map(|key| value[key].to_string());
        is_time.then_some(call)
    };
    let new: BTreeSet<_> = lines.iter().filter_map(|line| timed(line)).collect();
    let stays = |line: &&str| timed(line).is_some_and(|of| !new.contains(&of));
    let fresh = lines.iter().enumerate().filter(|(at, line)| *at == 0 || timed(line).is_some());
    let all = fresh.map(|(_, line)| line.as_str()).chain(before.lines().filter(stays));
    all.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the commit of the surrounding repository, if there is one.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|t| !t.is_empty());
    Some(if changed { commit + "+" } else { commit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_directories_without_odd_characters() {
        let provenance = Provenance {
            measured_at: "2026-01-02T03:04:05Z".into(),
            version: "1",
            commit: None,
            cpu: "Intel(R) Xeon(R) Gold 6242 CPU @ 2.80GHz".into(),
            cpus: 2,
            topology: String::new(),
            fingerprint: String::new(),
            kernel: String::new(),
            chosen_by: String::new(),
            beside: Vec::new(),
        };
        let file = provenance.file(Path::new("r"));
        let expected = "r/intel-r-xeon-r-gold-6242-cpu-2-80ghz-2cpu/2026-01-02T03-04-05Z.jsonl";
        assert_eq!(file, Path::new(expected));
    }

    #[test]
    fn times_are_kept_until_the_same_is_measured_again() {
        let bench = |collective: &str, ns: u32| {
            format!(r#"{{"kind":"bench","collective":"{collective}","median_ns":{ns}}}"#)
        };
        let head = |version: u32| format!(r#"{{"kind":"record","version":"{version}"}}"#);
        let before = merged(
            "",
            &[head(1), bench("bcast", 1), bench("barrier", 2), r#"{"kind":"guideline"}"#.to_owned()],
        );
        assert_eq!(before, [head(1), bench("bcast", 1), bench("barrier", 2), String::new()].join("\n"));
        let after = merged(&before, &[head(2), bench("bcast", 3)]);
        assert_eq!(after, [head(2), bench("bcast", 3), bench("barrier", 2), String::new()].join("\n"));
        let longer = bench("bcast", 5).replace('}', r#","bytes":64}"#);
        let wider = merged(&after, &[head(3), longer.clone()]);
        assert!(
            wider.contains(&longer) && wider.contains(&bench("bcast", 3)),
            "another length is another call: {wider}"
        );
        let of_mpi = bench("bcast", 4).replace("bench", "mpi-time");
        let both = merged(&after, &[head(3), of_mpi.clone()]);
        assert_eq!(both, [head(3), of_mpi, bench("bcast", 3), bench("barrier", 2), String::new()].join("\n"));
    }
}
