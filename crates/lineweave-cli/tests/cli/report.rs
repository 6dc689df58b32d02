//! Tests of `lineweave report` and `lineweave profile diff`.

use crate::common::{profile, Scratch};
use lineweave_core::profile::Fingerprint;
use serde_json::Value;
use std::path::Path;

const SECTIONS: [&str; 7] =
    ["machine", "distances", "fitted", "predicted", "map", "unidentified", "parameters"];
const ANSWERS: [(&str, &str); 4] = [
    ("health", "Is this machine healthy?"),
    ("costs", "What does communication cost?"),
    ("gain", "What does lineweave gain me?"),
    ("advice", "What should I set?"),
];
const SIZES: [&str; 8] = ["8 B", "64 B", "512 B", "2 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB"];
/// A topology of two packages of four cores; costs come from a shipped description.
const TWO_PACKAGES: &str = "pack:2 numa:1 l3:1(size=33554432) core:4 pu:1";

/// Writes a measured choice of two ranks, of the machine of this profile beside it; returns the machine.
fn chosen(scratch: &Scratch, profile: &str, what: &str) -> String {
    let head = scratch.run(&["fit", profile, "--json"]).objects();
    let machine: Fingerprint = serde_json::from_value(head[0]["machine"].clone()).unwrap();
    let choice = format!(
        "schema = 1\nmachine = \"{}\"\n[[choice]]\n{what}\nranks = 2\npredicted_ns = 50.0\nmeasured_ns = 55.0\n",
        machine.id()
    );
    scratch.file("choices.toml", &choice);
    machine.id()
}

/// Checks that every tag that opens is closed, in order, except for those of HTML that never are.
#[track_caller]
fn balanced(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let style = text.find("<style>").map(|a| (a + 7, text.find("</style>").unwrap()));
    let parts: Vec<&str> = match style {
        Some((a, b)) => vec![&text[..a], &text[b..]],
        None => vec![text],
    };
    for tag in parts.iter().flat_map(|p| p.split('<').skip(1)) {
        let tag = tag.split_once('>').unwrap_or_else(|| panic!("`<{tag}` does not end")).0;
        let name = tag.split_whitespace().next().unwrap();
        if name.starts_with('!') || name == "meta" || tag.ends_with('/') {
            continue;
        }
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed)),
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[track_caller]
fn self_contained(page: &str) {
    let without_names = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for word in ["http://", "https://", "<script", "<link", "<img", "url(", "@import", "NaN", "inf\""] {
        assert!(!without_names.contains(word), "{word}");
    }
    balanced(page);
}

#[test]
fn a_described_machine_has_every_section_and_a_full_map() {
    let scratch = Scratch::new();
    let file = &*scratch.at("page.html");
    let arguments = ["report", "--machine", "generic-x86", "--topology", TWO_PACKAGES, "-o", file];
    assert_eq!(scratch.run(&arguments).accepted().trim(), file);
    let page = std::fs::read_to_string(file).unwrap();
    self_contained(&page);
    for id in SECTIONS {
        assert_eq!(page.matches(&format!("<section id=\"{id}\" ")).count(), 1, "{id}");
        assert_eq!(page.matches(&format!("<a href=\"#{id}\">")).count(), 1, "{id}");
    }
    // The machine is drawn twice, once under the tree: 7 arrows to 8 CPUs.
    assert_eq!(page.matches("<title>CPU 3</title>").count(), 2);
    let tree = page.split("aria-label=\"The tree of an 8-byte broadcast\"").nth(1).unwrap();
    assert_eq!(tree.split("</svg>").next().unwrap().matches("<polygon").count(), 7);
    for collective in ["bcast", "allreduce"] {
        for ranks in [2, 4, 8] {
            for bytes in SIZES {
                for team in ["threads", "processes"] {
                    let cell = format!("<title>{collective}, {ranks} {team}, {bytes}: ");
                    assert_eq!(page.matches(&cell).count(), 1, "{cell}");
                }
            }
        }
    }
    // The first screen has a sentence and a picture for each question, and every picture has a description.
    for (id, _) in ANSWERS {
        let answer = page.split(&format!("<section class=\"answer\" id=\"{id}\">")).nth(1).unwrap();
        let answer = answer.split("</section>").next().unwrap();
        assert!(answer.contains("<p>") && answer.contains("<svg "), "{id}: {answer}");
    }
    assert_eq!(page.matches("<figcaption>").count(), page.matches("<svg ").count());
    assert!(!page.contains("<figcaption></figcaption>") && !page.contains("<figcaption>.</figcaption>"));
    assert!(page.contains("No measured times: "), "what is missing is said");
}

#[test]
fn a_profile_with_choices_is_compared_with_them() {
    let scratch = Scratch::new();
    let text = profile();
    let file = scratch.file("profile.toml", &text);
    let json = ["report", "--profile", &file, "--json", "-o", &format!("{file}.html")];
    let objects = scratch.run(&json).objects();
    let missing = |objects: &[Value], id: &str| {
        objects.iter().find(|o| o["section"] == id).unwrap()["missing"].as_str().map(str::to_owned)
    };
    assert_eq!(objects.len(), 1 + ANSWERS.len() + SECTIONS.len());
    for (object, (id, question)) in objects[1..].iter().zip(ANSWERS) {
        assert_eq!((&object["answer"], &object["question"]), (&id.into(), &question.into()));
        assert!(object["sentence"].as_str().unwrap().ends_with('.'), "{object}");
    }
    assert!(missing(&objects, "predicted").unwrap().contains("lineweave tune"));
    let barrier =
        "collective = \"barrier\"\nbytes = 0\nteam = \"threads\"\nalgorithm = \"exchange\"\nwindow = 0";
    let machine = chosen(&scratch, &file, barrier);
    assert_eq!(missing(&scratch.run(&json).objects(), "predicted"), None);
    let page = std::fs::read_to_string(format!("{file}.html")).unwrap();
    self_contained(&page);
    assert!(page.contains("contention needs 3 CPUs") && page.contains(&machine) && page.contains("A CPU"));
    let md = scratch.run(&["report", "--profile", &file, "--format", "md"]).accepted();
    assert!(
        md.contains("\n## Predicted against measured\n") && md.contains("| barrier | 2 | 0 B | threads |"),
        "{md}"
    );
    let svg = scratch.run(&["report", "--profile", &file, "--format", "svg"]).accepted();
    assert!(svg.starts_with("<svg "));
    self_contained(&svg);
}

/// Compares every cell of the tables of choices with the output of `explain` for that call; returns the number of
/// cells.
#[track_caller]
fn agrees_with_explain(scratch: &Scratch, of: &[&str]) -> usize {
    let md = scratch.run(&[&["report", "--format", "md"], of].concat()).accepted();
    let mut cells = 0;
    for row in md.lines().filter(|l| l.starts_with("| bcast, ") || l.starts_with("| allreduce, ")) {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (collective, place) = columns[0].split_once(", ").unwrap();
        let (ranks, team) = place.split_once(' ').unwrap();
        for (size, chosen) in SIZES.iter().zip(&columns[1..]) {
            let size = size.replace([' ', 'B'], "").replace("Ki", "KiB").replace("Mi", "MiB");
            let mut arguments = vec!["explain", collective, &size, "--ranks", ranks, "--json"];
            arguments.extend(if team == "threads" { &["--direct"][..] } else { &[] });
            let said = scratch.run(&[&arguments[..], of].concat()).objects();
            assert_eq!(said[0]["algorithm"], **chosen, "{collective} {size} among {place}");
            cells += 1;
        }
    }
    cells
}

#[test]
fn what_is_chosen_is_what_explain_says_in_every_cell() {
    let scratch = Scratch::new();
    let described = ["--machine", "generic-x86", "--topology", "pack:1 numa:1 l3:1 core:4 pu:1"];
    assert_eq!(agrees_with_explain(&scratch, &described), 2 * 2 * 2 * 8);
    // The profile comes with a measured choice that the model would not make.
    let file = scratch.file("profile.toml", &profile());
    let allreduce = "collective = \"allreduce\"\nbytes = 8\nteam = \"processes\"\nalgorithm = \"reduce-bcast\"\nwindow = 8";
    chosen(&scratch, &file, allreduce);
    let of = ["--profile", &file];
    assert_eq!(agrees_with_explain(&scratch, &of), 2 * 2 * 8);
    let said = scratch.run(&["explain", "allreduce", "8", "--profile", &file, "--json"]).objects();
    assert_eq!((&said[0]["algorithm"], &said[0]["because"]), (&"reduce-bcast".into(), &"measured".into()));
}

#[test]
fn the_ending_of_the_file_decides_the_format() {
    let scratch = Scratch::new();
    let profile = scratch.file("p.toml", &profile());
    let report = |name: &str, more: &[&str]| {
        let file = scratch.at(name);
        let arguments = [&["report", "--profile", &profile, "-o", &file], more].concat();
        (scratch.run(&arguments), file)
    };
    for (name, first) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.SVG", "<svg "),
        ("r.png", "\u{fffd}PNG"),
        ("r.md", "# "),
        ("plain", "<!DOCTYPE"),
    ] {
        let (outcome, file) = report(name, &[]);
        outcome.accepted();
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(text.starts_with(first), "{name}");
    }
    report("named", &["--format", "svg"]).0.accepted();
    for (name, more, word) in [
        ("x.html", &["--format", "png"][..], "--format png"),
        ("x.svg", &["--format", "html"], "--format html"),
        ("x.txt", &[], ".html, .svg, .png or .md"),
    ] {
        let (outcome, file) = report(name, more);
        outcome.refused(1, &[name, word]);
        assert!(!Path::new(&file).exists(), "{name}");
    }
}

#[test]
fn a_plan_is_drawn_on_an_axis_of_time() {
    let scratch = Scratch::new();
    let plan = ["draw", "bcast", "binomial", "--ranks", "8", "--bytes", "8", "--time"];
    let of = |machine: &str| scratch.run(&[&plan[..], &["--machine", machine]].concat()).accepted();
    let both = of("sandy-bridge-e5-2670-2s");
    self_contained(&both);
    for word in [
        ">predicted: ",
        ">simulated: ",
        ">critical path: 0 \u{2192} ",
        "longest waits: ",
        "until rank 0 sets it",
    ] {
        assert!(both.contains(word), "{word}");
    }
    let described = of("generic-x86");
    assert!(described.contains(">predicted: ") && !described.contains(">simulated: "));
    let mesh = of("intel-scc");
    assert!(!mesh.contains(">predicted: ") && mesh.contains(">simulated: "));
    let stuck =
        "plan barrier/x p=2 root=0 bytes=0 grain=1 acc=0 reuse=ring direct=no slots=none\nflags f alone 1\n\
                 rank 0: wait f@0[0]>=1\nrank 1: wait f@1[0]>=1\nend\n";
    let file = scratch.file("stuck.plan", stuck);
    scratch
        .run(&["draw", "--plan", &file, "--time", "--machine", "generic-x86"])
        .refused(1, &["barrier/x", "waits for ever"]);
}

#[test]
fn a_simulated_machine_is_measured_fitted_and_played() {
    let scratch = Scratch::new();
    let whole = scratch.line("report --machine sandy-bridge-e5-2670-2s --simulate --format md").accepted();
    assert!(
        whole.contains("104 cells") && whole.contains("| T_N@l3 |") && whole.contains("| simulated |"),
        "{whole}"
    );
    scratch.line("report --machine generic-x86 --simulate").refused(1, &["generic-x86", "[coherent]"]);
}

#[test]
fn pictures_are_drawn_as_pixels() {
    let scratch = Scratch::new();
    let file = scratch.at("report.png");
    scratch
        .run(&["report", "--profile", &scratch.file("p.toml", &profile()), "--format", "png", "-o", &file])
        .accepted();
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert!(side(16) > 800 && side(20) > 2_000, "{} by {}", side(16), side(20));
}

#[test]
fn a_bench_record_is_predicted_by_the_costs_that_are_given() {
    let scratch = Scratch::new();
    let record = scratch.file(
        "bench.jsonl",
        "{\"kind\":\"record\",\"cpu\":\"A CPU\",\"fingerprint\":\"0\",\"topology\":\"pack:1 core:2 pu:1\",\"measured_at\":\"now\"}\n\
         {\"kind\":\"bench\",\"subject\":\"memcpy\",\"median_ns\":1.0}\n\
         {\"kind\":\"bench\",\"subject\":\"lineweave\",\"collective\":\"barrier\",\"ranks\":2,\"bytes\":0,\
         \"team\":\"threads\",\"median_ns\":55.0,\"algorithm\":\"exchange layout=paired\",\"window_bytes\":0}\n",
    );
    let arguments = ["report", "--machine", "generic-x86", "--record", &record, "--format", "md"];
    let md = scratch.run(&arguments).accepted();
    assert!(
        md.contains("| barrier | 2 | 0 B | threads | exchange layout=paired |") && md.contains("1 times:"),
        "{md}"
    );
}

#[test]
fn what_cannot_be_reported_is_refused() {
    let scratch = Scratch::new();
    let profile = scratch.file("profile.toml", &profile());
    let bad = scratch.file("bad.jsonl", "{\"kind\":\"bench\"\n");
    let headless = scratch.file("headless.jsonl", "{\"kind\":\"bench\"}\n");
    let crowd = scratch.file(
        "crowd.jsonl",
        "{\"kind\":\"bench\",\"subject\":\"lineweave\",\"collective\":\"bcast\",\"ranks\":2147483648,\"bytes\":8,\
         \"team\":\"threads\",\"median_ns\":1.0,\"algorithm\":\"binomial\",\"window_bytes\":0}\n",
    );
    let there = scratch.path().to_str().unwrap();
    for (arguments, status, words) in [
        (&["--profile", "/no/such.toml"][..], 1, &["/no/such.toml", "readable profile"][..]),
        (&["--machine", "no-such-machine"], 1, &["no-such-machine", "xeon-phi-5110p"]),
        (&["--record", "/no/such.jsonl"], 1, &["readable bench record"]),
        (&["--record", &bad], 1, &["line 1", "bench record"]),
        (&["--record", &headless], 1, &["no line of kind `record`"]),
        (&["--record", &crowd], 1, &["line 1: 2147483648 ranks", "1 to 4096"]),
        (&["--record", "/dev/zero"], 1, &["/dev/zero", "bench record", "more than 256 MiB"]),
        (
            &["--profile", &profile, "-o", "/no/such/report.html"],
            2,
            &["there is no directory /no/such", "-o"],
        ),
        (&["--profile", &profile, "-o", there], 1, &["cannot be written", "-o"]),
        (&["--profile", &profile, "--format", "png"], 1, &["-o", "--format svg"]),
        (&["--simulate"], 1, &["--machine"]),
    ] {
        scratch.run(&[&["report"], arguments].concat()).refused(status, words);
    }
    let format = scratch.line("report --format gif");
    assert_eq!(format.status, Some(2));
    assert!(format.err.contains("html, svg, png, md"), "{}", format.err);
}

#[test]
fn profiles_are_compared_by_their_intervals() {
    let scratch = Scratch::new();
    let a = scratch.file("a.toml", &profile());
    let other = profile().replace("median = 60\n", "median = 80\n").replace("ci_low = 59\n", "ci_low = 79\n");
    let b = scratch.file("b.toml", &other.replace("ci_high = 61\n", "ci_high = 81\n"));
    let objects = scratch.run(&["profile", "diff", &a, &b, "--json"]).objects();
    let find = |layout: &str| {
        let of = |o: &&Value| o["parameter"] == "signal" && o["layout"] == layout;
        objects.iter().find(of).unwrap().clone()
    };
    let (alone, paired) = (find("alone"), find("paired"));
    assert_eq!(
        (&alone["a_ns"], &alone["b_ns"], &alone["significant"]),
        (&60.0.into(), &80.0.into(), &true.into())
    );
    assert!((alone["ratio"].as_f64().unwrap() - 80.0 / 60.0).abs() < 1e-9);
    assert_eq!((&paired["ratio"], &paired["significant"]), (&1.0.into(), &false.into()));
    // A parameter that was not measured is not tested.
    let assumed = objects.iter().find(|o| o["parameter"] == "futex").unwrap();
    assert!(assumed["significant"].is_null());
    let text = scratch.run(&["profile", "diff", &a, &b]).accepted();
    assert!(text.contains(" differ: ") && text.contains("yes"), "{text}");
    scratch.run(&["profile", "diff", &a, "/no/such.toml"]).refused(1, &["readable profile"]);
}
