//! For whom a wait lasted, in words.

use super::FailureDetector;
use crate::error::of_team;
use crate::process;
use std::time::Duration;

/// Time for which a rank that does not wait is looked at. The kernel counts CPU time in ticks, of 10 ms at most.
const LOOKED_AT: Duration = Duration::from_millis(50);

impl FailureDetector {
    /// Returns the ranks that this rank waits for, each with its process and what keeps that: first those that have not entered this call; else
    /// those within it that the system keeps from running; else those within it that do not wait themselves.
    pub(super) fn missing(&self) -> String {
        let mine = self.sequence(self.rank);
        let others: Vec<usize> = (0..self.segment.ranks()).filter(|&q| q != self.rank).collect();
        let named = |q: usize, how: String| {
            format!("rank {q} ({}pid {}, {how})", of_team(q, self.segment.in_team(q)), self.segment.pid(q))
        };
        // Threads of this process run, or this one would not.
        let is_other = |q: usize| self.segment.pid(q) != std::process::id();
        let kept = |q: usize| process::kept_from_running(self.segment.pid(q)).filter(|_| is_other(q));
        let late = others.iter().filter(|&&q| self.sequence(q) < mine).map(|&q| {
            let kept = kept(q).map(|how| format!(", {how}")).unwrap_or_default();
            named(q, format!("at call {}{kept}", self.sequence(q)))
        });
        let late: Vec<String> = late.collect();
        if !late.is_empty() {
            return late.join(", ");
        }
        let within: Vec<String> = others
            .iter()
            .filter_map(|&q| Some(named(q, format!("within this call, {}", kept(q)?))))
            .collect();
        if !within.is_empty() {
            return within.join(", ");
        }
        let busy: Vec<usize> = others.into_iter().filter(|&q| !self.segment.is_noted(q)).collect();
        if busy.is_empty() {
            return "ranks that are all within this call, and all wait".to_owned();
        }
        let used = |q: &usize| process::cpu_time(self.segment.pid(*q));
        let before: Vec<Option<u64>> = busy.iter().map(used).collect();
        std::thread::park_timeout(LOOKED_AT);
        let said = busy.iter().zip(before).map(|(&q, before)| {
            let idle = is_other(q) && before.is_some() && used(&q) == before;
            let time = if idle { ", and has had no CPU time for 0.05 s" } else { "" };
            named(q, format!("within this call or behind it, does not wait{time}"))
        });
        said.collect::<Vec<_>>().join(", ")
    }
}
