//! Every ordering that synchronises carries `// SYNC: <name>`, and each name occurs on both sides: whoever
//! reads one side finds the other by searching for the name. Every `Relaxed` says why it is enough. Atomics
//! are named in `sync.rs` alone, so that one file swaps in loom's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The sides on which a name was seen, with the first place of each.
#[derive(Default, Debug)]
struct Sides {
    acquire: Option<String>,
    release: Option<String>,
}

/// Where the code of a line ends and its comment begins.
fn split(line: &str) -> (&str, &str) {
    line.split_once("//").unwrap_or((line, ""))
}

/// The comments that speak of a line: its own, and those above it up to the end of the statement before.
fn comments<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    let mut found = vec![split(lines[at]).1];
    for line in lines[..at].iter().rev().take(6) {
        let (code, comment) = split(line);
        let code = code.trim_end();
        if code.ends_with(';') || code.ends_with('}') {
            break;
        }
        found.push(comment);
    }
    found
}

/// The names after `SYNC:` in a comment: words separated by commas; whatever follows explains.
fn names(comment: &str) -> Vec<&str> {
    let Some((_, list)) = comment.split_once("SYNC:") else { return Vec::new() };
    let mut names = Vec::new();
    for item in list.split(',') {
        let mut words = item.split_whitespace();
        names.extend(words.next().map(|word| word.trim_end_matches(['.', ':', ';'])));
        if words.next().is_some() {
            break;
        }
    }
    names
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

/// Checks one file: adds what it names to `pairs` and what it lacks to `wrong`.
fn inspect(file: &str, text: &str, pairs: &mut BTreeMap<String, Sides>, wrong: &mut Vec<String>) {
    let lines: Vec<&str> = product(text);
    for (at, line) in lines.iter().enumerate() {
        let code = split(line).0;
        let place = format!("{file}:{}", at + 1);
        if code.contains("Ordering::{") || code.contains("Ordering::*") {
            wrong.push(format!("{place}: orderings are spelled `Ordering::X` where they are used"));
        }
        if code.contains("sync::atomic") && !file.ends_with("sync.rs") {
            wrong.push(format!("{place}: atomics are named in sync.rs alone; use crate::sync"));
        }
        let uses = |ordering: &str| code.contains(&format!("Ordering::{ordering}"));
        let (acquires, releases) = (uses("Acquire"), uses("Release"));
        let both = uses("AcqRel") || uses("SeqCst");
        let said = comments(&lines, at);
        if uses("Relaxed") && said.iter().all(|comment| comment.trim().is_empty()) {
            wrong.push(format!("{place}: a comment must say why Relaxed is enough"));
        }
        if !(acquires || releases || both) {
            continue;
        }
        let named: Vec<&str> = said.iter().flat_map(|comment| names(comment)).collect();
        if named.is_empty() {
            wrong.push(format!("{place}: lacks `// SYNC: <name>` on its line or above its statement"));
        }
        for name in named {
            let sides = pairs.entry(name.to_owned()).or_default();
            if acquires || both {
                sides.acquire.get_or_insert_with(|| place.clone());
            }
            if releases || both {
                sides.release.get_or_insert_with(|| place.clone());
            }
        }
    }
}

/// Names that occur on one side only.
fn unpaired(pairs: &BTreeMap<String, Sides>) -> Vec<String> {
    pairs
        .iter()
        .filter_map(|(name, sides)| match (&sides.acquire, &sides.release) {
            (Some(_), Some(_)) => None,
            (Some(place), None) => Some(format!("{place}: SYNC: {name} is acquired and nowhere released")),
            (None, Some(place)) => Some(format!("{place}: SYNC: {name} is released and nowhere acquired")),
            (None, None) => None,
        })
        .collect()
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a readable source directory") {
        let path = entry.expect("a readable directory entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") && !is_tests(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_synchronisation_has_both_sides() {
    let (mut pairs, mut wrong) = (BTreeMap::new(), Vec::new());
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    // What measures the engine stores and reads as the engine does.
    let mut files = sources(&own.join("../lineweave-tune/src"));
    assert!(!files.is_empty(), "the crate beside this one has sources");
    files.extend(sources(&own.join("src")));
    for file in files {
        let text = fs::read_to_string(&file).expect("a readable source");
        inspect(&file.display().to_string(), &text, &mut pairs, &mut wrong);
    }
    wrong.extend(unpaired(&pairs));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
