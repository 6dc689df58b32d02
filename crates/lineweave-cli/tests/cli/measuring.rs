//! Small runs of commands that measure. No time is asserted, only the output about it.

use crate::common::{first, of_kind, profile, Scratch};
use serde_json::Value;

/// The directory is beside cargo's own output, so that the peers are compiled once for all runs of the tests.
const PEERS: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/peers");

#[test]
fn bench_compares_in_one_run_and_keeps_a_record() {
    let scratch = Scratch::new();
    let records = scratch.path().join("record");
    std::fs::create_dir(&records).unwrap();
    let bench = |arguments: &[&str]| {
        let common = ["--ranks", "2", "--quick", "--json", "--peers", PEERS, "--record"];
        let mut all = vec!["bench"];
        all.extend(arguments);
        all.extend(common);
        all.push(records.to_str().unwrap());
        scratch.run(&all).objects()
    };
    let objects = bench(&["barrier"]);
    assert!(first(&objects, "record")["kernel"].as_str().is_some_and(|k| !k.is_empty()));
    let rows = of_kind(&objects, "bench");
    for team in ["threads", "processes"] {
        let ours = |r: &&&Value| r["subject"] == "lineweave" && r["team"] == team;
        let row = rows.iter().find(ours).unwrap_or_else(|| panic!("no row of {team}"));
        assert_eq!(
            (&row["collective"], &row["ranks"], &row["bytes"]),
            (&"barrier".into(), &2.into(), &0.into())
        );
        let ns = |key: &str| row[key].as_f64().unwrap();
        assert!(
            0.0 < ns("ci_low_ns")
                && ns("ci_low_ns") <= ns("median_ns")
                && ns("median_ns") <= ns("ci_high_ns")
        );
        assert!(row["algorithm"].as_str().is_some() && row["because"] == "predicted");
        let floor = rows.iter().any(|r| r["subject"] == "floor" && r["team"] == team);
        assert_eq!(row["ratio_to_floor"].is_null(), !floor);
    }
    let named = [of_kind(&objects, "bench"), of_kind(&objects, "skipped")].concat();
    for subject in ["lineweave", "floor", "pthread", "libgomp", "libomp", "std-barrier"] {
        assert!(
            named.iter().any(|o| o["subject"] == subject),
            "{subject} is neither measured nor said to be skipped"
        );
    }

    let objects = bench(&["allreduce", "--bytes", "8KiB", "--team", "threads"]);
    let rows = of_kind(&objects, "bench");
    for buffers in ["reuse", "fresh"] {
        let row = |subject: &str| rows.iter().any(|r| r["subject"] == subject && r["buffers"] == buffers);
        assert!(row("lineweave"), "{buffers}");
    }
    assert!(rows.iter().all(|r| r["team"] == "threads" && r["bytes"] == 8192));

    let machine = std::fs::read_dir(&records).unwrap().next().unwrap().unwrap().path();
    let record = std::fs::read_dir(&machine).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(record).unwrap();
    let kinds: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    assert!(kinds[0]["kind"] == "record" && kinds.iter().any(|k| k["kind"] == "bench"));
}

#[test]
fn loads_run_while_bench_measures_and_end_with_it() {
    let scratch = Scratch::new();
    let asked =
        ["bench", "barrier", "--ranks", "2", "--team", "threads", "--quick", "--json", "--peers", PEERS];
    let objects = scratch.run(&[&asked[..], &["--beside", "spin:2,wake"]].concat()).objects();
    assert_eq!(first(&objects, "record")["beside"], serde_json::json!(["spin:2", "wake:1"]));
    scratch.line("bench barrier --beside spim").refused(2, &["spin, wake or stream"]);
    // Loads have the environment of the command, which names this test's cache. Those of other runs of these tests do not count.
    let cache = scratch.path().to_str().unwrap();
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|process| {
        let read = |file| std::fs::read(process.path().join(file)).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let words = text(read("cmdline")?);
        (words.contains("--load") && text(read("environ")?).contains(cache)).then_some(words)
    });
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_table_shows_the_bytes_that_go_in_a_nanosecond() {
    let scratch = Scratch::new();
    let asked = ["bench", "bcast", "--ranks", "2", "--team", "threads", "--bytes", "64KiB", "--quick"];
    let shown = scratch.run(&[&asked[..], &["--peers", PEERS]].concat()).accepted();
    let line = |subject: &str| {
        let found = shown.lines().find(|l| l.contains(subject)).unwrap_or_else(|| panic!("{shown}"));
        found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for subject in ["  lineweave ", "  memcpy "] {
        // ranks, team, 64 KiB, buffers, subject, the median and its unit, the interval, the rate
        let words = line(subject);
        let unit = if words[7] == "us" { 1000.0 } else { 1.0 };
        let nanos = words[6].parse::<f64>().unwrap() * unit;
        let rate = words[13].parse::<f64>().unwrap();
        // The rate has two digits after the point, and the median has three digits.
        assert!((rate - 65536.0 / nanos).abs() <= 0.005 + 0.01 * rate, "{words:?}");
    }
    assert_eq!(line("  floor ")[13], "-");
}

#[test]
fn what_another_machine_would_choose_is_run_here() {
    let scratch = Scratch::new();
    let asked =
        ["bench", "barrier", "--ranks", "2", "--team", "threads", "--quick", "--json", "--peers", PEERS];
    let objects = scratch.run(&[&asked[..], &["--machine", "epyc-9754"]].concat()).objects();
    let by = first(&objects, "record")["chosen_by"].as_str().unwrap();
    assert!(by.contains("machine description epyc-9754"), "{by}");
    assert!(objects.iter().any(|o| o["subject"] == "lineweave" && o["median_ns"].as_f64() > Some(0.0)));
    // The groups of that machine differ in size, so no text form describes the places of its CPUs.
    scratch.run(&[&asked[..], &["--machine", "dual-xeon-8360y"]].concat()).refused(1, &["dual-xeon-8360y"]);
}

#[test]
fn what_cannot_be_benchmarked_is_refused() {
    let scratch = Scratch::new();
    scratch.line("bench gossip").refused(1, &["gossip", "expected one of", "barrier"]);
    scratch.line("bench bcast --bytes 12").refused(1, &["12", "multiples of 8"]);
    scratch.line("bench barrier --ranks 0").refused(1, &["ranks", "1 to 256"]);
    scratch.line("bench no-such.toml").refused(1, &["no-such.toml", "readable benchmark definition"]);
    scratch.line("tune --bytes 12").refused(2, &["12", "multiple of 8"]);
    scratch.line("tune --ranks 0").refused(2, &["0"]);
    // A rank needs the team that started it.
    scratch.line("rank-job").refused(1, &["LINEWEAVE_TEAM_FD", "not set"]);
}

#[test]
fn tune_keeps_what_it_measured_and_choices_follow_it() {
    let scratch = Scratch::new();
    let objects = scratch.line("tune --quick --ranks 2 --bytes 4KiB --json").objects();
    assert!(first(&objects, "measured")["cells"].as_u64().is_some_and(|n| n > 10));
    let choices = of_kind(&objects, "choice");
    let summary = first(&objects, "tune");
    let not_kept = summary["not_kept"].as_array().expect("reasons for which races are not kept");
    let lost: u64 = not_kept.iter().filter_map(|cause| cause["races"].as_u64()).sum();
    assert_eq!(choices.len() as u64 + lost, 12, "six collectives, threads and processes: {not_kept:?}");
    assert_eq!(summary["cases"], choices.len());
    for choice in &choices {
        let number = |key: &str| choice[key].as_f64().unwrap_or_else(|| panic!("{key}: {choice}"));
        assert!(number("predicted_ns") > 0.0 && number("measured_ns") > 0.0 && number("regret") >= 0.0);
    }
    assert!(summary["plans"].as_u64() >= Some(choices.len() as u64));
    let families = summary["families"].as_array().expect("families");
    let told: u64 = families.iter().filter_map(|f| f["candidates"].as_u64()).sum();
    assert_eq!(summary["within_cpus"]["candidates"].as_u64(), Some(told), "each candidate is in one family");
    assert!(families.iter().all(|f| f["mean_factor"].as_f64() > Some(0.0) && f["worst"].is_string()));
    assert_eq!(summary["remarks"].as_array().map(Vec::len), Some(0), "{}", summary["remarks"]);

    // Programs choose by it from now on.
    assert!(scratch.line("info").accepted().contains("profile.toml"));
    // Where the machine was in another state at the time, the model chooses.
    let best = choices.iter().find(|c| c["collective"] == "bcast" && c["team"] == "processes");
    let found = scratch.line("explain bcast 4KiB -n 2 --json").objects();
    let found = first(&found, "choice");
    assert_eq!(found["because"], if best.is_some() { "measured" } else { "predicted" });
    if let Some(best) = best {
        assert_eq!((&found["algorithm"], &found["params"]), (&best["best_algorithm"], &best["best_params"]));
    }
}

#[test]
fn what_was_measured_in_another_state_is_named_wherever_a_profile_is_used() {
    let scratch = Scratch::new();
    let because = "12 cells could be measured only while a handshake took 4.85 times as long; measure again";
    let entry = format!("[[unidentified]]\nwhat = \"state[copy]\"\nbecause = \"{because}\"\n[[cells]]");
    let mixed = scratch.file("mixed.toml", &profile().replacen("[[cells]]", &entry, 1));
    for asked in [&["explain", "barrier", "--profile", &mixed][..], &["fit", &mixed]] {
        let text = scratch.run(asked).accepted();
        assert!(text.contains(&format!("state[copy]: {because}")), "{asked:?}: {text}");
    }
    let sound = scratch.file("sound.toml", &profile());
    assert!(!scratch.run(&["explain", "barrier", "--profile", &sound]).accepted().contains("state["));
}
