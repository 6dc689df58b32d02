//! Tests of `who` and `doctor`: running teams, and missing features of this node.

use crate::common::{of_kind, Scratch};
use lineweave::Operator;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{mpsc, Mutex};
use std::time::Duration;

/// A long job that is ended with the test.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns what `who --watch` has printed once it says that others waited.
fn watch(scratch: &Scratch, pid: &str) -> String {
    let mut command = scratch.command(&["who", pid, "--watch", "0.05"]);
    let mut job = Job(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut printed = String::new();
    let lines = BufReader::new(job.0.stdout.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        printed += &line;
        printed.push('\n');
        if line.contains("others waited for") {
            break;
        }
    }
    printed
}

#[test]
fn who_shows_which_rank_the_others_wait_for() {
    let scratch = Scratch::new();
    let (go, stay_away) = mpsc::channel::<()>();
    let stay_away = Mutex::new(stay_away);
    let pid = std::process::id().to_string();
    let (objects, text, watched) = std::thread::scope(|scope| {
        let team = scope.spawn(|| {
            lineweave::team::threads(3, |mut comm| {
                if comm.rank() == 1 {
                    // The thread waits until the test is done.
                    let _ = stay_away.lock().unwrap().recv();
                }
                comm.allreduce_in_place(&mut [1.0_f64], Operator::Sum)
            })
        });
        let objects = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(20));
            let seen = scratch.run(&["who", &pid, "--json"]);
            let objects: Vec<Value> = seen.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
            let waits = |o: &&Value| o["kind"] == "rank" && o["operation"] == "allreduce";
            (objects.iter().filter(waits).count() == 2).then_some(objects)
        })
        .take(500)
        .flatten()
        .next();
        let text = scratch.run(&["who", &pid]);
        let metrics = scratch.path().join("lineweave.prom");
        let written = scratch.run(&["who", &pid, "--prometheus", metrics.to_str().unwrap()]);
        assert_eq!((written.status, written.err.as_str()), (Some(0), ""));
        let watched = watch(&scratch, &pid);
        go.send(()).unwrap();
        team.join().unwrap().unwrap();
        (objects.expect("two ranks that wait"), text.accepted(), watched)
    });
    assert!(watched.contains("others waited for rank 1 "), "{watched}");
    let metrics = std::fs::read_to_string(scratch.path().join("lineweave.prom")).unwrap();
    let of_rank = |name: &str, rank: usize| {
        let labels = format!("rank=\"{rank}\",pid=\"{pid}\"}} ");
        let line =
            metrics.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains(&labels));
        line.unwrap_or_else(|| panic!("no {name} of rank {rank}: {metrics}"))
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    assert_eq!([0, 1, 2].map(|rank| of_rank("lineweave_rank_waited_for", rank)), [0.0, 2.0, 0.0]);
    assert_eq!([0, 1, 2].map(|rank| of_rank("lineweave_rank_present", rank)), [1.0; 3]);
    assert!(of_rank("lineweave_rank_waiting_seconds", 0) > 0.0, "{metrics}");
    // Each metric says what it is before its values, as the format asks.
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        assert!(metrics.contains(&format!("# TYPE {name} ")), "{line}");
    }
    let team = objects.iter().find(|o| o["kind"] == "team").unwrap();
    assert_eq!((&team["ranks"], &team["lost"]), (&3.into(), &Value::Null));
    assert_eq!(team["missing"][0]["ranks"], serde_json::json!([1]));
    assert!(team["memory_bytes"].as_u64().unwrap() > 0, "{team}");
    let ranks = of_kind(&objects, "rank");
    assert_eq!((ranks.len(), &ranks[0]["waits_for"]), (3, &serde_json::json!([1])));
    assert!(ranks[2]["waiting_ns"].as_u64().unwrap() > 1_000_000, "{}", ranks[2]);
    assert_eq!((&ranks[1]["sequence"], &ranks[1]["operation"]), (&0.into(), &Value::Null));
    assert!(text.contains("rank 1 awaited by others, and not in a call"), "{text}");
}

#[test]
fn who_refuses_a_process_without_a_team_and_one_that_is_not_there() {
    let scratch = Scratch::new();
    let sleeper = Job(std::process::Command::new("sleep").arg("60").spawn().unwrap());
    let pid = sleeper.0.id().to_string();
    scratch.run(&["who", &pid]).refused(1, &["expected one with a team", &pid]);
    scratch.line("who 4194305").refused(1, &["looking at process 4194305"]);
    scratch.line("who me").refused(2, &["invalid value 'me'"]);
}

#[test]
fn doctor_says_what_to_do_about_what_it_finds() {
    let scratch = Scratch::new();
    let objects =
        |out: &str| -> Vec<Value> { out.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let problems = |out: &str| objects(out).iter().filter(|o| o["verdict"] == "problem").count();
    // Another test, also one of another run, may lose a team meanwhile, which is then found, too.
    let lost = |out: &str| {
        let of_teams = |o: &&Value| o["what"] == "teams left behind" && o["verdict"] == "problem";
        objects(out).iter().filter(of_teams).count()
    };
    let well = scratch.line("doctor --json");
    assert_eq!(problems(&well.out), lost(&well.out), "{}", well.out);
    assert_eq!((well.status, well.err.is_empty()), (Some(lost(&well.out) as i32), lost(&well.out) == 0));
    let text = scratch.line("doctor").out;
    assert!(text.contains("advice   profile: none") && text.contains("-> run `lineweave tune`"), "{text}");
    let unwell = scratch.command(&["doctor", "--json"]).env("LINEWEAVE_BIND", "0,4000").output().unwrap();
    assert_eq!(unwell.status.code(), Some(1));
    let out = String::from_utf8(unwell.stdout).unwrap();
    let binding = objects(&out).into_iter().find(|o| o["what"] == "binding").unwrap();
    assert_eq!((&binding["kind"], &binding["verdict"]), (&"finding".into(), &"problem".into()));
    assert!(binding["found"].as_str().unwrap().contains("4000"), "{binding}");
    let said = String::from_utf8(unwell.stderr).unwrap();
    assert!(said.contains(&format!("{} of the above ", 1 + lost(&out))), "{said}");
}
