//! Tests of `lineweave run -n`: signals, exits and output of the ranks that it starts.

use crate::common::Scratch;
use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Starts two ranks of a shell's script, and waits until they run.
fn start(scratch: &Scratch, script: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut command = scratch.command(&["run", "-n", "2", "--", "sh", "-c", script]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut launcher = command.spawn().unwrap();
    let lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    (launcher, lines)
}

/// Returns the next line of each rank, in any order.
fn next_two(lines: &mut Lines<BufReader<ChildStdout>>) -> [String; 2] {
    [(); 2].map(|()| lines.next().expect("a line of each rank").unwrap())
}

fn send(signal: &str, pid: impl ToString) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Waits until no process has this argument. A zombie has no arguments.
#[track_caller]
fn expect_gone(argument: &str) {
    let has = |entry: &std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|word| word == argument.as_bytes())
    };
    let left = || -> Vec<String> {
        let there = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(has);
        there.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    for _ in 0..1000 {
        if left().is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let still = left();
    still.iter().for_each(|pid| send("-KILL", pid));
    panic!("still there: {still:?}");
}

/// Returns a number of seconds to sleep that no other test uses, and that this test has not used before.
fn long_time(number: u32) -> String {
    format!("9{:05}{number:03}", std::process::id() % 100_000)
}

#[test]
fn signals_are_passed_on_and_ranks_say_how_it_ends() {
    let scratch = Scratch::new();
    for name in ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"] {
        let script =
            format!("trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.02; done");
        let (mut launcher, mut lines) = start(&scratch, &script);
        assert_eq!(next_two(&mut lines), ["ready", "ready"]);
        send(&format!("-{name}"), launcher.id());
        assert_eq!(next_two(&mut lines), [format!("got {name}"), format!("got {name}")]);
        assert!(lines.next().is_none(), "once each");
        assert_eq!(launcher.wait().unwrap().code(), Some(3));
    }
}

#[test]
fn a_signal_that_ends_the_ranks_ends_the_launcher_and_leaves_nobody() {
    let scratch = Scratch::new();
    for (number, name, code) in [(1, "TERM", 143), (2, "HUP", 129), (3, "INT", 130)] {
        let time = long_time(number);
        // One rank has a child that the signal does not reach.
        let script = format!("echo ready; test $LINEWEAVE_RANK = 0 && exec sleep {time}; sleep {time}; true");
        let (mut launcher, mut lines) = start(&scratch, &script);
        next_two(&mut lines);
        send(&format!("-{name}"), launcher.id());
        assert_eq!(launcher.wait().unwrap().code(), Some(code), "{name}");
        let mut said = String::new();
        launcher.stderr.unwrap().read_to_string(&mut said).unwrap();
        assert!(said.starts_with("lineweave: rank ") && said.contains("ended with signal: "), "{said}");
        expect_gone(&time);
    }
}

#[test]
fn nothing_runs_on_when_the_launcher_is_killed_at_any_moment() {
    let scratch = Scratch::new();
    for moment in 0..60 {
        let time = long_time(100 + moment);
        let mut command = scratch.command(&["run", "-n", "4", "--", "sleep", &time]);
        let mut launcher = command.stdin(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment.into()));
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        expect_gone(&time);
    }
}

#[test]
fn the_status_is_that_of_the_first_rank_that_failed() {
    let scratch = Scratch::new();
    let of = |script: &str| scratch.run(&["run", "-n", "2", "--", "sh", "-c", script]);
    of("echo well").accepted();
    of("test $LINEWEAVE_RANK = 0 || exit 7").refused(7, &["rank 1 ended with exit status: 7"]);
    of("test $LINEWEAVE_RANK = 1 || kill -KILL $$").refused(137, &["rank 0 ended with signal: 9"]);
    // The status is neither that of the rank that failed later, nor that of the rank that was ended.
    of("test $LINEWEAVE_RANK = 0 || exit 7; sleep 0.5; exit 8").refused(7, &["rank 1 ended with"]);
    of("test $LINEWEAVE_RANK = 1 && exit 9; exec sleep 60").refused(9, &["rank 1 ended with exit status: 9"]);
    scratch.line("run -n 2 -- /no/such/program").refused(127, &["no such file"]);
    scratch.line("run -n 0 true").refused(1, &["0"]);
}

#[test]
fn after_a_failure_the_others_are_asked_to_end_and_then_killed() {
    let scratch = Scratch::new();
    let time = long_time(900);
    let script = format!(
        "test $LINEWEAVE_RANK = 0 && exit 5; trap 'echo asked' TERM; echo ready; sleep {time} & while :; do sleep 0.05; done"
    );
    let outcome = scratch.run(&["run", "-n", "2", "--", "sh", "-c", &script]);
    assert_eq!(outcome.out, "ready\nasked\n");
    outcome.refused(5, &["rank 0 ended with exit status: 5"]);
    expect_gone(&time);
}

#[test]
fn what_ranks_leave_running_is_ended() {
    let scratch = Scratch::new();
    let time = long_time(901);
    let script = format!("(trap '' TERM; sleep {time}) & (setsid sleep {time} &) ; echo left");
    let said = scratch.run(&["run", "-n", "2", "--", "sh", "-c", &script]).accepted();
    assert_eq!(said, "left\nleft\n");
    expect_gone(&time);
}

#[test]
fn what_ranks_print_comes_in_whole_lines() {
    let scratch = Scratch::new();
    let halves = "for i in 1 2 3 4 5 6 7 8; do printf one; sleep 0.01; printf ' two\\n'; done; printf end";
    let said = scratch.run(&["run", "-n", "3", "--", "sh", "-c", halves]).accepted();
    let count = |line: &str| said.lines().filter(|l| *l == line).count();
    // The last line of a rank needs no newline.
    assert_eq!((count("one two"), count("end"), said.lines().count()), (24, 3, 27), "{said}");

    // The output is longer than a pipe holds, and both streams go to one file.
    let long = "head -c 300000 /dev/zero | tr '\\0' $LINEWEAVE_RANK; echo; echo $LINEWEAVE_RANK >&2";
    let file = scratch.path().join("said");
    let to = std::fs::File::create(&file).unwrap();
    let mut command = scratch.command(&["run", "-n", "4", "--", "sh", "-c", long]);
    let status = command.stdout(to.try_clone().unwrap()).stderr(to).status().unwrap();
    assert!(status.success());
    let said = std::fs::read_to_string(file).unwrap();
    for rank in ["0", "1", "2", "3"] {
        assert!(said.lines().any(|line| line == rank), "{rank}");
        assert!(said.lines().any(|line| line == rank.repeat(300_000)), "{rank}");
    }
    assert_eq!(said.lines().count(), 8);

    // A reader that closes the pipe ends the ranks.
    let mut endless = scratch.command(&["run", "-n", "2", "--", "yes"]);
    let mut launcher = endless.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 2];
    launcher.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!((&first, launcher.wait().unwrap().code()), (b"y\n", Some(141)));
}

#[test]
fn a_stopped_rank_is_named() {
    let scratch = Scratch::new();
    let (mut launcher, mut lines) = start(&scratch, "echo $$; while ! test -e go; do sleep 0.02; done");
    let [pid, other] = next_two(&mut lines);
    send("-STOP", &pid);
    let mut said = BufReader::new(launcher.stderr.take().unwrap()).lines();
    let line = said.next().expect("a remark").unwrap();
    assert!(line.contains(&format!("(pid {pid}) is stopped")) && line.contains("kill -CONT"), "{line}");
    send("-CONT", &pid);
    [&pid, &other].into_iter().for_each(|pid| send("-TERM", pid));
    assert_eq!(launcher.wait().unwrap().code(), Some(143));
}
