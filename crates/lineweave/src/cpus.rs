//! The CPUs that this process can really use: its affinity mask, its cpuset, and the CPU time that its
//! control groups grant.

use crate::affinity;
use crate::cgroup::{hierarchies, Hierarchy};
use crate::sysfile::{format_cpu_list, parse_cpu_list, Root};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The usable CPUs, and why these.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UsableCpus {
    /// The operating system's numbers, ascending; never empty.
    pub cpus: Vec<usize>,
    /// CPU time granted a unit of time, in CPUs: `cpu.max`'s quota / period, the smallest of all ancestors'.
    pub quota: Option<f64>,
    /// Number of ranks that can wait actively all the time without the group running out of CPU time: the CPUs, at
    /// most the quota rounded *down*, at least 1. Rounded up, 2 ranks spinning under 1.5 CPUs would use up
    /// each period's time after three quarters of it, and then *all* stand still until the next period,
    /// typically for 25 ms, a hundred thousand times a barrier's cost. Below one CPU that cannot be
    /// avoided, only shortened by sleeping early, so whoever waits should look at `quota` too.
    pub effective: usize,
    /// Sources that these values come from.
    pub sources: Vec<CpuSource>,
}

/// One thing that says which CPUs, or how much of them, a process may use.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum CpuSource {
    /// The scheduler's mask of this thread (`sched_setaffinity`, `taskset`).
    Affinity {
        /// CPUs in the mask.
        cpus: Vec<usize>,
    },
    /// The mask could not be read; the CPUs that are online stand in.
    Online {
        /// CPUs online.
        cpus: Vec<usize>,
        /// Reason why the mask is not known.
        because: String,
    },
    /// A control group's set of CPUs.
    Cpuset {
        /// File in which the set was read.
        file: PathBuf,
        /// CPUs in the set.
        cpus: Vec<usize>,
    },
    /// A control group's grant of CPU time.
    Quota {
        /// File in which the quota was read.
        file: PathBuf,
        /// CPU time a period, in microseconds.
        quota_us: u64,
        /// The period, in microseconds.
        period_us: u64,
    },
    /// Something that cannot be right and was left out.
    Ignored {
        /// File that is left out.
        file: PathBuf,
        /// Text in the file.
        found: String,
        /// Text that was expected.
        expected: String,
    },
}

impl fmt::Display for CpuSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuSource::Affinity { cpus } => write!(f, "affinity allows {}", format_cpu_list(cpus)),
            CpuSource::Online { cpus, because } => {
                write!(f, "online are {} (affinity unknown: {because})", format_cpu_list(cpus))
            }
            CpuSource::Cpuset { file, cpus } => {
                write!(f, "cpuset allows {} in {}", format_cpu_list(cpus), file.display())
            }
            CpuSource::Quota { file, quota_us, period_us } => {
                let cpus = *quota_us as f64 / *period_us as f64;
                write!(f, "{} = {quota_us}/{period_us} us: {cpus:.2} CPUs", file.display())
            }
            CpuSource::Ignored { file, found, expected } => {
                write!(f, "{} says `{found}` where {expected} was expected: ignored", file.display())
            }
        }
    }
}

impl UsableCpus {
    /// The usable CPUs of the calling thread.
    ///
    /// ```
    /// let usable = lineweave::cpus::UsableCpus::of_this_thread();
    /// println!("{} CPUs, {} of which can be busy at once: {}", usable.cpus.len(), usable.effective, usable.reasons());
    /// assert!(usable.effective <= usable.cpus.len());
    /// ```
    pub fn of_this_thread() -> UsableCpus {
        UsableCpus::read(&Root::live(), affinity::mask().map_err(|e| e.to_string()))
    }

    /// Returns those of these CPUs, which somebody else granted, that the control groups leave.
    pub fn among(cpus: &[usize]) -> UsableCpus {
        UsableCpus::read(&Root::live(), Ok(cpus.to_vec()))
    }

    /// The usable CPUs by the files below `root`, for a thread with this affinity mask (or the reason why it
    /// is not known).
    pub fn read(root: &Root, mask: Result<Vec<usize>, String>) -> UsableCpus {
        let mut sources = Vec::new();
        let mut cpus = match mask {
            Ok(cpus) if !cpus.is_empty() => {
                sources.push(CpuSource::Affinity { cpus: cpus.clone() });
                cpus
            }
            unknown => {
                let because = unknown.err().unwrap_or_else(|| "the mask is empty".to_owned());
                let cpus = online(root).unwrap_or_else(|| vec![0]);
                sources.push(CpuSource::Online { cpus: cpus.clone(), because });
                cpus
            }
        };
        for (file, set) in cpusets(root, &mut sources) {
            let both: Vec<usize> = cpus.iter().copied().filter(|c| set.contains(c)).collect();
            if both.is_empty() {
                // The kernel keeps masks within cpusets; files that deny it show another namespace's group.
                let expected = format!("a set that meets {}", format_cpu_list(&cpus));
                sources.push(CpuSource::Ignored { file, found: format_cpu_list(&set), expected });
            } else {
                cpus = both;
                sources.push(CpuSource::Cpuset { file, cpus: set });
            }
        }
        let quota = quotas(root, &mut sources);
        let effective = match quota {
            Some(quota) => cpus.len().min(quota as usize).max(1),
            None => cpus.len(),
        };
        UsableCpus { cpus, quota, effective, sources }
    }

    /// Returns the sources of these values, in one line.
    pub fn reasons(&self) -> String {
        self.sources.iter().map(CpuSource::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Returns advice for a person, where the CPUs are fewer or slower than they look.
    pub fn advice(&self) -> Option<String> {
        let quota = self.quota.filter(|&q| q < self.cpus.len() as f64)?;
        let many = format!("{quota:.2} CPUs of time on {} CPUs", self.cpus.len());
        Some(if quota < 1.0 {
            format!("{many}: even one busy rank is stopped in every period; expect pauses of milliseconds")
        } else {
            format!("{many}: more than {} busy ranks are stopped in every period", self.effective)
        })
    }
}

/// Returns the CPUs online by the kernel's list, if there is one.
pub(crate) fn online(root: &Root) -> Option<Vec<usize>> {
    root.read("/sys/devices/system/cpu/online")
        .and_then(|text| parse_cpu_list(&text).ok())
        .filter(|cpus| !cpus.is_empty())
}

/// The set of each hierarchy: the nearest directory that has the file decides, since it already lies within
/// its ancestors'.
fn cpusets(root: &Root, sources: &mut Vec<CpuSource>) -> Vec<(PathBuf, Vec<usize>)> {
    let mut sets = Vec::new();
    for Hierarchy { version, directories } in hierarchies(root, "cpuset") {
        let names: &[&str] = match version {
            2 => &["cpuset.cpus.effective"],
            _ => &["cpuset.effective_cpus", "cpuset.cpus"],
        };
        let file = directories.iter().flat_map(|d| names.iter().map(move |n| d.join(n)));
        let Some((file, text)) = file.filter_map(|f| Some((f.clone(), root.read(&f)?))).next() else {
            continue;
        };
        match parse_cpu_list(&text) {
            Ok(cpus) if !cpus.is_empty() => sets.push((file, cpus)),
            _ => sources.push(CpuSource::Ignored {
                file,
                found: text,
                expected: "a list of CPUs such as 0-3,8".to_owned(),
            }),
        }
    }
    sets
}

/// The smallest quota of all ancestors in both versions.
fn quotas(root: &Root, sources: &mut Vec<CpuSource>) -> Option<f64> {
    let mut least: Option<f64> = None;
    for Hierarchy { version, directories } in hierarchies(root, "cpu") {
        for directory in directories {
            let grant = match version {
                2 => quota_v2(root, &directory),
                _ => quota_v1(root, &directory),
            };
            match grant {
                Some(CpuSource::Quota { file, quota_us, period_us }) => {
                    let cpus = quota_us as f64 / period_us as f64;
                    least = Some(least.map_or(cpus, |l| l.min(cpus)));
                    sources.push(CpuSource::Quota { file, quota_us, period_us });
                }
                Some(other) => sources.push(other),
                None => {}
            }
        }
    }
    least
}

/// `cpu.max`: "quota period" in microseconds, or "max period". The root group has no such file.
fn quota_v2(root: &Root, directory: &Path) -> Option<CpuSource> {
    let file = directory.join("cpu.max");
    let text = root.read(&file)?;
    let (quota, period) = text.split_once(' ').unwrap_or((&text, "100000"));
    if quota == "max" {
        return None;
    }
    Some(match (quota.parse(), period.trim().parse()) {
        (Ok(quota_us), Ok(period_us)) if quota_us > 0 && period_us > 0 => {
            CpuSource::Quota { file, quota_us, period_us }
        }
        _ => CpuSource::Ignored { file, found: text, expected: "`quota period` or `max period`".to_owned() },
    })
}

/// `cpu.cfs_quota_us`, -1 for no limit, and `cpu.cfs_period_us`.
fn quota_v1(root: &Root, directory: &Path) -> Option<CpuSource> {
    let file = directory.join("cpu.cfs_quota_us");
    let text = root.read(&file)?;
    if text == "-1" {
        return None;
    }
    let period = root.number(directory.join("cpu.cfs_period_us")).unwrap_or(100_000);
    Some(match text.parse() {
        Ok(quota_us) if quota_us > 0 && period > 0 => CpuSource::Quota { file, quota_us, period_us: period },
        _ => CpuSource::Ignored { file, found: text, expected: "microseconds or -1".to_owned() },
    })
}

#[cfg(test)]
mod tests;
