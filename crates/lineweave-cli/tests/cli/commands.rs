//! Tests of each command's output, for people and for programs.

use crate::common::{first, profile, Scratch};

#[test]
fn help_and_version_go_to_standard_output() {
    let scratch = Scratch::new();
    assert!(scratch.line("--help").accepted().contains("\n  explain "));
    scratch.line("explain --help").accepted();
    assert!(scratch.line("--version").accepted().starts_with("lineweave 0."));
    assert!(scratch.line("lab --help").accepted().contains("\n  simulate "));
}

#[test]
fn info_shows_every_setting_with_its_origin_and_what_is_chosen_by() {
    let scratch = Scratch::new();
    let text = scratch.line("info").accepted();
    assert!(text.contains("LINEWEAVE_WAIT") && text.contains("lineweave tune"), "{text}");
    let set = scratch.command(&["info"]).env("LINEWEAVE_WAIT", "spin").env("LINEWEAVE_WIAT", "x").output();
    let set = String::from_utf8(set.unwrap().stdout).unwrap();
    let row = set.lines().find(|l| l.starts_with("LINEWEAVE_WAIT")).unwrap();
    assert!(row.contains("spin") && row.contains("environment"), "{row}");
    assert!(set.contains("LINEWEAVE_WIAT has no effect"), "{set}");
    let objects = scratch.line("info --json").objects();
    assert_eq!(objects.len(), 1);
    assert!(objects[0]["settings"].as_array().unwrap().iter().all(|row| row["origin"] == "default"));
}

#[test]
fn info_shows_what_stands_in_place_of_the_machine() {
    let scratch = Scratch::new();
    let text = scratch.run(&["info", "--topology", "pack:2 l3:2 core:4"]).accepted();
    assert!(text.contains("16 of 16 CPUs usable"), "{text}");
    let text = scratch.line("info --machine graviton3").accepted();
    assert!(text.contains("machine description graviton3"), "{text}");
}

#[test]
fn a_profile_of_another_machine_is_said_to_be() {
    let scratch = Scratch::new();
    let file = scratch.file("other.toml", &profile());
    let text = scratch.run(&["info", "--profile", &file]).accepted();
    assert!(text.contains("the profile is of another machine"), "{text}");
}

#[test]
fn list_names_every_algorithm_with_its_parameters_and_source() {
    let scratch = Scratch::new();
    let objects = scratch.line("list --json").objects();
    assert_eq!(objects.len(), lineweave_core::algorithm::all().count());
    assert!(objects.iter().all(|o| o["source"].as_str().is_some_and(|s| !s.is_empty())));
    let text = scratch.line("list barrier").accepted();
    assert!(text.contains("barrier/dissemination") && !text.contains("bcast/"), "{text}");
    let machines = scratch.line("list --machines --json").objects();
    assert!(machines.iter().any(|m| m["name"] == "graviton3" && m["cpus"].as_u64() > Some(1)));
    assert!(scratch.line("list --machines").accepted().contains("graviton3"));
}

#[test]
fn plans_are_printed_in_the_form_that_verify_and_draw_read() {
    let scratch = Scratch::new();
    let text = scratch.line("plan bcast binomial -n 5 -b 1KiB --root 3").accepted();
    assert!(text.starts_with("plan bcast/binomial"), "{text}");
    assert!(text.contains("p=5 root=3 bytes=1024"), "{text}");
    let proof = scratch.run_with_input(&["verify", "-"], &text).accepted();
    assert!(proof.contains("verified: 1 plans, 0 violations"), "{proof}");
    let file = scratch.file("p.plan", &text);
    assert_eq!(scratch.run(&["verify", &file]).accepted(), proof);
    let svg = scratch.run(&["draw", "--plan", &file]).accepted();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let target = scratch.path().join("p.svg");
    scratch.run(&["draw", "--plan", &file, "-o", target.to_str().unwrap()]).accepted();
    assert_eq!(std::fs::read_to_string(target).unwrap(), svg);
    let object = &scratch.run_with_input(&["draw", "--plan", "-", "--json"], &text).objects()[0];
    assert_eq!(object["svg"], svg);
    assert_eq!(scratch.line("draw bcast binomial -n 5 -b 1k --root 3").accepted(), svg);
}

#[test]
fn plan_without_an_algorithm_prints_the_one_that_explain_names() {
    let scratch = Scratch::new();
    let on = ["--machine", "epyc-milan-7763-2s", "--topology", "pack:2 core:2", "--json"];
    let with = |first: &[&'static str]| [first, &on].concat();
    let plan = scratch.run(&with(&["plan", "allreduce", "--bytes", "64"])).objects();
    let choice = scratch.run(&with(&["explain", "allreduce", "64"])).objects();
    for key in ["algorithm", "params", "ranks", "bytes"] {
        assert_eq!(plan[0][key], choice[0][key], "{key}");
    }
    assert_eq!(plan[0]["ranks"], 4);
}

#[test]
fn explain_covers_several_nodes() {
    let scratch = Scratch::new();
    let on = ["--machine", "epyc-milan-7763-2s", "--topology", "pack:2 core:2", "--json"];
    let with = |first: &[&'static str]| [first, &on].concat();
    let call = ["explain", "allreduce", "64", "--ranks", "8", "--nodes", "2", "--link", "1000,10"];
    let objects = scratch.run(&with(&call)).objects();
    assert_eq!((&objects[0]["kind"], &objects[0]["ranks"]), (&"nodes-call".into(), &8.into()));
    let phases: Vec<f64> = objects[1..].iter().map(|o| o["predicted_ns"].as_f64().unwrap()).collect();
    let sum: f64 = phases.iter().sum();
    assert!((sum - objects[0]["predicted_ns"].as_f64().unwrap()).abs() < 1e-6, "{objects:?}");
    // The first phase over several nodes is the plan of the same ranks on one node.
    let reduce = scratch.run(&with(&["explain", "reduce", "64", "--ranks", "4"])).objects();
    assert_eq!(
        (phases.len(), reduce[0]["algorithm"].as_str()),
        (3, objects[1]["algorithm"].as_str().and_then(|a| a.split(' ').next()))
    );
    scratch.line("explain allreduce 64 --nodes 2").refused(1, &["--link"]);
    scratch.line("explain allreduce 64 --nodes 3 --ranks 4 --link 1,1").refused(1, &["4 ranks"]);
    scratch.line("explain scan 64 --nodes 2 --ranks 4 --link 1,1").refused(1, &["scan is left"]);
    scratch.line("explain barrier --nodes 2 --link fast").refused(2, &["1500,12.5"]);
}

#[test]
fn plan_counts_ops_and_memory() {
    let scratch = Scratch::new();
    let arguments = ["plan", "reduce", "binomial", "-n", "2", "-b", "4KiB", "--stats"];
    let text = scratch.run(&arguments).accepted();
    assert!(text.contains("folded") && text.contains("4 KiB"), "{text}");
    let object = &scratch.run(&[&arguments[..], &["--json"]].concat()).objects()[0];
    assert_eq!(object["folded_bytes"], 4096);
    assert_eq!(object["ops_by_kind"]["fold"], 1);
    assert_eq!(object["text"], serde_json::Value::Null);
}

#[test]
fn parameters_reach_the_algorithm() {
    let scratch = Scratch::new();
    let text = scratch.line("plan barrier dissemination -n 9 -p m=2").accepted();
    assert!(text.starts_with("plan barrier/dissemination m=2"), "{text}");
    let refused = scratch.line("plan barrier dissemination -n 9 -p q=2");
    refused.refused(1, &["no parameter `q`", "m, layout"]);
    scratch.line("plan barrier dissemination -n 9 -p m").refused(2, &["name=value"]);
}

#[test]
fn verify_sweeps_an_algorithm_a_collective_or_all() {
    let scratch = Scratch::new();
    let plans = |target: &[&str]| {
        let arguments = [&["verify"], target, &["--max-ranks", "3", "--json"]].concat();
        let objects = scratch.run(&arguments).objects();
        assert_eq!(objects[0]["violations"], 0);
        objects[0]["plans"].as_u64().unwrap()
    };
    let (one, some, all) = (plans(&["bcast/flat"]), plans(&["bcast"]), plans(&["--all"]));
    assert!(0 < one && one < some && some < all, "{one} {some} {all}");
    assert_eq!(plans(&[]), all);
}

#[test]
fn verify_shows_a_counter_example_and_fails() {
    let scratch = Scratch::new();
    let text = scratch.line("plan bcast binomial -n 3 -b 4KiB").accepted();
    let at = text.find("  wait ").unwrap();
    let end = at + text[at..].find('\n').unwrap() + 1;
    let broken = scratch.file("broken.plan", &format!("{}{}", &text[..at], &text[end..]));
    let outcome = scratch.run(&["verify", &broken]);
    outcome.refused(1, &["1 of 1 plans refuted"]);
    assert!(
        outcome.out.contains("refuted: bcast/binomial") && outcome.out.contains("rank "),
        "{}",
        outcome.out
    );
    let json = scratch.run(&["verify", &broken, "--json"]);
    json.refused(1, &["refuted"]);
    let objects: Vec<serde_json::Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(first(&objects, "verify")["violations"], 1);
    assert!(first(&objects, "violation")["violation"].as_str().unwrap().contains("rank"));
    // A published barrier that is wrong for all numbers of ranks but one.
    let published = scratch.line("verify barrier/noc-msg-published --max-ranks 4");
    published.refused(1, &["3 of 4 plans refuted"]);
    assert!(published.out.contains("can leave the barrier before rank"), "{}", published.out);
}

#[test]
fn verify_counts_what_becomes_of_mutants() {
    let scratch = Scratch::new();
    let objects = scratch.line("verify allreduce/ring -n 3 -b 96 --mutate --json").objects();
    let totals = first(&objects, "verify");
    let count = |key: &str| totals[key].as_u64().unwrap();
    assert!(count("caught") > 0);
    assert_eq!(count("missed"), 0);
    assert_eq!(count("mutants"), count("caught") + count("harmless"));
    assert_eq!(first(&objects, "proof")["ranks"], 3);
    let sweep = scratch.line("verify barrier/tree --max-ranks 3 --mutate").accepted();
    assert!(sweep.contains(" 0 missed"), "{sweep}");
}

#[test]
fn explain_works_for_machines_one_does_not_own() {
    let scratch = Scratch::new();
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/generic-x86.toml");
    let text = scratch
        .run(&["explain", "bcast", "64KiB", "--topology", "pack:2 l3:2 core:2", "--machine", machine])
        .accepted();
    assert!(text.contains("bcast of 64 KiB among 8 ranks") && text.contains("predicted: "), "{text}");
    let objects = scratch.line("explain reduce 64 -n 4 --machine graviton3 --candidates --json").objects();
    let choice = first(&objects, "choice");
    assert_eq!((&choice["ranks"], &choice["bytes"]), (&4.into(), &64.into()));
    assert_eq!(choice["because"], "predicted");
    let predicted = choice["predicted_ns"].as_f64().unwrap();
    assert!(predicted > 0.0 && predicted <= choice["runner_up"]["predicted_ns"].as_f64().unwrap());
    let candidates = objects.iter().filter(|o| o["kind"] == "candidate").count();
    assert_eq!(Some(candidates as u64), choice["costed"].as_u64());
}

#[test]
fn explain_by_a_profile_places_ranks_on_its_machine() {
    let scratch = Scratch::new();
    let file = scratch.file("p.toml", &profile());
    let choice = &scratch.run(&["explain", "barrier", "--profile", &file, "--json"]).objects()[0];
    assert_eq!(choice["ranks"], 2);
    assert!(choice["costs"].as_str().unwrap().contains("A CPU"));
}

#[test]
fn explain_says_what_the_environment_forces() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["explain", "barrier", "-n", "4", "--json"]);
    let output = command.env("LINEWEAVE_ALGORITHM", "barrier=dissemination(m=3)").output().unwrap();
    let choice: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&choice["because"], &choice["algorithm"]), (&"forced".into(), &"dissemination".into()));
    assert_eq!(choice["params"]["m"], "3");
}

#[test]
fn fit_shows_intervals_provenance_and_what_is_missing() {
    let scratch = Scratch::new();
    let file = scratch.file("p.toml", &profile());
    let text = scratch.run(&["fit", &file]).accepted();
    assert!(text.contains("measured") && text.contains("contention needs 3 CPUs"), "{text}");
    let objects = scratch.run(&["fit", "--json", "--profile", &file]).objects();
    let exchange = objects
        .iter()
        .find(|o| o["parameter"] == "exchange" && o["layout"] == "paired" && o["provenance"] == "measured");
    let exchange = exchange.expect("the profile has it");
    assert_eq!(exchange["value_ns"], 52.0);
    assert_eq!((&exchange["ci_low_ns"], &exchange["ci_high_ns"]), (&51.0.into(), &53.0.into()));
    assert!(objects.iter().any(|o| o["kind"] == "unidentified" && o["what"] == "T_C"));
    let described = scratch.line("fit --machine xeon-phi-5110p").accepted();
    assert!(described.contains("cited"), "{described}");
}

#[test]
fn measure_keeps_a_profile_that_is_chosen_by_from_then_on() {
    let scratch = Scratch::new();
    let objects = scratch.line("measure --quick --json").objects();
    let kept = first(&objects, "profile");
    assert!(objects.iter().any(|o| o["kind"] == "parameter" && o["provenance"] == "measured"));
    let file = kept["file"].as_str().unwrap();
    assert!(file.starts_with(scratch.path().to_str().unwrap()), "{file}");
    assert!(file.contains(kept["fingerprint_id"].as_str().unwrap()), "{file}");
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(Some(text.matches("[[cells]]").count() as u64), kept["cells"].as_u64());
    let info = scratch.line("info").accepted();
    assert!(info.contains(&format!("profile {file}")), "{info}");
    let choice = &scratch.line("explain barrier -n 2 --json").objects()[0];
    assert_eq!(choice["costs"], format!("profile {file}"));
    assert!(scratch.line("fit").accepted().contains("measured"));
}

#[test]
fn completions_and_manual_pages_cover_the_commands() {
    let scratch = Scratch::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = scratch.run(&["completions", shell]).accepted();
        assert!(script.contains("explain") && script.contains("max-ranks"), "{shell}");
    }
    scratch.line("completions zsh --json").objects();
    let directory = scratch.path().join("man");
    let pages = scratch.run(&["man", directory.to_str().unwrap()]).accepted();
    assert!(pages.lines().count() > 5);
    for page in pages.lines() {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(
            [".TH", ".SH SYNOPSIS", ".SH \"EXIT STATUS\""].iter().all(|part| text.contains(part)),
            "{page}"
        );
        assert!(text.contains(".SH EXAMPLES") || page.ends_with("lineweave-man.1"), "{page}");
        assert_eq!(text.contains("LINEWEAVE_WAIT"), page.ends_with("lineweave.1"), "{page}");
    }
    let written = std::fs::read_dir(&directory).unwrap().count();
    assert_eq!(written, pages.lines().count());
    scratch.run(&["man", directory.to_str().unwrap(), "--json"]).objects();
}

#[test]
fn simulations_sweep_and_draw() {
    let scratch = Scratch::new();
    let base =
        ["lab", "simulate", "--machine", "intel-scc", "--collective", "bcast", "--algorithm", "oc-bcast"];
    let with = |more: &[&str]| {
        let arguments: Vec<&str> = base.iter().chain(more).copied().collect();
        scratch.run(&arguments)
    };
    let rows = with(&["--k", "2,7", "--bytes", "32,3104", "--runs", "3", "--json"]).objects();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_eq!((row["kind"].as_str(), row["ranks"].as_u64()), (Some("simulate"), Some(48)));
        assert!(row["time_ns"].as_f64().unwrap() >= row["bound_ns"].as_f64().unwrap());
    }
    let (heat, line) = (scratch.file("heat.svg", ""), scratch.file("line.svg", ""));
    let text = with(&["--bytes", "1KiB", "--ranks", "6", "--heat", &heat, "-o", &line]).accepted();
    assert!(text.contains("flags of a line, line by line") && text.contains("1 of 1 simulations"), "{text}");
    for file in [&heat, &line] {
        assert!(std::fs::read_to_string(file).unwrap().starts_with("<svg"));
    }
    let windows = with(&["--bytes", "5000", "--window", "2KiB", "--ranks", "5", "--json"]).objects();
    assert_eq!((windows[0]["runs"].as_u64(), windows[0]["window_bytes"].as_u64()), (Some(2), Some(2048)));
    with(&["--bytes", "1KiB", "--ranks", "49"]).refused(1, &["49 ranks", "48 cores"]);
    with(&["--bytes", "1MiB", "--mesh", "6x8x2", "--k", "64"])
        .refused(1, &["at most 64 flags fit", "at most 63"]);
    with(&["--bytes", "1KiB", "--mesh", "6x"]).refused(2, &["COLUMNSxROWS"]);
    scratch.line("lab simulate -c barrier -a rcce-barrier").refused(1, &["--machine"]);
    scratch.line("lab simulate -c barrier -a tree --machine graviton3").refused(1, &["[mesh]"]);
    assert_eq!(
        scratch.line("lab simulate --machine intel-scc -c bcast -a binomial -b 32 --json").objects()[0]
            ["algorithm"],
        "rcce-comm-binomial"
    );
}

#[test]
fn lengths_of_blocks_are_taken_where_ranks_exchange_some() {
    let scratch = Scratch::new();
    let plan = scratch.line("plan gather flat -n 3 --counts 8,0,1KiB").accepted();
    assert!(plan.lines().next().unwrap().ends_with(" slots=1024 counts=8,0,1024"), "{plan}");
    let proof = scratch.line("verify alltoall/grid -n 2 --counts 1,2,3,4").accepted();
    assert!(proof.contains("1 plans, 0 violations"), "{proof}");
    let text = scratch.line("explain scatter --counts 64,4KiB -n 2 --machine graviton3").accepted();
    assert!(text.contains("scatter of blocks of up to 4 KiB among 2 ranks: "), "{text}");
    let wrong = scratch.line("plan gather flat -n 3 --counts 8,8");
    wrong.refused(1, &["2 lengths of blocks: expected 3"]);
}
