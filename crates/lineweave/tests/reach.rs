//! Cross-memory attach: processes that copy out of each other's memory, that may not, and that die meanwhile. The test starts
//! itself once a process, so it has no harness but prints what one would.

// Messages are run in tests/threads/messages.rs.
#[allow(dead_code)]
#[path = "common/mod.rs"]
mod common;
#[path = "common/harness.rs"]
mod harness;

use lineweave::settings::{Attach, Settings};
use lineweave::team::{self, Team, TeamConfig};
use lineweave::{CallSpec, Communicator, ElementType, Operator};
use lineweave_core::collective::Collective;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

const JOB: &str = "REACH_TEST_JOB";

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(ranks(&job));
    }
    harness::main(&[
        ("plans_reach_other_processes", || if_permitted(plans_reach_other_processes)),
        ("calls_are_right_with_cross_memory_attach", || {
            if_permitted(calls_are_right_with_cross_memory_attach)
        }),
        ("a_team_that_may_not_does_without", || if_permitted(a_team_that_may_not_does_without)),
        ("a_rank_killed_while_its_memory_is_read_is_named", || {
            if_permitted(a_rank_killed_while_its_memory_is_read_is_named)
        }),
    ]);
}

fn start(ranks: usize, threads: usize, attach: Attach, job: &str) -> Vec<Child> {
    let settings = Settings { attach, ..Settings::default() };
    let team = Team::with(TeamConfig::new(ranks, &settings).expect("a configuration")).expect("a team");
    harness::start(&team, threads, |command| {
        command.env(JOB, job);
    })
}

fn said(children: Vec<Child>) -> Vec<String> {
    harness::finish(children, "cross-memory attach")
}

fn if_permitted(test: fn()) {
    match said(start(2, 1, Attach::On, "able")) == ["true", "true"] {
        true => test(),
        false => println!("SKIPPED: process_vm_readv between processes is not permitted here"),
    }
}

fn plans_reach_other_processes() {
    for (ranks, threads) in [(2, 1), (3, 1), (5, 2)] {
        said(start(ranks, threads, Attach::On, "plans"));
    }
}

fn calls_are_right_with_cross_memory_attach() {
    for (ranks, threads) in [(2, 1), (3, 1), (4, 2)] {
        said(start(ranks, threads, Attach::On, "calls"));
    }
}

fn a_team_that_may_not_does_without() {
    assert_eq!(said(start(2, 1, Attach::Off, "able")), ["false", "false"]);
    // One rank's memory is shut: nobody reaches into anybody's.
    assert_eq!(said(start(3, 1, Attach::On, "shut")), ["false", "false", "false"]);
    assert_eq!(said(start(2, 2, Attach::On, "able")), ["false"], "threads of one process need no attach");
}

fn a_rank_killed_while_its_memory_is_read_is_named() {
    for victim in 0..2 {
        let mut children = start(2, 1, Attach::On, "endless");
        for child in &mut children {
            // Each says when it is past its first calls. Byte by byte: what follows is for whoever awaits it.
            let out = child.stdout.as_mut().expect("its lines come here");
            assert!(BufReader::with_capacity(1, out).lines().next().is_some(), "it ended before");
        }
        let (killed, pid) = (Instant::now(), children[victim].id());
        children[victim].kill().expect("a rank can be killed");
        let texts: Vec<String> = children
            .into_iter()
            .map(|c| String::from_utf8_lossy(&c.wait_with_output().expect("it ends").stdout).into_owned())
            .collect();
        let (text, waited) = (&texts[1 - victim], killed.elapsed());
        assert!(text.contains(&format!("rank {victim} (pid {pid}) died")), "it said `{text}`");
        assert!(waited < Duration::from_secs(1), "noticed after {waited:?}");
    }
}

/// What a process's threads do, each a rank; they say one thing.
fn ranks(job: &str) -> i32 {
    if job == "shut" && std::env::var(team::RANK_VARIABLE).is_ok_and(|r| r == "1") {
        // No process but an administrator's may read this one's memory now; and an administrator's is told another number.
        let undumpable = rustix::process::DumpableBehavior::NotDumpable;
        let _ = rustix::process::set_dumpable_behavior(undumpable);
    }
    let members = team::members_from_environment().expect("ranks of this process");
    let one = |rank: usize| {
        let mut comm = members.join(rank).map_err(|e| e.to_string())?;
        work(job, &mut comm)
    };
    let one = &one;
    let outcomes: Vec<Result<String, String>> = std::thread::scope(|scope| {
        let handles: Vec<_> = members.mine().map(|rank| scope.spawn(move || one(rank))).collect();
        handles.into_iter().map(|handle| handle.join().expect("no rank panics")).collect()
    });
    let failed = outcomes.iter().any(Result::is_err);
    match outcomes.into_iter().next() {
        Some(Ok(text) | Err(text)) => println!("{text}"),
        None => println!("no ranks"),
    }
    i32::from(failed)
}

fn work(job: &str, comm: &mut Communicator) -> Result<String, String> {
    let say = common::say;
    match job {
        "able" => Ok(comm.cross_memory().to_string()),
        "shut" => {
            let reached = comm.cross_memory();
            comm.barrier().map_err(say)?;
            // An administrator reads it all the same.
            let shut = !reached || rustix::process::geteuid().is_root();
            Ok((!shut).to_string())
        }
        "plans" => Ok(common::algorithms(comm, &[0, 1, 13, 9001], true)?.to_string()),
        "calls" => {
            let call = CallSpec {
                collective: Collective::Bcast,
                element: ElementType::U8,
                count: 1 << 20,
                operator: None,
                root: 0,
            };
            if !comm.question(&call).direct || comm.question(&CallSpec { count: 1000, ..call }).direct {
                return Err("long messages are to be reached, and short ones not".into());
            }
            let cases = common::shared::calls(comm, &[5000, 20_001, (1 << 18) + 1], false)?;
            let blocks = common::calls::blocks_and_scans(comm, &[30_000])?;
            let uneven = common::calls::uneven(comm, &[9999])?;
            let wide = common::calls::wide(comm, &[2000])?;
            Ok((cases + blocks + uneven + wide).to_string())
        }
        "endless" => {
            let mut field = vec![1.0f64; 1 << 20];
            let mut all = vec![0.0f64; 1 << 20];
            for turn in 0.. {
                let ended =
                    comm.bcast(&mut field, 0).and_then(|()| comm.allreduce(&field, &mut all, Operator::Max));
                if let Err(e) = ended {
                    return Ok(e.to_string());
                }
                if turn == 1 {
                    println!("under way");
                }
            }
            Ok(String::new())
        }
        other => Err(format!("no job {other}")),
    }
}
