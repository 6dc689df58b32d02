//! Processes: the conformance cases, rendezvous at a socket, and peers that die. The test starts itself once a
//! rank, so it has no harness but prints what one would.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

#[path = "../common/mod.rs"]
mod common;

#[path = "../common/children.rs"]
mod children;
#[path = "../common/harness.rs"]
mod harness;
#[path = "../common/started.rs"]
mod started;
#[path = "../common/starved.rs"]
mod starved;

mod lost;
mod part;

use harness::finish;
use lineweave::team::{self, Host, Team, TeamConfig};
use lineweave::Error;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

const JOB: &str = "PROCESSES_TEST_JOB";
const SOCKET: &str = "PROCESSES_TEST_SOCKET";

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(part::rank(&job));
    }
    harness::main(&[
        ("every_algorithm_delivers_between_processes", || conformance("algorithms", &[1, 2, 3, 4, 8])),
        ("every_type_and_operator_is_right_between_processes", || conformance("types", &[2, 5])),
        ("wide_elements_and_own_operators_are_right_between_processes", || conformance("wide", &[2, 3, 5])),
        ("messages_arrive_between_processes", || conformance("messages", &[2, 3, 5])),
        ("reproducible_sums_have_the_bits_of_threads", reproducible_sums_have_the_bits_of_threads),
        ("blocks_and_scans_are_right_between_processes", || conformance("blocks", &[1, 2, 3, 5, 8])),
        ("lengths_of_one_class_are_right_between_processes", || conformance("lengths", &[2, 3, 5])),
        ("calls_follow_each_other_in_any_order_between_processes", || conformance("mixed", &[2, 3, 8])),
        ("threads_of_several_processes_form_a_team", threads_of_several_processes_form_a_team),
        ("shared_buffers_are_used_between_processes", shared_buffers_are_used_between_processes),
        ("every_kind_of_communicator_is_right_between_processes", || {
            conformance("children", &[1, 2, 3, 5, 8])
        }),
        ("started_calls_are_right_between_processes", || conformance("started", &[1, 2, 3, 5, 8])),
        ("a_rank_killed_in_a_split_is_named", lost::a_rank_killed_in_a_split_is_named),
        ("a_rank_killed_that_takes_no_message_is_named", lost::a_rank_killed_that_takes_no_message_is_named),
        ("nothing_is_left_of_a_team_that_is_killed", lost::nothing_is_left_of_a_team_that_is_killed),
        ("ranks_meet_at_a_socket", ranks_meet_at_a_socket),
        ("a_rank_of_another_user_is_refused", a_rank_of_another_user_is_refused),
        ("different_counts_are_named", lost::different_counts_are_named),
        ("nothing_is_left_behind", harness::nothing_is_left_behind),
    ]);
}

/// Starts one process a rank, each to do `job`.
fn start(ranks: usize, job: &str) -> Vec<Child> {
    let team = Team::with(TeamConfig::from_environment(ranks).expect("a configuration")).expect("a team");
    start_in(&team, job)
}

fn start_in(team: &Team, job: &str) -> Vec<Child> {
    harness::start(team, 1, |command| {
        command.env(JOB, job);
    })
}

/// Waits until every rank is about to do what its job goes on with: it says so in a line of its own.
fn ready(children: &mut [Child]) {
    for child in children {
        let out = child.stdout.as_mut().expect("its lines come here");
        // Byte by byte: what follows is for whoever awaits it.
        let line = BufReader::with_capacity(1, out).lines().next();
        assert_eq!(line.and_then(Result::ok).as_deref(), Some(part::READY));
    }
}

fn conformance(job: &str, sizes: &[usize]) {
    let mut cases = 0;
    for &ranks in sizes {
        let texts = finish(start(ranks, job), job);
        let counts: Vec<usize> = texts.iter().map(|t| t.parse().expect("a rank prints its cases")).collect();
        assert!(counts.windows(2).all(|w| w[0] == w[1]), "ranks ran different cases: {counts:?}");
        cases += counts[0];
    }
    assert!(cases > 100, "{cases} cases only");
    println!("tally: conformance cases ({job}, processes) {cases}");
}

/// Ranks that are threads of processes: what each thread prints is one line of its process.
fn threads_of_several_processes_form_a_team() {
    for (ranks, threads) in [(6, 3), (5, 2), (4, 4)] {
        let team = Team::with(TeamConfig::from_environment(ranks).expect("a configuration")).expect("a team");
        let children = harness::start(&team, threads, |command| {
            command.env(JOB, "several");
        });
        assert_eq!(children.len(), ranks.div_ceil(threads));
        for text in finish(children, "threads of several processes") {
            assert!(text.starts_with("done "), "{text}");
        }
    }
}

fn shared_buffers_are_used_between_processes() {
    conformance("shared plans", &[2, 3, 5]);
    conformance("shared", &[1, 2, 3, 4]);
    conformance("shared around", &[2]);
    conformance("shared uneven", &[2, 3, 4]);
    // Every process chooses and proves for itself.
    conformance("shared few", &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
}

fn reproducible_sums_have_the_bits_of_threads() {
    for ranks in [3, 5] {
        let threads = team::threads(ranks, |mut comm| part::sums(&mut comm)).expect("threads agree");
        assert_eq!(finish(start(ranks, "sums"), "sums"), threads, "{ranks} ranks");
    }
}

fn ranks_meet_at_a_socket() {
    let name = format!("@lineweave-test-{}", std::process::id());
    let host = Host::bind(&name).expect("an abstract name is free");
    let team = Team::with(TeamConfig::from_environment(3).expect("a configuration")).expect("a team");
    let rank = |_| harness::again().env(JOB, "socket").env(SOCKET, &name).spawn().expect("a rank starts");
    let children: Vec<Child> = (0..3).map(rank).collect();
    host.serve(&team, &[]).expect("three ranks come");
    let mut ranks = finish(children, "ranks at a socket");
    ranks.sort();
    assert_eq!(ranks, ["0 of 3", "1 of 3", "2 of 3"]);
    assert!(matches!(team::connect("@lineweave-test-nobody", None), Err(Error::System { .. })));
}

/// Only root can start processes of others, and they must be able to run this program.
fn a_rank_of_another_user_is_refused() {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: a rank of another user: only root can start one");
    }
    let name = format!("@lineweave-test-user-{}", std::process::id());
    let host = Host::bind(&name).expect("an abstract name is free");
    let team = Team::with(TeamConfig::from_environment(1).expect("a configuration")).expect("a team");
    let mut command = harness::again();
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    let started = command.env(JOB, "socket").env(SOCKET, &name).spawn();
    let child = match started {
        Ok(child) => child,
        Err(e) => return println!("SKIPPED: a rank of another user: it cannot run this program: {e}"),
    };
    host.serve_while(&team, &[], Duration::from_secs(2), &mut || Ok(())).expect("refusing is no error");
    let output = child.wait_with_output().expect("it ends by itself");
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = format!("the peer runs as user 0 and this rank as {NOBODY}");
    assert!(!output.status.success() && said.contains(&wanted), "it said `{said}`");
}
