//! Ranks that die or call something else: what the others are told, and what is left.

use crate::harness::{finish, nothing_is_left_behind};
use crate::starved::starved;
use crate::{ready, start, start_in};
use lineweave::settings::Settings;
use lineweave::team::{Team, TeamConfig};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::Child;
use std::time::{Duration, Instant};

/// A rank that was killed: when, its process, and how long each rank had waited for a CPU by then.
struct Killed {
    at: Instant,
    pid: u32,
    starved: Vec<Duration>,
}

impl Killed {
    fn one(children: &mut [Child], victim: usize) -> Killed {
        let starved = children.iter().map(|child| starved(child.id())).collect();
        let killed = Killed { at: Instant::now(), pid: children[victim].id(), starved };
        children[victim].kill().expect("a rank can be killed");
        killed
    }

    /// Returns what a rank said until it ended, within a second in which it did not wait for a CPU that others had.
    fn heard_by(&self, rank: usize, mut child: Child) -> String {
        let mut said = String::new();
        let mut output = child.stdout.take().expect("its words come here");
        output.read_to_string(&mut said).expect("a rank's words");
        let waited = self.at.elapsed();
        let noticed = waited.saturating_sub(starved(child.id()).saturating_sub(self.starved[rank]));
        child.wait().expect("a rank can be awaited");
        assert!(
            noticed < Duration::from_secs(1),
            "rank {rank} noticed after {waited:?}, {noticed:?} of them not spent waiting for a CPU: {said}"
        );
        said
    }
}

/// One rank dies while the others wait for it to take a message, and for a message of one that waits so.
pub fn a_rank_killed_that_takes_no_message_is_named() {
    let mut children = start(3, "sending");
    ready(&mut children);
    let killed = Killed::one(&mut children, 1);
    for (rank, child) in children.into_iter().enumerate() {
        let text = killed.heard_by(rank, child);
        let named = text.contains(&format!("rank 1 (pid {}) died", killed.pid));
        assert!(rank == 1 || named, "rank {rank} said `{text}`");
    }
}

/// Every rank is killed amid calls, in its team and in communicators made from it: no process has their memory after that.
pub fn nothing_is_left_of_a_team_that_is_killed() {
    let team = Team::with(TeamConfig::from_environment(3).expect("a configuration")).expect("a team");
    let mut children = start_in(&team, "splitting");
    drop(team);
    ready(&mut children);
    let links = |pid: u32, of: &str| -> Vec<String> {
        let entries = std::fs::read_dir(format!("/proc/{pid}/{of}"));
        let paths = entries.into_iter().flatten().flatten().map(|e| e.path());
        paths.filter_map(|p| Some(std::fs::metadata(p).ok()?.ino().to_string())).collect()
    };
    let seen = lineweave::who::teams(Some(children[0].id())).expect("a child can be looked at");
    let memory = seen.first().expect("a rank has its team's memory").id.to_string();
    assert!(links(children[0].id(), "fd").contains(&memory));
    children.iter_mut().for_each(|child| child.kill().expect("a rank can be killed"));
    for mut child in children {
        child.wait().expect("a rank can be awaited");
    }
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    for pid in processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()) {
        assert!(!links(pid, "fd").contains(&memory), "process {pid} has a descriptor of it");
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let ours = |line: &str| line.contains("memfd:lineweave") && line.contains(&format!(" {memory} "));
        assert!(!maps.lines().any(ours), "process {pid} has it mapped");
    }
    nothing_is_left_behind();
}

pub fn a_rank_killed_in_a_split_is_named() {
    let mut children = start(4, "splitting");
    ready(&mut children);
    let killed = Killed::one(&mut children, 2);
    let mut named = false;
    for (rank, child) in children.into_iter().enumerate() {
        let text = killed.heard_by(rank, child);
        if rank == 2 {
            continue;
        }
        named |= text.contains(&format!("(pid {}) died", killed.pid));
        // Who was in the part without rank 2 may hear first that its neighbours gave up because of that.
        assert!(text.contains(") died") || text.contains(") left"), "rank {rank} said `{text}`");
    }
    assert!(named, "nobody named the process that died");
}

pub fn different_counts_are_named() {
    let (mut settings, _) = Settings::from_environment().expect("settings");
    settings.check = true;
    let config = TeamConfig::new(3, &settings).expect("a configuration");
    let children = start_in(&Team::with(config).expect("a team"), "mismatch");
    for text in finish(children, "calls that differ") {
        assert!(
            text.contains("rank 2 called allreduce(9 x f32, sum)")
                || text.contains("rank 0 called allreduce(8 x f32, sum)"),
            "{text}"
        );
    }
}
