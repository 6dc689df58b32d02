//! Tests of the commands that simulate machines in virtual time.

use crate::common::{first, of_kind, Scratch};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn all_algorithms_are_ranked() {
    let scratch = Scratch::new();
    let arguments =
        ["lab", "simulate", "--machine", "intel-scc", "-c", "allreduce", "-a", "all", "-b", "2KiB"];
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
    let picture = scratch.at("limit.svg");
    let base = "lab what-if --mesh 6x4x2,16x12x2 --in-flight 1,32 --pattern uniform --gets 3";
    let objects = scratch.line(&format!("{base} --lines 4 --json -o {picture}")).objects();
    let rows = of_kind(&objects, "what-if");
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0]["limit"], "neither", "{}", rows[0]);
    assert!(rows.iter().all(|r| r["slowdown"].as_f64().unwrap() >= 1.0));
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("32 in flight"));
    assert!(scratch.line(base).accepted().contains("LIMIT"));
    scratch.line("lab what-if --machine xeon-phi-5110p").refused(1, &["xeon-phi-5110p", "[mesh]"]);
    let coherent = "lab what-if --machine altra-q80-30 --in-flight 16 --pattern opposite --gets 2 --lines 4";
    assert!(scratch.line(coherent).accepted().contains("20x16x4"));
    let picture = scratch.at("coherence.svg");
    let asked = format!("lab what-if --coherence --machine intel-scc --json -o {picture}");
    let objects = scratch.line(&asked).objects();
    let rows = of_kind(&objects, "coherence");
    let of =
        |name: &str, verdict: &str| rows.iter().any(|r| r["algorithm"] == name && r["coherence"] == verdict);
    assert!(of("readers", "pays") && of("readers", "alike") && of("flat", "costs"));
    assert!(std::fs::read_to_string(&picture).unwrap().contains("barrier/dissemination"));
    scratch.line("lab what-if --coherence --mesh 6x4").refused(2, &["--mesh"]);
    scratch.line("lab what-if --coherence --machine xeon-phi-5110p").refused(1, &["[coherent.mesh]"]);
    scratch.line("lab what-if --mesh 0x4").refused(2, &["COLUMNSxROWS"]);
    scratch.line("lab what-if --pattern star").refused(2, &["uniform, opposite or row"]);
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
    scratch.line("explain barrier --machine intel-scc").refused(1, &["intel-scc", "lineweave lab simulate"]);
    scratch.line("measure --machine intel-scc").refused(1, &["intel-scc", "[coherent]"]);
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let scratch = Scratch::new();
    let scc = |more: &str| {
        let arguments = format!("lab simulate --machine intel-scc {more}");
        scratch.run(&arguments.split_whitespace().collect::<Vec<_>>())
    };
    // The message is too large for a message buffer.
    scc("-c bcast -a flat -b 16KiB").refused(1, &["513 lines", "intel-scc has 256", "smaller chunks"]);
    scc("-c bcast -a oc-bcast -b 1KiB -n 49").refused(1, &["49 ranks", "48 cores"]);
    scc("-c bcast -a oc-bcast -b 1KiB --root 48").refused(1, &["root 48", "0 to 47"]);
    // The flags are too many, however short the message.
    scc("-c bcast -a oc-bcast -b 32 --k 64").refused(1, &["k=64", "k is at most 63"]);
    scc("-c bcast -a oc-bcast -b 32 --k 63").accepted();
    scc("-c bcast -a oc-bcast -b 32 --k 0").refused(1, &["k=0"]);
    // A mesh of one core is refused, and so are texts that are no mesh.
    for collective in ["-c barrier -a noc-msg", "-c bcast -a oc-bcast -b 1KiB"] {
        scc(&format!("{collective} --mesh 1x1")).refused(1, &["a mesh of one core", "--mesh 2x1"]);
    }
    scratch.line("lab what-if --mesh 1x1x1").refused(1, &["a mesh of one core"]);
    scc("-c barrier -a noc-msg --mesh 0x4").refused(2, &["COLUMNSxROWS"]);
    scc("-c barrier -a noc-msg --mesh 100000x100000").refused(2, &["COLUMNSxROWS"]);
    // Ops, ranks and runs that exceed the memory are refused.
    scc("-c bcast -a oc-bcast -b 1TiB").refused(1, &["about 101264916763 ops", "windows"]);
    scc("-c bcast -a oc-bcast -b 1TiB -n 4 --window 3KiB").refused(1, &["more than the limit of 4294967296"]);
    scc("-c allgather -a all-read-all -b 32 --mesh 80x64x2").refused(1, &["10240 ranks", "fewer ranks"]);
    scratch.line("plan bcast pipelined-kary -b 1TiB -n 48").refused(1, &["windows"]);
    // An option without effect and a published algorithm that is wrong give a remark; a drawing must end in .svg.
    scc("-c barrier -a noc-msg --prefetch 2").warned(&["--prefetch has no effect"]);
    scc("-c barrier -a noc-msg-published").warned(&["lineweave verify barrier/noc-msg-published"]);
    scc("-c barrier -a noc-msg -o x.png").refused(2, &[".svg"]);
    // Where caches agree, ports and links are waited for on a mesh only.
    let barrier = |more: &str| {
        let on = "lab simulate -c barrier -a dissemination --place core --json --machine";
        first(&scratch.line(&format!("{on} {more}")).objects(), "simulate").clone()
    };
    let (mesh, ideal) = (barrier("knights-landing-7210"), barrier("knights-landing-7210 --ideal"));
    assert!(mesh["port_share"].as_f64().unwrap() > 0.0 && ideal["port_share"].is_null());
    assert!(mesh["time_ns"].as_f64().unwrap() >= ideal["time_ns"].as_f64().unwrap());
    assert!(barrier("xeon-phi-5110p")["link_share"].is_null());
    scratch
        .line("lab simulate -c barrier -a tree --machine xeon-phi-5110p --ideal")
        .warned(&["--ideal has no effect"]);
    // Descriptions that lack values are refused.
    let machine =
        |name: &str| scratch.run(&["lab", "simulate", "--machine", name, "-c", "barrier", "-a", "tree"]);
    machine("lusitania").refused(1, &["neither [mesh] nor [coherent]"]);
    let text = include_str!("../../../../machines/intel-scc.toml");
    let unknown = text.replace(
        "port_ns = { value = 10.5, low = 10.0, high = 16.0, status = \"inferred\"",
        "port_ns = { status = \"unknown\"",
    );
    assert_ne!(unknown, text);
    machine(&scratch.file("port.toml", &unknown)).refused(1, &["`port_ns` is unknown", "Fig. 4"]);
}

#[test]
fn an_interrupted_sweep_keeps_what_was_finished() {
    let scratch = Scratch::new();
    for json in [false, true] {
        let (out, plot) = (scratch.at("out"), scratch.at("sweep.svg"));
        // The third case takes minutes.
        let mut arguments =
            vec!["lab", "simulate", "--machine", "intel-scc", "-c", "bcast", "-a", "oc-bcast"];
        arguments.extend(["-b", "32,64,16MiB,128", "--plot", &plot]);
        if json {
            arguments.push("--json");
        }
        let mut child = scratch
            .command(&arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let rows = |text: &str| match json {
            true => text.lines().filter(|l| l.ends_with('}')).count(),
            false => text.lines().filter(|l| l.trim_start().starts_with("48 ")).count(),
        };
        let begun = Instant::now();
        while rows(&std::fs::read_to_string(&out).unwrap()) < 2 {
            assert!(begun.elapsed() < Duration::from_secs(120), "no row in time");
            std::thread::sleep(Duration::from_millis(20));
        }
        let interrupt = format!("kill -INT {}", child.id());
        assert!(Command::new("sh").args(["-c", &interrupt]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        assert_eq!(rows(&std::fs::read_to_string(&out).unwrap()), 2);
        let drawn = std::fs::read_to_string(&plot).unwrap();
        assert!(drawn.ends_with("</svg>\n") && drawn.matches("(simulated)").count() >= 1, "{drawn}");
    }
}

#[test]
fn blocks_of_different_lengths_are_simulated() {
    let scratch = Scratch::new();
    let base =
        ["lab", "simulate", "--machine", "intel-scc", "-c", "alltoall", "-a", "noc-msg", "-n", "2", "--json"];
    let with = |counts: &str| {
        let mut arguments = base.to_vec();
        arguments.extend(["--counts", counts]);
        scratch.run(&arguments)
    };
    let time = |counts: &str| first(&with(counts).objects(), "simulate")["time_ns"].as_f64().unwrap();
    assert!(time("32,32,32,32") < time("32,320,32,32"));
    with("32,32,32").refused(1, &["3 lengths of blocks: expected 4"]);
}

#[test]
fn every_collective_is_simulated_by_every_algorithm_that_fits() {
    let scratch = Scratch::new();
    for machine in ["intel-scc", "xeon-phi-5110p", "power8-8247-42l"] {
        for (collective, least) in [
            ("barrier", 8),
            ("bcast", 8),
            ("reduce", 5),
            ("allreduce", 7),
            ("gather", 3),
            ("scatter", 4),
            ("allgather", 5),
            ("reduce-scatter", 3),
            ("scan", 3),
            ("exscan", 3),
            ("alltoall", 3),
        ] {
            let mut arguments =
                vec!["lab", "simulate", "--machine", machine, "-c", collective, "-a", "all", "-n", "12"];
            arguments.extend(["--fidelity", "chunk", "--json"]);
            if collective != "barrier" {
                arguments.extend(["-b", "64"]);
            }
            let objects = scratch.run(&arguments).objects();
            let rows = of_kind(&objects, "simulate");
            assert!(rows.len() >= least, "{machine} {collective}: {}", rows.len());
        }
    }
}

#[test]
fn figures_are_drawn_with_what_the_papers_print() {
    let scratch = Scratch::new();
    let to = scratch.path().to_str().unwrap();
    let objects = scratch.run(&["lab", "papers", "chunduri", "--figures", to, "--json"]).objects();
    let rows = of_kind(&objects, "figure");
    let threads = rows.iter().find(|r| r["item"] == "table V" && r["source"] == "published").unwrap();
    assert_eq!(threads["points"][7], serde_json::json!([8.0, 4.07, 4.07]));
    let svg = std::fs::read_to_string(threads["file"].as_str().unwrap()).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("tree, printed (published): 8, 4.07"));
    let text = scratch.run(&["lab", "papers", "luczynski", "--figures", to]);
    assert_eq!((text.status, text.out.as_str()), (Some(0), ""), "nothing is drawn of it");
    scratch
        .line("lab papers chunduri --figures /dev/null/x")
        .refused(2, &["--figures", "there is no directory"]);
}
