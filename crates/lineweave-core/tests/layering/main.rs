//! Arrows point one way: between crates, between this crate's modules, and away from input and output.

mod circles;
mod house;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which of our crates each of our crates may depend on.
const CRATES: [(&str, &[&str]); 7] = [
    ("lineweave-core", &[]),
    ("lineweave-lab", &["lineweave-core"]),
    ("lineweave", &["lineweave-core"]),
    ("lineweave-tune", &["lineweave-core", "lineweave"]),
    ("lineweave-c", &["lineweave-core", "lineweave"]),
    ("lineweave-py", &["lineweave-core", "lineweave"]),
    ("lineweave-cli", &["lineweave-core", "lineweave-lab", "lineweave", "lineweave-tune"]),
];

/// The crates that compute, and nothing else.
const PURE: [&str; 2] = ["lineweave-core", "lineweave-lab"];

/// The crates whose `lib.rs` declares modules in the order in which they may use each other.
const ORDERED: [&str; 4] = ["lineweave-core", "lineweave-lab", "lineweave", "lineweave-tune"];

/// What the pure crates do without: clocks, threads, files, the environment, other processes, the network.
const IMPURE: [&str; 9] = [
    "std::time::Instant",
    "std::time::SystemTime",
    "std::thread",
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "std::os",
    "std::io::std",
];

/// How a library would talk behind its caller's back.
const PRINTS: [&str; 5] = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];

fn crates_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies in crates/").to_owned()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in fs::read_dir(&next).expect("a readable source directory") {
            let path = entry.expect("a readable directory entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_tests(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of a file before its inline test module, which by custom comes last.
fn product(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |pair: &[&str]| {
        let test =
            ["#[cfg(test)", "#[cfg(all(test,"].iter().any(|start| pair[0].trim_start().starts_with(start));
        // `mod tests;` lies in a file of its own, and what follows it is not a test.
        test && !pair[1].trim_end().ends_with(';')
    };
    let end = lines.windows(2).position(opens_tests).unwrap_or(lines.len());
    lines[..end].to_vec()
}

/// Returns whether a source below `src` holds tests only.
fn is_tests(path: &Path) -> bool {
    path.file_stem().is_some_and(|stem| stem == "tests")
        || path.parent().is_some_and(|above| above.file_name().is_some_and(|name| name == "tests"))
}

/// The code of a file without comments and without its test module, which by custom comes last.
fn code(text: &str) -> String {
    product(text).into_iter().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The modules of a `lib.rs`, in the order in which they are declared.
fn declared(lib: &str) -> Vec<String> {
    code(lib)
        .lines()
        .filter_map(|line| {
            let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
        })
        .collect()
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The first names of what a path's rest reaches: one name, or each of a braced group.
fn heads(rest: &str) -> Vec<&str> {
    let Some(group) = rest.strip_prefix('{') else { return vec![identifier(rest)] };
    let (mut heads, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && !c.is_whitespace() => {
                heads.push(identifier(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

/// Everything that code in a module of the given depth names at the crate's root.
fn named_at_root(code: &str, depth: usize) -> BTreeSet<&str> {
    let climb = "super::".repeat(depth);
    let mut found = BTreeSet::new();
    for prefix in ["crate::", climb.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            let macro_call = rest[identifier(rest).len()..].starts_with('!');
            if !macro_call {
                found.extend(heads(rest));
            }
        }
    }
    found
}

/// What is wrong with one file of a crate whose modules are declared in `order`.
fn looks_forward(order: &[String], module: &str, depth: usize, text: &str) -> Vec<String> {
    let position = |name: &str| order.iter().position(|m| m == name);
    let Some(own) = position(module) else { return vec![format!("`{module}` is not declared in lib.rs")] };
    named_at_root(&code(text), depth)
        .into_iter()
        .filter_map(|name| match position(name) {
            None => Some(format!("crate::{name} is not a module: name it by its module's path")),
            Some(used) if used > own => Some(format!("crate::{name} is declared after `{module}`")),
            Some(_) => None,
        })
        .collect()
}

#[test]
fn modules_use_only_earlier_modules() {
    for name in ORDERED {
        let source = crates_directory().join(name).join("src");
        let order = declared(&fs::read_to_string(source.join("lib.rs")).expect("lib.rs"));
        let in_source = fs::read_dir(&source).expect("a readable source directory");
        let names: BTreeSet<_> =
            in_source.map(|entry| entry.expect("an entry").path().with_extension("")).collect();
        assert_eq!(
            order.len(),
            names.len() - 1,
            "{name}'s lib.rs declares its modules one a line: {order:?}"
        );
        let mut wrong = Vec::new();
        for file in sources(&source) {
            let relative = file.strip_prefix(&source).expect("below src").with_extension("");
            let mut path: Vec<&str> = relative.iter().map(|part| part.to_str().expect("UTF-8")).collect();
            if path == ["lib"] {
                continue;
            }
            path.retain(|part| *part != "mod");
            let text = fs::read_to_string(&file).expect("a readable source");
            for reason in looks_forward(&order, path[0], path.len(), &text) {
                wrong.push(format!("{}: {reason}", file.display()));
            }
        }
        assert!(wrong.is_empty(), "lib.rs declares modules in dependency order:\n{}", wrong.join("\n"));
    }
}

#[test]
fn a_forward_use_is_seen_in_every_spelling() {
    let order: Vec<String> = ["units", "plan", "algorithm"].map(str::to_owned).to_vec();
    let forward = |depth, text| looks_forward(&order, "plan", depth, text);
    assert_eq!(
        forward(1, "use crate::units::Rank;\nuse crate::{plan, units::{Rank, LINE}};"),
        Vec::<String>::new()
    );
    assert_eq!(forward(1, "use crate::algorithm::Table;").len(), 1);
    assert_eq!(forward(1, "use crate::{units::{Rank, LINE}, algorithm};").len(), 1);
    assert_eq!(forward(1, "fn f() { crate::algorithm::table() }").len(), 1);
    assert_eq!(forward(2, "use super::super::algorithm;").len(), 1);
    assert_eq!(forward(2, "use super::builder;").len(), 0);
    assert_eq!(forward(1, "use super::algorithm;").len(), 1);
    assert_eq!(forward(1, "use crate::Missing;").len(), 1);
    assert_eq!(forward(1, "// crate::algorithm\n#[cfg(test)]\nmod tests { use crate::algorithm; }").len(), 0);
    assert_eq!(looks_forward(&order, "absent", 1, "").len(), 1);
}

/// The names of our own crates among a manifest's dependencies of every kind.
fn own_dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(dependencies) = table.get(kind).and_then(toml::Value::as_table) else { continue };
            for (key, value) in dependencies {
                let name = value.get("package").and_then(toml::Value::as_str).unwrap_or(key);
                if name.starts_with("lineweave") {
                    found.insert(name.to_owned());
                }
            }
        }
    }
    found
}

#[test]
fn crates_depend_one_way() {
    let mut seen = 0;
    for entry in fs::read_dir(crates_directory()).expect("crates/") {
        let path = entry.expect("a readable directory entry").path().join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let manifest: toml::Table = text.parse().expect("a manifest that cargo reads");
        let name = manifest["package"]["name"].as_str().expect("a package's name");
        let (_, allowed) = CRATES.iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
            panic!("{}: place `{name}` in the table of this test and in ARCHITECTURE.md", path.display())
        });
        for dependency in own_dependencies(&manifest) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}: the arrows of ARCHITECTURE.md point the other way"
            );
        }
        seen += 1;
    }
    assert!(seen >= 3, "found {seen} manifests in crates/, and there are more");
}

#[test]
fn dependencies_are_found_however_they_are_written() {
    let manifest: toml::Table = r#"
        [dependencies]
        serde = "1"
        lineweave-core.workspace = true
        [dev-dependencies]
        renamed = { package = "lineweave-cli", path = ".." }
        [target.'cfg(unix)'.dependencies]
        lineweave = "0.1"
    "#
    .parse()
    .expect("TOML");
    let expected = ["lineweave", "lineweave-cli", "lineweave-core"].map(str::to_owned);
    assert_eq!(own_dependencies(&manifest), BTreeSet::from(expected));
}

#[test]
fn what_computes_is_pure_and_safe() {
    for name in PURE {
        let source = crates_directory().join(name).join("src");
        let lib = fs::read_to_string(source.join("lib.rs")).expect("lib.rs");
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{name} forbids unsafe code");
        for file in sources(&source) {
            let code = code(&fs::read_to_string(&file).expect("a readable source"));
            for impure in IMPURE {
                assert!(
                    !code.contains(impure),
                    "{}: {impure} belongs in `lineweave` or the CLI",
                    file.display()
                );
            }
        }
    }
}

/// The first print macro in code, if any: `print!` inside `println!` or a name of ours does not count twice.
fn prints(code: &str) -> Option<&'static str> {
    PRINTS.into_iter().find(|name| {
        code.match_indices(name)
            .any(|(at, _)| !code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'))
    })
}

#[test]
fn nothing_below_the_cli_prints() {
    for name in ["lineweave-core", "lineweave-lab", "lineweave", "lineweave-tune"] {
        for file in sources(&crates_directory().join(name).join("src")) {
            let code = code(&fs::read_to_string(&file).expect("a readable source"));
            if let Some(macro_name) = prints(&code) {
                panic!("{}: {macro_name} belongs in lineweave-cli", file.display());
            }
        }
    }
    assert_eq!(prints("fn f() { eprintln!(\"x\") }"), Some("eprintln!"));
    assert_eq!(prints("dbg!(x)"), Some("dbg!"));
    assert_eq!(prints("writeln!(f)?; pretty_print!(x)"), None);
}
