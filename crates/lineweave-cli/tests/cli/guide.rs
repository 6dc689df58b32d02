//! The shell examples of the tutorials, the how-tos and the explanations, run as they are printed.

use crate::common::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the pages of a folder of docs/.
fn pages(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(folder);
    let mut pages: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    pages.sort();
    pages
}

/// Returns the lines of a page's shell blocks in the order of the page, since later ones use files that earlier ones
/// wrote.
fn lines(page: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut inside, mut skip) = (false, false);
    for line in page.lines() {
        match line {
            "```sh" if !skip => inside = true,
            "```" => (inside, skip) = (false, false),
            _ if line.starts_with("<!-- not run: ") => skip = true,
            _ if inside => lines.push(line),
            _ => {}
        }
    }
    lines
}

/// Runs a page's lines in a folder of their own, and returns their number.
fn run_page(page: &Path) -> usize {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_BIN_EXE_lineweave")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let text = std::fs::read_to_string(page).unwrap();
    let lines = lines(&text);
    for line in &lines {
        let done = Command::new("sh")
            .args(["-ec", line])
            .current_dir(scratch.path())
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", scratch.path())
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && !out.is_empty(), "{}: {line}\n{out}\n{err}", page.display());
        if line.contains("run -n 3") {
            let mut ranks: Vec<&str> = out.lines().collect();
            ranks.sort_unstable();
            assert_eq!(ranks, ["rank 0", "rank 1", "rank 2"]);
        }
    }
    lines.len()
}

#[test]
fn shell_lines_of_tutorials_do_what_they_say() {
    let lines: usize = pages("tutorials").iter().map(|page| run_page(page)).sum();
    assert!(lines > 8, "{lines}");
}

#[test]
fn shell_lines_of_how_tos_do_what_they_say() {
    let lines: usize = pages("how-to").iter().map(|page| run_page(page)).sum();
    assert!(lines > 10, "{lines}");
}

#[test]
fn shell_lines_of_explanations_do_what_they_say() {
    let lines: usize = pages("explanation").iter().map(|page| run_page(page)).sum();
    assert!(lines > 5, "{lines}");
}
