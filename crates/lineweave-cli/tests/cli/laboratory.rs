//! Tests of `lineweave lab`: the source of the costs, the placement of ranks, and a paper reproduced on this machine.

use crate::common::{profile, Scratch};
use std::path::Path;

#[test]
fn optimise_names_plans_and_what_is_unknown() {
    let scratch = Scratch::new();
    let asked = ["lab", "optimise", "bcast", "--ranks", "60", "--machine", "xeon-phi-5110p", "--json"];
    let objects = scratch.run(&asked).objects();
    let published = objects.iter().find(|o| o["method"] == "published").unwrap();
    assert_eq!(published["params"]["degrees"], "4,4,3");
    assert!(published["ratio"].as_f64().unwrap() >= 1.0 && published["error"].is_null());
    assert!(objects.iter().any(|o| o["method"] == "matrix" && o["algorithm"] == "edges"));
    // Every machine is listed; those that lack a number have the reason.
    let all = scratch.line("lab optimise bcast --ranks 16 --json --method published --all").objects();
    let rome = all.iter().find(|o| o["machine"] == "epyc-rome-7742-2s").unwrap();
    assert!(rome["error"].as_str().unwrap().contains("unknown for epyc-rome-7742-2s"), "{rome}");
    let text = scratch.line("lab optimise barrier --ranks 60 --machine xeon-phi-5110p").accepted();
    assert!(text.contains("dissemination m=3"), "{text}");
    // Without a named machine, this one is used.
    let here = scratch.line("lab optimise bcast 8 --ranks 8").accepted();
    assert!(here.contains("costs: machine description"), "{here}");
    let file = scratch.file("profile.toml", &profile());
    let of = |option| {
        let asked = ["lab", "optimise", "bcast", "8", "--ranks", "8", "--json", option, &file];
        let strip = |mut o: serde_json::Value| {
            o.as_object_mut().unwrap().remove("elapsed_ms");
            o
        };
        scratch.run(&asked).objects().into_iter().map(strip).collect::<Vec<_>>()
    };
    let found = of("--profile");
    assert!(found.iter().all(|o| o["machine"] == found[0]["machine"]), "{found:?}");
    assert!(found.iter().any(|o| o["predicted_ns"].is_number()), "{found:?}");
    assert_eq!(found, of("--machine"));
    scratch.run(&["lab", "what-if", "--profile", &file]).refused(1, &["links and ports", "intel-scc"]);
    scratch.line("lab optimise allreduce").refused(1, &["no optimiser for allreduce"]);
    scratch.line("lab optimise bcast --root 99 --ranks 4").refused(1, &["root 99"]);
}

/// Checks that all commands use and print the same placement, which can be changed, on machines whose cores have
/// several threads.
#[test]
fn placement_is_said_and_the_same_in_all_commands() {
    let scratch = Scratch::new();
    let machine = ["--machine", "xeon-phi-5110p"];
    let commands: [&[&str]; 4] = [
        &["explain", "barrier", "-n", "24"],
        &["lab", "models", "--collective", "barrier", "-n", "24"],
        &["lab", "optimise", "barrier", "-n", "24"],
        &["lab", "simulate", "-c", "barrier", "-a", "dissemination", "-n", "24"],
    ];
    for command in commands {
        let run = |more: &[&str]| scratch.run(&[command, &machine[..], &["-q"], more].concat()).accepted();
        assert!(
            run(&[]).contains("24 ranks on 6 of 60 cores (thread by thread"),
            "{command:?}: {}",
            run(&[])
        );
        assert!(
            run(&["--place", "core"]).contains("24 ranks on 24 of 60 cores (core by core"),
            "{command:?}"
        );
        scratch
            .run(&[command, &machine[..], &["--place", "socket"]].concat())
            .refused(2, &["core or thread"]);
    }
    let more =
        ["lab", "simulate", "--machine", "intel-scc", "--mesh", "2x1", "--controllers", "7", "-c", "barrier"];
    scratch.run(&[&more[..], &["-a", "dissemination"]].concat()).refused(1, &["at most one a tile, 2"]);
    let info = scratch.line("info --machine intel-scc").accepted();
    assert!(info.contains("This machine is shown; --machine names whose costs"), "{info}");
}

/// Redoes a paper on the machine that it is about: puts and gets give the description back, and what the mesh can tell is judged.
#[test]
fn a_described_mesh_gives_its_parameters_back() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("there");
    let to = directory.to_str().unwrap();
    let asked = ["lab", "reproduce", "petrovic", "--machine", "intel-scc", "-q", "-o", to, "--json"];
    let judgements = scratch.run(&asked).objects();
    let page = text(&directory.join("index.html"));
    assert!(
        page.contains("o_get^mem 95 ns (+0.0 %)") || page.contains("o_get^mem 95.0 ns (+0.0 %)"),
        "{page}"
    );
    let hops = judgements.iter().find(|j| j["item"] == "fig 3").unwrap();
    assert_eq!(hops["verdict"], "holds", "{hops}");
    assert!(directory.join("degrees.svg").exists() && directory.join("hops.svg").exists());
}

/// Checks the width of the report on all papers, and that each begins with its claims.
#[test]
fn papers_fit_a_hundred_columns_and_begin_with_verdicts() {
    let text = Scratch::new().line("lab papers").accepted();
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let tables: Vec<&str> = text
        .lines()
        .map(str::trim_start)
        .filter(|l| l.starts_with("VERDICT ") || l.starts_with("AGREE "))
        .collect();
    assert!(tables.len() >= 10 && tables[0].starts_with("VERDICT "), "{tables:?}");
    assert!(
        tables.windows(2).all(|t| !t[0].starts_with("AGREE ") || t[1].starts_with("VERDICT ")),
        "{tables:?}"
    );
}

/// Four cores use a buffer at once, six buffers more than two, while links and tiles carry one message each.
#[test]
fn simulations_say_what_messages_use_at_once() {
    let scratch = Scratch::new();
    let asked = "lab simulate --machine intel-scc -c bcast -a noc-msg -b 32 -n 48 --root 18 -p columns=6 --flags byte";
    let text = scratch.line(asked).accepted();
    assert!(text.contains("1/1/4") && text.contains("AT ONCE: "), "{text}");
    let rows = scratch.line(&format!("{asked} --json")).objects();
    let row = rows.iter().find(|o| o["kind"] == "simulate").unwrap();
    assert_eq!((&row["at_once"]["buffer"], &row["at_once"]["crowded_buffers"]), (&4.into(), &6.into()));
    let phi = scratch
        .line("lab simulate --machine xeon-phi-5110p -c barrier -a dissemination -n 4 --json")
        .objects();
    assert!(phi.iter().all(|o| o["at_once"].is_null()), "{phi:?}");
}

fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

/// Reproduces a paper's barriers on this machine: points, figures and a page. An interrupted run goes on.
#[test]
fn a_paper_is_redone_here() {
    let scratch = Scratch::new();
    let directory = scratch.path().join("here");
    let to = directory.to_str().unwrap();
    let asked = ["lab", "reproduce", "chunduri", "--here", "-o", to, "--json", "-q"];
    let run = || scratch.run(&asked).objects();
    let judgements = run();
    assert!(judgements.iter().all(|j| j["kind"] == "judgement" && j["here"] != ""), "{judgements:?}");
    assert!(judgements.len() > 15, "{judgements:?}");
    let (points, page) = (directory.join("data.jsonl"), text(&directory.join("index.html")));
    assert!(page.contains("on this machine") && page.contains("cannot be asked here"), "{page}");
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        assert!(!points.exists(), "one CPU measures nothing between ranks");
        return;
    }
    let all = text(&points);
    assert!(page.contains("<svg") && directory.join("barriers.svg").exists());
    assert!(text(&directory.join("data.csv")).lines().count() == all.lines().count(), "a line a point");
    // The last points are lost: they are measured again, and the others are not, unless other work disturbed them.
    let steady = |line: &&str| {
        let point: serde_json::Value = serde_json::from_str(line).unwrap();
        let ends = ["low_ns", "high_ns"].map(|end| point[end].as_f64().unwrap_or(1.0));
        point["busy"] != true && ends[1] <= 1.5 * ends[0]
    };
    let kept: Vec<&str> = all.lines().filter(steady).take(4).collect();
    std::fs::write(&points, kept.join("\n") + "\n").unwrap();
    run();
    let again = text(&points);
    assert_eq!(again.lines().take(kept.len()).collect::<Vec<_>>(), kept);
    assert_eq!(again.lines().count(), all.lines().count());
    let other = all.replacen("\"cpus\":", "\"cpus\":9", 1);
    std::fs::write(&points, other).unwrap();
    scratch.run(&asked).refused(1, &["data.jsonl holds points of", "-o"]);
    scratch.line("lab reproduce nobody").refused(1, &["nobody", "ramos-hoefler-2013"]);
    let other = ["lab", "reproduce", "ramos", "-q", "-o", scratch.path().to_str().unwrap()];
    scratch.file("profile.toml", &profile());
    scratch.run(&other).refused(1, &["profile.toml is a profile of", "-o"]);
    scratch.line("lab reproduce patil --here --machine intel-scc").refused(2, &["--here"]);
}
