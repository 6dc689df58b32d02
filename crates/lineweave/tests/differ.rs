//! Ranks that call different things, without comparing calls first: what they are told names both, or is right. Nobody waits for
//! ever, and nobody gets a byte that no rank gave to the call. As threads, and as processes, for which the test starts itself once a
//! rank; so it has no harness but prints what one would.
//!
//! `LINEWEAVE_TEST_DIFFER` says how many times each case runs, once if it is not set.

use lineweave::settings::Settings;
use lineweave::team::{self, Charter, Team};
use lineweave::{Communicator, Error, Operator};
use std::process::{Command, Stdio};
use std::time::Duration;

const JOB: &str = "DIFFER_TEST_JOB";
/// Only a hang lasts so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// What ranks other than the first call, and the first.
const KINDS: [&str; 10] = [
    "bcast",
    "allreduce",
    "in-place",
    "reduce",
    "allgather",
    "gather",
    "scatter",
    "alltoall",
    "root",
    "collective",
];

/// Lengths at the first rank and at the others: in a flag's line, a slot, several windows, and read where they lie.
const LENGTHS: [(usize, usize); 8] = [
    (8, 16),
    (64, 8),
    (8, 1 << 20),
    (1 << 20, 8),
    (40_000, 20_000),
    (20_000, 40_000),
    (1_000_000, 4_000_000),
    (4_000_000, 1_000_000),
];

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        let (kind, n) = job.split_once(' ').expect("kind and length");
        let mut comm = team::from_environment().expect("a team");
        println!("{}", part(&mut comm, kind, n.parse().expect("a length")));
        return;
    }
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let times: usize = std::env::var("LINEWEAVE_TEST_DIFFER").map_or(1, |v| v.parse().expect("a number"));
    let tests: [(&str, fn()); 2] =
        [("threads_are_told", threads_are_told), ("processes_are_told", processes_are_told)];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        (0..times).for_each(|_| test());
        println!("test {name} ... ok");
    }
    println!("tally: calls that differ {}", 2 * times * KINDS.len() * LENGTHS.len());
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", tests.len());
}

fn charter(ranks: usize) -> Charter {
    let settings = Settings { check: false, timeout: Some(PATIENCE), ..Settings::default() };
    Charter::new(ranks, &settings).expect("a charter")
}

fn cases() -> impl Iterator<Item = (&'static str, usize, usize, usize)> {
    let lengths = |kind| {
        move |(i, (a, b))| (kind, 2 + i % 2, a, if kind == "root" || kind == "collective" { a } else { b })
    };
    KINDS.iter().flat_map(move |&kind| LENGTHS.into_iter().enumerate().map(lengths(kind)))
}

fn threads_are_told() {
    for (kind, ranks, first, others) in cases() {
        let team = Team::with(charter(ranks)).expect("a team");
        let said = team.threads(|mut comm| {
            let n = if comm.rank() == 0 { first } else { others };
            Ok(part(&mut comm, kind, n))
        });
        judge(kind, first, others, &said.expect("ranks return"));
    }
}

fn processes_are_told() {
    let program = std::env::current_exe().expect("this program has a path");
    for (kind, ranks, first, others) in cases() {
        let team = Team::with(charter(ranks)).expect("a team");
        let command = |rank: usize| {
            let n = if rank == 0 { first } else { others };
            let mut command = Command::new(&program);
            command.env(JOB, format!("{kind} {n}")).stdout(Stdio::piped());
            command
        };
        let children = team.spawn(command).expect("ranks start");
        let said = children.into_iter().map(|child| {
            let output = child.wait_with_output().expect("a rank can be awaited");
            assert!(output.status.success(), "{kind} {first} {others}: {}", output.status);
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        });
        judge(kind, first, others, &said.collect::<Vec<_>>());
    }
}

/// Some rank is told that calls differ, and no rank waited in vain or got what nobody gave.
fn judge(kind: &str, first: usize, others: usize, said: &[String]) {
    let case = format!("{kind} of {first} at rank 0 and {others} elsewhere: {said:#?}");
    assert!(said.iter().any(|text| text.contains("differs between ranks")), "{case}");
    for text in said {
        let told =
            text.contains("differs between ranks") || text.contains("failed") || text.contains(" left ");
        assert!(told || text == "fine", "{case}");
    }
}

/// One rank's part: what it is told, or whether what it got was given by some rank.
fn part(comm: &mut Communicator, kind: &str, n: usize) -> String {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    // Before and after it: what lies beside a buffer is not to be seen or written.
    let beside = [0x5Au8; 64];
    // Ranks have run ahead of each other before, and boxes hold what an earlier call left there.
    let before = comm.bcast(&mut vec![0x77u8; 1 << 16], 0).and_then(|()| comm.barrier());
    if let Err(error) = before {
        return format!("before: {error}");
    }
    let mine = rank as u8 + 1;
    let (mut buffer, mut all) = (vec![mine; n], vec![mine; n * ranks]);
    let mut out = vec![mine; n];
    let outcome = match kind {
        "bcast" => comm.bcast(&mut buffer, 0),
        "allreduce" => comm.allreduce(&buffer, &mut out, Operator::Max),
        "in-place" => comm.allreduce_in_place(&mut buffer, Operator::Max),
        "reduce" => comm.reduce(&buffer, &mut out, Operator::Max, 0),
        "allgather" => comm.allgather(&buffer, &mut all),
        "gather" => comm.gather(&buffer, &mut all, 0),
        "scatter" => comm.scatter(&vec![mine; n * ranks], &mut out, 0),
        "alltoall" => comm.alltoall(&vec![mine; n * ranks], &mut all),
        "root" => comm.bcast(&mut buffer, rank),
        _ if rank == 0 => comm.bcast(&mut buffer, 0),
        _ => comm.allreduce_in_place(&mut buffer, Operator::Max),
    };
    // A root may be done before anybody else comes: who goes on learns of it in the next call.
    let outcome = outcome.and_then(|()| comm.barrier());
    let given = |&byte: &u8| byte >= 1 && usize::from(byte) <= ranks;
    if beside.iter().any(|&byte| byte != 0x5A) {
        return "written beside a buffer".to_owned();
    }
    match outcome {
        Ok(()) if buffer.iter().chain(&all).chain(&out).all(given) => "fine".to_owned(),
        Ok(()) => "got what nobody gave".to_owned(),
        Err(error @ Error::Timeout { .. }) => format!("hangs: {error}"),
        Err(error) => error.to_string(),
    }
}
