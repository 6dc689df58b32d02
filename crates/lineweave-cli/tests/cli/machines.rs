//! Machines that were measured pair by pair: chosen for by name, imported and exported.

use crate::common::{first, Outcome, Scratch};
use std::process::{Command, Stdio};

/// Two packages of two caches of two cores, in ns, as core-to-core-latency prints them.
fn latencies() -> String {
    let ns = |a: usize, b: usize| match (a / 2 == b / 2, a / 4 == b / 4) {
        (true, _) => 25.0,
        (false, true) => 110.5,
        (false, false) => 200.0,
    };
    let cell = |a: usize, b: usize| if b < a { ns(a, b).to_string() } else { String::new() };
    let row = |a: usize| (0..8).map(|b| cell(a, b)).collect::<Vec<_>>().join(",");
    (0..8).map(|a| row(a) + "\n").collect()
}

fn imported(scratch: &Scratch) -> (String, String) {
    let file = scratch.file("mine.csv", &latencies());
    let machine = scratch.at("mine.toml");
    let text = scratch.run(&["profile", "import", &file, "-o", &machine]).accepted();
    (machine, text)
}

#[test]
fn measured_machines_are_listed_and_asked_about_by_name() {
    let scratch = Scratch::new();
    let objects = scratch.line("list --machines --json").objects();
    assert_eq!(objects.iter().filter(|o| !o["matrix"].is_null()).count(), 34);
    let bergamo = objects.iter().find(|o| o["name"] == "dual-epyc-9754").unwrap();
    assert_eq!((bergamo["cpus"].as_u64(), bergamo["arch"].as_str()), (Some(512), Some("x86_64")));
    let uneven = objects.iter().find(|o| o["name"] == "dual-xeon-8360y").unwrap();
    assert!(uneven["topology"].is_null() && uneven["cpus"] == 128, "{uneven}");

    let text = scratch.line("explain barrier --machine dual-xeon-6242").accepted();
    for part in [
        "of its matrix (KCORES/",
        "core 7.40 ns, l3 48.0 ns",
        "machine 141 ns",
        "assumed, since no matrix tells",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    let choice = scratch.line("explain bcast 8 --machine epyc-74f3 --json").objects();
    assert_eq!(first(&choice, "choice")["ranks"], 48);
    let notes = first(&choice, "choice")["notes"].as_array().unwrap();
    let says = |part: &str| notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains(part)));
    assert!(notes.len() == 4 && says("assumed, since") && says("the best tree made from it, bcast/edges"));
    assert!(says("48 ranks on 24 of 24 cores (thread by thread"), "{notes:?}");
    scratch.line("plan bcast --bytes 8 -n 6 --machine epyc-74f3").accepted();
    scratch.line("draw barrier tree -n 6 --machine epyc-74f3").accepted();
    scratch.line("verify barrier/tree -n 48 --machine epyc-74f3").accepted();
    scratch.line("verify barrier/tree -n 48 --topology epyc-74f3").accepted();
    scratch.line("explain barrier --machine epyc-9999").refused(1, &["`epyc-9999`", "dual-epyc-9754"]);
}

/// Checks the explanation of the place of the flags' memory: of ranks in both packages, in one of them, and on a machine
/// where it does not matter.
#[test]
fn homes_are_explained_where_they_matter() {
    let scratch = Scratch::new();
    let explained = |machine: &str, ranks: &str| {
        scratch.run(&["explain", "barrier", "--machine", machine, "--ranks", ranks]).accepted()
    };
    let both = explained("dual-epyc-7302", "64");
    for part in ["lines lie with a rank that polls or sets them", "in package 1", "with all lines on node 0"]
    {
        assert!(both.contains(part), "`{part}` is not in {both}");
    }
    let one = explained("dual-epyc-9754", "64");
    for part in
        ["barrier among 64 ranks: ", "takes 110 ns if", "206 ns if", "with all lines in another package"]
    {
        assert!(one.contains(part), "`{part}` is not in {one}");
    }
    assert!(!one.contains("in package 1"), "{one}");
    assert!(!explained("dual-epyc-9654", "64").contains("home:"));
}

/// Checks that each pair has its own latency: a barrier between the two farthest CPUs takes longer than one between siblings.
#[test]
fn measured_machines_are_simulated_and_reported() {
    let scratch = Scratch::new();
    let simulated = |ranks: usize| {
        let what = "lab simulate --machine dual-xeon-e5-2680-v4 --collective barrier --algorithm tree";
        let objects = scratch.line(&format!("{what} -n {ranks} --place core --json")).objects();
        first(&objects, "simulate")["time_ns"].as_f64().unwrap()
    };
    assert!(simulated(28) > 1.5 * simulated(14), "the other package is 2.8 times as far");
    let file = scratch.at("r.html");
    scratch.run(&["report", "--machine", "dual-xeon-e5-2680-v4", "-o", &file]).accepted();
    let page = std::fs::read_to_string(&file).unwrap();
    for part in ["1540", "half a round trip of a line", "assumed, since no matrix tells"] {
        assert!(page.contains(part), "`{part}` is not in the report");
    }
    scratch.run(&["report", "--machine", "dual-epyc-9754", "-o", &file]).accepted();
    let large = std::fs::read_to_string(&file).unwrap();
    assert!(
        large.contains("512 CPUs are threads of 256 cores") && large.len() < 400_000,
        "{} bytes",
        large.len()
    );
}

#[test]
fn an_imported_matrix_becomes_a_choice_and_is_exported_the_same() {
    let scratch = Scratch::new();
    let (machine, text) = imported(&scratch);
    for part in ["8 CPUs, pack:2 numa:1 l3:2 core:2 pu:1", "25.0 ns", "110 ns", "200 ns", "copy_bytes_per_ns"]
    {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    let choice = scratch.run(&["explain", "allreduce", "8", "--machine", &machine, "--json"]).objects();
    assert_eq!(first(&choice, "choice")["ranks"], 8);
    let out = scratch.run(&["profile", "export", "--csv", "--machine", &machine]).accepted();
    assert_eq!(out, latencies());
    let again = scratch.at("again.toml");
    let zipped = scratch.at("mine.csv.gz");
    let one = scratch.run(&["profile", "import", &zipped, "-o", &again, "--json"]).objects();
    let object = first(&one, "profile-import");
    assert_eq!(object["topology"], "pack:2 numa:1 l3:2 core:2 pu:1");
    assert_eq!(object["distances"][1]["value_ns"], 110.5);
    scratch.line("profile export --csv --machine generic-x86").refused(1, &["has no matrix"]);
    // Latencies of 0 are replaced in the export too, with a remark.
    scratch.line("profile export --csv --machine dual-power9-8335-gth").warned(&["9 pairs are 0 ns"]);
    scratch.run(&["profile", "export", "--machine", &machine]).refused(2, &["--csv", "--hwloc"]);
}

/// Runs a benchmark of 8 ranks, on the topology of the matrix unless another is given.
fn benched(scratch: &Scratch, profile: Option<&str>, topology: &str) -> Outcome {
    let of = ["bench", "bcast", "--bytes", "8", "--ranks", "8", "--quick", "--team", "threads", "--json"];
    let mut command = scratch.command(&of);
    command.env("LINEWEAVE_TOPOLOGY", topology);
    if let Some(file) = profile {
        command.env("LINEWEAVE_PROFILE", file);
    }
    Outcome::of(&of, command.stdin(Stdio::null()).output().unwrap())
}

/// Returns the algorithm that ran, and the reason.
fn ran(objects: &[serde_json::Value]) -> (&str, &str) {
    let row = objects.iter().find(|o| o["kind"] == "bench" && o["subject"] == "lineweave").unwrap();
    (row["algorithm"].as_str().unwrap(), row["because"].as_str().unwrap())
}

const MINE: &str = "pack:2 numa:1 l3:2 core:2 pu:1";

#[test]
fn programs_run_the_tree_of_an_imported_matrix() {
    let scratch = Scratch::new();
    let (machine, _) = imported(&scratch);
    let costs = scratch.at("costs.json");
    let text = scratch.run(&["profile", "adopt", &machine, "-o", &costs]).accepted();
    assert!(text.contains("costs of mine") && text.contains("yes: it is the fastest"), "{text}");
    let objects = benched(&scratch, Some(&costs), MINE).objects();
    let (algorithm, because) = ran(&objects);
    assert!(algorithm.starts_with("edges edges=0-"), "{algorithm}");
    assert_eq!(
        (because, first(&objects, "record")["chosen_by"].as_str()),
        ("simulated", Some("costs of mine"))
    );

    // Another machine is refused: one with fewer CPUs, or with others that share a cache.
    benched(&scratch, Some(&costs), "pack:2 l3:1 core:2 pu:1")
        .refused(1, &["of another machine", "`8`", "`4`"]);
    benched(&scratch, Some(&costs), "pack:1 l3:2 core:4 pu:1")
        .refused(1, &["its topology is", "of another machine"]);
    // The same topology in other words is accepted.
    ran(&benched(&scratch, Some(&costs), "pack:2 numa:1 l2:2 core:2 pu:1").objects());
    let broken = scratch.file("broken.json", "{ \"schema\": 1,\n no");
    benched(&scratch, Some(&broken), MINE).refused(1, &["broken.json", "line 2"]);

    let explained = scratch.run(&["explain", "barrier", "--profile", &costs]).accepted();
    assert!(explained.contains("costs of mine") && explained.contains("among 8 ranks"), "{explained}");
    let mut command = scratch.command(&["explain", "barrier", "--machine", &machine]);
    let output = command.env("LINEWEAVE_PROFILE", &costs).output().unwrap();
    Outcome::of(&["explain"], output).warned(&["LINEWEAVE_PROFILE has no effect"]);
}

#[test]
fn adopted_costs_are_found_by_the_machine_that_they_are_of() {
    let scratch = Scratch::new();
    let (machine, _) = imported(&scratch);
    let adopt = |topology: &str| {
        let mut command = scratch.command(&["profile", "adopt", &machine, "--json"]);
        Outcome::of(&["adopt"], command.env("LINEWEAVE_TOPOLOGY", topology).output().unwrap())
    };
    adopt("pack:2 core:3").refused(1, &["number of usable CPUs", "`8`", "`6`", "`-o FILE.json`"]);
    let adopted = adopt(MINE).objects();
    let file = first(&adopted, "profile-adopt")["file"].as_str().unwrap();
    assert!(file.ends_with("/costs.json") && std::path::Path::new(file).exists(), "{file}");
    let tree = adopted.iter().find(|o| o["kind"] == "adopted-tree" && o["collective"] == "bcast").unwrap();
    assert!(tree["kept"] == true && tree["bound_ns"].as_f64() <= tree["simulated_ns"].as_f64(), "{tree}");
    assert_eq!(ran(&benched(&scratch, None, MINE).objects()).1, "simulated");
    // Without a matrix there is no tree.
    let costs = scratch.at("x86.json");
    let plain = scratch.run(&["profile", "adopt", "generic-x86", "-o", &costs]).accepted();
    assert!(plain.contains("no trees"), "{plain}");
    scratch.line("profile adopt intel-scc").refused(1, &["share no cache"]);
}

/// Checks that the cost of a line away from its home is part of the costs.
#[test]
fn homes_of_an_adopted_machine_decide() {
    let scratch = Scratch::new();
    let costs = scratch.at("costs.json");
    scratch.run(&["profile", "adopt", "dual-epyc-7302", "-n", "16", "-o", &costs]).accepted();
    let of =
        |costs: &[&str]| scratch.run(&[&["explain", "barrier", "--ranks", "64"], costs].concat()).accepted();
    let homes = |text: &str| text.lines().find(|line| line.starts_with("home:")).map(str::to_owned);
    let (adopted, described) = (of(&["--profile", &costs]), of(&["--machine", "dual-epyc-7302"]));
    assert!(homes(&adopted).is_some_and(|line| line.contains("in package 1")), "{adopted}");
    assert_eq!(homes(&adopted), homes(&described));
}

#[test]
fn hwloc_reads_what_is_exported_for_it() {
    let scratch = Scratch::new();
    let (machine, _) = imported(&scratch);
    let xml = scratch.at("mine.xml");
    scratch.run(&["profile", "export", "--hwloc", "--machine", &machine, "-o", &xml]).accepted();
    let info = scratch.run(&["info", "--topology", &xml]).accepted();
    assert!(info.contains("8"), "{info}");
    scratch.run(&["verify", "barrier/tree", "-n", "8", "--topology", &xml]).accepted();
    let same = scratch.at("same.toml");
    let file = scratch.file("same.csv", &latencies());
    let text = scratch.run(&["profile", "import", &file, "-o", &same, "--topology", &xml]).accepted();
    assert!(text.contains("pack:2 numa:1 l3:2 core:2 pu:1"), "{text}");
    let lstopo = ["lstopo-no-graphics", "lstopo"].into_iter().find_map(|name| {
        Command::new(name)
            .args(["--distances", "-i", &xml, "--of", "console"])
            .stdin(Stdio::null())
            .output()
            .ok()
    });
    let Some(output) = lstopo else {
        println!("SKIPPED: lstopo is not installed (package hwloc)");
        return;
    };
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in ["CoreToCoreLatency", "PU", "200", "25"] {
        assert!(said.contains(part), "`{part}` is not in {said}");
    }
}

#[test]
fn matrices_that_are_none_are_refused_with_line_and_reason() {
    let scratch = Scratch::new();
    let machine = scratch.at("m.toml");
    for (text, words) in [
        ("", &["at least 2 CPUs"][..]),
        (",,\n10,,\n20,30,,40\n", &["line 3", "expected 3 columns", "found 4"]),
        (",,\n10,,\n20,,\n", &["line 3", "no latency between CPUs 1 and 2"]),
        (",,\n10,,\n20,fast,\n", &["line 3, column 2", "`fast`"]),
        ("# cycles\n,\n10,\n", &["line 1", "`cycles`", "convert"]),
        ("# one way, in us\n,\n100,\n", &["line 2", "median", "100000 ns", "heading"]),
        ("# in s\n,\n1e-12,\n", &["line 2", "0.001 ns"]),
        ("<html>\nnot found\n", &["at least 2 CPUs"]),
        (&"1,2\n".repeat(10_000), &["line 2050", "at most 2048 CPUs", "a row and a column for each"]),
    ] {
        let file = scratch.file("bad.csv", text);
        scratch.run(&["profile", "import", &file, "-o", &machine]).refused(1, words);
        assert!(!std::path::Path::new(&machine).exists());
    }
    let good = scratch.file("good.csv", &latencies());
    let of =
        |topology: &str| scratch.run(&["profile", "import", &good, "-o", &machine, "--topology", topology]);
    of("pack:2 core:3").refused(1, &["has 6 CPUs and the matrix 8"]);
    of("pack:2 core:3 cores").refused(1, &["each type:count", "`cores`"]);
    let given = scratch.run(&["explain", "barrier", "--machine", &good]);
    given.refused(1, &["good.csv", "found the name of a matrix", "profile import"]);
    of("pack:4 core:2").warned(&["groups of 4 CPUs, which the topology"]);
    let zeros = scratch.file("zeros.csv", &latencies().replacen("25", "0", 1));
    scratch.run(&["profile", "import", &zeros, "-o", &machine]).warned(&["1 pairs are 0 ns", "CPUs 0 and 1"]);
    let plain = latencies().replace("110.5", "0.1105").replace("200", "0.2").replace("25", "0.025");
    let micro = scratch.file("micro.csv", &format!("# one way, in us\n{plain}"));
    scratch.run(&["profile", "import", &micro, "-o", &machine]).warned(&["the unit `us`"]);
    let unit = scratch.file("unit.csv", &format!("# units: bananas\n{}", latencies()));
    scratch.run(&["profile", "import", &unit, "-o", &machine]).warned(&["`bananas`", "ns are assumed"]);
    // The latencies are in seconds, with a heading that says so and without one.
    let plain: String =
        latencies().replace("110.5", "1.105e-7").replace("200", "2e-7").replace("25", "2.5e-8");
    let seconds = scratch.file("seconds.csv", &format!("# in s\n{plain}"));
    scratch
        .run(&["profile", "import", &seconds, "-o", &machine])
        .warned(&["the unit `s`", "for 1000000000 ns"]);
    let plain = scratch.file("plain.csv", &plain);
    let words = ["line 1", "another unit", "`# in us`"];
    scratch.run(&["profile", "import", &plain, "-o", &machine]).refused(1, &words);
    let wild = scratch.file("wild.csv", &latencies().replacen("200", "900", 1));
    scratch.run(&["profile", "import", &wild, "-o", &machine]).warned(&["1 pairs", "medians"]);
    let broken = scratch.file("broken.csv.gz", "");
    std::fs::write(&broken, [0x1f, 0x8b, 8, 0, 1, 2]).unwrap();
    scratch.run(&["profile", "import", &broken, "-o", &machine]).refused(1, &["broken.csv.gz", "matrix"]);
    let nothing = scratch.at("no.csv");
    scratch.run(&["profile", "import", &nothing, "-o", &machine]).refused(1, &["no.csv", "readable matrix"]);
    scratch.run(&["profile", "import", &good, "-o", "x.csv"]).refused(2, &["ends in .toml"]);
}
