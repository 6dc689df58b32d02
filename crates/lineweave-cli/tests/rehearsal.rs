//! A rehearsal: plans that would be chosen on machines of 128 to 512 CPUs run here, with a rank for each CPU of such a machine.
//!
//! The machines were measured by their users. The test makes the library take this machine for one of them, as a user could: by
//! `LINEWEAVE_TOPOLOGY`, and by `LINEWEAVE_PROFILE` with the output of `lineweave profile adopt`. Results, memory, descriptors and the naming of a
//! killed rank are those of such a team; times are of this machine, where ranks wait for a CPU. Only one machine of 128 CPUs is rehearsed unless all
//! are asked for:
//!
//! ```sh
//! LINEWEAVE_TEST_REHEARSAL=1 cargo test --release --locked -p lineweave-cli --test rehearsal -- --nocapture
//! ```
//!
//! `LINEWEAVE_TEST_REHEARSAL=dual-epyc-9754` rehearses that machine only.
//!
//! Ranks are processes that the test starts, so it has no harness but prints what a harness would.

#[allow(dead_code)]
#[path = "../../lineweave/tests/common/mod.rs"]
mod common;

use lineweave::settings::Settings;
use lineweave::team::{self, Team, TeamConfig};
use lineweave::topology::{Hardware, Source};
use lineweave::{Communicator, Error, Operator};
use lineweave_cli::load_machine;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Machines with a rank for each CPU, the smallest first.
const MACHINES: [&str; 3] = ["epyc-9754", "dual-epyc-9654", "dual-epyc-9754"];
/// The variable that tells a rank when the first process of the team was started.
const STARTED: &str = "REHEARSAL_TEST_STARTED";
/// Target for the memory of a rank in the median: its share of the shared memory, and its own. Teams of up to [`FEW`] ranks fail beyond twice that,
/// which shows memory that grows with the team where only 128 ranks run, on a machine with another allocator.
const MEMORY: usize = 4 << 20;
/// Seconds within which all ranks must name a killed rank.
const NAMED: f64 = 1.0;
/// Most ranks for which memory and naming are checked against bounds in every run.
const FEW: usize = 256;
/// Number of cases of each rank.
const CASES: usize = 30;

fn main() {
    if let Ok(started) = std::env::var(STARTED) {
        return rank(Duration::from_secs_f64(started.parse().expect("a time")));
    }
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let asked = std::env::var("LINEWEAVE_TEST_REHEARSAL").ok();
    let named = MACHINES.iter().position(|&name| asked.as_deref() == Some(name));
    let all = asked.is_some();
    let machines = match named {
        Some(at) => &MACHINES[at..=at],
        None if all => &MACHINES[..],
        None => &MACHINES[..1],
    };
    let mut missed = Vec::new();
    for name in machines {
        let told = Told::of(name);
        let config = told.config();
        let ranks = config.ranks();
        threads(&config);
        println!("test {ranks} ranks of {name} as threads ... ok");
        missed.extend(processes(&config, &told));
        println!("test {ranks} ranks of {name} as processes ... ok");
    }
    assert!(missed.is_empty() || !all, "what is asked for was missed: {}", missed.join("; "));
    println!("test result: ok. {} passed; 0 failed", 2 * machines.len());
}

/// The settings that make the library take this machine for another one.
struct Told {
    topology: String,
    /// The file of costs in a folder of its own, with the trees of that machine beside it.
    costs: PathBuf,
}

impl Told {
    fn of(name: &str) -> Told {
        let machine = load_machine(name).expect("a shipped machine");
        let folder = std::env::temp_dir().join(format!("lineweave-rehearsal-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let costs = folder.join("costs.json");
        let adopt = Command::new(env!("CARGO_BIN_EXE_lineweave"))
            .args(["profile", "adopt", name, "-o"])
            .arg(&costs)
            .output()
            .expect("the command");
        assert!(adopt.status.success(), "{}", String::from_utf8_lossy(&adopt.stderr));
        Told { topology: machine.topology.value.expect("its topology"), costs }
    }

    /// Returns the configuration with a rank for each CPU.
    fn config(&self) -> TeamConfig {
        let settings = Settings {
            topology: Source::parse(&self.topology),
            profile: Some(self.costs.clone()),
            keep_plans: false,
            ..Settings::default()
        };
        let ranks = Hardware::load(&settings.topology).expect("a topology").topology.cpus.len();
        let config = TeamConfig::new(ranks, &settings).expect("a configuration");
        let trees = config.tuning.choices.as_ref().map_or(0, |choices| choices.choices.len());
        println!("{trees} choices are trees of the matrix");
        assert!(trees > 0 && !config.bind);
        config
    }

    /// Returns the output of a command about this machine, and about the running team.
    fn said(&self, command: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_lineweave"))
            .arg(command)
            .env("LINEWEAVE_TOPOLOGY", &self.topology)
            .env("LINEWEAVE_PROFILE", &self.costs)
            .output()
            .expect("the command");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.costs.parent().map(std::fs::remove_dir_all);
    }
}

/// Calls every collective, each in several ways, in the plans that are chosen for so many ranks; returns the number of cases.
fn calls(comm: &mut Communicator) -> common::Outcome {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut cases = 0;
    for count in [1, 1000] {
        let mine: Vec<u64> = (0..count).map(|i| (rank * count + i) as u64).collect();
        let sums: Vec<u64> = (0..count).map(|i| (0..ranks).map(|r| (r * count + i) as u64).sum()).collect();
        let mut message = if rank == ranks - 1 { sums.clone() } else { vec![0; count] };
        comm.bcast(&mut message, ranks - 1).map_err(common::say)?;
        let mut all = vec![0; count];
        comm.allreduce(&mine, &mut all, Operator::Sum).map_err(common::say)?;
        let mut one = vec![0; if rank == ranks / 2 { count } else { 0 }];
        comm.reduce(&mine, &mut one, Operator::Sum, ranks / 2).map_err(common::say)?;
        for (what, found) in [("bcast", &message), ("allreduce", &all), ("reduce", &one)] {
            if !found.is_empty() && *found != sums {
                return Err(format!("{what} of {count}: rank {rank} of {ranks} has {:?} first", found[0]));
            }
        }
        cases += 3;
    }
    Ok(cases + common::calls::blocks_and_scans(comm, &[1])?)
}

fn threads(config: &TeamConfig) {
    let (ranks, start) = (config.ranks(), Instant::now());
    let outcomes = Team::with(config.clone()).expect("memory").threads(|mut comm| {
        comm.barrier()?;
        let met = start.elapsed();
        Ok((met, calls(&mut comm)))
    });
    let outcomes = outcomes.expect("a team of threads");
    let met = outcomes.iter().map(|(met, _)| *met).max().unwrap_or_default();
    let cases: usize = outcomes.into_iter().map(|(_, cases)| cases.expect("right results")).sum();
    println!("{ranks} threads: first barrier after {met:.2?}, all calls after {:.1?}", start.elapsed());
    println!("tally: conformance cases (rehearsal, threads) {cases}");
    assert_eq!(cases, CASES * ranks);
}

/// The report of a rank after its calls were right.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    joined: f64,
    met: f64,
    called: f64,
    cases: usize,
    /// Bytes of its own memory, its share of the team's, the part of that which it has mapped, and its descriptors.
    own_bytes: usize,
    shared_bytes: usize,
    mapped_bytes: usize,
    descriptors: usize,
}

/// The report of a rank after another was killed.
#[derive(Debug, Serialize, Deserialize)]
struct Named {
    rank: usize,
    at: f64,
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock")
}

fn say(what: &impl Serialize) {
    let mut out = std::io::stdout().lock();
    let text = serde_json::to_string(what).expect("numbers");
    // A test that failed no longer reads the pipe.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Returns the resident bytes of this process alone (`RssAnon:`), or those that it shares (`RssShmem:`), without programs and files.
fn resident_bytes(of: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with(of)).expect("such a line");
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number");
    kib << 10
}

fn rank(started: Duration) {
    let since = || (now() - started).as_secs_f64();
    let mut comm = team::from_environment().expect("a team");
    let joined = since();
    comm.barrier().expect("a barrier");
    let met = since();
    let cases = calls(&mut comm).expect("right results");
    let said = Said {
        joined,
        met,
        called: since(),
        cases,
        own_bytes: resident_bytes("RssAnon:"),
        mapped_bytes: resident_bytes("RssShmem:"),
        shared_bytes: comm.memory().shared_bytes / comm.ranks(),
        descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
    };
    say(&said);
    loop {
        match comm.barrier() {
            Ok(()) => {}
            Err(Error::PeerLost { rank, .. }) => return say(&Named { rank, at: now().as_secs_f64() }),
            Err(other) => return eprintln!("{other}"),
        }
    }
}

/// Returns one line that a rank has written.
fn heard<T: for<'a> Deserialize<'a>>(rank: usize, from: &mut impl BufRead) -> T {
    let mut line = String::new();
    from.read_line(&mut line).expect("a pipe");
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("rank {rank} said `{line}`: {e}"))
}

/// The ranks, which are killed if the test fails.
struct Ranks(Vec<Child>);

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // The process may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the ranks as processes, and returns the requirements that were missed.
fn processes(config: &TeamConfig, told: &Told) -> Vec<String> {
    let ranks = config.ranks();
    let team = Team::with(config.clone()).expect("memory");
    let program = std::env::current_exe().expect("this program");
    let started = now().as_secs_f64().to_string();
    let command = |_| {
        let mut command = Command::new(&program);
        command.env(STARTED, &started).stdout(Stdio::piped());
        command
    };
    let mut children = Ranks(team.spawn(command).expect("processes"));
    let mut outs: Vec<_> =
        children.0.iter_mut().map(|child| BufReader::new(child.stdout.take().expect("a pipe"))).collect();
    let said: Vec<Said> = outs.iter_mut().enumerate().map(|(rank, out)| heard(rank, out)).collect();
    let most = |of: fn(&Said) -> f64| said.iter().map(of).fold(0.0, f64::max);
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let mut bytes: Vec<usize> = said.iter().map(|s| s.own_bytes + s.shared_bytes).collect();
    bytes.sort_unstable();
    let median = bytes[ranks / 2];
    println!(
        "{ranks} processes: joined after {:.2} s, first barrier after {:.2} s, all calls after {:.1} s; {:.2} MiB a rank in the median, {:.2} on average, \
         {:.1} in one that chose; {:.1} MiB of all mapped in one; {} descriptors",
        most(|s| s.joined),
        most(|s| s.met),
        most(|s| s.called),
        mib(median as f64),
        mib(bytes.iter().sum::<usize>() as f64 / ranks as f64),
        mib(bytes[ranks - 1] as f64),
        mib(most(|s| s.mapped_bytes as f64)),
        most(|s| s.descriptors as f64)
    );
    let cases = said.iter().map(|s| s.cases).sum::<usize>();
    println!("tally: conformance cases (rehearsal, processes) {cases}");
    assert_eq!(cases, CASES * ranks);
    assert!(ranks > FEW || median <= 2 * MEMORY, "a rank takes {median} bytes");
    let mut missed = Vec::new();
    if median > MEMORY {
        missed.push(format!(
            "{:.2} MiB a rank among {ranks}, {:.0} asked",
            mib(median as f64),
            mib(MEMORY as f64)
        ));
    }
    let seen = told.said("who");
    assert!(
        seen.contains(&format!("{ranks} ranks")),
        "who says `{}`",
        seen.lines().next().unwrap_or_default()
    );
    let found = told.said("doctor");
    let name = &config.tuning.model.machine.cpu;
    // Other runs on this machine may lose ranks of their own, which is reported first.
    let teams = ["running, and memory ends with the last process", "PROBLEM  teams left behind"];
    assert!(teams.iter().any(|part| found.contains(part)), "doctor says nothing of teams: {found}");
    let part = format!("profile: costs of {name}");
    assert!(found.contains(&part), "`{part}` is not in what doctor says: {found}");
    let victim = ranks / 2;
    let killed = now().as_secs_f64();
    children.0[victim].kill().expect("a rank can be killed");
    let (mut first, mut latest) = (f64::MAX, 0.0f64);
    for (rank, out) in outs.iter_mut().enumerate().filter(|(rank, _)| *rank != victim) {
        let named: Named = heard(rank, out);
        assert_eq!(named.rank, victim, "rank {rank} named another");
        (first, latest) = (first.min(named.at - killed), latest.max(named.at - killed));
    }
    println!("{ranks} processes: a killed rank was named by the first after {first:.2} s, by all within {latest:.2} s");
    assert!(ranks > FEW || latest < NAMED, "a killed rank was named after {latest:.2} s");
    if latest >= NAMED {
        missed.push(format!("a killed rank named after {latest:.2} s among {ranks}, {NAMED} asked"));
    }
    for (child, mut out) in children.0.iter_mut().zip(outs) {
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("a pipe");
        assert!(rest.is_empty(), "{rest}");
        child.wait().expect("an end");
    }
    missed
}
