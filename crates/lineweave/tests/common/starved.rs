//! The time that a process has lost to others, for limits of time on machines with other work.

use std::time::Duration;

/// Returns how long a process's first thread has waited for a CPU that others had; no time where the kernel does not count it.
pub fn starved(pid: u32) -> Duration {
    let told = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let ns = told.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()).unwrap_or(0);
    Duration::from_nanos(ns)
}
