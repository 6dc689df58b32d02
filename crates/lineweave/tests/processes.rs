//! Processes: the conformance cases, rendezvous at a socket, and peers that die. The test starts itself once a
//! rank, so it has no harness but prints what one would.

#[path = "common/mod.rs"]
mod common;

#[path = "common/children.rs"]
mod children;
#[path = "common/started.rs"]
mod started;

use lineweave::settings::Settings;
use lineweave::team::{self, Charter, Host, Team};
use lineweave::{Communicator, Error, Operator};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const JOB: &str = "PROCESSES_TEST_JOB";
const SOCKET: &str = "PROCESSES_TEST_SOCKET";

fn main() {
    if let Ok(job) = std::env::var(JOB) {
        std::process::exit(rank(&job));
    }
    // What `cargo test -- --list` and filters expect of a test binary without a harness.
    if std::env::args().any(|a| a == "--list") {
        return;
    }
    let tests: &[(&str, fn())] = &[
        ("every_algorithm_delivers_between_processes", || conformance("algorithms", &[1, 2, 3, 4, 8])),
        ("every_type_and_operator_is_right_between_processes", || conformance("types", &[2, 5])),
        ("wide_elements_and_own_operators_are_right_between_processes", || conformance("wide", &[2, 3, 5])),
        ("messages_arrive_between_processes", || conformance("messages", &[2, 3, 5])),
        ("reproducible_sums_have_the_bits_of_threads", reproducible_sums_have_the_bits_of_threads),
        ("blocks_and_scans_are_right_between_processes", || conformance("blocks", &[1, 2, 3, 5, 8])),
        ("calls_follow_each_other_in_any_order_between_processes", || conformance("mixed", &[2, 3, 8])),
        ("threads_of_several_processes_form_a_team", threads_of_several_processes_form_a_team),
        ("shared_buffers_are_used_between_processes", shared_buffers_are_used_between_processes),
        ("every_kind_of_communicator_is_right_between_processes", || {
            conformance("children", &[1, 2, 3, 5, 8])
        }),
        ("started_calls_are_right_between_processes", || conformance("started", &[1, 2, 3, 5, 8])),
        (
            "a_rank_killed_while_calls_are_under_way_is_named",
            a_rank_killed_while_calls_are_under_way_is_named,
        ),
        ("a_rank_killed_in_a_split_is_named", a_rank_killed_in_a_split_is_named),
        ("a_rank_killed_among_messages_and_flags_is_named", a_rank_killed_among_messages_and_flags_is_named),
        ("nothing_is_left_of_a_team_that_is_killed", nothing_is_left_of_a_team_that_is_killed),
        ("ranks_meet_at_a_socket", ranks_meet_at_a_socket),
        ("a_rank_of_another_user_is_refused", a_rank_of_another_user_is_refused),
        ("a_killed_rank_is_named_within_a_second", a_killed_rank_is_named),
        ("an_early_exit_is_named", an_early_exit_is_named),
        ("different_counts_are_named", different_counts_are_named),
        ("nothing_is_left_behind", nothing_is_left_behind),
    ];
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests.iter().filter(|(name, _)| name.contains(&wanted)) {
        test();
        println!("test {name} ... ok");
    }
    println!("\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", tests.len());
}

/// Starts one process a rank, each to do `job`.
fn start(ranks: usize, job: &str) -> Vec<Child> {
    let team = Team::with(Charter::from_environment(ranks).expect("a charter")).expect("a team");
    start_in(&team, job)
}

fn start_in(team: &Team, job: &str) -> Vec<Child> {
    let program = std::env::current_exe().expect("this program has a path");
    let command = |_| {
        let mut command = Command::new(&program);
        command.env(JOB, job).stdout(Stdio::piped());
        command
    };
    team.spawn(command).expect("ranks start")
}

/// What each rank printed; all must have ended well.
fn finish(children: Vec<Child>) -> Vec<String> {
    let outputs = children.into_iter().map(|c| c.wait_with_output().expect("a rank can be awaited"));
    let texts: Vec<_> = outputs
        .map(|o| {
            let text = String::from_utf8_lossy(&o.stdout).trim().to_owned();
            assert!(o.status.success(), "a rank ended with {}: {text}", o.status);
            text
        })
        .collect();
    texts
}

fn conformance(job: &str, sizes: &[usize]) {
    let mut cases = 0;
    for &ranks in sizes {
        let texts = finish(start(ranks, job));
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
        let team = Team::with(Charter::from_environment(ranks).expect("a charter")).expect("a team");
        let program = std::env::current_exe().expect("this program has a path");
        let command = |_| {
            let mut command = Command::new(&program);
            command.env(JOB, "several").stdout(Stdio::piped());
            command
        };
        let children = team.spawn_mixed(threads, command).expect("processes start");
        assert_eq!(children.len(), ranks.div_ceil(threads));
        for text in finish(children) {
            assert!(text.starts_with("done "), "{text}");
        }
    }
}

/// The process's threads, each a rank.
fn several() -> i32 {
    let members = team::members_from_environment().expect("ranks of this process");
    let mine = members.mine();
    let beyond = members.join(mine.end).expect_err("another process's, or nobody's").to_string();
    assert!(beyond.contains("it belongs to another process") || beyond.contains("no such rank"), "{beyond}");
    let work = &|rank: usize| -> Result<usize, String> {
        let mut comm = members.join(rank).map_err(|e| e.to_string())?;
        let done = common::mixed(&mut comm, 60)? + common::shared::calls(&mut comm, &[1, 9001])?;
        // The threads of a process are a communicator of threads.
        let here = mine.clone().collect::<Vec<_>>();
        let mut part = comm.create_group(&here).map_err(|e| e.to_string())?;
        let again = common::algorithms(&mut part, &[13, 3001], true)?;
        comm.barrier().map_err(|e| e.to_string())?;
        Ok(done + again)
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = mine.clone().map(|rank| scope.spawn(move || work(rank))).collect();
        handles.into_iter().map(|handle| handle.join().expect("no rank panics")).collect()
    });
    match outcomes.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(counts) => {
            println!("done {counts:?}");
            0
        }
        Err(why) => {
            println!("{why}");
            1
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

/// The bits of ill-conditioned sums, through every folding collective.
fn sums(comm: &mut Communicator) -> Result<String, Error> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    comm.set_reproducible(true);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for n in [1, 70, 30_000] {
        let part = |i: usize| [1e16, -1e16, 3.0, 1e8][(rank + i) % 4] + (rank * 7 + i % 11) as f64 + 0.1;
        let input: Vec<f64> = (0..n).map(part).collect();
        let (mut all, mut upto, mut own) = (vec![0.0; n], vec![0.0; n], vec![0.0; n / ranks]);
        comm.allreduce(&input, &mut all, Operator::Sum)?;
        comm.scan(&input, &mut upto, Operator::Sum)?;
        comm.reduce_scatter_block(&input[..n / ranks * ranks], &mut own, Operator::Sum)?;
        for word in all.iter().chain(&upto).chain(&own) {
            hash = (hash ^ word.to_bits()).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{hash:016x}"))
}

fn reproducible_sums_have_the_bits_of_threads() {
    for ranks in [3, 5] {
        let threads = team::threads(ranks, |mut comm| sums(&mut comm)).expect("threads agree");
        assert_eq!(finish(start(ranks, "sums")), threads, "{ranks} ranks");
    }
}

fn ranks_meet_at_a_socket() {
    let name = format!("@lineweave-test-{}", std::process::id());
    let host = Host::bind(&name).expect("an abstract name is free");
    let team = Team::with(Charter::from_environment(3).expect("a charter")).expect("a team");
    let program = std::env::current_exe().expect("this program has a path");
    let children: Vec<Child> = (0..3)
        .map(|_| {
            let mut command = Command::new(&program);
            command.env(JOB, "socket").env(SOCKET, &name).stdout(Stdio::piped());
            command.spawn().expect("a rank starts")
        })
        .collect();
    host.serve(&team, &[]).expect("three ranks come");
    let mut ranks = finish(children);
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
    let team = Team::with(Charter::from_environment(1).expect("a charter")).expect("a team");
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    let started = command.env(JOB, "socket").env(SOCKET, &name).stdout(Stdio::piped()).spawn();
    let child = match started {
        Ok(child) => child,
        Err(e) => return println!("SKIPPED: a rank of another user: it cannot run this program: {e}"),
    };
    host.serve_within(&team, &[], Duration::from_secs(2)).expect("refusing is no error");
    let output = child.wait_with_output().expect("it ends by itself");
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = format!("the peer runs as user 0 and this rank as {NOBODY}");
    assert!(!output.status.success() && said.contains(&wanted), "it said `{said}`");
}

fn a_killed_rank_is_named() {
    for victim in 0..3 {
        let mut children = start(3, "endless");
        std::thread::sleep(Duration::from_millis(300));
        let killed = Instant::now();
        children[victim].kill().expect("a rank can be killed");
        let pid = children[victim].id();
        for (rank, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().expect("a rank can be awaited");
            if rank != victim {
                let text = String::from_utf8_lossy(&output.stdout);
                let waited = killed.elapsed();
                assert!(text.contains(&format!("rank {victim} (pid {pid})")), "rank {rank} said `{text}`");
                assert!(waited < Duration::from_secs(1), "rank {rank} noticed after {waited:?}");
            }
        }
    }
}

fn a_rank_killed_while_calls_are_under_way_is_named() {
    for job in ["waiting", "testing"] {
        let mut children = start(3, job);
        std::thread::sleep(Duration::from_millis(300));
        let (killed, pid) = (Instant::now(), children[1].id());
        children[1].kill().expect("a rank can be killed");
        for (rank, child) in children.into_iter().enumerate().filter(|(rank, _)| *rank != 1) {
            let output = child.wait_with_output().expect("a rank can be awaited");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("rank 1 (pid {pid})")), "{job}: rank {rank} said `{text}`");
            let waited = killed.elapsed();
            assert!(waited < Duration::from_secs(1), "{job}: rank {rank} noticed after {waited:?}");
        }
    }
}

/// One rank dies while the others wait for a message of it, for one that passes it, to take one, and for a flag.
fn a_rank_killed_among_messages_and_flags_is_named() {
    for job in ["exchanging", "sending", "flagging"] {
        let mut children = start(3, job);
        std::thread::sleep(Duration::from_millis(300));
        let (killed, pid) = (Instant::now(), children[1].id());
        children[1].kill().expect("a rank can be killed");
        for (rank, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().expect("a rank can be awaited");
            let text = String::from_utf8_lossy(&output.stdout);
            let waited = killed.elapsed();
            if rank != 1 {
                assert!(
                    text.contains(&format!("rank 1 (pid {pid}) died")),
                    "{job}: rank {rank} said `{text}`"
                );
                assert!(waited < Duration::from_secs(1), "{job}: rank {rank} noticed after {waited:?}");
            }
        }
    }
}

/// Every rank is killed amid calls, in its team and in communicators made from it: no process has their memory after that.
fn nothing_is_left_of_a_team_that_is_killed() {
    let team = Team::with(Charter::from_environment(3).expect("a charter")).expect("a team");
    let mut children = start_in(&team, "splitting");
    drop(team);
    std::thread::sleep(Duration::from_millis(300));
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

fn a_rank_killed_in_a_split_is_named() {
    let mut children = start(4, "splitting");
    std::thread::sleep(Duration::from_millis(300));
    let (killed, pid) = (Instant::now(), children[2].id());
    children[2].kill().expect("a rank can be killed");
    let mut named = false;
    for (rank, child) in children.into_iter().enumerate().filter(|(rank, _)| *rank != 2) {
        let output = child.wait_with_output().expect("a rank can be awaited");
        let text = String::from_utf8_lossy(&output.stdout);
        named |= text.contains(&format!("(pid {pid}) died"));
        // Who was in the part without rank 2 may hear first that its neighbours gave up because of that.
        assert!(text.contains(") died") || text.contains(") left"), "rank {rank} said `{text}`");
        let waited = killed.elapsed();
        assert!(waited < Duration::from_secs(1), "rank {rank} noticed after {waited:?}");
    }
    assert!(named, "nobody named the process that died");
}

fn an_early_exit_is_named() {
    let texts = finish(start(3, "early"));
    for (rank, text) in texts.iter().enumerate().filter(|(r, _)| *r != 1) {
        assert!(text.contains("rank 1") && text.contains("left"), "rank {rank} said `{text}`");
    }
}

fn different_counts_are_named() {
    let (mut settings, _) = Settings::from_environment().expect("settings");
    settings.check = true;
    let charter = Charter::new(3, &settings).expect("a charter");
    let texts = finish(start_in(&Team::with(charter).expect("a team"), "mismatch"));
    for text in &texts {
        assert!(
            text.contains("rank 2 called allreduce(9 x f32, sum)")
                || text.contains("rank 0 called allreduce(8 x f32, sum)"),
            "{text}"
        );
    }
}

/// No file in /dev/shm, and no memfd of ours in this process.
fn nothing_is_left_behind() {
    let names = |directory: &str| -> Vec<String> {
        std::fs::read_dir(directory)
            .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
            .unwrap_or_default()
    };
    assert!(names("/dev/shm").iter().all(|n| !n.contains("lineweave")));
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("a process sees its descriptors");
    let ours = descriptors.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
    assert_eq!(ours.filter(|l| l.to_string_lossy().contains("memfd:lineweave")).count(), 0);
}

/// The part of one rank.
fn rank(job: &str) -> i32 {
    if job == "several" {
        return several();
    }
    let joined = match std::env::var(SOCKET) {
        Ok(name) => team::connect(&name, None),
        Err(_) => team::from_environment(),
    };
    let outcome = joined.map_err(|e| e.to_string()).and_then(|mut comm| work(job, &mut comm));
    match outcome {
        Ok(text) => {
            println!("{text}");
            0
        }
        Err(why) => {
            println!("{why}");
            1
        }
    }
}

fn work(job: &str, comm: &mut Communicator) -> Result<String, String> {
    let count = |outcome: common::Outcome| outcome.map(|n| n.to_string());
    match job {
        "algorithms" => count(common::algorithms(comm, &[0, 1, 13, 300, 9001], false)),
        "types" => count(common::types_and_operators(comm, &[0, 1, 7, 1023])),
        "messages" => {
            let lengths = [0, 1, 13, 1024, 1025, 8193, 100_000];
            let mut other = comm.dup().map_err(|e| e.to_string())?;
            let here = common::messages::messages(comm, &lengths)?;
            let there = common::messages::messages(&mut other, &lengths[3..])?;
            let beside = common::messages::beside_started(&mut other)?;
            count(Ok(here + there + beside))
        }
        "wide" => count(common::wide::wide(comm, &[0, 1, 7, 300])),
        "blocks" => {
            let sizes = [0, 1, 14, 257, 30_000];
            let even = common::blocks::blocks(comm, &sizes)? + common::blocks::scans(comm, &sizes)?;
            Ok((even + common::uneven::uneven(comm, &[0, 1, 13, 999])?).to_string())
        }
        "mixed" => count(common::mixed(comm, 400)),
        "shared plans" => count(common::shared::plans(comm, &[0, 1, 13, 3001])),
        "shared" => count(common::shared::calls(comm, &[0, 1, 20_001]).and_then(|done| {
            Ok(done + common::shared::in_place(comm, &[3, 20_001])? + common::shared::given_back(comm, 20)?)
        })),
        // The window, an element less and one more, and several windows.
        "shared around" => {
            count(common::shared::calls(comm, &[(1 << 18) - 1, 1 << 18, (1 << 18) + 1, 700_001]))
        }
        // Longer than what a call asks from.
        "shared uneven" => {
            count(Ok(common::uneven::overlaps(comm)? + common::uneven::shared(comm, &[13, 40_000])?))
        }
        "shared few" => count(common::shared::calls(comm, &[4097])),
        "children" => {
            // Ranks are in communicators of different sizes.
            let mut most = [children::every_kind(comm)? as u64];
            comm.allreduce_in_place(&mut most, Operator::Max).map_err(|e| e.to_string())?;
            Ok(most[0].to_string())
        }
        "started" => count(started::every_collective(comm, &[0, 1, 13, 700])),
        "waiting" | "testing" => loop {
            let mut requests = Vec::new();
            for case in started::cases(comm, 5) {
                requests.push(started::start(&case, comm)?);
            }
            let ended = requests.into_iter().try_for_each(|mut request| {
                while job == "testing" && !request.test()? {
                    std::thread::sleep(Duration::from_micros(200));
                }
                request.wait().map(|_| ())
            });
            if let Err(e) = ended {
                return Ok(e.to_string());
            }
        },
        "exchanging" => loop {
            let (rank, ranks) = (comm.rank(), comm.ranks());
            let mut got = vec![0u8; 30_000];
            let next = (rank + 1) % ranks;
            if let Err(e) =
                comm.sendrecv(&vec![1u8; 30_000], next, 0, &mut got, (rank + ranks - 1) % ranks, 0)
            {
                return Ok(e.to_string());
            }
        },
        "sending" => {
            // Rank 1 takes nothing: rank 0 waits for that, and rank 2 for a message of rank 0.
            comm.barrier().map_err(|e| e.to_string())?;
            let ended = match comm.rank() {
                0 => comm.send(&vec![1u8; 1 << 20], 1, 0),
                1 => loop {
                    std::thread::sleep(Duration::from_secs(1));
                },
                _ => comm.recv(&mut [0u8; 8], 0, 0).map(drop),
            };
            Ok(ended.expect_err("rank 1 takes nothing").to_string())
        }
        "flagging" => {
            comm.window_create(64).map_err(|e| e.to_string())?;
            for value in 1.. {
                let next = (comm.rank() + 1) % comm.ranks();
                let done = comm.flag_set(next, 0, value).and_then(|()| comm.flag_wait(0, value));
                if let Err(e) = done {
                    return Ok(e.to_string());
                }
            }
            Ok(String::new())
        }
        "splitting" => loop {
            let made = comm.split(Some(comm.rank() as u64 / 3), 0).and_then(|part| match part {
                Some(mut part) => part.dup()?.barrier(),
                None => Ok(()),
            });
            if let Err(e) = made {
                return Ok(e.to_string());
            }
        },
        "socket" => {
            comm.barrier().map_err(|e| e.to_string())?;
            Ok(format!("{} of {}", comm.rank(), comm.ranks()))
        }
        "sums" => sums(comm).map_err(|e| e.to_string()),
        "endless" => loop {
            if let Err(e) = comm.barrier() {
                return Ok(e.to_string());
            }
        },
        "early" => {
            comm.barrier().map_err(|e| e.to_string())?;
            if comm.rank() == 1 {
                return Ok("done".into());
            }
            Ok(comm.barrier().expect_err("rank 1 does not come").to_string())
        }
        "mismatch" => {
            let mut buffer = vec![1.0f32; if comm.rank() == 2 { 9 } else { 8 }];
            let outcome = comm.allreduce_in_place(&mut buffer, Operator::Sum);
            Ok(outcome.expect_err("counts differ").to_string())
        }
        other => Err(format!("no job {other}")),
    }
}
