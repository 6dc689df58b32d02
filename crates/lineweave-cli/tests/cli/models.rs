//! Tests of `lineweave lab models`: predictions by every model, beside measured times.

use crate::common::{cell, first, of_kind, profile, Scratch};
use serde_json::Value;

/// Returns the small profile, with messages, copies and overheads added.
fn fuller() -> String {
    let mut text = profile();
    let mut add =
        |probe, factors: &[(&str, &str)], median| text += &cell(probe, factors, median, median * 0.01);
    for lines in [1u32, 2, 4, 8, 16, 64] {
        add("pingpong", &[("lines", &lines.to_string()), ("level", "l3")], 150.0 + 12.0 * f64::from(lines));
    }
    for bytes in [64u32, 4096, 65536, 1 << 20] {
        let (text, length) = (&*bytes.to_string(), f64::from(bytes));
        for (tau, slower) in [("1", 1.0), ("2", 1.5)] {
            for (pattern, level, ns) in [
                ("local", "local", 10.0 + 0.05 * length),
                ("put", "l3", 40.0 + 0.1 * length),
                ("get", "l3", 40.0 + 0.1 * length),
            ] {
                let f = [
                    ("pattern", pattern),
                    ("kind", "plain"),
                    ("bytes", text),
                    ("tau", tau),
                    ("level", level),
                ];
                add("copy", &f, ns * slower);
            }
        }
        add(
            "fold",
            &[("type", "f64"), ("op", "sum"), ("bytes", text), ("source", "private")],
            5.0 + 0.08 * length,
        );
    }
    for (op, ns) in [("set", 3.0), ("wait", 4.0), ("move", 6.0), ("fold", 6.0), ("run", 9.0)] {
        add("overhead", &[("op", op)], ns);
    }
    text
}

const MODELS: [&str; 13] = [
    "Hockney",
    "LogP",
    "LogGP",
    "PLogP",
    "log_nP",
    "mlog_nP",
    "put/get",
    "min-max, best",
    "min-max, worst",
    "tau-Lop",
    "tau-Lop, whole messages",
    "played, alone",
    "played",
];

/// Broadcasts with a published closed form.
const PRINTED: [&str; 5] = ["flat", "binomial", "two-segment-tree", "scatter-ring", "scatter-doubling"];

#[test]
fn every_model_speaks_of_every_algorithm() {
    let scratch = Scratch::new();
    let file = scratch.file("profile.toml", &fuller());
    let common = ["--profile", &file, "-n", "2", "--json"];
    let objects = scratch
        .run(&[&["lab", "models", "--collective", "bcast", "--bytes", "8KiB,64KiB"], &common[..]].concat());
    let objects = objects.objects();
    let list = of_kind(&objects, "prediction");
    assert_eq!(list.len() % (2 * MODELS.len()), 0);
    let algorithms: Vec<&str> = list.iter().filter_map(|p| p["algorithm"].as_str()).collect();
    for headline in ["degrees", "oc-bcast", "cyclic", "knomial", "fibonacci", "flat"] {
        assert!(algorithms.contains(&headline), "{headline}: {algorithms:?}");
    }
    for (p, model) in list.iter().zip(MODELS.iter().cycle()) {
        assert_eq!(p["model"], *model);
        let of_plan = !PRINTED.contains(&p["algorithm"].as_str().unwrap());
        let no_limit = ["log_nP", "put/get", "min-max, best", "min-max, worst"].contains(model);
        assert!((of_plan && !no_limit) || p["predicted_ns"].as_f64() > Some(0.0), "{p}");
        assert!(p["measured_ns"].is_null() && p["extrapolated"] == false);
    }
    assert!(!objects.iter().any(|o| o["kind"] == "error"), "nothing was measured");
    assert!(objects.iter().any(|o| o["kind"] == "unidentified" && o["what"] == "PLogP L and g(0)"));
    // A message of tau-Lop in segments of 8 KiB: 2 L(S, 1) + 7 L(S, 2), and O_s.
    let find = |model: &str| {
        let of = |p: &&&Value| p["model"] == model && p["algorithm"] == "binomial" && p["bytes"] == 65536;
        list.iter().find(of).unwrap()["predicted_ns"].as_f64().unwrap()
    };
    let copy = |slower: f64| (40.0 + 0.1 * 8192.0) * slower + 30.0;
    assert!((find("tau-Lop") - (9.0 + 2.0 * copy(1.0) + 7.0 * copy(1.5))).abs() < 1.0, "{}", find("tau-Lop"));

    // Folds were timed one at a time: two at once, as in allreduce, are an extrapolation.
    for collective in ["reduce", "allreduce", "barrier"] {
        let mut arguments = vec!["lab", "models", "--extrapolate", "--collective", collective];
        if collective != "barrier" {
            arguments.extend(["--bytes", "4KiB"]);
        }
        let objects = scratch.run(&[&arguments[..], &common[..]].concat()).objects();
        for p in of_kind(&objects, "prediction") {
            assert!(p["predicted_ns"].as_f64().is_some(), "{p}");
        }
    }
}

#[test]
fn what_is_beyond_the_measured_range_is_there_only_when_asked_for() {
    let scratch = Scratch::new();
    let file = scratch.file("profile.toml", &fuller());
    let run = |more: &[&str]| {
        let what = "lab models --collective bcast --bytes 64KiB -n 8 --json -q --profile".split(' ');
        let arguments: Vec<&str> = what.chain([&*file]).chain(more.iter().copied()).collect();
        let objects = scratch.run(&arguments).objects();
        of_kind(&objects, "prediction")
            .into_iter()
            .find(|p| p["model"] == "tau-Lop" && p["algorithm"] == "binomial")
            .cloned()
            .unwrap()
    };
    let without = run(&[]);
    assert!(without["predicted_ns"].is_null());
    assert!(without["because"].as_str().unwrap().contains("--extrapolate"), "{without}");
    let with = run(&["--extrapolate"]);
    assert!(with["predicted_ns"].as_f64().is_some() && with["extrapolated"] == true);
}

#[test]
fn measured_times_give_errors_regret_and_a_drawing() {
    let scratch = Scratch::new();
    let file = scratch.file("profile.toml", &fuller());
    let svg = scratch.at("models.svg");
    let arguments =
        ["lab", "models", "--collective", "bcast", "--bytes", "4KiB,64KiB", "--measure", "--profile", &file];
    let output = ["--json", "-q", "-o", &svg];
    // Where other work holds a call up less than the barrier behind it, its time is not known: then it is measured again.
    let runs = std::iter::repeat_with(|| scratch.run(&[&arguments[..], &output[..]].concat()).objects());
    let known = |o: &Value| o["kind"] != "error" || o["choices"] == 2;
    let objects = runs.take(5).find(|objects| objects.iter().all(known)).expect("times of all models");
    assert!(of_kind(&objects, "prediction")
        .iter()
        .all(|p| p["measured_ns"].as_f64().is_some_and(|ns| ns > 0.0)));
    let errors = of_kind(&objects, "error");
    assert_eq!(errors.len(), MODELS.len());
    for e in &errors {
        assert!(e["pairs"].as_u64() >= Some(10) && e["choices"] == 2, "{e}");
        assert!(
            e["mean_proportional"].as_f64().unwrap() >= 1.0 && e["mean_relative"].as_f64().unwrap() >= 0.0
        );
        assert!(e["worst_regret"].as_f64().unwrap() >= e["mean_regret"].as_f64().unwrap());
    }
    let printed: Vec<f64> =
        of_kind(&objects, "printed").iter().filter_map(|o| o["mean_relative"].as_f64()).collect();
    assert_eq!(printed, [0.138, 0.302]);
    assert_eq!(first(&objects, "models")["file"], *svg);
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("measured") && svg.contains("PLogP"));
    let text = scratch.run(&[&arguments[..], &["-q"]].concat()).accepted();
    assert!(text.contains("13.8 %") && text.contains("30.2 %") && text.contains("MEASURED"), "{text}");
}

#[test]
fn values_that_nobody_knows_are_named() {
    let scratch = Scratch::new();
    let bcast = ["lab", "models", "--collective", "bcast", "--bytes", "8KiB"];
    let run = |more: &[&str]| scratch.run(&[&bcast[..], more].concat());
    run(&["--machine", "metropolis"])
        .refused(1, &["tau-Lop needs L(m, tau)", "machine `metropolis`", "Fig. 21"]);
    run(&["--machine", "graviton3", "--model", "Hockney"])
        .refused(1, &["Hockney needs rates.copy_bytes_per_ns", "machine `graviton3`"]);
    run(&["--machine", "generic-x86", "--model", "LogGP"])
        .refused(1, &["LogGP needs o", "machine `generic-x86`"]);
    let text = run(&["--machine", "generic-x86", "-n", "4"]).accepted();
    assert!(text.contains("LogGP needs o"), "{text}");
    run(&["--model", "LogQ"]).refused(2, &["LogQ", "LogGP"]);
    // Without a profile, the command uses the description that programs choose by, and says so.
    assert!(run(&["-n", "2"]).accepted().contains("costs: machine description"));
    scratch.line("lab models --collective bcast").refused(1, &["--bytes"]);
    scratch.line("lab models --collective reduce --bytes 12").refused(1, &["12"]);
    run(&["--measure", "--machine", "metropolis"]).refused(2, &["--measure"]);
    // Commands that only describe the machine go on working.
    for machine in ["lusitania", "metropolis"] {
        scratch.run(&["info", "--machine", machine]).accepted();
        assert!(scratch.run(&["fit", "--machine", machine]).accepted().contains("Rico-Gallego"));
    }
    let broken = include_str!("../../../../machines/metropolis.toml").replace("tau = 4", "tau = -4");
    let file = scratch.file("broken.toml", &broken);
    run(&["--machine", &file]).refused(1, &["line ", "`tau`", "above 0"]);
}

/// Checks that all collectives have a table, and that the profile is the same by either option.
#[test]
fn every_collective_has_a_table() {
    let scratch = Scratch::new();
    let file = scratch.file("profile.toml", &fuller());
    for collective in lineweave_core::collective::Collective::ALL {
        let collective = collective.to_string();
        let mut asked =
            vec!["lab", "models", "--collective", &collective, "-n", "2", "--json", "--extrapolate"];
        if collective != "barrier" {
            asked.extend(["--bytes", "4KiB"]);
        }
        let by = |option| scratch.run(&[&asked[..], &[option, &file]].concat()).objects();
        let (profile, machine) = (by("--profile"), by("--machine"));
        let tau_lop = |p: &&&Value| p["model"] == "tau-Lop" && p["predicted_ns"].as_f64() > Some(0.0);
        assert!(of_kind(&profile, "prediction").iter().filter(tau_lop).count() > 0, "{collective}");
        assert_eq!(profile, machine, "{collective}");
    }
}

/// Checks the remark for a worst case below the best: the best case of a notification reads from memory and the worst from a
/// cache, which takes less time among two ranks.
#[test]
fn a_worst_case_below_the_best_is_said() {
    let scratch = Scratch::new();
    let text = scratch.line("lab models --machine xeon-phi-5110p --collective bcast -b 8 -n 2").accepted();
    assert!(text.contains("min-max, worst below min-max, best: flat (641 ns below 876 ns)"), "{text}");
}

/// Checks the bounds beside min-max: around the simulated time, exact among few ranks, and only where caches are described.
#[test]
fn bounds_are_beside_min_max() {
    let scratch = Scratch::new();
    let barrier = "lab models --collective barrier -n 3 --place core --bounds";
    let objects = scratch.line(&format!("{barrier} --machine xeon-phi-5110p --json")).objects();
    let bounds = of_kind(&objects, "bounds");
    assert!(bounds.len() > 8, "{bounds:?}");
    for row in bounds {
        let of = |key: &str| row[key].as_f64().unwrap();
        let times = ["floor_ns", "least_ns", "simulated_ns", "greatest_ns"].map(of);
        assert!(row["complete"] == true && times[0] > 0.0 && times.is_sorted(), "{row}");
        assert_eq!(of("best_ns") > of("least_ns"), row["remark"] == "best above the least", "{row}");
    }
    let text = scratch.line(&format!("{barrier}=50 --machine xeon-phi-5110p")).accepted();
    assert!(text.contains(" or more") && text.contains("searches were bounded"), "{text}");
    let file = scratch.file("profile.toml", &fuller());
    scratch.line(&format!("{barrier} --profile {file}")).refused(1, &["[coherent]", "--machine"]);
}
