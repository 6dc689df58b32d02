//! The teams as metrics in the text format of Prometheus, for the textfile collector of its node exporter.

use super::watch::Late;
use lineweave::segment::RankState;
use lineweave::who::{RankView, TeamView};
use std::fmt::Write;

/// A metric's name, kind and meaning, and what it is of a rank; nothing where it has no value.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&Seen<'_>) -> Option<f64>,
}

/// A rank of a team, as it was seen.
struct Seen<'a> {
    team: &'a TeamView,
    rank: usize,
    view: &'a RankView,
    /// Time for which others waited for it while it was watched.
    late_s: f64,
}

const METRICS: [Metric; 8] = [
    Metric {
        name: "lineweave_rank_calls_total",
        kind: "counter",
        help: "Collective calls that the rank has begun.",
        of: |seen| Some(seen.view.says.sequence as f64),
    },
    Metric {
        name: "lineweave_rank_waiting_seconds",
        kind: "gauge",
        help: "How long the rank has been waiting in the call that it is in.",
        of: |seen| Some(seen.view.waiting.map_or(0.0, |waiting| waiting.as_secs_f64())),
    },
    Metric {
        name: "lineweave_rank_waited_for",
        kind: "gauge",
        help: "Ranks that wait for this one now.",
        of: |seen| Some(waiters(seen.team, seen.rank) as f64),
    },
    Metric {
        name: "lineweave_rank_waited_for_seconds_total",
        kind: "counter",
        help: "For how long others waited for the rank while it was watched.",
        of: |seen| Some(seen.late_s),
    },
    Metric {
        name: "lineweave_rank_present",
        kind: "gauge",
        help: "1 while the rank's thread is there, 0 when it is gone.",
        of: |seen| {
            Some(f64::from(u8::from(seen.view.says.state == RankState::Active && seen.view.thread.is_some())))
        },
    },
    Metric {
        name: "lineweave_rank_plans",
        kind: "gauge",
        help: "Plans that the rank holds for its calls.",
        of: |seen| Some(seen.view.says.setup.plans as f64),
    },
    Metric {
        name: "lineweave_rank_plans_bytes",
        kind: "gauge",
        help: "Memory of these plans.",
        of: |seen| Some(seen.view.says.setup.plan_bytes as f64),
    },
    Metric {
        name: "lineweave_rank_planning_seconds_total",
        kind: "counter",
        help: "Time in which plans were chosen, proved and compiled.",
        of: |seen| Some(seen.view.says.setup.took.as_secs_f64()),
    },
];

/// Returns how many ranks of a team wait for this one.
pub fn waiters(team: &TeamView, rank: usize) -> usize {
    team.ranks.iter().filter(|view| view.waits_for.contains(&rank)).count()
}

/// Returns the text of all metrics. What is not told of a rank is left out, so that no value stands for another.
pub fn text(teams: &[TeamView], late: &Late) -> String {
    let mut text = String::new();
    let head = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    };
    head(&mut text, "lineweave_teams", "gauge", "Teams that run here.");
    let _ = writeln!(text, "lineweave_teams {}", teams.iter().filter(|team| team.at == 0).count());
    head(
        &mut text,
        "lineweave_team_memory_bytes",
        "gauge",
        "Memory that the team has in use, with all communicators made from it.",
    );
    for team in teams.iter().filter(|team| team.at == 0) {
        let _ = writeln!(text, "lineweave_team_memory_bytes{{team=\"{}\"}} {}", team.id, team.memory_bytes);
    }
    for metric in &METRICS {
        head(&mut text, metric.name, metric.kind, metric.help);
        for team in teams {
            for (rank, view) in team.ranks.iter().enumerate() {
                let seen = Seen { team, rank, view, late_s: late.seconds(team, rank) };
                if let Some(value) = (metric.of)(&seen) {
                    let (id, at, pid) = (team.id, team.at, view.says.pid);
                    let labels =
                        format!("team=\"{id}\",communicator=\"{at:#x}\",rank=\"{rank}\",pid=\"{pid}\"");
                    let _ = writeln!(text, "{}{{{labels}}} {value}", metric.name);
                }
            }
        }
    }
    text
}
