//! Commands that play machines in virtual time.

use crate::common::{first, Scratch};
use serde_json::Value;

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|o| o["kind"] == kind).collect()
}

#[test]
fn all_algorithms_are_ranked() {
    let scratch = Scratch::new();
    let arguments = ["simulate", "--machine", "intel-scc", "-c", "allreduce", "-a", "all", "-b", "2KiB"];
    let mut fast = arguments.to_vec();
    fast.extend(["--fidelity", "chunk", "--json"]);
    let objects = scratch.run(&fast).objects();
    let rows = of_kind(&objects, "simulate");
    let times: Vec<f64> = rows.iter().map(|r| r["time_ns"].as_f64().unwrap()).collect();
    assert!(times.is_sorted() && rows.len() > 8, "{times:?}");
    for name in ["pipelined-ring", "rckmpi", "rcce", "noc-msg"] {
        let row = rows.iter().find(|r| r["algorithm"] == name).unwrap_or_else(|| panic!("no {name}"));
        let ratio = row["time_ns"].as_f64().unwrap() / row["bound_ns"].as_f64().unwrap();
        assert!((row["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9 && ratio >= 1.0);
    }
}

#[test]
fn what_if_says_what_limits() {
    let scratch = Scratch::new();
    let picture = scratch.path().join("limit.svg");
    let base =
        ["what-if", "--mesh", "6x4x2,16x12x2", "--in-flight", "1,32", "--pattern", "uniform", "--gets", "3"];
    let mut all = base.to_vec();
    all.extend(["--lines", "4", "--json", "-o", picture.to_str().unwrap()]);
    let objects = scratch.run(&all).objects();
    let rows = of_kind(&objects, "what-if");
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["limit"], "neither", "{}", rows[0]);
    assert!(rows.iter().all(|r| r["slowdown"].as_f64().unwrap() >= 1.0));
    let svg = std::fs::read_to_string(picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("32 in flight"));
    assert!(scratch.run(&base).accepted().contains("LIMIT"));
    scratch.run(&["what-if", "--machine", "xeon-phi-5110p"]).refused(1, &["xeon-phi-5110p", "[mesh]"]);
    scratch.run(&["what-if", "--mesh", "0x4"]).refused(2, &["COLUMNSxROWS"]);
    scratch.run(&["what-if", "--pattern", "star"]).refused(2, &["uniform, opposite or row"]);
}

#[test]
fn a_described_machine_is_measured_and_fitted() {
    let scratch = Scratch::new();
    let file = scratch.path().join("phi.toml");
    let file = file.to_str().unwrap();
    let objects = scratch.run(&["measure", "--machine", "xeon-phi-5110p", "-o", file, "--json"]).objects();
    let rows = of_kind(&objects, "recovered");
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|r| r["off"].as_f64().unwrap().abs() < 0.02));
    let fitted = scratch.run(&["fit", file, "--json"]).objects();
    assert!(first(&fitted, "fit")["machine"]["cpus"] == 60);
    scratch.run(&["measure", "--machine", "intel-scc"]).refused(1, &["intel-scc", "[coherent]"]);
}
