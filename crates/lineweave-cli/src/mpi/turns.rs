//! Launches that are there at once and measure in turns: jobs, each with settings of its own (`bench/mpi/turns.h`).
//!
//! Launches that follow each other differ by more than settings do: the same call of the same library can take three times as long a minute later. A batch of
//! one job follows a batch of another one within a millisecond.

use super::{Failed, Host, Line};
use crate::script::Variables;
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The time limit of all jobs.
const PATIENCE: Duration = Duration::from_secs(400);
/// The most jobs that `turns.h` has words for.
pub const MOST_JOBS: usize = 60;
/// Offsets of its words in bytes: whether jobs are to stop, the number of the job that has the turn, from 1 on, and the turns that jobs were given.
const STOP: u64 = 0;
const HOLDER: u64 = 4;
const GIVEN: u64 = 16;

/// A task at one length, and the jobs that take part in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    pub task: String,
    pub jobs: Vec<usize>,
}

/// A job that did not end well.
#[derive(Clone, PartialEq, Debug)]
pub struct FailedJob {
    pub job: usize,
    pub failed: Failed,
}

/// Returns the arguments that are the same for all jobs.
pub(super) fn words(cases: &[Case]) -> Vec<String> {
    let list = |jobs: &[usize]| jobs.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    cases.iter().flat_map(|case| [format!("jobs:{}", list(&case.jobs)), case.task.clone()]).collect()
}

impl Host {
    /// Starts the ranks once with each of these settings, and returns the times of all. The tasks of a job have its number behind them, `bcast~1`, but
    /// for those of the first one.
    pub fn launch_in_turns(
        &self,
        jobs: &[Variables],
        cases: &[Case],
        window_ms: u32,
    ) -> Result<Vec<Line>, FailedJob> {
        let failed = |job, how| FailedJob { job, failed: Failed { before: Vec::new(), how } };
        let (path, file) = self.turns_file(jobs.len(), cases).map_err(|e| failed(0, e.to_string()))?;
        let (began, (ended, ends)) = (Instant::now(), mpsc::channel());
        let words = words(cases);
        let mut lines = Vec::new();
        let (mut culprit, mut failures) = (None, BTreeMap::new());
        std::thread::scope(|scope| {
            for (job, variables) in jobs.iter().enumerate() {
                let (ended, words, path) = (ended.clone(), &words, path.display());
                let tasks: Vec<String> = std::iter::once(format!("turns:{path}:{job}:{}", jobs.len()))
                    .chain(words.iter().cloned())
                    .collect();
                scope.spawn(move || {
                    let _ = ended.send((job, self.launch_within(&tasks, window_ms, variables, PATIENCE)));
                });
            }
            drop(ended);
            for (job, result) in ends {
                match result {
                    Ok(all) => lines.extend(all.into_iter().map(|line| of_job(line, job))),
                    Err(failed) => {
                        // Where time ran out, it is the one that had the turn. The others end by themselves.
                        let holder = || holder(&file).filter(|_| began.elapsed() >= PATIENCE).unwrap_or(job);
                        culprit = culprit.or_else(|| Some(holder()));
                        let _ = file.write_all_at(&1_u32.to_ne_bytes(), STOP);
                        failures.insert(job, failed);
                    }
                }
            }
        });
        let _ = std::fs::remove_file(&path);
        let Some(job) = culprit else { return Ok(lines) };
        let found = failures.remove(&job).map(|failed| FailedJob { job, failed });
        Err(found.unwrap_or_else(|| failed(job, "it did not end".to_owned())))
    }

    /// Makes the file in which jobs give each other turns.
    fn turns_file(&self, jobs: usize, cases: &[Case]) -> std::io::Result<(PathBuf, File)> {
        let path = self.directory().join("turns");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        file.set_len(GIVEN + 4 * MOST_JOBS as u64)?;
        let first = cases.iter().find_map(|case| case.jobs.first()).filter(|first| **first < jobs);
        // Jobs that find it unlocked end: this process is gone.
        let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        let at = GIVEN + 4 * *first.unwrap_or(&0) as u64;
        file.write_all_at(&1_u32.to_ne_bytes(), at)?;
        Ok((path, file))
    }
}

/// Returns the job that has the turn.
fn holder(file: &File) -> Option<usize> {
    let mut word = [0; 4];
    file.read_exact_at(&mut word, HOLDER).ok()?;
    (u32::from_ne_bytes(word) as usize).checked_sub(1)
}

fn of_job(line: Line, job: usize) -> Line {
    match job {
        0 => line,
        _ => Line { task: format!("{}~{job}", line.task), ..line },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_says_who_takes_part_in_it() {
        let case = |task: &str, jobs: &[usize]| Case { task: task.into(), jobs: jobs.to_vec() };
        let cases = [case("bcast:8", &[0, 2]), case("barrier:0", &[0])];
        assert_eq!(words(&cases), ["jobs:0,2", "bcast:8", "jobs:0", "barrier:0"]);
    }

    #[test]
    fn lines_are_those_of_their_job() {
        let line = || Line { task: "bcast".into(), bytes: 8, times: vec![1.0] };
        assert_eq!((of_job(line(), 0).task, of_job(line(), 3).task), ("bcast".into(), "bcast~3".into()));
    }
}
