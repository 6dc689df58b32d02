//! OpenMP, POSIX threads and the MPI in the PATH, timed beside lineweave's own calls.

use crate::bench::peers::{Peers, Request};
use crate::bench::Team;
use crate::mpi::Host;
use lineweave_lab::reproduce::{By, Point, Task};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Launches of an MPI for each point, and the milliseconds of each.
const LAUNCHES: usize = 3;
const WINDOW_MS: u32 = 8;

/// Other libraries, built when they are first asked for.
#[derive(Default)]
pub struct Others {
    /// CPUs, in the order in which ranks take them.
    cpus: Vec<usize>,
    /// Sentences about those that have no times, and why.
    pub said: BTreeSet<String>,
    peers: Option<Peers>,
    /// MPIs by ranks; `None` where there is none.
    hosts: BTreeMap<usize, Option<Host>>,
}

impl Others {
    /// Returns other libraries on these CPUs.
    pub fn on(cpus: Vec<usize>) -> Others {
        Others { cpus, ..Others::default() }
    }

    /// Measures one point, or says why there is none.
    pub fn point(&mut self, task: &Task) -> Option<Point> {
        let times = match task.by {
            By::Mpi => self.mpi(task),
            _ => self.peer(task),
        };
        match times {
            Ok((times, disturbed)) => Point::of(task, &times, disturbed),
            Err(why) => {
                self.said.insert(format!("no times of {}: {why}", task.series));
                None
            }
        }
    }

    /// The fastest setting, timed anew: that it was chosen by its time does not flatter it.
    fn peer(&mut self, task: &Task) -> Result<(Vec<f64>, usize), String> {
        let peers = match &mut self.peers {
            Some(peers) => peers,
            None => self.peers.insert(Peers::build(&directory()).map_err(|e| e.to_string())?),
        };
        let request = Request {
            subject: task.spec.name.parse().map_err(|e| format!("{e}"))?,
            team: Team::Threads,
            ranks: task.ranks,
            bytes: 0,
            cpus: self.cpus.iter().copied().take(task.ranks).collect(),
            window: Duration::from_millis(u64::from(WINDOW_MS) * LAUNCHES as u64),
            min_batches: 16,
            max_batches: 300,
            precision: 0.01,
            variants: "all",
        };
        let found = peers.best(&request).and_then(|setting| peers.run(&request, &setting));
        found.map(|m| (m.batches_ns, m.disturbed)).map_err(|e| e.to_string())
    }

    /// From the arrival of the last rank to the leaving of the last, as `lineweave lab mpi` times it.
    fn mpi(&mut self, point: &Task) -> Result<(Vec<f64>, usize), String> {
        let words = ["mpirun".into(), "-n".into(), point.ranks.to_string().into()];
        let host = match self.hosts.get(&point.ranks) {
            Some(host) => host.as_ref(),
            None => {
                let host = Host::start(&words, None).map_err(|e| e.to_string());
                let kept = self.hosts.entry(point.ranks).or_insert(None);
                *kept = Some(host?);
                kept.as_ref()
            }
        };
        let host = host.ok_or_else(|| "mpirun did not start its ranks".to_owned())?;
        let tasks = [format!("{}:{}", point.collective, point.bytes)];
        let mut times = Vec::new();
        for _ in 0..LAUNCHES {
            let lines = host.launch(&tasks, WINDOW_MS).map_err(|failed| failed.how)?;
            times.extend(lines.into_iter().flat_map(|line| line.times));
        }
        self.said.insert(format!(
            "{}, {}: calls timed one at a time, from the arrival of the last rank to the leaving of the last",
            host.facts.version.split(',').next().unwrap_or_default(),
            host.command
        ));
        Ok((times, 0))
    }
}

/// The directory in which `lineweave bench` keeps its peers, too.
fn directory() -> std::path::PathBuf {
    lineweave::cache::directory().unwrap_or_else(|| std::env::temp_dir().join("lineweave")).join("peers")
}
