//! Rounds that are kept while an MPI is measured, so that a run that was interrupted goes on where it stopped. Where ranks are many, what is kept is a part of a
//! round: the jobs that were there at once.
//!
//! Each order has a file of its own: its launcher and library, its effort, and the program that ranks run. Each is found by what it was asked for, and
//! counts once. Those that failed are not kept: they end soon. The file is removed when all is measured.

use super::runs::Effort;
use super::turns::{words, Case, FailedJob};
use super::{Host, Line};
use crate::bench::installed::HEADERS;
use crate::files::{make_room, replace_bytes};
use crate::script::Variables;
use lineweave::cache;
use lineweave_core::units::fnv1a;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Beginnings of the names of an MPI's settings.
const SETTINGS: [&str; 8] = ["FI_", "I_MPI_", "MPICH_", "MPIR_", "OMPI_", "PMIX_", "PRTE_", "UCX_"];

/// Jobs that ended well.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    tasks: Vec<String>,
    variables: Variables,
    lines: Vec<Line>,
}

/// The rounds of an order.
#[derive(Debug, Default)]
pub struct Journal {
    /// Nothing where there is no cache, or where it cannot be written.
    file: Option<PathBuf>,
    /// All rounds so far, as lines of JSON.
    text: String,
    /// Rounds of an interrupted run that were not asked for yet.
    kept: Vec<Entry>,
}

impl Journal {
    /// Opens the file of an order, which may not be there.
    pub fn of(host: &Host, effort: &Effort) -> Journal {
        let library = host.mpi.library().display().to_string();
        let mut settings: Vec<String> = std::env::vars_os()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .filter(|setting| SETTINGS.iter().any(|begins| setting.starts_with(begins)))
            .collect();
        settings.sort_unstable();
        let name =
            format!("{} {library} {:?} {} {effort:?} {settings:?}", host.command, host.facts, host.crowd);
        let headers = HEADERS.iter().flat_map(|(_, text)| text.bytes());
        let name = fnv1a(name.bytes().chain(super::host::PROGRAM.bytes()).chain(headers));
        match cache::directory() {
            Some(cache) => Journal::open(cache.join("launches").join(format!("{name:016x}.jsonl"))),
            None => Journal::default(),
        }
    }

    fn open(file: PathBuf) -> Journal {
        let text = lineweave::sysfile::text(&file).unwrap_or_default();
        let entries = text.lines().filter_map(|line| Some((line, serde_json::from_str(line).ok()?)));
        let (lines, kept): (Vec<&str>, Vec<Entry>) = entries.unzip();
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        Journal { file: Some(file), text, kept }
    }

    /// Returns the file, if rounds are kept.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the number of rounds of an interrupted run that were not asked for yet.
    pub fn left(&self) -> usize {
        self.kept.len()
    }

    /// Returns the times of a kept launch of jobs, or launches these and keeps the times.
    pub fn launch_in_turns(
        &mut self,
        host: &Host,
        jobs: &[Variables],
        cases: &[Case],
        window_ms: u32,
    ) -> Result<Vec<Line>, FailedJob> {
        let tasks = words(cases);
        let name = |job: usize, name: &str| format!("{job}:{name}");
        let all = jobs.iter().enumerate();
        let variables: Variables = all
            .flat_map(|(job, set)| set.iter().map(move |(n, value)| (name(job, n), value.clone())))
            .collect();
        if let Some(lines) = self.recall(&tasks, &variables) {
            return Ok(lines);
        }
        let lines = host.launch_in_turns(jobs, cases, window_ms)?;
        self.add(&Entry { tasks, variables, lines: lines.clone() });
        Ok(lines)
    }

    fn recall(&mut self, tasks: &[String], variables: &[(String, String)]) -> Option<Vec<Line>> {
        let at = self.kept.iter().position(|e| e.tasks == tasks && e.variables == variables)?;
        Some(self.kept.remove(at).lines)
    }

    fn add(&mut self, entry: &Entry) {
        let (Some(file), Ok(line)) = (&self.file, serde_json::to_string(entry)) else { return };
        self.text += &line;
        self.text.push('\n');
        if make_room(file).and_then(|()| replace_bytes(file, self.text.as_bytes(), "XDG_CACHE_HOME")).is_err()
        {
            self.file = None;
        }
    }

    /// Removes the file: all is measured.
    pub fn end(self) {
        if let Some(file) = self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_an_interrupted_run_are_found_once_each() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("launches/one.jsonl");
        let entry = |task: &str, ns: f64| {
            let line = Line { task: task.into(), bytes: 8, times: vec![ns] };
            let variables = vec![("A".to_owned(), task.to_owned())];
            Entry { tasks: vec![task.to_owned()], variables, lines: vec![line] }
        };
        let mut journal = Journal::open(file.clone());
        assert_eq!(journal.left(), 0);
        for (task, ns) in [("bcast:8", 1.5), ("reduce:8", 3.0), ("bcast:8", 2.5)] {
            journal.add(&entry(task, ns));
        }
        // A run that was killed while it wrote, or another version's file.
        std::fs::write(&file, std::fs::read_to_string(&file).unwrap() + "{\"tasks\":[").unwrap();
        let mut journal = Journal::open(file.clone());
        assert_eq!(journal.left(), 3);
        let mut recall = |task: &str, value: &str| {
            let lines = journal.recall(&[task.to_owned()], &[("A".to_owned(), value.to_owned())]);
            lines.map(|lines| lines[0].times[0])
        };
        assert_eq!(recall("bcast:8", "bcast:8"), Some(1.5));
        assert_eq!(recall("bcast:8", "another"), None);
        assert_eq!(recall("bcast:8", "bcast:8"), Some(2.5));
        assert_eq!(recall("bcast:8", "bcast:8"), None);
        journal.add(&entry("scan:8", 4.0));
        assert_eq!((journal.left(), Journal::open(file.clone()).left()), (1, 4));
        journal.end();
        assert!(!file.exists());
    }
}
