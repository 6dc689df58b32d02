//! The matrix of mistakes: every kind of mistake, in a call by every algorithm of the table with every value of its parameters that changes
//! flags, counters, homes or layout, among 2 to 5 threads and processes. Nobody waits for ever, whoever has to be told is told, and in the
//! right words; no rank gets a byte that no rank gave, and the team's other communicators work on.
//!
//! A team has one algorithm for each collective (`settings::Forced`), and a communicator made from its own for each case, which the
//! mistake breaks. With each row each mistake is made among one number of ranks, by turns, of threads, of processes, and of processes that
//! copy out of each other's buffers: after a right call, at once or when all are done with it. Processes are this test, started again;
//! so it has no harness but prints what one would.
//!
//! `LINEWEAVE_TEST_ROWS=chosen` leaves out what is forced, and runs what the team itself chooses.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

mod case;
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/harness.rs"]
mod harness;
mod part;
mod plan;
mod rows;

use case::Case;
use lineweave::sync::{AtomicUsize, Ordering};
use lineweave::team::{self, Team, TeamConfig};
use lineweave_core::algorithm;
use part::part;
use plan::{Job, Reach};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

const JOB: &str = "MISTAKES_TEST_JOB";
/// Teams under way at once: most of a case's time is the few milliseconds after which a wait looks around.
const AT_ONCE: usize = 8;
/// Without a case for so long, the test itself hangs: some cases' patience, one after the other.
const STUCK: Duration = Duration::from_secs(600);

/// Cases that ended.
static DONE: AtomicUsize = AtomicUsize::new(0);

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        return rank(&job);
    }
    // Of one matrix, whichever of them is asked for; the second cannot run everywhere.
    harness::main(&[
        ("every_mistake_is_noticed_among_threads_and_processes", matrix),
        ("every_mistake_is_noticed_by_cross_memory_attach", matrix),
    ]);
}

fn matrix() {
    static RUN: Once = Once::new();
    RUN.call_once(every_mistake);
}

fn every_mistake() {
    let chosen = match std::env::var("LINEWEAVE_TEST_ROWS").as_deref() {
        Err(_) => false,
        Ok("chosen") => true,
        Ok(other) => panic!("LINEWEAVE_TEST_ROWS is `{other}`: expected `chosen`"),
    };
    std::thread::spawn(watch);
    let jobs = plan::jobs(chosen);
    let (next, cases) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                // Relaxed: a number that each thread gets once.
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let said = match job.reach {
                        Reach::Threads => threads(job),
                        Reach::Processes | Reach::Attach => processes(job),
                    };
                    // Relaxed: read when all threads have ended.
                    cases.fetch_add(said.as_ref().map_or(0, |_| job.cases.len()), Ordering::Relaxed);
                    let found = said.map_or(Vec::new(), |said| judge(job, &said));
                    problems.lock().expect("nobody panics with it").extend(found);
                }
            });
        }
    });
    let problems = problems.into_inner().expect("nobody panicked with it");
    let cases = cases.into_inner();
    println!("tally: mistakes caught {}", cases - problems.len());
    println!("tally: mistakes unnoticed {}", problems.len());
    problems.iter().take(20).for_each(|problem| println!("{problem}"));
    assert!(cases > 1000, "{cases} cases only");
    assert!(problems.is_empty(), "{} of {cases} cases are not as they should be", problems.len());
    let forced = jobs.iter().flat_map(|job| &job.settings.algorithms);
    let forced: HashSet<_> = forced.map(|f| (f.collective, &f.algorithm)).collect();
    assert!(chosen || forced.len() == algorithm::all().count(), "an algorithm has no row among 2 to 5 ranks");
}

/// Ends a test that does not go on.
fn watch() {
    let (mut done, mut since) = (0, Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(1));
        // Relaxed: a count to look at.
        let now = DONE.load(Ordering::Relaxed);
        if now != done {
            (done, since) = (now, Instant::now());
        }
        if since.elapsed() > STUCK {
            println!("no case has ended for {STUCK:?}, after {done}");
            std::process::exit(1);
        }
    }
}

/// What a rank says of the cases, up to one in which it waited in vain; `each` is told at once.
fn answers(home: &mut lineweave::Communicator, cases: &[Case], mut each: impl FnMut(&str)) {
    for case in cases {
        let said = part(home, case);
        each(&said);
        if said.starts_with(part::HANGS) {
            break;
        }
    }
}

/// A rank in a process of its own.
fn rank(job: &str) {
    let cases: Vec<Case> = job.lines().map(|line| line.parse().expect("a case")).collect();
    let mut home = team::from_environment().expect("a team");
    println!("{}", home.cross_memory());
    answers(&mut home, &cases, |said| println!("{}", said.replace('\n', " ")));
}

fn note_done() {
    // Relaxed: a count to look at.
    DONE.fetch_add(1, Ordering::Relaxed);
}

fn team(job: &Job) -> Team {
    Team::with(TeamConfig::new(job.ranks, &job.settings).expect("a configuration")).expect("a team")
}

fn threads(job: &Job) -> Option<Vec<Vec<String>>> {
    let ranks = team(job).threads(|mut home| {
        let mut said = Vec::new();
        answers(&mut home, &job.cases, |text| {
            said.push(text.to_owned());
            note_done();
        });
        Ok(said)
    });
    Some(ranks.unwrap_or_else(|e| panic!("{e}: {:?}", job.cases)))
}

/// Nothing where they cannot do what the case needs.
fn processes(job: &Job) -> Option<Vec<Vec<String>>> {
    let lines: Vec<String> = job.cases.iter().map(Case::to_string).collect();
    let told = tempfile::NamedTempFile::new().expect("a temporary file");
    let children = harness::start(&team(job), 1, |command| {
        command.env(JOB, lines.join("\n")).env(part::TOLD, told.path());
    });
    let said = children.into_iter().map(|mut child| -> (String, Vec<String>) {
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map(|line| line.expect("text")).inspect(|_| note_done());
        let said = (lines.next().unwrap_or_default(), lines.collect());
        child.wait().expect("a rank can be awaited");
        said
    });
    let (attach, said): (Vec<_>, Vec<_>) = said.unzip();
    if job.reach == Reach::Attach && attach.iter().any(|can| can == "false") {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| {
            println!("SKIPPED: mistakes among processes that attach: the kernel does not permit it")
        });
        return None;
    }
    Some(said)
}

/// The cases that are not as they should be, in words.
fn judge(job: &Job, said: &[Vec<String>]) -> Vec<String> {
    let cases = job.cases.iter().enumerate();
    let problems = cases.filter_map(|(i, case)| {
        let none = || format!("{} says nothing", part::ODD);
        let ended = |rank: usize| case.kind == case::Kind::Dies && rank == case.wrong;
        let of_rank = |(rank, said): (usize, &Vec<String>)| match said.get(i) {
            Some(text) => text.clone(),
            None if ended(rank) => "died".to_owned(),
            None => none(),
        };
        let said: Vec<String> = said.iter().enumerate().map(of_rank).collect();
        let forced = job.forced(case);
        case.unnoticed(&said)
            .map(|why| format!("{case} among {} ({:?}), by {forced}, {why}", job.ranks, job.reach))
    });
    problems.collect()
}
