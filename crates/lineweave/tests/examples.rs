//! The programs in examples/ run, and say what they found. `cargo test` builds them beside the tests.

use std::path::PathBuf;
use std::process::Command;

/// What each says, at least.
const EXAMPLES: [(&str, &str); 6] = [
    ("threads", "4 threads found 499500 together"),
    ("processes", "the greatest of 3 process numbers is "),
    ("started", "both ranks have (1.0, 5050, [0, 1], 0)"),
    ("persistent", "after 100 steps both ranks have 9900"),
    ("windows", "from their left neighbours the ranks got [102, 100, 101]"),
    ("operators", "joined: collecti; furthest from zero is -9"),
];

/// Where cargo puts examples.
fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    test.ancestors().nth(2).expect("a target folder").join("examples")
}

#[test]
fn every_example_runs_and_says_what_it_found() {
    for (name, says) in EXAMPLES {
        let program = folder().join(name);
        assert!(program.exists(), "{} is not built: cargo build -p lineweave --examples", program.display());
        let out = Command::new(&program).output().expect("it starts");
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{name}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
        assert!(said.contains(says), "{name} says {said}");
    }
}

#[test]
fn every_example_is_run_here() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).expect("a folder");
    let names = sources.map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_owned());
    for name in names {
        // Of scripts/valgrind, which runs it.
        let known = name == "process_check" || EXAMPLES.iter().any(|(known, _)| name == *known);
        assert!(known, "{name:?} is not run");
    }
}

/// The text between the start of a public function's documentation and the function, which may be a row of a table.
fn documented(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut said = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            said += text;
            said.push('\n');
        } else if let Some(rest) = line.strip_prefix("pub fn ") {
            let name = rest.split(['<', '(']).next().unwrap_or(rest);
            found.push((name.to_owned(), std::mem::take(&mut said)));
        } else if let Some(name) = row(line).filter(|_| !said.is_empty()) {
            found.push((name.to_owned(), std::mem::take(&mut said)));
        } else if !line.starts_with("#[") {
            said.clear();
        }
    }
    found
}

/// The function that a row of a table is: a name with its parameters.
fn row(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('(')?;
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (!name.is_empty() && name != "pub" && is_name(name)).then_some(name)
}

#[test]
fn every_collective_has_an_example() {
    let sources = [
        ("calls.rs", include_str!("../src/calls.rs")),
        ("calls/blocks.rs", include_str!("../src/calls/blocks.rs")),
        ("calls/uneven.rs", include_str!("../src/calls/uneven.rs")),
        ("requests/started.rs", include_str!("../src/requests/started.rs")),
    ];
    let mut functions = 0;
    for (file, source) in sources {
        for (name, said) in documented(source).into_iter().filter(|(name, _)| name != "$name") {
            functions += 1;
            assert!(
                said.contains("```") && said.contains("assert") || name.contains("barrier"),
                "{file}: {name} has no example"
            );
        }
    }
    assert!(functions > 40, "{functions} functions");
}
